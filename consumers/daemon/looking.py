"""What a daemon asks before it begins: whether it can run at all, and what its topics are like."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from kafka import KafkaAdminClient
from kafka.errors import LeaderNotAvailableError

from consumers.checking.state import newest_kept
from consumers.checks import check_cluster
from consumers.errors import KafkaProblem
from consumers.topics import READ, create_missing, describe
from stream_hc.runtime.config import Config
from stream_hc.snapshot import SnapshotError

__all__ = ["Topics", "look_first"]

USUAL_LARGEST = 2**20  # bytes of a record, where the brokers do not say


class Topics(NamedTuple):
    """How many partitions each topic has, and the bytes that a record of it may have."""

    partitions: dict[str, int]
    largest: dict[str, int]


def look_first(
    admin: KafkaAdminClient,
    config: Config,
    note: Callable[[str], None],
    reading: Collection[str] = READ,
) -> Topics:
    """Make what is missing if that is wanted, and look at everything; `reading` as for `check_cluster`.

    Raises
    ------
    KafkaProblem
        The job cannot run; every reason is in the message or was noted before.
    KafkaError
        The brokers are not ready.
    """
    kafka, folder = config.kafka, config.state.folder
    if kafka.create_topics:
        for name in create_missing(admin, kafka):
            note(f"made the topic {name}")
    found = describe(admin, kafka)
    if any(topic.without_leader for topic in found.values()):
        raise LeaderNotAvailableError("a partition has no leader")
    try:
        kept = None if folder is None else newest_kept(folder)
    except SnapshotError:
        kept = None  # which is said when it is loaded
    findings = list(check_cluster(admin, kafka, found, None if kept is None else kept.age, reading))
    problems = [finding.text for finding in findings if finding.verdict == "problem"]
    for finding in findings:
        if finding.verdict == "warning":
            note(f"warning: {finding.text}")
    for problem in problems[1:]:
        note(f"problem: {problem}")
    if problems:
        raise KafkaProblem(problems[0])
    largest = {each.name: each.number("max.message.bytes") or USUAL_LARGEST for each in found.values()}
    return Topics({each.name: each.partitions for each in found.values()}, largest)
