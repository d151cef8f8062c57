"""A trainer that reads on to a given place and ends there: shards that were stopped apart become level."""

from collections.abc import Mapping
from typing import Any

from kafka import TopicPartition

from consumers.daemon.job import KafkaJob
from consumers.daemon.reading import ranges_of
from consumers.offsets import key_of
from stream_hc.runtime.disk import Ranges

__all__ = ["LevelingJob"]


class LevelingJob(KafkaJob):
    """Reads up to some offsets, to the record, and saves.

    Parameters
    ----------
    until
        The offset behind the last record of each partition.
    args, options
        As for `KafkaJob`.
    """

    def __init__(self, *args: Any, until: Mapping[TopicPartition, int], **options: Any) -> None:
        super().__init__(*args, **options)
        self._until = dict(until)

    def _go_on(self) -> bool:
        position, batch = self._reader.position, self.config.kafka.batch
        left = {
            partition: (position[partition], min(end, position[partition] + batch))
            for partition, end in self._until.items()
            if position[partition] < end
        }
        if not left or self._is_stopped():
            return False
        self.membership.look()
        if self.membership.changed:
            self._settle()
            return True
        for piece in self._clock.pieces(self._reader.take(left, self._is_stopped)):
            ranges = {key_of(partition): span for partition, span in ranges_of(piece.records).items()}
            self._write_down(Ranges(self._taken, len(piece.records), ranges))
            self._enter(self._journal_end, piece)
        return True
