"""All that Prometheus is told, by name: few labels, each with few values, never one for each node.

`model` is a learner by name; all fitted models together are `hm3`, since one comes after the other; `served`
is what was published, whoever predicted it.
"""

from collections.abc import Iterator

from prometheus_client.core import Metric

from stream_hc.runtime.telemetry.families import Count, Family, Gauge, Histogram

__all__ = ["Catalogue"]

SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
FITS = (1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
DELAYS = (1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 6 * 3600.0, 86400.0, 3 * 86400.0, 7 * 86400.0, 30 * 86400.0)


class Catalogue:
    """One of each; whoever writes or collects holds the lock of the telemetry."""

    def __init__(self) -> None:
        self.documents_consumed = Count("documents_consumed", "Documents answered.")
        self.replayed_documents = Count(
            "replayed_documents", "Documents read again after a restart; no other counter counts them."
        )
        self.predictions = Count("predictions", "Predictions published, by who predicted.", "model")
        self.node_updates = Count(
            "node_updates", 'Updates at nodes; depth "all" for learners of whole paths.', "model", "depth"
        )
        self.hloss = Count("hloss", "Sum of the H-losses of labelled documents.", "model", "costs")
        self.scored = Count("scored", "Labelled documents that were predicted before.", "model")
        self.hloss_window_mean = Gauge(
            "hloss_window_mean",
            "Mean H-loss of the last labelled documents; of fitted models that of the newest.",
            "model",
            "costs",
        )
        self.hloss_by_depth = Count(
            "hloss_by_depth", "Sum of the H-losses, by the depth where they are charged.", "model", "depth"
        )
        self.labels = Count("labels", "What became of labels, or of documents that waited.", "outcome")
        self.pending_documents = Gauge("pending_documents", "Documents that wait for their labels.")
        self.pending_labels = Gauge("pending_labels", "Labels that wait for their documents.")
        self.dead_letters = Count("dead_letters", "Records that could not be used.", "reason")
        self.label_requests = Count("label_requests", "Documents whose labels were asked for.")
        self.stored_instances = Gauge("stored_instances", "Documents stored at nodes.", "model")
        self.model_bytes = Gauge("model_bytes", "Memory of a model.", "model")
        self.refits = Count("refits", "Fits that ended.", "outcome")
        self.refit_running = Gauge("refit_running", "Whether a fit is under way.")
        self.refit_duration = Histogram("refit_duration_seconds", "Of fits that ended, however.", FITS)
        self.refit_gap = Gauge("refit_duality_gap", "Of the last fit that was done.")
        self.refit_gap_ratio = Gauge("refit_duality_gap_ratio", "The same, as a share of the dual objective.")
        self.model_swaps = Count("model_swaps", "Changes of who answers, and models dropped.", "outcome")
        self.model_info = Gauge(
            "model_info", "Who answers, and the documents it knew when it began to.", "model", "version"
        )
        self.model_age = Gauge("model_age_seconds", "Since the model that answers was saved.", "model")
        self.model_versions = Count(
            "model_versions", "Versions of models that were published, taken or refused.", "outcome"
        )
        self.drift_detected = Count("drift_detected", "Changes of the running H-loss.")
        self.consumer_lag = Gauge(
            "consumer_lag_records", "Records that were not consumed yet.", "topic", "partition"
        )
        self.snapshots = Count("snapshots", "Snapshots on the disk, or not.", "outcome")
        self.snapshot_time = Gauge("snapshot_last_success_timestamp_seconds", "When the last one was saved.")
        self.transactions = Count("transactions", "Transactions with the broker.", "outcome")
        self.predict_duration = Histogram(
            "predict_duration_seconds", "From the lines of a batch to its answers, for each document.", SHORT
        )
        self.update_duration = Histogram(
            "update_duration_seconds",
            "Time in which models predict and learn a batch, for each labelled document.",
            SHORT,
        )
        self.label_delay = Histogram(
            "label_delay_seconds", "From a document to its labels, by the clock of ticks.", DELAYS
        )
        self.commit_duration = Histogram("commit_duration_seconds", "Of a transaction's commit.", SHORT)
        self.worst_hloss = Gauge(
            "worst_node_hloss_mean", "Recent H-loss charged at one of the worst nodes, a document.", "node"
        )
        self.worst_error = Gauge(
            "worst_node_error_ratio", "Share of the recent documents there that were wrong.", "node"
        )
        self.worst_documents = Gauge(
            "worst_node_documents", "Recent documents there, or filed there.", "node"
        )
        self.ready = Gauge("ready", "Whether new records are processed.")
        self.build_info = Gauge("build_info", "Version of the program.", "version")

    def collected(self) -> Iterator[Metric]:
        """Yield everything."""
        for family in vars(self).values():
            if isinstance(family, Family):
                yield family.collected()
