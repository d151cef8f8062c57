"""Where a job stands in its topics: in snapshots, in committed offsets, and in what is said beside them."""

from collections.abc import Iterable, Mapping
from typing import Self

import msgspec
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

__all__ = ["Named", "Offsets", "for_place", "from_place", "key_of", "offsets_to_commit", "partition_of"]

Offsets = dict[TopicPartition, int]  # of the next record

_encoder = msgspec.json.Encoder()


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """What stands beside a committed offset: whose it is, and the newest snapshot on the disk by then.

    A state folder of another job, or without such a snapshot, is not the one that belongs to the offsets.
    `journal` is the last entry of its journal whose results were published with the offsets.
    """

    job: str
    snapshot: int
    digest: str
    journal: int = 0

    def text(self) -> str:
        """Return it as the metadata of an offset."""
        return _encoder.encode(self).decode()

    @classmethod
    def of(cls, text: str | None) -> Self | None:
        """Return what the metadata of an offset say, or None if somebody else wrote them.

        >>> Named.of(Named("a1", 7, "0f").text())
        Named(job='a1', snapshot=7, digest='0f', journal=0)
        >>> Named.of("") is None
        True
        """
        try:
            return msgspec.json.decode(text or "", type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


def key_of(partition: TopicPartition) -> str:
    """Return a partition as a key of `Place.offsets`: a colon is in no topic's name.

    >>> key_of(TopicPartition("news-1", 3)), partition_of("news-1:3")
    ('news-1:3', TopicPartition(topic='news-1', partition=3))
    """
    return f"{partition.topic}:{partition.partition}"


def partition_of(key: str) -> TopicPartition:
    """Return the partition that a key names."""
    topic, _, number = key.rpartition(":")
    return TopicPartition(topic, int(number))


def offsets_to_commit(
    offsets: Mapping[TopicPartition, int], named: Named
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets as a client commits them, with what is said beside them."""
    text = named.text()
    return {partition: OffsetAndMetadata(offset, text, -1) for partition, offset in offsets.items()}


def from_place(offsets: Mapping[str, int]) -> Offsets:
    """Return the offsets of a `Place`."""
    return {partition_of(key): offset for key, offset in offsets.items()}


def for_place(offsets: Iterable[tuple[TopicPartition, int]]) -> dict[str, int]:
    """Return offsets as a `Place` keeps them."""
    return {key_of(partition): offset for partition, offset in sorted(offsets)}
