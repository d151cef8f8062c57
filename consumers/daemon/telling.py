"""What only a job on topics can tell: how far it is behind, its transactions, and that it stands by."""

from collections import Counter

from consumers.daemon.job import KafkaJob
from stream_hc.runtime.pipeline import Processed
from stream_hc.runtime.telemetry import Telemetry
from stream_hc.runtime.watcher import Watcher

__all__ = ["TopicsTelemetry"]


class TopicsTelemetry(Watcher[KafkaJob]):
    """Tells a telemetry about topics, beside what the telemetry sees for itself.

    A process that stands by counts as ready: it takes over as soon as it is its turn.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._counted: Counter[str] = Counter()

    def stand_by(self) -> None:
        """Say that another process reads."""
        self._telemetry.set_ready(True)

    def begin(self, job: KafkaJob) -> None:
        """Say that this one reads, but has to catch up first."""
        self._telemetry.set_ready(False)
        self._counted = Counter()

    def processed(self, job: KafkaJob, done: Processed) -> None:
        """Count transactions."""
        counts, seconds = job.transactions.counts, job.transactions.seconds
        if job.publisher is not None:
            self._telemetry.set_published(job.publisher.counts)
        for outcome in ("committed", "aborted"):
            for _ in range(counts[outcome] - self._counted[outcome]):
                self._telemetry.transaction(outcome, seconds if outcome == "committed" else None)
        self._counted = counts.copy()

    def looked(self, job: KafkaJob) -> None:
        """Say how far it is behind."""
        lag = job.lag.items()
        self._telemetry.set_lag({(partition.topic, partition.partition): n for partition, n in lag})
