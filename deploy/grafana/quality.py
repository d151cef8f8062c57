"""Panels that tell how a stream is at a glance, and how wrong it is."""

from deploy.grafana.asking import JOB, MODELS, SERVED, rate
from deploy.grafana.panels import Json, query, stat, table, timeseries

__all__ = ["glance", "losses"]


def glance() -> list[Json]:
    """Return what somebody sees who passes by."""
    up = {0: ("down", "red"), 1: ("starting", "orange"), 2: ("ready", "green")}
    firing = f'count(ALERTS{{alertname=~"StreamHC.*", alertstate="firing", {JOB}}}) or vector(0)'
    mean = (
        f"{rate('streamhc_hloss_total', matchers=SERVED)} / {rate('streamhc_scored_total', matchers=SERVED)}"
    )
    hour, week = (f"job_model:streamhc_hloss:mean{span}{{{SERVED}}}" for span in ("1h", "1w"))
    ready = f"max(up{{{JOB}}}) + (max(streamhc_ready{{{JOB}}}) or vector(0))"
    return [
        stat("State", "Whether anybody answers, and processes new records.", query(ready), words=up),
        stat("Alerts", "Alerts of this job that fire: docs/monitoring.md.", query(firing), limits={1: "red"}),
        stat(
            "H-loss now",
            "Of what was published, for each labelled document.",
            query(mean),
            nothing="no labels",
        ),
        stat(
            "Last hour / week",
            "H-loss of the last hour as a share of that of the week before.",
            query(f"{hour} / ({week} offset 1h)"),
            "percentunit",
            limits={1.1: "orange", 1.25: "red"},
            nothing="too early",
        ),
        stat("Documents", "Answered in a second.", query(rate("streamhc_documents_consumed_total")), "cps"),
        stat(
            "Behind",
            "How long the records that wait will take.",
            query(f"job:streamhc_lag:seconds{{{JOB}}}"),
            "s",
            limits={60: "orange", 300: "red"},
            nothing="no topics",
        ),
        stat(
            "Last snapshot",
            "Age of what a restart begins with.",
            query(f"job:streamhc_snapshot:age_seconds{{{JOB}}}"),
            "s",
            limits={300: "orange", 600: "red"},
        ),
        stat(
            "Champion",
            "The model that answers.",
            query(f"max by (model, version) (streamhc_model_info{{{JOB}}})", "{{model}}"),
            name_only=True,
        ),
    ]


def losses() -> list[Json]:
    """Return the H-loss, by model, week, depth and node."""
    mean = (
        f"{rate('streamhc_hloss_total', 'model', MODELS)} / {rate('streamhc_scored_total', 'model', MODELS)}"
    )
    hour = f"job_model:streamhc_hloss:mean1h{{{SERVED}}}"
    depth = rate("streamhc_hloss_by_depth_total", "depth", SERVED)
    by_depth = f"{depth} / on () group_left () {rate('streamhc_scored_total', matchers=SERVED)}"
    return [
        timeseries(
            "H-loss of each model",
            "For each labelled document. `served` is what was published, whoever predicted it.",
            [query(mean, "{{model}}")],
            bold="served",
        ),
        timeseries(
            "Against last week",
            "H-loss of what was published, over an hour. An alert tells when it is a quarter above its week.",
            [
                query(hour, "this hour"),
                query(f"{hour} offset 1w", "a week ago"),
                query(f"job_model:streamhc_hloss:mean1w{{{SERVED}}}", "the whole week"),
            ],
            bold="this hour",
        ),
        timeseries(
            "By depth",
            "Where in the taxonomy it is charged: 0 is the roots.",
            [query(by_depth, "depth {{depth}}")],
            stacked=True,
        ),
        timeseries(
            "The last labelled documents",
            "What the judge compares when it chooses a champion.",
            [query(f"max by (model) (streamhc_hloss_window_mean{{{MODELS}}})", "{{model}}")],
            bold="served",
        ),
        table(
            "Worst nodes",
            "Where most of the recent H-loss is charged. All nodes are at /api/nodes.",
            {
                "H-loss": (_worst("hloss_mean"), "short"),
                "wrong": (_worst("error_ratio"), "percentunit"),
                "documents": (_worst("documents"), "short"),
            },
            "node",
        ),
        timeseries(
            "Drift",
            "Changes for the worse that ADWIN has found since the process began.",
            [query(f"sum(streamhc_drift_detected_total{{{JOB}}})", "found")],
            steps=True,
        ),
    ]


def _worst(part: str) -> Json:
    return query(f"max by (node) (streamhc_worst_node_{part}{{{JOB}}})", instant=True)
