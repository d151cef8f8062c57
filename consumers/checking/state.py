"""Whether the state folder belongs to the job: to its taxonomy, its group, and what its topics still hold."""

import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import GroupAuthorizationFailedError

from consumers.clients import patiently
from consumers.errors import KafkaProblem
from consumers.topics import READ, Found
from stream_hc.cli.checking import Finding
from stream_hc.runtime.config import Config
from stream_hc.runtime.config.kafka import KafkaConfig
from stream_hc.runtime.disk import Place
from stream_hc.runtime.progress import Progress
from stream_hc.snapshot import SnapshotError, inspect
from stream_hc.taxonomy import Taxonomy, TaxonomyError

__all__ = ["Kept", "check_folder", "check_place", "newest_kept"]

_FILE = re.compile(r"snapshot-(\d{8,})\.snap")


class Kept(NamedTuple):
    """The newest snapshot that can be read: its number and age in seconds, and what its header says.

    `passed_over` tells what is wrong with a newer one.
    """

    number: int
    age: float
    place: Place
    records: int
    taxonomy: Taxonomy
    passed_over: str | None


def newest_kept(folder: str) -> Kept | None:
    """Return the newest snapshot of a state folder, which a job may be using; None if there is none.

    Raises
    ------
    SnapshotError
        There are some, and none can be read.
    """
    if not os.path.isdir(folder):
        return None
    found = sorted(
        (int(name[1]), each) for each in Path(folder).iterdir() if (name := _FILE.fullmatch(each.name))
    )
    problem: str | None = None
    for number, path in reversed(found):
        try:
            info = inspect(path)
            parts = {part.name: part.scalars for part in info.parts}
            taxonomy = Taxonomy.from_json(str(parts["window"]["taxonomy"]))
            records = Progress.from_state(dict(parts["progress"])).records
            age = max(0.0, time.time() - path.stat().st_mtime)
            return Kept(number, age, Place.of(info.extra), records, taxonomy, problem)
        except SnapshotError as error:
            problem = problem or str(error)
        except (ValueError, KeyError, OSError) as error:
            problem = problem or f"{path}: not the snapshot of a job: {error}"
    if problem is not None:
        raise SnapshotError(f"no snapshot can be read ({problem}): put one back from a backup")
    return None


def check_folder(config: Config, kept: Kept | None) -> Iterator[Finding]:
    """Look at the folder and at the taxonomy of its newest snapshot; no broker is asked."""
    folder = config.state.folder
    if folder is None:
        yield Finding("problem", "a job on topics needs a state folder: --state DIR, or state.folder")
        return
    above = Path(folder).absolute()
    while not above.exists():
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        yield Finding("problem", f"state.folder: {folder}: {above} is no folder that can be written to")
        return
    told = "new" if kept is None else f"snapshot {kept.number}, after {kept.records:,} records"
    yield Finding("ok", f"state folder {folder}: {told}")
    if kept is not None and kept.passed_over is not None:
        yield Finding("warning", f"{kept.passed_over}: a start goes on from snapshot {kept.number}")
    yield from _taxonomies(config, kept)


def _taxonomies(config: Config, kept: Kept | None) -> Iterator[Finding]:
    path = config.model.taxonomy
    if path is None:
        if kept is None:
            yield Finding("problem", "a new job needs a taxonomy: --taxonomy FILE, or model.taxonomy")
        return
    try:
        given = Taxonomy.read(path)
    except (TaxonomyError, OSError) as error:
        yield Finding("problem", f"model.taxonomy: {error}")
        return
    if kept is not None and given != kept.taxonomy:
        counts = f"{len(kept.taxonomy)} nodes, now {len(given)}"
        remedy = "give the old one, or an empty state folder to begin anew"
        yield Finding("problem", f"{path}: the taxonomy has changed ({counts}): {remedy}")
    else:
        yield Finding("ok", f"taxonomy {path}: {len(given)} nodes")


def check_place(
    admin: KafkaAdminClient, config: Config, found: Mapping[str, Found], kept: Kept | None
) -> Iterator[Finding]:
    """Ask what a start would ask: whether snapshot, committed offsets and topics fit together."""
    # Here, because the daemon makes use of other checks.
    from consumers.daemon.beginning import Ends, begin_anew, go_on  # noqa: PLC0415

    read = [found[role] for role in READ if role in found]
    if config.state.folder is None or any(topic.state != "there" or topic.without_leader for topic in read):
        return  # which was said before
    partitions = {TopicPartition(topic.name, n) for topic in read for n in range(topic.partitions)}
    committed = _committed(admin, config.kafka)
    if committed is None:
        return
    ends = Ends(*(_ends(admin, partitions, spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)))
    here = {
        partition: at for partition, at in committed.items() if partition in partitions and at.offset >= 0
    }
    kafka, group = config.kafka, config.kafka.group
    try:
        if kept is None:
            beginning = begin_anew(config.state.folder, group, here, ends, kafka.start)
        else:
            beginning = go_on(kept.place, kept.records == 0, group, here, ends)
    except KafkaProblem as problem:
        yield Finding("problem", str(problem))
        return
    behind = sum(last - beginning.published[partition] for partition, last in ends.last.items())
    yield Finding("ok", f"group {group}: {behind:,} records are to be read")


def _committed(admin: KafkaAdminClient, config: KafkaConfig) -> dict[TopicPartition, Any] | None:
    group = config.group
    try:
        told = patiently(lambda: admin.list_group_offsets({group: None}), config.request_timeout)
        return dict(told.get(group, {}))
    except GroupAuthorizationFailedError:
        return None  # which was said before


def _ends(
    admin: KafkaAdminClient, partitions: set[TopicPartition], spec: OffsetSpec
) -> dict[TopicPartition, int]:
    told = admin.list_partition_offsets(dict.fromkeys(partitions, spec))
    return {partition: each.offset for partition, each in told.items()}
