"""Dead letters: records that a job could not use, as they came, with the reason in headers."""

from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from consumers.clients import administrator, patiently
from consumers.offsets import Offsets
from stream_hc.cli.errors import usage_error
from stream_hc.runtime.config import KafkaConfig

__all__ = ["Letter", "committed_offsets", "letters_topic", "place_group", "shown"]

UNKNOWN = "?"
CUT = "truncated"  # header of a letter that did not fit into its topic


class Letter(NamedTuple):
    """A dead letter: where it lies, why, where it came from, and what it is."""

    partition: int
    offset: int
    timestamp: int  # milliseconds
    reason: str
    detail: str
    topic: str
    origin: str  # partition:offset there
    key: bytes | None
    value: bytes | None
    is_cut: bool  # the value is only the beginning of what came

    @classmethod
    def of(cls, record: Any) -> Self:
        """Return the letter in a record; whatever a header holds is text here."""
        headers = dict(record.headers or ())
        reason, detail, topic, partition, offset = (
            shown(headers.get(name)) for name in ("reason", "detail", "topic", "partition", "offset")
        )
        return cls(
            record.partition,
            record.offset,
            record.timestamp,
            reason or UNKNOWN,
            detail,
            topic,
            f"{partition}:{offset}",
            record.key,
            record.value,
            CUT in headers,
        )

    @property
    def when(self) -> str:
        """The time at which it was written."""
        if self.timestamp < 0:  # so clients say that they do not know
            return UNKNOWN
        try:
            return datetime.fromtimestamp(self.timestamp / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        except (ValueError, OverflowError, OSError):  # clients may write any number
            return UNKNOWN


def shown(data: bytes | None) -> str:
    r"""Return bytes as text, with escapes for what is not UTF-8.

    >>> shown(b"caf\xc3\xa9 \xff")
    'café \\xff'
    """
    return "" if data is None else data.decode("utf-8", "backslashreplace")


def place_group(group: str) -> str:
    """Return the group that keeps the place of replays for a job."""
    return f"{group}.dlq"


def letters_topic(config: KafkaConfig) -> str:
    """Return the topic of dead letters, if the job has one."""
    if config.dead_letters is None:
        raise usage_error("kafka.dead_letters is none: this job keeps no dead letters")
    return config.dead_letters


def committed_offsets(config: KafkaConfig, group: str) -> Offsets:
    """Return where a group stands."""
    with administrator(config) as admin:
        found = patiently(lambda: admin.list_group_offsets({group: None}), config.request_timeout)[group]
    return {partition: at.offset for partition, at in found.items() if at.offset >= 0}
