"""Records of all partitions in one order, new ones as they come or the same ones as before."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import merge
from typing import Any

from kafka import TopicPartition

from consumers.daemon.membership import Membership
from consumers.offsets import Offsets

__all__ = ["RecordReader", "offsets_behind", "ranges_of"]

AHEAD = 4  # times `most`: so many records of a partition wait for those of others, when read again

Ranges = dict[TopicPartition, tuple[int, int]]


class RecordReader:
    """Hands out records in the order of their time; those of one partition stay in their own order.

    Parameters
    ----------
    membership
        Reads the partitions.
    most
        How many records are handed out at once.
    linger
        How many seconds a record waits for others.

    Attributes
    ----------
    position
        The offset behind the last record that was handed out, for each partition.
    """

    def __init__(self, membership: Membership, most: int, linger: float) -> None:
        self._membership = membership
        self._most = most
        self._linger = linger
        self._ahead: dict[TopicPartition, deque[Any]] = {}
        self._held: set[TopicPartition] = set()
        self.position: Offsets = {}

    def begin(self, position: Mapping[TopicPartition, int]) -> None:
        """Go on there, whatever was read ahead."""
        self.position = dict(position)
        self._ahead = {partition: deque() for partition in sorted(self.position)}
        self._held = set()
        self._membership.seek(self.position)

    def gather(self, wait: float) -> list[Any]:
        """Return the next records; none if none come for so many seconds."""
        count = sum(map(len, self._ahead.values())) or self._fetch(wait, self._most)
        until = time.monotonic() + self._linger
        while 0 < count < self._most and (left := until - time.monotonic()) > 0:
            count += self._fetch(left, self._most - count)
        return self._handed_out({partition: len(ahead) for partition, ahead in self._ahead.items()})

    def take(self, ranges: Ranges, give_up: Callable[[], bool]) -> list[Any]:
        """Return the records between these offsets; fewer if somebody wants to stop."""
        while any(not self._reaches(partition, end) for partition, (_, end) in ranges.items()):
            if give_up():
                break
            self._fetch(0.5, self._most)
        wanted = {}
        for partition, (_, end) in ranges.items():
            wanted[partition] = sum(record.offset < end for record in self._ahead[partition])
        records = self._handed_out(wanted)
        for partition, (_, end) in ranges.items():  # the last ones may be markers of transactions
            self.position[partition] = max(self.position[partition], end)
        return records

    def _reaches(self, partition: TopicPartition, end: int) -> bool:
        ahead = self._ahead[partition]
        if ahead and ahead[-1].offset >= end - 1:
            return True
        return self._membership.next_offset(partition) >= end

    def _fetch(self, wait: float, most: int) -> int:
        found = self._membership.read(wait, most)
        for partition, records in found.items():
            self._ahead[partition].extend(records)
        held = {partition for partition, ahead in self._ahead.items() if len(ahead) > AHEAD * self._most}
        if held != self._held:
            self._membership.hold(held, self._held - held)
            self._held = held
        return sum(map(len, found.values()))

    def _handed_out(self, counts: Mapping[TopicPartition, int]) -> list[Any]:
        parts = []
        for partition, count in counts.items():
            ahead = self._ahead[partition]
            if count:
                parts.append([ahead.popleft() for _ in range(count)])
        records = parts[0] if len(parts) == 1 else list(merge(*parts, key=_by_time))
        self.position |= offsets_behind(records)
        return records


def _by_time(record: Any) -> tuple[int, str, int]:
    return record.timestamp, record.topic, record.partition


def ranges_of(records: Iterable[Any]) -> Ranges:
    """Return the first offset and the one behind the last, for each partition among the records."""
    ranges: Ranges = {}
    for record in records:
        partition = TopicPartition(record.topic, record.partition)
        first, _ = ranges.get(partition, (record.offset, 0))
        ranges[partition] = first, record.offset + 1
    return ranges


def offsets_behind(records: Sequence[Any]) -> Offsets:
    """Return the offset behind the last record of each partition among the records."""
    return {partition: end for partition, (_, end) in ranges_of(records).items()}
