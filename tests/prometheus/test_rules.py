import re

import pytest
import yaml

from deploy.grafana.metrics import RECORDED, families_of
from tests.conftest import ROOT
from tests.prometheus.spans import PLACES, SPANS, shortened

FOLDER = ROOT / "deploy" / "prometheus"


def rules(name):
    groups = yaml.safe_load((FOLDER / name).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


ALERTS = {rule["alert"]: rule for rule in rules("alerts.yml")}


def test_promtool_accepts_the_configuration_and_the_rules(promtool):
    code, said = promtool("check", "config", FOLDER / "prometheus.yml")
    assert code == 0, said
    assert f"{len(ALERTS)} rules found" in said
    code, said = promtool("check", "rules", "--lint-fatal", FOLDER / "rules.yml", FOLDER / "alerts.yml")
    assert code == 0, said


def test_alerts_fire_when_they_should_and_only_then(promtool):
    code, said = promtool("test", "rules", FOLDER / "tests.yml")
    assert code == 0, said


def test_every_alert_is_shown_to_fire_and_to_keep_silent():
    fires, silent = set(), set()
    for test in yaml.safe_load((FOLDER / "tests.yml").read_text())["tests"]:
        for case in test["alert_rule_test"]:
            (fires if case.get("exp_alerts") else silent).add(case["alertname"])
    assert fires == silent == set(ALERTS)


@pytest.mark.parametrize(
    "rule", [*rules("rules.yml"), *ALERTS.values()], ids=lambda rule: next(iter(rule.values()))
)
def test_rules_name_metrics_that_exist(rule):
    families_of(rule["expr"])


def test_everything_recorded_is_of_use():
    used = " ".join(rule["expr"] for rule in [*rules("rules.yml"), *ALERTS.values()])
    used += (ROOT / "deploy" / "grafana" / "dashboards" / "stream-hc.json").read_text()
    assert {name for name in RECORDED if name not in used} == set()


@pytest.mark.parametrize("name", ALERTS)
def test_the_page_says_what_to_do_about_an_alert(name):
    place = ALERTS[name]["annotations"]["runbook"]
    page, _, anchor = place.partition("#")
    headings = re.findall(r"^### (\w+)$", (ROOT / page).read_text(), re.MULTILINE)
    assert anchor == name.lower()
    assert name in headings
    assert ALERTS[name]["labels"]["severity"] in ("critical", "warning", "info")


def test_the_page_names_no_other_alerts():
    assert set(re.findall(r"\bStreamHC\w+", (ROOT / "docs" / "monitoring.md").read_text())) == set(ALERTS)


def test_short_spans_keep_their_order():
    seconds = [int(span[:-1]) for span in SPANS.values()]
    assert seconds == sorted(seconds)
    for name in ("rules.yml", "alerts.yml"):
        text = (FOLDER / name).read_text()
        found = {match["span"] for match in PLACES.finditer(text)}
        assert found <= set(SPANS)
        assert found.isdisjoint(match["span"] for match in PLACES.finditer(shortened(text)))


def test_an_expression_that_finds_nothing_is_noticed():
    for expression, problem in [
        ("rate(streamhc_hloss[5m])", "no metric streamhc_hloss:"),
        ("sum(streamhc_ready_total)", "no metric streamhc_ready_total"),
        ('streamhc_ready{model="served"}', "no label model"),
        ("job:streamhc_lag:hours", "job:streamhc_lag:hours is not recorded"),
    ]:
        with pytest.raises(ValueError, match=re.escape(problem)):
            families_of(expression)
