"""Records of all partitions in one order, new ones as they come or the same ones as before."""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace, merge
from typing import Any

from kafka import TopicPartition

from consumers.daemon.fetching import Fetching
from consumers.offsets import Offsets

__all__ = ["RecordReader", "offsets_behind", "ranges_of"]

Ranges = dict[TopicPartition, tuple[int, int]]


class RecordReader:
    """Hands out records in the order of their time; those of one partition stay in their own order.

    A partition that has more, as far as the brokers have said, is waited for: where much is to be read,
    documents and labels come as they came then, not topic by topic.

    Parameters
    ----------
    fetching
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

    def __init__(self, fetching: Fetching, most: int, linger: float) -> None:
        self._fetching = fetching
        self._most = most
        self._linger = linger
        self._ahead: dict[TopicPartition, deque[Any]] = {}
        self.position: Offsets = {}

    def begin(self, position: Mapping[TopicPartition, int]) -> None:
        """Go on there, whatever was read ahead."""
        self.position = dict(position)
        self._ahead = {partition: deque() for partition in sorted(self.position)}
        self._fetching.begin(self.position)

    def gather(self, wait: float, most: int) -> list[Any]:
        """Return the next records, so many at most; none if none come for so many seconds."""
        most = min(most, self._most)
        if not any(self._ahead.values()) and not self._fetch(wait):
            return []
        until = time.monotonic() + self._linger
        while (left := until - time.monotonic()) > 0:
            if sum(map(len, self._ahead.values())) >= most and not any(map(self._is_awaited, self._ahead)):
                break
            self._fetch(left)
        if len(self._ahead) == 1:
            ((partition, ahead),) = self._ahead.items()
            records = [ahead.popleft() for _ in range(min(most, len(ahead)))]
            self.position[partition] = records[-1].offset + 1
            return records
        return self._in_turn(most)

    def take(self, ranges: Ranges, give_up: Callable[[], bool]) -> list[Any]:
        """Return the records between these offsets, as `gather` did; fewer if somebody wants to stop."""
        while missing := {each.topic for each, (_, end) in ranges.items() if not self._reaches(each, end)}:
            if give_up():
                break
            self._fetch(0.5, sorted(missing))
        parts = []
        for partition, (_, end) in ranges.items():
            ahead, part = self._ahead[partition], []
            while ahead and ahead[0].offset < end:
                part.append(ahead.popleft())
            parts.append(part)
            self.position[partition] = max(self.position[partition], end)
        return parts[0] if len(parts) == 1 else list(merge(*parts, key=_turn))

    def lag(self) -> Offsets:
        """Return how many records each partition has behind those handed out, as far as is known."""
        ends = {partition: self._fetching.end(partition) for partition in self.position}
        return {each: max(0, end - self.position[each]) for each, end in ends.items() if end is not None}

    def _in_turn(self, most: int) -> list[Any]:
        """Hand out whose turn it is, until a partition runs out that has more: its next may be earlier."""
        heads = [(*_turn(ahead[0]), partition) for partition, ahead in self._ahead.items() if ahead]
        heapify(heads)
        records: list[Any] = []
        while heads and len(records) < most:
            partition = heads[0][-1]
            ahead = self._ahead[partition]
            records.append(ahead.popleft())
            if ahead:
                heapreplace(heads, (*_turn(ahead[0]), partition))
            elif self._is_awaited(partition):
                break
            else:
                heappop(heads)
        self.position |= offsets_behind(records)
        return records

    def _is_awaited(self, partition: TopicPartition) -> bool:
        """Whether nothing of a partition is here, but there is more."""
        if self._ahead[partition]:
            return False
        end = self._fetching.end(partition)
        if end is None or self.position[partition] >= end:
            return False
        return self._fetching.next_offset(partition) < end  # what is left may be marks of transactions

    def _reaches(self, partition: TopicPartition, end: int) -> bool:
        ahead = self._ahead[partition]
        if ahead and ahead[-1].offset >= end - 1:
            return True
        return self._fetching.next_offset(partition) >= end

    def _fetch(self, wait: float, topics: Collection[str] = ()) -> int:
        """Read more of these topics, or of those of which a partition has little here."""
        little = {each.topic: None for each, ahead in self._ahead.items() if len(ahead) < self._most}
        found = self._fetching.read(wait, topics or list(little), self._most)
        for partition, records in found.items():
            self._ahead[partition].extend(records)
        return sum(map(len, found.values()))


def _turn(record: Any) -> tuple[int, str, int]:
    return record.timestamp or 0, record.topic, record.partition


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
