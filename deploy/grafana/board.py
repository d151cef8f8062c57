"""The dashboard from top to bottom, and what is marked across all of its panels."""

from deploy.grafana.asking import JOB
from deploy.grafana.machinery import models, process
from deploy.grafana.panels import Json, row
from deploy.grafana.quality import glance, losses
from deploy.grafana.records import stream

__all__ = ["ANNOTATIONS", "panels"]

# Name, colour, expression, text: what happened, as lines across all panels.
ANNOTATIONS = [
    (
        "Another model answers",
        "blue",
        f"max by (model, version) (streamhc_model_info{{{JOB}}})"
        f" unless max by (model, version) (streamhc_model_info{{{JOB}}} offset 1m)",
        "{{model}}, which knew {{version}} labelled documents",
    ),
    (
        "Drift",
        "orange",
        f"sum(increase(streamhc_drift_detected_total{{{JOB}}}[1m])) > 0",
        "The H-loss has grown",
    ),
    (
        "A fit failed",
        "red",
        f"sum(increase(job_instance:streamhc_refits_failed:total{{{JOB}}}[1m])) > 0",
        "A fit in the background failed",
    ),
    ("Restart", "purple", f"changes(process_start_time_seconds{{{JOB}}}[1m]) > 0", "{{instance}} began anew"),
]


def panels() -> list[Json]:
    """Return all of them, in order."""
    return [
        *glance(),
        row("How wrong is it?"),
        *losses(),
        row("The stream and its labels"),
        *stream(),
        row("The models"),
        *models(),
        row("The process"),
        *process(),
    ]
