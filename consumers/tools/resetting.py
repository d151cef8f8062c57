"""The work behind `stream-hc kafka reset`: see where a job stands, show what would happen, ask, do it."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from consumers.clients import administrator, explaining, partitions_of, reader
from consumers.models.manifest import ShardKey
from consumers.offsets import Named, Offsets, key_of
from consumers.tools.confirming import confirm
from consumers.tools.groups import Group
from consumers.tools.moving import State, begin_anew, locked, move, newest
from consumers.tools.targets import Standing, target
from stream_hc.cli.console import out, say
from stream_hc.cli.errors import CliError, Code, usage_error
from stream_hc.runtime.config import Config, KafkaConfig

__all__ = ["reset"]


def reset(config: Config, to: str | None, forget: bool, yes: bool) -> int:
    """Move a job and return the exit code."""
    kafka = config.kafka
    if forget and to == "snapshot":
        raise usage_error("--forget puts the snapshots aside: none of them says where to begin")
    if config.state.folder is None:
        raise usage_error("name the state folder of the job: --set state.folder=DIR, or --config FILE")
    folder = Path(config.state.folder)
    shards = sorted(each.name for each in folder.glob("*-of-*") if ShardKey.of(each.name))
    if shards:
        own = f"--set kafka.group={kafka.group}-train-{shards[0]} --set state.folder={folder / shards[0]}"
        raise usage_error(f"{folder} has the folders of shards: name one of them, such as {own}")
    with ExitStack() as stack:
        stack.enter_context(explaining(kafka))
        group = Group(stack.enter_context(administrator(kafka)), kafka)
        consumer = stack.enter_context(reader(kafka))
        partitions = partitions_of(consumer, dict.fromkeys(filter(None, (kafka.documents, kafka.labels))))
        group.refuse_members()
        keeper = stack.enter_context(locked(folder))
        group.end_transactions()
        committed = group.committed()
        job, state = _job_of(committed), None
        if not forget:
            state = None if keeper is None else stack.enter_context(newest(keeper, job))
            _check(state, folder, job, to)
        places = {partition: at.offset for partition, at in committed.items()}
        standing = Standing.ask(consumer, partitions, places, {} if state is None else state.offsets)
        new = target(to or kafka.start, standing, consumer)
        _show(kafka, standing, new, state, forget)
        if not yes:
            confirm(f"Type the name of the group to go on ({kafka.group}):", kafka.group)
        if forget:
            aside = begin_anew(folder, group, None if to is None else new)
            kept = "" if aside is None else f"; what it knew is in {aside}"
            say(f"{kafka.group} begins anew{kept}")
        else:
            assert state is not None
            named = move(state, group, new)
            say(f"{kafka.group} is moved: it goes on from snapshot {named.snapshot} when it is started")
    return Code.FINE


def _check(state: State | None, folder: Path, job: str | None, to: str | None) -> None:
    """Refuse a folder that is not that of the job; its own snapshot is where any job may go on."""
    if state is None:
        problem = "no snapshot there, and without what was learned no job can be moved"
    elif not state.place.job:
        problem = "the state of a job on files"
    elif job not in (None, state.place.job) and to != "snapshot":
        problem = (
            "the state of another job than the one that has committed (--to snapshot puts it in its place)"
        )
    else:
        return
    raise CliError(f"{folder}: {problem}: name the right folder, or begin anew with --forget", Code.BAD_INPUT)


def _job_of(committed: Mapping[TopicPartition, OffsetAndMetadata]) -> str | None:
    """Return the name of the job that has committed last, if one has."""
    found = [named for at in committed.values() if (named := Named.of(at.metadata)) is not None]
    return max(found, key=lambda named: named.journal).job if found else None


def _show(config: KafkaConfig, standing: Standing, new: Offsets, state: State | None, forget: bool) -> None:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("partition", overflow="fold")
    for name in ("committed", "new offset"):
        table.add_column(name, justify="right")
    table.add_column("")
    again = skipped = 0
    for partition, offset in new.items():
        before = standing.committed.get(partition)
        moved = 0 if before is None else offset - before
        again, skipped = again + max(0, -moved), skipped + max(0, moved)
        told = (
            "" if not moved else f"{abs(moved):,} records {'are skipped' if moved > 0 else 'are read again'}"
        )
        cells = (key_of(partition), "-" if before is None else f"{before:,}", f"{offset:,}", told)
        table.add_row(*map(Text, cells))
    out().print(table)
    for warning in _warnings(standing, state, again, skipped, forget):
        say(f"warning: {warning}", "yellow")


def _warnings(standing: Standing, state: State | None, again: int, skipped: int, forget: bool) -> list[str]:
    found = []
    if forget:
        found.append("everything that was learned is put aside; the job begins with nothing")
    if again:
        learned = "" if forget else " and learned"
        found.append(
            f"documents that are read again are predicted{learned} again: readers see both predictions"
        )
    if skipped:
        found.append("records that are skipped are never predicted or learned")
    if state is not None and not forget:
        lost = sum(
            max(0, at - state.offsets.get(partition, 0)) for partition, at in standing.committed.items()
        )
        if lost:
            remedy = "to keep it, start and stop the job once before this"
            found.append(
                f"what was learned from {lost:,} records since snapshot {state.number} is lost: {remedy}"
            )
    return found
