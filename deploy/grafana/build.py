"""Write the dashboard: `python deploy/grafana/build.py`, after a change of metrics, rules or panels.

Panels are described by the metrics that they show, in the words of the telemetry. A name that the telemetry
does not have stops the build, and so does a metric that no panel shows.
"""

import json
import sys
from pathlib import Path

if not __package__:  # run as a file
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from deploy.grafana.board import ANNOTATIONS, panels
from deploy.grafana.metrics import FAMILIES, UnknownMetricError, families_of
from deploy.grafana.panels import DATASOURCE, Json, placed

__all__ = ["DASHBOARD", "build", "expressions", "main"]

DASHBOARD = Path(__file__).with_name("dashboards") / "stream-hc.json"
SCHEMA = 41  # of the classic model; later versions of Grafana bring it up to theirs


def build() -> Json:
    """Return the dashboard."""
    made = {
        "uid": "stream-hc",
        "title": "stream-hc",
        "description": "How wrong a stream of predictions is, and how its models, labels and process are.",
        "tags": ["stream-hc"],
        "id": None,
        "version": 1,
        "schemaVersion": SCHEMA,
        "editable": True,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "liveNow": False,
        "links": [],
        "preload": False,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "weekStart": "",
        "templating": {"list": [_datasource(), _job(), _model()]},
        "annotations": {"list": [_built_in(), *(_annotation(*each) for each in ANNOTATIONS)]},
        "panels": placed(panels()),
    }
    shown = {family.name for expression in expressions(made) for family in families_of(expression)}
    forgotten = {family.name for family in FAMILIES.values()} - shown
    if forgotten:
        raise UnknownMetricError(f"no panel shows {', '.join(sorted(forgotten))}")
    return made


def expressions(dashboard: Json) -> list[str]:
    """Return everything that a dashboard asks of Prometheus."""
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    return asked + [each["expr"] for each in dashboard["annotations"]["list"] if "expr" in each]


def _datasource() -> Json:
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "refresh": 1,
        "regex": "",
    }


def _variable(name: str, label: str, asked: str) -> Json:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": asked,
        "query": {"qryType": 1, "query": asked, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        "current": {},
        "hide": 0,
        "options": [],
        "refresh": 2,
        "regex": "",
        "sort": 1,
    }


def _job() -> Json:
    return _variable("job", "Stream", "label_values(streamhc_build_info, job)") | {
        "includeAll": False,
        "multi": False,
    }


def _model() -> Json:
    return _variable("model", "Model", 'label_values(streamhc_scored_total{job="$job"}, model)') | {
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "includeAll": True,
        "multi": True,
    }


def _built_in() -> Json:
    return {
        "builtIn": 1,
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": True,
        "hide": True,
        "iconColor": "rgba(0, 211, 255, 1)",
        "name": "Annotations & Alerts",
        "type": "dashboard",
    }


def _annotation(name: str, color: str, expr: str, text: str) -> Json:
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": True,
        "hide": False,
        "iconColor": color,
        "expr": expr,
        "step": "60s",
        "titleFormat": name,
        "textFormat": text,
        "tagKeys": "",
        "useValueForTime": False,
    }


def main() -> None:
    """Write the file."""
    DASHBOARD.write_text(json.dumps(build(), indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
