"""Where a job is to be moved: from what was typed to an offset for every partition."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from kafka import KafkaConsumer, TopicPartition

from consumers.offsets import Offsets, key_of
from stream_hc.cli.errors import CliError, Code, usage_error

__all__ = ["Standing", "target"]

FORMS = "earliest, latest, a time such as 2026-01-31T12:00Z, snapshot, or TOPIC:PARTITION=OFFSET,..."
_ASSIGNMENT = re.compile(r"([A-Za-z0-9._-]{1,249}):(\d{1,9})=(\d{1,18})")


class Standing(NamedTuple):
    """Where partitions begin and end, and what the group and the newest snapshot say about them."""

    first: Offsets
    end: Offsets
    committed: Offsets
    snapshot: Offsets

    @classmethod
    def ask(
        cls,
        consumer: KafkaConsumer,
        partitions: Iterable[TopicPartition],
        committed: Mapping[TopicPartition, int],
        snapshot: Mapping[TopicPartition, int],
    ) -> "Standing":
        """Ask the brokers; partitions that are not read any more are left out."""
        asked = list(partitions)
        first, end = consumer.beginning_offsets(asked), consumer.end_offsets(asked)
        return cls(
            {each: first[each] for each in asked},
            {each: end[each] for each in asked},
            {each: committed[each] for each in asked if each in committed},
            {each: snapshot[each] for each in asked if each in snapshot},
        )


def target(to: str, standing: Standing, consumer: KafkaConsumer) -> Offsets:
    """Return the new offset of every partition, or raise an error that says what is wrong with `to`."""
    if to == "earliest":
        return dict(standing.first)
    if to == "latest":
        return dict(standing.end)
    if to == "snapshot":
        return _checked({**standing.first, **standing.snapshot}, standing)
    if "=" in to:
        return _checked(_assigned(to, standing), standing)
    return _at_time(to, standing, consumer)


def _at_time(to: str, standing: Standing, consumer: KafkaConsumer) -> Offsets:
    try:
        time = datetime.fromisoformat(to)
        since = round(1000 * (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise usage_error(f"--to {to}: expected {FORMS}") from None
    if since < 0:
        raise usage_error(f"--to {to}: before 1970 there were no records")
    found = consumer.offsets_for_times(dict.fromkeys(standing.first, since))
    return {
        each: end if found.get(each) is None else min(int(found[each].offset), end)
        for each, end in standing.end.items()
    }


def _assigned(to: str, standing: Standing) -> Offsets:
    """Move the partitions that are named; the others stay where they are."""
    named: Offsets = {}
    for text in to.split(","):
        found = _ASSIGNMENT.fullmatch(text.strip())
        if found is None:
            raise usage_error(f"--to {text}: expected TOPIC:PARTITION=OFFSET")
        partition = TopicPartition(found[1], int(found[2]))
        if partition not in standing.first:
            known = ", ".join(map(key_of, standing.first))
            raise usage_error(f"--to {text}: the job does not read that, only {known}")
        named[partition] = int(found[3])
    others = {**standing.snapshot, **standing.committed}
    for partition in standing.first:
        if partition not in named and partition not in others:
            raise usage_error(f"--to {to}: the job has no place in {key_of(partition)} yet: name it, too")
    return {each: named.get(each, others.get(each, 0)) for each in standing.first}


def _checked(offsets: Offsets, standing: Standing) -> Offsets:
    """Refuse offsets that are not there: a job that begins at one of them would refuse, too."""
    for partition, offset in offsets.items():
        first, end = standing.first[partition], standing.end[partition]
        if not first <= offset <= end:
            gone = "is gone by now" if offset < first else "is not there yet"
            problem = f"record {offset} of {key_of(partition)} {gone}: it has {first} to {end}"
            raise CliError(f"{problem}; choose another place, such as --to earliest", Code.BAD_INPUT)
    return offsets
