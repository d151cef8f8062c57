"""The work behind `stream-hc kafka reshard`: other shards from the snapshots of those that were, offline.

Killed at any moment, it can be said again: the old shards stay as they are until the new ones are complete,
and new ones that are not complete are made anew.
"""

import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from kafka import KafkaAdminClient

from consumers.checking.state import Kept, newest_kept
from consumers.clients import administrator, explaining
from consumers.daemon import Daemon
from consumers.daemon.job import KafkaJob
from consumers.errors import KafkaProblem
from consumers.models.manifest import ShardKey
from consumers.offsets import Named, Offsets, from_place, offsets_to_commit
from consumers.tools.confirming import confirm
from consumers.tools.groups import Group
from consumers.tools.moving import put_aside
from consumers.trainer.leveling import LevelingJob
from consumers.trainer.planning import check_learners, make_plan
from consumers.trainer.settings import letters_about, trainer_config
from stream_hc.cli.console import out, say
from stream_hc.cli.errors import CliError, Code, usage_error
from stream_hc.cli.signals import Stopper
from stream_hc.runtime.config import Config
from stream_hc.runtime.resharding import reshard_folders
from stream_hc.runtime.warming import compile_kernels
from stream_hc.runtime.watcher import Watcher
from stream_hc.sharding import Plan, Shard
from stream_hc.snapshot import SnapshotError, inspect, load

__all__ = ["Wanted", "reshard"]


FILE = "resharded.json"  # in a new folder: which jobs it is from
MOST_ROUNDS = 5
PATIENCE = 3.0  # seconds beyond the time for which brokers keep a place


class Wanted(NamedTuple):
    """What `reshard` was asked to do, by the names of its options."""

    shards: int
    before: int | None
    traffic: str | None
    yes: bool


class _Old(NamedTuple):
    """A shard as it was stopped."""

    config: Config
    kept: Kept

    @property
    def folder(self) -> str:
        return str(self.config.state.folder)

    @property
    def offsets(self) -> Offsets:
        return from_place(self.kept.place.offsets)


def reshard(wanted: Wanted, config: Config) -> int:
    """Cut anew, and return the exit code."""
    if config.state.folder is None:
        raise usage_error("name the state folder of the trainers: --set state.folder=DIR, or --config FILE")
    before = _count_before(Path(config.state.folder), wanted)
    old_keys = [ShardKey(number, before) for number in range(before)]
    new_keys = [ShardKey(number, wanted.shards) for number in range(wanted.shards)]
    with ExitStack() as stack:
        stopper = stack.enter_context(Stopper())
        stack.enter_context(explaining(config.kafka))
        admin = stack.enter_context(administrator(config.kafka))
        former, new = ([trainer_config(config, key) for key in keys] for keys in (old_keys, new_keys))
        _await_nobody([Group(admin, each.kafka) for each in (*former, *new)], config, stopper)
        if _are_complete(admin, new, former):
            say("the new shards are there already: the old ones are put aside")
        else:
            old = [_old(each) for each in former]
            taxonomy = old[0].kept.taxonomy
            plan = make_plan(taxonomy, wanted.shards, wanted.traffic)
            check_learners(config, taxonomy)
            _show(old, plan)
            if not wanted.yes:
                confirm(f"Type the name of the group to go on ({config.kafka.group}):", config.kafka.group)
            _make(admin, _level(old, stopper), new, plan, config)
        for folder in [Path(str(each.state.folder)) for each in former]:
            if folder.is_dir():
                put_aside(folder)
        told = f"{wanted.shards} shards go on where {before} were"
        traffic = "" if wanted.traffic is None else f" --traffic {wanted.traffic}"
        say(f"{told}: start stream-hc kafka train --shards {wanted.shards}{traffic}")
    return Code.FINE


def _await_nobody(groups: Sequence[Group], config: Config, stopper: Stopper) -> None:
    """Wait for members who have a name: their places are kept for a while after they have ended."""
    until, said = time.monotonic() + config.kafka.session_timeout + PATIENCE, False
    for group in groups:
        while True:
            try:
                group.refuse_members()
                break
            except KafkaProblem as problem:
                if stopper.requested or time.monotonic() > until:
                    raise
                if not said:
                    say(f"{problem}: waiting for that", "yellow")
                said = True
            time.sleep(0.5)


def _count_before(folder: Path, wanted: Wanted) -> int:
    """Return how many shards there are in the state folder, beside those that are to be made."""
    keys = [key for each in folder.glob("*-of-*") if each.is_dir() and (key := ShardKey.of(each.name))]
    counts = sorted({key.n_shards for key in keys} - {wanted.shards})
    if wanted.before is not None:
        if wanted.before not in counts:
            raise usage_error(f"--from {wanted.before}: {folder} has no folder 0-of-{wanted.before}")
        return wanted.before
    if not counts:
        there = f"only {wanted.shards} shards" if keys else "no shards"
        raise usage_error(f"{folder} has {there}: name the state folder of trainers, or another --shards")
    if len(counts) > 1:
        shown = ", ".join(map(str, counts))
        raise usage_error(f"{folder} has cuts into {shown} shards: say which one, with --from")
    return counts[0]


