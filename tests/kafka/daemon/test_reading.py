"""Records of several partitions in one order, and the same order again: brokers that say when what comes."""

import heapq
from collections import deque
from itertools import cycle
from types import SimpleNamespace
from typing import NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import TopicPartition

from consumers.daemon import reading
from consumers.daemon.reading import RecordReader, offsets_behind, ranges_of

A, B, C = TopicPartition("documents", 0), TopicPartition("documents", 1), TopicPartition("labels", 0)
PARTITIONS = (A, B, C, TopicPartition("labels", 1))


class Record(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int


class Log(NamedTuple):
    """What a partition holds; behind the last record there may be marks of transactions."""

    records: list
    end: int


class Scripted:
    """Stands in for `Fetching`: a script says how many records of a partition come with each poll.

    Time passes only while nothing is left, so that no waiting ends early by chance.
    """

    def __init__(self, logs, script, knows_ends=True):
        self.logs, self.now = logs, 0.0
        self._script = cycle(script)
        self._known = set(logs) if knows_ends else set()
        self._idle = 0
        self.asked = []

    def begin(self, position):
        self.position = dict(position)

    def read(self, wait, topics, most):
        self.asked.append(sorted(topics))
        found, left = {}, False
        for partition in sorted(self.position):
            log = self.logs[partition]
            rest = [record for record in log.records if record.offset >= self.position[partition]]
            left |= bool(rest)
            if partition.topic not in topics:
                continue
            n = next(self._script) if self._idle < 3 else 1  # no script holds anything back for ever
            some = rest[: min(most, n)]
            self._known.add(partition)
            if some:
                found[partition] = some
                self.position[partition] = some[-1].offset + 1
            if len(some) == len(rest):
                self.position[partition] = log.end  # also behind the marks
        self._idle = 0 if found else self._idle + 1
        self.now += 0.0 if left else wait + 0.001
        return found

    def end(self, partition):
        return self.logs[partition].end if partition in self._known else None

    def next_offset(self, partition):
        return self.position[partition]


def log_of(partition, steps, marks=0):
    """Return a log: each step is the time of a record and how many offsets before it are marks."""
    found, offset = [], 0
    for timestamp, gap in steps:
        offset += gap
        found.append(Record(*partition, offset, timestamp))
        offset += 1
    return Log(found, offset + marks)


def reader_of(fetching, most=4, linger=1.0):
    made = RecordReader(fetching, most, linger)
    made.begin(dict.fromkeys(fetching.logs, 0))
    return made


def timed_by(fetching):
    return patch.object(reading, "time", SimpleNamespace(monotonic=lambda: fetching.now))


def gather_all(reader, most=1000):
    """Gather until nothing comes any more, and return what came each time."""
    found, empty = [], 0
    with timed_by(reader._fetching):
        while empty < 20:
            some = reader.gather(0.2, most)
            empty = 0 if some else empty + 1
            found += [some] if some else []
    return found


steps = st.lists(st.tuples(st.integers(0, 20), st.sampled_from([0, 0, 0, 1, 3])), max_size=12)
scripts = st.lists(st.integers(0, 4), min_size=1, max_size=9).filter(any)


@st.composite
def logs(draw):
    n = draw(st.integers(1, len(PARTITIONS)))
    return {each: log_of(each, draw(steps), draw(st.integers(0, 2))) for each in PARTITIONS[:n]}


@given(logs(), scripts, scripts, st.integers(1, 6), st.sampled_from([0.0, 1.0]), st.booleans(), st.data())
def test_what_is_taken_again_has_the_order_in_which_it_was_gathered(
    held, script, other, most, linger, knows_ends, data
):
    before = reader_of(Scripted(held, script, knows_ends), most, linger)
    batches = gather_all(before)
    again = reader_of(Scripted(held, other, knows_ends), data.draw(st.integers(1, 6)), linger)
    for batch in batches:
        cut = data.draw(st.integers(0, len(batch)))  # where the time is told, an entry begins
        for piece in filter(None, (batch[:cut], batch[cut:])):
            assert again.take(ranges_of(piece), lambda: False) == piece
    assert again.position == before.position
    # From there on both hand out the same, whatever was read ahead.
    assert gather_all(again) == gather_all(before) == []


@given(logs(), scripts, st.integers(1, 6), st.integers(1, 6), st.booleans())
def test_every_record_is_handed_out_once_and_in_the_order_of_its_partition(
    held, script, most, at_once, knows_ends
):
    reader = reader_of(Scripted(held, script, knows_ends), most)
    batches = gather_all(reader, at_once)
    assert all(len(batch) <= min(most, at_once) for batch in batches)
    found = [record for batch in batches for record in batch]
    for partition, log in held.items():
        assert [record for record in found if record[:2] == partition] == log.records
        assert reader.position[partition] == max([0, *(record.offset + 1 for record in log.records)])


@given(logs(), scripts, st.integers(1, 6))
def test_what_lies_there_already_comes_in_the_order_of_time_however_it_is_polled(held, script, most):
    found = [record for batch in gather_all(reader_of(Scripted(held, script), most)) for record in batch]
    parts = [log.records for log in held.values()]
    assert found == list(heapq.merge(*parts, key=lambda each: (each.timestamp, each.topic, each.partition)))


@given(logs(), scripts, st.data())
def test_after_a_new_beginning_what_was_read_ahead_is_forgotten(held, script, data):
    reader = reader_of(Scripted(held, script), 3)
    with timed_by(reader._fetching):
        reader.gather(0.2, 3)
    start = {each: data.draw(st.integers(0, log.end)) for each, log in held.items()}
    reader.begin(start)
    found = [record for batch in gather_all(reader) for record in batch]
    for partition, log in held.items():
        rest = [record for record in log.records if record.offset >= start[partition]]
        assert [record for record in found if record[:2] == partition] == rest


def test_at_the_same_time_names_and_numbers_decide():
    held = {each: log_of(each, [(5, 0), (5, 0)]) for each in reversed(PARTITIONS)}
    (batch,) = gather_all(reader_of(Scripted(held, [2]), 8))
    assert [record[:3] for record in batch] == [(*each, n) for each in PARTITIONS for n in (0, 1)]


def test_a_partition_that_has_more_is_waited_for():
    held = {A: log_of(A, [(10, 0)] * 4), C: log_of(C, [(1, 0)])}
    reader = reader_of(Scripted(held, [4, 0, 0, 0, 0, 1]), 4)
    with timed_by(reader._fetching):
        assert [record.topic for record in reader.gather(0.2, 4)] == ["labels", *["documents"] * 3]


def test_it_is_not_waited_for_longer_than_the_linger():
    held = {A: log_of(A, [(10, 0)] * 4), C: log_of(C, [(1, 0)])}
    fetching = Scripted(held, [4, 0, 0])
    reader = reader_of(fetching, 4, linger=0.0)
    with timed_by(fetching):
        assert [record.topic for record in reader.gather(0.2, 4)] == ["documents"] * 4


def test_where_one_runs_out_that_has_more_the_others_stop():
    held = {A: log_of(A, [(1, 0), (3, 0)]), B: log_of(B, [(2, 0), (4, 0)])}
    fetching = Scripted(held, [1, 2])
    reader = reader_of(fetching, 4, linger=0.0)
    with timed_by(fetching):
        # B could go on with 4, but A has more: 3 would come too late.
        assert [record.timestamp for record in reader.gather(0.2, 4)] == [1]


def test_marks_of_transactions_at_the_end_are_nothing_to_wait_for():
    held = {A: log_of(A, [(1, 0)] * 2, marks=1), B: log_of(B, [(2, 0)], marks=3)}
    fetching = Scripted(held, [9])
    reader = reader_of(fetching, 3, linger=1.0)
    with timed_by(fetching):
        assert len(reader.gather(0.2, 3)) == 3
    assert fetching.now == 0.0
    assert fetching.asked == [["documents"]]
    assert reader.position == {A: 2, B: 1}


def test_a_topic_that_is_far_ahead_is_not_asked():
    held = {A: log_of(A, [(n, 0) for n in range(9)]), C: log_of(C, [(n, 0) for n in range(9)])}
    fetching = Scripted(held, [2, 0, 2, 1])
    reader = reader_of(fetching, 2)
    with timed_by(fetching):
        reader.gather(0.2, 2)
    # The documents are two ahead after the first poll: only labels are asked for.
    assert fetching.asked[:2] == [["documents", "labels"], ["labels"]]


def test_nothing_is_gathered_where_nothing_comes():
    fetching = Scripted({A: log_of(A, [])}, [1])
    assert gather_all(reader_of(fetching)) == []
    assert fetching.now > 0


def test_lag_counts_what_is_not_handed_out_as_far_as_is_known():
    held = {A: log_of(A, [(1, 0)] * 5), C: log_of(C, [(2, 0)] * 2)}
    fetching = Scripted(held, [9], knows_ends=False)
    reader = reader_of(fetching, 3)
    assert reader.lag() == {}
    with timed_by(fetching):
        reader.gather(0.2, 3)
    assert reader.lag() == {A: 2, C: 2}
    reader.position[A] = 7  # the brokers have not said yet that there is more
    assert reader.lag() == {A: 0, C: 2}


def test_taking_asks_only_topics_that_lack_something_and_skips_what_is_gone():
    held = {A: log_of(A, [(1, 0), (2, 2)], marks=1), C: log_of(C, [(1, 0)] * 3)}
    fetching = Scripted(held, [9])
    reader = reader_of(fetching)
    assert [each.offset for each in reader.take({A: (0, 5)}, lambda: False)] == [0, 3]
    assert fetching.asked == [["documents"]]
    assert reader.position == {A: 5, C: 0}


def test_taking_ends_when_somebody_wants_to_stop():
    fetching = Scripted({A: log_of(A, [(1, 0)] * 3)}, [0])
    answers = deque([False, False, True])
    assert reader_of(fetching).take({A: (0, 3)}, answers.popleft) == []
    assert len(fetching.asked) == 2


def test_taking_what_is_behind_does_not_go_back():
    reader = reader_of(Scripted({A: log_of(A, [(1, 0)] * 3)}, [9]))
    reader.take({A: (0, 3)}, lambda: False)
    assert reader.take({A: (0, 2)}, lambda: False) == []
    assert reader.position == {A: 3}


@pytest.mark.parametrize("offsets", [[4], [4, 5, 9]])
def test_ranges_reach_from_the_first_to_behind_the_last(offsets):
    records = [Record(*partition, offset, 0) for offset in offsets for partition in (C, A)]
    assert ranges_of(records) == {each: (4, offsets[-1] + 1) for each in (A, C)}
    assert offsets_behind(records) == {A: offsets[-1] + 1, C: offsets[-1] + 1}
    assert ranges_of([]) == offsets_behind([]) == {}
