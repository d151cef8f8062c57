"""A real job, scraped by a real Prometheus with our rules in a hurry; then its documents change."""

import json
import time
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from deploy.grafana.build import DASHBOARD, expressions
from deploy.grafana.metrics import families_of
from tests.prometheus.exporter import Exporter
from tests.prometheus.server import Prometheus, wait_for
from tests.prometheus.spans import SPANS, shortened
from tests.prometheus.streaming import Stream

pytestmark = pytest.mark.compiled  # the stream has to be quicker than its documents come

JOB, MADE = "stream-hc", "stream-hc-made"
WARM_UP, CALM, CHANGED = 2600, 1400, 1200  # documents; the change is in the middle of all that there are
PAUSE = 0.009  # seconds
EXPRESSIONS = expressions(json.loads(DASHBOARD.read_text()))
# What a job on files has not got, and what did not happen in this one.
MISSING = {
    "streamhc_consumer_lag_records",
    "streamhc_transactions",
    "streamhc_stored_instances",
    "streamhc_model_age_seconds",
    "streamhc_model_versions",
}
UNHAPPENED = ("process_start_time_seconds", "job_instance:streamhc_refits_failed:total", "ALERTS")


@pytest.fixture(scope="module")
def run(prometheus, tmp_path_factory):
    """Run all of it once: calm, a drift, the end of the job; and look at everything on the way."""
    folder = tmp_path_factory.mktemp("run")
    server_folder = tmp_path_factory.mktemp("prometheus")
    seen = SimpleNamespace()
    with Stream(folder, 2 * (WARM_UP + CALM)) as stream, Exporter() as exporter:
        stream.write(WARM_UP)  # the first mistakes of models that know nothing are before the week
        stream.wait_until_done(WARM_UP)
        with Prometheus(prometheus, server_folder, {JOB: stream.port, MADE: exporter.port}) as server:
            stream.write(CALM, PAUSE)
            seen.calm = server.alerts(JOB) | server.alerts(JOB, "pending")
            seen.changed = time.time()
            stream.write(CHANGED, PAUSE)
            wait_for("both alerts", lambda: has_fired(server) >= {"StreamHCDrift", "StreamHCLossUp"})
            seen.fired = has_fired(server)
            seen.counted = server.times(f'streamhc_drift_detected_total{{job="{JOB}"}}')
            seen.firing = server.times(
                f'ALERTS{{job="{JOB}", alertname="StreamHCDrift", alertstate="firing"}}'
            )
            seen.found = {
                (job, expression): server.since_the_beginning(filled_in(expression, job))
                for job in (JOB, MADE)
                for expression in EXPRESSIONS
            }
            seen.metrics = stream.metrics()
            seen.status = stream.status()
            seen.scraped = server.now(f'streamhc_scored_total{{job="{JOB}", model="served"}}')
            stream.kill()
            seen.killed = time.time()
            wait_for("the end is noticed", lambda: "StreamHCDown" in server.alerts(JOB))
            seen.noticed = time.time()
    return seen


def has_fired(server):
    found = server.since_the_beginning(f'ALERTS{{job="{JOB}", alertstate="firing"}}')
    return {series["metric"]["alertname"] for series in found}


def filled_in(expression, job):
    """Return what Grafana asks, with the spans of the rules in a hurry."""
    expression = shortened(expression)
    for name, value in {"$__rate_interval": "4s", "$job": job, "$model": ".*"}.items():
        expression = expression.replace(name, value)
    return expression


def test_nothing_is_said_while_all_is_calm(run):
    assert run.calm == set()


def test_a_drift_raises_its_alert_within_its_time(run):
    first = next(when for when, value in run.counted if value > 0)
    fired = run.firing[0][0]
    wait = int(SPANS["1m"][:-1])  # its `for`
    assert run.changed < first, "a drift before the documents changed"
    # A scrape and two looks at the rules come on top; the rest is for a busy machine.
    assert wait - 1 <= fired - first <= wait + 1 + 1 + 3


def test_the_drift_also_shows_against_the_week(run):
    # On a busy machine scrapes may fail for a moment, and two seconds stand for two minutes here.
    assert run.fired - {"StreamHCDown"} == {"StreamHCDrift", "StreamHCLossUp"}


def test_the_end_of_the_job_is_noticed(run):
    assert run.noticed - run.killed <= 20


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_panel_finds_something(run, expression):
    assert (
        run.found[MADE, expression] or expression.startswith("count(ALERTS") or "process_start" in expression
    )
    there = {family.name for family in text_string_to_metric_families(run.metrics) if family.samples}
    named = {family.name for family in families_of(expression)}
    assert named <= there | MISSING | {"streamhc_model_swaps"}
    is_there = named <= there and "streamhc_lag" not in expression
    if is_there and not any(name in expression for name in UNHAPPENED):
        assert run.found[JOB, expression]


def test_promtool_finds_no_fault_with_the_metrics(run, promtool):
    code, said = promtool("check", "metrics", told=run.metrics)
    assert (code, said) == (0, "")


def test_prometheus_and_the_page_count_the_same(run):
    (_, scraped) = run.scraped[0]
    assert scraped <= run.status["served"]["scored"]
    assert run.status["refit"]["outcomes"].get("done", 0) >= 1
