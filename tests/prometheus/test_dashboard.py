import doctest
import json
import re

import pytest
import yaml

from deploy.grafana import asking, metrics
from deploy.grafana.build import DASHBOARD, build, expressions
from deploy.grafana.metrics import FAMILIES, RECORDED, families_of
from tests.conftest import ROOT

PROVISIONING = ROOT / "deploy" / "grafana" / "provisioning"
BOARD = json.loads(DASHBOARD.read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]


def test_the_file_is_what_the_script_builds():
    assert build() == BOARD, "run python deploy/grafana/build.py"


def test_panels_have_numbers_of_their_own_and_do_not_overlap():
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken = {}
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert 0 <= place["x"] <= place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]


def test_lines_of_panels_leave_no_holes():
    width = {}
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        width[place["y"]] = width.get(place["y"], 0) + place["w"]
    assert {y: w for y, w in width.items() if w != 24} == {}


def test_panels_say_what_they_show():
    titles = [panel["title"] for panel in BOARD["panels"]]
    assert len(set(titles)) == len(titles)
    for panel in PANELS:
        assert panel["type"] in ("timeseries", "stat", "table")
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["fieldConfig"]["defaults"]["unit"]
        named = {family.name for target in panel["targets"] for family in families_of(target["expr"])}
        assert all(f"- `{name}`: " in panel["description"] for name in named)
        assert [target["refId"] for target in panel["targets"]] == list("ABCDEF"[: len(panel["targets"])])
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert steps[0]["value"] is None
        limits = [step["value"] for step in steps[1:]]
        assert limits == sorted(limits)


def test_every_metric_is_shown():
    text = " ".join(expressions(BOARD))
    shown = {family.name for expression in expressions(BOARD) for family in families_of(expression)}
    assert shown == {family.name for family in FAMILIES.values()}
    assert {name for name in re.findall(r"\w+:\w+:\w+", text)} <= RECORDED


def test_variables_are_those_that_expressions_use():
    names = [variable["name"] for variable in BOARD["templating"]["list"]]
    assert names == ["datasource", "job", "model"]
    used = set(re.findall(r"\$(\w+)", " ".join(expressions(BOARD))))
    assert used == {"job", "model", "__rate_interval"}
    assert all('job="$job"' in expression for expression in expressions(BOARD))


def test_an_operator_finds_the_limits_of_the_alerts():
    alerts = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()
    for title, limit, expression in [
        ("Last hour / week", 1.25, "> 1.25"),
        ("Behind", 300, "job:streamhc_lag:seconds > 300"),
        ("Last snapshot", 600, "job:streamhc_snapshot:age_seconds > 600"),
    ]:
        (panel,) = [panel for panel in PANELS if panel["title"] == title]
        assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][-1] == {"color": "red", "value": limit}
        assert expression in alerts


def test_grafana_finds_the_dashboard_and_its_source():
    (provider,) = yaml.safe_load((PROVISIONING / "dashboards" / "stream-hc.yml").read_text())["providers"]
    assert provider["type"] == "file"
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
    (source,) = yaml.safe_load((PROVISIONING / "datasources" / "prometheus.yml").read_text())["datasources"]
    assert (source["type"], source["access"]) == ("prometheus", "proxy")
    scraped = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())["global"]
    assert source["jsonData"]["timeInterval"] == scraped["scrape_interval"]


@pytest.mark.parametrize("module", [asking, metrics])
def test_examples_are_true(module):
    tried = doctest.testmod(module)
    assert tried.attempted
    assert not tried.failed
