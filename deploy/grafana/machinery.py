"""Panels about the models and the process they live in."""

from deploy.grafana.asking import JOB, MODELS, RATE, quantiles, rate
from deploy.grafana.panels import Json, query, timeseries

__all__ = ["models", "process"]


def models() -> list[Json]:
    """Return fits, swaps, and what models need."""
    gap = f"max(streamhc_refit_duality_gap_ratio{{{JOB}}})"
    return [
        timeseries(
            "Fits and swaps",
            "Since the process began, by outcome.",
            [
                query(f"sum by (outcome) (streamhc_refits_total{{{JOB}}})", "fit: {{outcome}}"),
                query(f"sum by (outcome) (streamhc_model_swaps_total{{{JOB}}})", "model: {{outcome}}"),
                query(f"max(streamhc_refit_running{{{JOB}}})", "under way"),
            ],
            steps=True,
        ),
        timeseries(
            "Predictions by model",
            "Who answered.",
            [query(rate("streamhc_predictions_total", "model"), "{{model}}")],
            "cps",
            stacked=True,
        ),
        timeseries(
            "How long fits take",
            "For 50, 90 and 99 % of them; those that take longer than refit.timeout are killed.",
            quantiles("streamhc_refit_duration_seconds"),
            "s",
        ),
        timeseries(
            "How far from the optimum the last fit ended",
            "The share is compared with refit.tol: a fit above it had no more time.",
            [query(gap, "gap, as a share"), query(f"max(streamhc_refit_duality_gap{{{JOB}}})", "gap")],
        ),
        timeseries(
            "Age of the model that predicts",
            "Of predictors that follow a topic: since the model they use was saved.",
            [
                query(
                    f"max by (instance, model) (streamhc_model_age_seconds{{{JOB}}})",
                    "{{instance}}, {{model}}",
                )
            ],
            "s",
        ),
        timeseries(
            "Versions of models",
            "Published by trainers; taken or refused by predictors.",
            [query(f"sum by (outcome) (streamhc_model_versions_total{{{JOB}}})", "{{outcome}}")],
            steps=True,
        ),
        timeseries(
            "Memory of models",
            "All fitted ones together are hm3.",
            [query(f"max by (model) (streamhc_model_bytes{{{MODELS}}})", "{{model}}")],
            "bytes",
        ),
        timeseries(
            "Stored documents",
            "What second-order learners keep; their budget bounds it.",
            [query(f"max by (model) (streamhc_stored_instances{{{MODELS}}})", "{{model}}")],
        ),
        timeseries(
            "Updates by model and depth",
            "How often the models of nodes change, in a second.",
            [
                query(
                    rate("streamhc_node_updates_total", "model, depth", MODELS), "{{model}}, depth {{depth}}"
                )
            ],
            "cps",
            width=24,
        ),
    ]


def process() -> list[Json]:
    """Return times, transactions, snapshots, memory."""
    return [
        timeseries(
            "How long documents take",
            "From the lines of a batch to its answers.",
            quantiles("streamhc_predict_duration_seconds"),
            "s",
        ),
        timeseries(
            "How long learning takes",
            "All models predict and learn a batch.",
            quantiles("streamhc_update_duration_seconds"),
            "s",
        ),
        timeseries(
            "Transactions",
            "With the broker, in a second, by outcome.",
            [query(rate("streamhc_transactions_total", "outcome"), "{{outcome}}")],
            "cps",
            stacked=True,
        ),
        timeseries(
            "Commit time",
            "Of a transaction with the broker, for 50, 90 and 99 % of them.",
            quantiles("streamhc_commit_duration_seconds"),
            "s",
        ),
        timeseries(
            "Age of the last snapshot",
            "A saw; a ramp is a disk that is full.",
            [query(f"time() - max(streamhc_snapshot_last_success_timestamp_seconds{{{JOB}}})", "age")],
            "s",
            limits={600: "red"},
        ),
        timeseries(
            "Snapshots",
            "Since the process began, by outcome.",
            [query(f"sum by (outcome) (streamhc_snapshots_total{{{JOB}}})", "{{outcome}}")],
            steps=True,
        ),
        timeseries(
            "Memory",
            "Of each process.",
            [query(f"process_resident_memory_bytes{{{JOB}}}", "{{instance}}")],
            "bytes",
        ),
        timeseries(
            "Processor",
            "Cores in use; fits run in processes of their own and are not counted.",
            [query(f"rate(process_cpu_seconds_total{{{JOB}}}[{RATE}])", "{{instance}}")],
        ),
        timeseries(
            "Versions",
            "Which program runs where.",
            [query(f"streamhc_build_info{{{JOB}}}", "{{instance}}: {{version}}")],
            steps=True,
            width=24,
            height=5,
        ),
    ]
