"""Where a job goes on: every way in which snapshot, committed offsets and topics may not fit together."""

import pytest
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from consumers.daemon.beginning import FORGET, TO_SNAPSHOT, Beginning, Ends, begin_anew, go_on, newest
from consumers.errors import KafkaProblem
from consumers.offsets import Named
from stream_hc.runtime.disk import Place

A, B = TopicPartition("documents", 0), TopicPartition("labels", 0)
ENDS = Ends({A: 10, B: 0}, {A: 100, B: 50})
PLACE = Place(journal=4, offsets={"documents:0": 40, "labels:0": 20}, job="mine")


def at(offset, metadata=""):
    return OffsetAndMetadata(offset, metadata, -1)


def named(journal=7, job="mine"):
    return Named(job, 3, "0f", journal).text()


def begin(committed=(), ends=ENDS, start="earliest"):
    return begin_anew("state", "news", dict(committed), ends, start)


def resume(committed, place=PLACE, ends=ENDS, is_fresh=False):
    return go_on(place, is_fresh, "news", dict(committed), ends)


# A job without a snapshot


def test_a_new_group_begins_at_the_first_or_behind_the_last_record():
    assert begin() == Beginning(ENDS.first, ENDS.first, 0)
    assert begin(start="latest") == Beginning(ENDS.last, ENDS.last, 0)


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_offsets_that_somebody_else_has_committed_count(start):
    other = TopicPartition("not read", 0)
    found = begin({A: at(70, "by hand"), other: at(5)}, start=start)
    rest = ENDS.first[B] if start == "earliest" else ENDS.last[B]
    assert found == Beginning({A: 70, B: rest}, {A: 70, B: rest}, 0)


def test_offsets_of_a_job_whose_snapshots_are_elsewhere_are_refused():
    with pytest.raises(KafkaProblem) as problem:
        begin({A: at(70, named())})
    told = "the group news goes on from snapshot 3, which is not in state: name the state folder it is in"
    assert str(problem.value) == f"{told}; {FORGET}"


def test_committed_offsets_whose_records_are_gone_are_refused():
    with pytest.raises(KafkaProblem) as problem:
        begin({A: at(7)})
    told = "records 7 to 9 of documents:0 are gone (the group has committed 7): keep records longer"
    assert str(problem.value).startswith(told)
    assert "reset --to earliest" in str(problem.value)
    assert begin({A: at(10)}).offsets[A] == 10


def test_committed_offsets_behind_the_end_are_refused():
    with pytest.raises(KafkaProblem) as problem:
        begin({A: at(101)})
    told = "documents:0 ends at 100, the group has committed 101: was the topic made anew?"
    assert str(problem.value) == f"{told} {FORGET}"
    assert begin({A: at(100)}).offsets[A] == 100


# A job with a snapshot


def test_it_reads_from_the_snapshot_and_publishes_from_what_is_committed():
    found = resume({A: at(60, named()), B: at(20, named())})
    assert found == Beginning({A: 40, B: 20}, {A: 60, B: 20}, 7)


def test_a_snapshot_that_is_newer_than_what_is_committed_knows_the_journal():
    assert resume({A: at(40, named(2)), B: at(20, named(2))}).journal == 4


def test_partitions_that_came_later_are_read_from_their_beginning():
    more = TopicPartition("documents", 1)
    ends = Ends({**ENDS.first, more: 3}, {**ENDS.last, more: 9})
    found = resume({A: at(60, named())}, ends=ends)
    assert found.offsets == {A: 40, B: 20, more: 3}
    assert found.published == {A: 60, B: 20, more: 3}
    assert resume({A: at(60, named()), more: at(5, named())}, ends=ends).published[more] == 5


def test_what_is_committed_of_topics_that_are_not_read_is_nothing_to_it():
    other = TopicPartition("not read", 0)
    found = resume({A: at(60, named()), B: at(20, named()), other: at(5)})
    assert other not in found.published


def test_the_snapshot_of_a_job_on_files_is_refused():
    with pytest.raises(KafkaProblem, match="that of a job on files: give another one"):
        resume({}, place=Place(journal=4))


def test_a_topic_that_is_not_read_any_more_is_missed():
    place = Place(offsets={"old:1": 4, "old:0": 4, "documents:0": 40}, job="mine")
    with pytest.raises(KafkaProblem) as problem:
        resume({A: at(60, named())}, place=place)
    told = "the snapshot includes records of old:0, old:1, which is not read any more: put the topic back"
    assert str(problem.value) == f"{told}; {FORGET}"


def test_a_fresh_snapshot_needs_nothing_committed():
    assert resume({}, is_fresh=True) == Beginning({A: 40, B: 20}, {A: 40, B: 20}, 4)


def test_a_fresh_snapshot_in_front_of_a_hole_is_refused():
    place = Place(offsets={"documents:0": 9, "labels:0": 0}, job="mine")
    with pytest.raises(KafkaProblem, match=r"records 9 to 9 of documents:0 are gone \(the snapshot begins 9"):
        resume({}, place=place, is_fresh=True)


@pytest.mark.parametrize("is_fresh", [False, True])
def test_offsets_that_somebody_else_has_set_are_refused(is_fresh):
    with pytest.raises(KafkaProblem) as problem:
        resume({A: at(60, "by hand")}, is_fresh=is_fresh)
    told = "the committed offsets of the group news were set by somebody else"
    assert str(problem.value) == f"{told}: {TO_SNAPSHOT}; {FORGET}"


def test_offsets_that_the_brokers_have_forgotten_are_missed():
    with pytest.raises(KafkaProblem) as problem:
        resume({})
    told = "the committed offsets of the group news are gone (brokers forget those of idle groups)"
    assert str(problem.value) == f"{told}: {TO_SNAPSHOT}; {FORGET}"


def test_offsets_of_another_job_are_refused():
    with pytest.raises(KafkaProblem, match="those of another job than the state folder's: name the folder"):
        resume({A: at(60, named(job="other"))})


def test_offsets_in_front_of_the_snapshot_are_refused():
    with pytest.raises(KafkaProblem) as problem:
        resume({A: at(39, named()), B: at(20, named())})
    told = "the group news has committed documents:0 39, the snapshot includes it up to 40"
    assert str(problem.value) == f"{told}: {TO_SNAPSHOT}"


def test_a_snapshot_in_front_of_a_hole_is_refused():
    ends = Ends({A: 41, B: 0}, ENDS.last)
    told = r"records 40 to 40 of documents:0 are gone \(the snapshot includes it up to 40\)"
    with pytest.raises(KafkaProblem, match=told):
        resume({A: at(60, named())}, ends=ends)


def test_a_snapshot_behind_the_end_is_refused():
    ends = Ends(ENDS.first, {A: 39, B: 50})
    with pytest.raises(KafkaProblem, match="documents:0 ends at 39, the snapshot includes it up to 40: was"):
        resume({A: at(60, named())}, ends=ends)


def test_the_newest_is_the_one_with_the_last_entry_of_the_journal():
    committed = {A: at(60, named(5)), B: at(3, named(9)), TopicPartition("c", 0): at(1, "by hand")}
    assert newest(committed) == Named("mine", 3, "0f", 9)
    assert newest({A: at(1, "{"), B: at(2, None)}) is None
    assert newest({}) is None