def _old(config: Config) -> _Old:
    kept = newest_kept(str(config.state.folder))
    if kept is None:
        lost = f"{config.state.folder}: no snapshot: put it back; without it what its nodes know is lost"
        raise CliError(lost, Code.BAD_INPUT)
    return _Old(config, kept)


def _show(old: Sequence[_Old], plan: Plan) -> None:
    for shard in old:
        say(f"{shard.folder}: snapshot {shard.kept.number}, after {shard.kept.records:,} records")
    out().print(plan.table(), highlight=False)


def _furthest(old: Sequence[_Old]) -> Offsets:
    """Return how far the shards are, each partition as far as the first of them."""
    found: Offsets = {}
    for shard in old:
        for partition, offset in shard.offsets.items():
            found[partition] = max(offset, found.get(partition, 0))
    return found


def _level(old: Sequence[_Old], stopper: Stopper) -> list[_Old]:
    """Let shards that were stopped before others read on to where the others are."""
    level = list(old)
    for _ in range(MOST_ROUNDS):  # one that was killed may find more in its journal than its snapshot has
        until = _furthest(level)
        level = [_leveled(shard, until, stopper) for shard in level]
        if all(shard.offsets == until for shard in level):
            return level
    raise CliError("the shards did not come to the same place: say it again", Code.BAD_INPUT)


def _leveled(shard: _Old, until: Offsets, stopper: Stopper) -> _Old:
    if shard.offsets != until:
        behind = sum(max(0, end - shard.offsets.get(each, 0)) for each, end in until.items())
        say(f"{shard.folder} is {behind:,} records behind the others: it reads them now")
    # Also where nothing is missing: a journal behind the snapshot is followed, and a new one is saved.
    kafka = msgspec.structs.replace(shard.config.kafka, models=None, instance=None)
    own = msgspec.structs.replace(shard.config, kafka=kafka)
    compile_kernels(own)
    kind = partial(LevelingJob, until=until)
    notes, letters = _Notes(), letters_about(own)
    Daemon(own, None, stopper, notes, shard=_shard_of(shard), letters_about=letters, kind=kind).run()
    kept = newest_kept(shard.folder)
    if stopper.requested or kept is None:
        raise CliError("stopped before the shards were at the same place: say it again", Code.INTERRUPTED)
    return shard._replace(kept=kept)


class _Notes(Watcher[KafkaJob]):
    def note(self, text: str) -> None:
        say(text, "yellow")


def _shard_of(old: _Old) -> Shard | None:
    path = Path(old.folder) / f"snapshot-{old.kept.number:08d}.snap"
    shard: Shard | None = load(path, lambda part: part == "shard").get("shard")
    return shard


def _make(
    admin: KafkaAdminClient, old: Sequence[_Old], new: Sequence[Config], plan: Plan, config: Config
) -> None:
    folders = [Path(str(each.state.folder)) for each in new]
    # 1. What an attempt before has left, or somebody who began anew. Killed here: as if it had not been.
    for folder in folders:
        if (folder / FILE).exists():
            shutil.rmtree(folder)
        elif folder.is_dir():
            say(f"{folder} is not from these shards: it is put aside, as {put_aside(folder)}", "yellow")
    # 2. The folders. Killed here: they do not say what they are from, so they count as not complete.
    whole, any_order = None if plan.n_shards == 1 else plan, len(old[0].offsets) > 1
    if any_order:
        say("each shard read the partitions in an order of its own: each node is as its owner has it")
    try:
        numbers = reshard_folders(
            [each.folder for each in old], list(map(str, folders)), whole, config, any_order
        )
    except SnapshotError:
        raise
    except ValueError as error:
        raise CliError(str(error), Code.BAD_INPUT) from error
    # 3. The groups, one after the other. Killed here: those without are made anew with all others.
    origin = msgspec.json.encode(sorted(each.kept.place.job for each in old))
    for folder in folders:
        (folder / FILE).write_bytes(origin)
    for each, folder, number in zip(new, folders, numbers, strict=True):
        kept = newest_kept(str(folder))
        assert kept is not None
        digest = inspect(folder / f"snapshot-{number:08d}.snap").sha256
        named = Named(kept.place.job, number, digest, kept.place.journal)
        Group(admin, each.kafka).commit(offsets_to_commit(from_place(kept.place.offsets), named))


def _are_complete(admin: KafkaAdminClient, new: Sequence[Config], former: Sequence[Config]) -> bool:
    """Whether trainers could go on with the new shards, and these are from the ones before."""
    left = [newest_kept(str(each.state.folder)) for each in former]
    jobs = {kept.place.job for kept in left if kept is not None}
    return all(_is_complete(admin, each, jobs) for each in new)


def _is_complete(admin: KafkaAdminClient, config: Config, jobs: set[str]) -> bool:
    """Whether the folder is from these jobs, and what its group has committed belongs to it."""
    folder = Path(str(config.state.folder))
    try:
        origin = set(msgspec.json.decode((folder / FILE).read_bytes(), type=list[str]))
    except (OSError, msgspec.DecodeError):
        return False
    kept = newest_kept(str(folder))
    if kept is None or not jobs <= origin:
        return False
    committed = Group(admin, config.kafka).committed()
    named = [Named.of(at.metadata) for at in committed.values()]
    return kept.place.job in {each.job for each in named if each is not None}
