"""Records of partitions from some offsets on: those that stand there now, or also those that come."""

import time
from collections.abc import Iterator
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaTimeoutError

from consumers.offsets import Offsets

__all__ = ["Reading"]

WAIT = 0.2  # seconds for more records


class Reading:
    """Reads partitions; `ends` says where they ended when it began.

    Parameters
    ----------
    consumer
        In no group.
    starts
        Where to begin in each partition.
    patience
        Seconds that may pass without an answer while there is something to be read.
    ends
        If not where the partitions end now.
    """

    def __init__(
        self, consumer: KafkaConsumer, starts: Offsets, patience: float, ends: Offsets | None = None
    ) -> None:
        self._consumer = consumer
        self._patience = patience
        self.ends: Offsets = dict(consumer.end_offsets(list(starts))) if ends is None else ends
        consumer.assign(list(starts))
        for partition, offset in starts.items():
            consumer.seek(partition, offset)
        self._left = {partition for partition in starts if starts[partition] < self.ends[partition]}

    def leave(self, topic: str) -> None:
        """Read no more of a topic."""
        gone = [partition for partition in self._consumer.assignment() if partition.topic == topic]
        self._consumer.pause(*gone)
        self._left.difference_update(gone)

    def poll(self) -> list[Any]:
        """Return records, also such as came later, or none if none come for a moment."""
        found = self._consumer.poll(timeout_ms=round(1000 * WAIT))
        return [record for records in found.values() for record in records]

    def to_end(self) -> Iterator[list[Any]]:
        """Yield the records that stood there at the beginning, and no others.

        Raises
        ------
        KafkaTimeoutError
            The brokers do not hand them out.
        """
        moved, place = time.monotonic(), -1
        while self._left:
            records = [each for each in self.poll() if each.offset < self._end(each)]
            if records:
                yield records
            positions = {partition: self._position(partition) for partition in self._left}
            self._left = {each for each, offset in positions.items() if offset < self.ends[each]}
            if records or sum(positions.values()) != place:
                moved, place = time.monotonic(), sum(positions.values())
            elif time.monotonic() - moved > self._patience:
                topics = ", ".join(sorted({partition.topic for partition in self._left}))
                raise KafkaTimeoutError(f"no records of {topics} for {self._patience:g} s")

    def _position(self, partition: TopicPartition) -> int:
        # It also moves past what only marks the end of a transaction, and is never handed out.
        position = self._consumer.position(partition, timeout_ms=round(1000 * WAIT))
        return -1 if position is None else int(position)

    def _end(self, record: Any) -> int:
        return self.ends[TopicPartition(record.topic, record.partition)]
