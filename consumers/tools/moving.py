"""Move a job to other offsets, or let it begin anew, so that a kill at any moment does no harm.

A job that starts compares the name in its newest snapshot with the one beside the committed offsets, and
goes on only if they are the same. So a moved job has a new name: if only one of the two was changed, they do
not fit each other, and the job refuses until this was done once more. Under the old name, a job that was
killed on its way back would find its new snapshot in front of its old offsets, and learn again in silence
what lies between.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from kafka.structs import OffsetAndMetadata

import stream_hc.runtime.processor  # noqa: F401 (snapshots are read by the names it registers)
from consumers.offsets import Named, Offsets, for_place, from_place, offsets_to_commit
from consumers.tools.groups import Group
from stream_hc.runtime.disk import Journal, Keeper, Place
from stream_hc.runtime.disk.folder import JOURNAL
from stream_hc.snapshot import SnapshotError, inspect, load, verify
from stream_hc.snapshot.atomic import sync_path

__all__ = ["State", "begin_anew", "locked", "move", "newest", "put_aside"]

ALL = 2**31  # snapshots that are kept: a job that goes on removes what it does not need


class State(NamedTuple):
    """A snapshot in a state folder that nobody else uses now, and where the job stood."""

    keeper: Keeper
    journal: Journal
    number: int
    place: Place

    @property
    def offsets(self) -> Offsets:
        """Where the job stood at that snapshot."""
        return from_place(self.place.offsets)


@contextmanager
def locked(folder: Path) -> Iterator[Keeper | None]:
    """Keep everybody else out of a state folder; None stands for one that is not there.

    Raises
    ------
    KeeperLocked
        Another process uses it.
    """
    if not folder.is_dir():
        yield None
        return
    with Keeper(folder, ALL) as keeper:
        yield keeper


@contextmanager
def newest(keeper: Keeper, job: str | None) -> Iterator[State | None]:
    """Find the newest sound snapshot, of that job if there is one of it; None if there are none at all.

    Raises
    ------
    SnapshotError
        None of them is sound.
    """
    numbers, problem, found = keeper.numbers(), "", dict[int, Place]()
    for number in reversed(numbers):
        try:
            found[number] = Place.of(verify(keeper.path(number)).extra)
        except (SnapshotError, ValueError) as error:
            problem = problem or str(error)
            continue
        if job in (None, found[number].job):
            break
    if numbers and not found:
        raise SnapshotError(f"{keeper.folder}: no sound snapshot: {problem}: put one back, or use --forget")
    if not found:
        yield None
        return
    # Others than those of the job are left by a move that was killed, or the folder is that of another job.
    number = next((each for each, place in found.items() if place.job == job), max(found))
    with Journal(Path(keeper.folder) / JOURNAL) as journal:
        yield State(keeper, journal, number, found[number])


def move(state: State, group: Group, offsets: Offsets) -> Named:
    """Move a job: the same models, other offsets; return what was committed beside them."""
    # 1. Load. Killed here: nothing has happened.
    parts: dict[str, Any] = load(state.keeper.path(state.number))
    # 2. Save it under a new name. No entry of the journal is followed behind it: they are about records that
    #    the moved job has not read. Killed behind it: the job refuses, since the old name is committed. Its
    #    snapshots are all there still, and whoever does this once more begins with them.
    last = max(state.journal.last, state.place.journal)
    job = secrets.token_hex(8)
    place = msgspec.structs.replace(state.place, offsets=for_place(offsets.items()), job=job, journal=last)
    number = state.keeper.save(parts, place.extra())
    named = Named(job, number, inspect(state.keeper.path(number)).sha256, last)
    # 3. Commit, all partitions in one request, which is carried out or not. Killed here, or without an
    #    answer: it is not known whether it was. Either the job is moved, or it is as behind step 2. Therefore
    #    the new snapshot is never removed again.
    group.commit(offsets_to_commit(offsets, named))
    return named


def begin_anew(folder: Path, group: Group, offsets: Offsets | None) -> Path | None:
    """Put the state folder aside and forget the group, or let it begin at `offsets`; return what is aside."""
    # 1. The folder. Killed behind it: a job that starts finds the offsets of one whose snapshots are not
    #    there, and refuses; whoever does this once more goes on with step 2. The other way round, it could
    #    find a snapshot and a group that is new.
    aside = put_aside(folder) if folder.is_dir() else None
    # 2. The group. Killed behind it: all is done.
    if offsets is None:
        group.delete()
    else:
        group.commit({each: OffsetAndMetadata(offset, "", -1) for each, offset in offsets.items()})
    return aside


def put_aside(folder: Path) -> Path:
    """Give a folder another name, which it returns, so that nobody goes on from there."""
    number = 1
    while (aside := folder.with_name(f"{folder.name}.before-{number}")).exists():
        number += 1
    os.rename(folder, aside)
    sync_path(str(folder.absolute().parent))
    return aside
