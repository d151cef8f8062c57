"""Panels about the records of a stream and how long they wait."""

from deploy.grafana.asking import JOB, SERVED, quantiles, rate
from deploy.grafana.panels import Json, query, timeseries

__all__ = ["stream"]


def stream() -> list[Json]:
    """Return what comes in, what waits and what cannot be used."""
    return [
        timeseries(
            "Documents a second",
            "After a restart some are read again, to get back to where the process was.",
            [
                query(rate("streamhc_documents_consumed_total"), "answered"),
                query(rate("streamhc_replayed_documents_total"), "read again"),
                query(rate("streamhc_scored_total", matchers=SERVED), "labelled"),
                query(rate("streamhc_label_requests_total"), "labels asked for"),
            ],
            "cps",
        ),
        timeseries(
            "Records that wait in topics",
            "Lag of the consumer, by partition.",
            [
                query(
                    f"max by (topic, partition) (streamhc_consumer_lag_records{{{JOB}}})",
                    "{{topic}} {{partition}}",
                )
            ],
        ),
        timeseries(
            "Documents and labels that wait for each other",
            "They give way when there are too many of them, or too old ones: [labels] in the configuration.",
            [
                query(f"sum(streamhc_pending_documents{{{JOB}}})", "documents"),
                query(f"sum(streamhc_pending_labels{{{JOB}}})", "labels"),
            ],
        ),
        timeseries(
            "Labels by outcome",
            "joined: learned. expired: none came. orphan: no document came.",
            [query(rate("streamhc_labels_total", "outcome"), "{{outcome}}")],
            "cps",
            stacked=True,
        ),
        timeseries(
            "Label delay",
            "From a document to its labels, for 50, 90 and 99 % of them.",
            quantiles("streamhc_label_delay_seconds"),
            "s",
        ),
        timeseries(
            "Dead letters by reason",
            "Records that could not be used, in a second.",
            [query(rate("streamhc_dead_letters_total", "reason"), "{{reason}}")],
            "cps",
            stacked=True,
        ),
    ]
