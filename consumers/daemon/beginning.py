"""Where a job goes on: what the snapshot includes, what the group has committed, what the topics hold."""

from collections.abc import Mapping
from typing import NamedTuple

from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from consumers.errors import KafkaProblem
from consumers.offsets import Named, Offsets, from_place, key_of
from stream_hc.runtime.disk import Place

__all__ = ["Beginning", "Ends", "begin_anew", "go_on"]

FORGET = "stream-hc kafka reset --forget begins anew"
TO_SNAPSHOT = "stream-hc kafka reset --to snapshot goes back to the snapshot"

Committed = Mapping[TopicPartition, OffsetAndMetadata]


class Ends(NamedTuple):
    """The first offset of each partition, and the one behind the last."""

    first: Offsets
    last: Offsets


class Beginning(NamedTuple):
    """Where to read from, up to where it was published before, and the last entry of the journal in that."""

    offsets: Offsets
    published: Offsets
    journal: int


def begin_anew(folder: str, group: str, committed: Committed, ends: Ends, start: str) -> Beginning:
    """Return where a job without a snapshot begins.

    Offsets that somebody else committed for the group count; those of a job whose snapshots are elsewhere are
    a `KafkaProblem`: what it has learned would be missing.
    """
    named = newest(committed)
    if named is not None:
        lost = f"the group {group} goes on from snapshot {named.snapshot}, which is not in {folder}"
        raise KafkaProblem(f"{lost}: name the state folder it is in; {FORGET}")
    offsets = dict(ends.first if start == "earliest" else ends.last)
    offsets |= {partition: at.offset for partition, at in committed.items() if partition in offsets}
    _check_holes(offsets, ends, "the group has committed")
    return Beginning(offsets, offsets, 0)


def go_on(place: Place, is_fresh: bool, group: str, committed: Committed, ends: Ends) -> Beginning:
    """Return where a job goes on that has a snapshot; `is_fresh` if that includes no record yet."""
    if not place.job:
        raise KafkaProblem("the state folder is that of a job on files: give another one")
    included = from_place(place.offsets)
    gone = sorted(key_of(partition) for partition in included.keys() - ends.first.keys())
    if gone:
        raise KafkaProblem(
            f"the snapshot includes records of {', '.join(gone)}, which is not read any more: "
            f"put the topic back; {FORGET}"
        )
    # Partitions that came later are read from their beginning.
    offsets = {partition: included.get(partition, first) for partition, first in ends.first.items()}
    named = newest(committed)
    # Before its first commit a job has what it began with: nothing, or what somebody else had committed.
    if (
        is_fresh
        and named is None
        and all(offsets.get(each, at.offset) == at.offset for each, at in committed.items())
    ):
        _check_holes(offsets, ends, "the snapshot begins")
        return Beginning(offsets, offsets, place.journal)
    if named is None:
        what = "were set by somebody else" if committed else "are gone (brokers forget those of idle groups)"
        raise KafkaProblem(f"the committed offsets of the group {group} {what}: {TO_SNAPSHOT}; {FORGET}")
    if named.job != place.job:
        raise KafkaProblem(
            f"the offsets of the group {group} are those of another job than the state folder's: "
            "name the folder, or the group, that belongs to it; if a reset was killed, say it once more; "
            f"{FORGET}"
        )
    published = offsets | {each: at.offset for each, at in committed.items() if each in offsets}
    for partition, offset in included.items():
        if published[partition] < offset:
            where = f"{key_of(partition)} {published[partition]}, the snapshot includes it up to {offset}"
            raise KafkaProblem(f"the group {group} has committed {where}: {TO_SNAPSHOT}")
    _check_holes(offsets, ends, "the snapshot includes it up to")
    return Beginning(offsets, published, max(named.journal, place.journal))


def newest(committed: Committed) -> Named | None:
    """Return what was said last beside the offsets; None if nothing was."""
    found = [Named.of(at.metadata) for at in committed.values()]
    return max((named for named in found if named is not None), key=lambda named: named.journal, default=None)


def _check_holes(offsets: Offsets, ends: Ends, what: str) -> None:
    for partition, offset in sorted(offsets.items()):
        first, last = ends.first[partition], ends.last[partition]
        if offset < first:
            raise KafkaProblem(
                f"records {offset} to {first - 1} of {key_of(partition)} are gone ({what} {offset}): "
                "keep records longer (retention.ms); stream-hc kafka reset --to earliest goes on without them"
            )
        if offset > last:
            raise KafkaProblem(
                f"{key_of(partition)} ends at {last}, {what} {offset}: was the topic made anew? {FORGET}"
            )
