"""Whether the topics are there, and keep what they are given."""

from collections.abc import Collection, Iterator, Mapping

from consumers.errors import may_not
from consumers.topics import READ, Found, topics_of
from stream_hc.cli.checking import Finding
from stream_hc.runtime.config.kafka import KafkaConfig

__all__ = ["check_age", "check_names", "check_topics"]

LEAST_ROOM = 2**20  # bytes, in the topic of predictions
HEADERS = 2**14  # bytes that a dead letter has at least to have room for beside the record
MAKE = "--create-topics, or kafka.create_topics = true, makes it"


def check_names(config: KafkaConfig) -> Iterator[Finding]:
    """Compare the names: what is written where it is read would be read again, for ever."""
    used: dict[str, str] = {}
    for role, name in topics_of(config).items():
        if name in used and (used[name], role) != READ:  # labels may stand among the documents
            remedy = "name another topic"
            yield Finding(
                "problem", f"kafka.{role} is the same topic as kafka.{used[name]}, {name}: {remedy}"
            )
        used.setdefault(name, role)


def check_topics(
    found: Mapping[str, Found], config: KafkaConfig, n_brokers: int, reading: Collection[str] = READ
) -> Iterator[Finding]:
    """Look at every topic by itself; those of the keys in `reading` are read, the others written to."""
    for role, topic in found.items():
        if topic.state == "missing":
            told = f"topic {topic.name} (kafka.{role}) is missing"
            yield (
                Finding("ok", f"{told} and will be made")
                if config.create_topics
                else Finding("problem", f"{told}: {MAKE}")
            )
        elif topic.state == "denied":
            operation = "Read" if role in reading else "Write"
            yield Finding("problem", may_not(operation, "topic", topic.name, config))
        else:
            problems = [*_unusable(topic), *_leaky(topic), *_tight(topic, found), *_frail(topic, n_brokers)]
            yield from problems or [Finding("ok", f"topic {topic.name}: {_summary(topic)}")]


def _unusable(topic: Found) -> Iterator[Finding]:
    if topic.without_leader:
        numbers = ", ".join(map(str, topic.without_leader))
        yield Finding("problem", f"topic {topic.name}: no leader of partition {numbers}: start their brokers")
    least = topic.number("min.insync.replicas")
    if least is not None and least > topic.replication:
        told = f"min.insync.replicas is {least}, and there is {_replicas(topic.replication)}"
        yield Finding("problem", f"topic {topic.name}: {told}: nothing can be written: lower it")


def _leaky(topic: Found) -> Iterator[Finding]:
    """Look for what makes records vanish."""
    if not topic.settings:
        remedy = "allow DescribeConfigs, or look at cleanup.policy and retention.ms yourself"
        yield Finding("warning", f"topic {topic.name}: its settings may not be seen: {remedy}")
    if "compact" in topic.settings.get("cleanup.policy", ""):
        if topic.role in READ:
            told = "cleanup.policy=compact lets records vanish: what is learned has holes"
            yield Finding("problem", f"topic {topic.name}: {told}: set it to delete")
        elif topic.role == "dead_letters":
            told = "cleanup.policy=compact lets letters of the same key vanish"
            yield Finding("warning", f"topic {topic.name}: {told}: set it to delete")
    elif topic.role == "models" and topic.settings:
        told = "cleanup.policy=delete lets models vanish: predictors that start later find none"
        yield Finding("warning", f"topic {topic.name}: {told}: set it to compact")


def _tight(topic: Found, found: Mapping[str, Found]) -> Iterator[Finding]:
    room = topic.number("max.message.bytes")
    if room is None:
        return
    if topic.role == "predictions" and room < LEAST_ROOM:
        told = f"max.message.bytes is {room}: predictions with many scores may not fit"
        yield Finding("warning", f"topic {topic.name}: {told}: raise it to {LEAST_ROOM}")
    if topic.role == "dead_letters":
        read = [found[role].number("max.message.bytes") or 0 for role in READ if role in found]
        if room < max(read) + HEADERS:
            told = f"max.message.bytes is {room}: the largest records do not fit with the reason beside them"
            yield Finding("warning", f"topic {topic.name}: {told}: raise it to {max(read) + 2**20}")


def _frail(topic: Found, n_brokers: int) -> Iterator[Finding]:
    if topic.replication == 1 and n_brokers > 1:
        told = f"1 replica on {n_brokers} brokers: with one of them, all its records may be lost"
        yield Finding("warning", f"topic {topic.name}: {told}: give it 3 replicas")


def check_age(found: Mapping[str, Found], age: float) -> Iterator[Finding]:
    """Compare how long records are kept with the seconds since the newest snapshot.

    What is older than both is needed to go on and may be gone any moment, though it is still there.
    """
    for role in READ:
        kept = found[role].number("retention.ms") if role in found else None
        if kept is not None and 0 <= kept < 1000 * age:
            told = f"kept for {_time(kept / 1000)}, and the newest snapshot is {_time(age)} old"
            remedy = "start the job before what it has to read again is gone, or raise retention.ms"
            yield Finding("warning", f"topic {found[role].name}: {told}: {remedy}")


def _summary(topic: Found) -> str:
    n, kept = topic.partitions, topic.number("retention.ms")
    parts = [f"{n} partition{'s' * (n != 1)}", _replicas(topic.replication)]
    if kept is not None and "delete" in topic.settings["cleanup.policy"]:
        parts.append("kept for good" if kept < 0 else f"kept for {_time(kept / 1000)}")
    return ", ".join(parts)


def _replicas(n: int) -> str:
    return "1 replica" if n == 1 else f"{n} replicas"


def _time(seconds: float) -> str:
    """Return some time in words.

    >>> _time(7 * 86400), _time(5400), _time(1)
    ('7 days', '1.5 hours', '1 seconds')
    """
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} seconds"
