"""What is said about one version of a model, and the keys of its records in the topic."""

import re
from typing import Annotated, NamedTuple, Self

import msgspec
from msgspec import Meta

__all__ = ["DIGEST", "VERSION", "ChunkKey", "Manifest", "ShardKey"]

VERSION, DIGEST = "version", "sha256"  # headers of a chunk
MOST_SHARDS = 9_999

_SHARD = re.compile(r"(\d{1,4})-of-(\d{1,4})")
_CHUNK = re.compile(r"(\d{1,4}-of-\d{1,4})/([01])/(\d{6})")

Size = Annotated[int, Meta(ge=0, lt=2**53)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class ShardKey(NamedTuple):
    """Which part of a model: the whole is shard 0 of 1. As text it is the key of its manifest."""

    number: int
    n_shards: int

    def __str__(self) -> str:
        return f"{self.number}-of-{self.n_shards}"

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Return what a text names; None if it names no shard.

        >>> ShardKey.of("1-of-4"), ShardKey.of("4-of-4")
        (ShardKey(number=1, n_shards=4), None)
        """
        found = _SHARD.fullmatch(text)
        if found is None or int(found[1]) >= int(found[2]):
            return None
        return cls(int(found[1]), int(found[2]))


class ChunkKey(NamedTuple):
    """Where a chunk belongs. Two slots take turns: what is complete stays while the next is being written."""

    shard: ShardKey
    slot: int
    place: int

    def __str__(self) -> str:
        return f"{self.shard}/{self.slot}/{self.place:06d}"

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Return what a key names; None if it is not that of a chunk.

        >>> str(ChunkKey.of("0-of-1/1/000017"))
        '0-of-1/1/000017'
        """
        found = _CHUNK.fullmatch(text)
        shard = None if found is None else ShardKey.of(found[1])
        return None if found is None or shard is None else cls(shard, int(found[2]), int(found[3]))


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The last record of a version: a reader that has it has all of it, or knows where it is.

    Attributes
    ----------
    version
        Its name, which no other version has.
    job, snapshot
        The state that the model is from.
    records, learned
        Read and learned by then.
    model
        Name of the learner, as in predictions.
    plan
        How the taxonomy was cut, as a digest; models of shards that were cut differently do not go together.
    saved
        When the snapshot was on the disk, in seconds.
    size
        Of the model, in bytes.
    chunk
        Bytes of a chunk, but for the last one, which may have less.
    sha256
        Checksum of the checksums of all chunks, in their order: nothing is hashed twice.
    slot, chunks
        Where they are in the topic, and how many.
    store
        The file they are in instead.
    """

    version: Annotated[str, Meta(min_length=1, max_length=64)]
    job: str
    snapshot: Size
    records: Size
    learned: Size
    model: str
    plan: str = ""
    saved: float
    size: Size
    chunk: Annotated[int, Meta(ge=1, lt=2**31)]
    sha256: Digest
    slot: Annotated[int, Meta(ge=0, le=1)] = 0
    chunks: Annotated[int, Meta(ge=0, le=999_999)] = 0
    store: str | None = None

    def encode(self) -> bytes:
        """Return it as the value of a record."""
        return msgspec.json.encode(self)

    @classmethod
    def of(cls, value: bytes) -> Self:
        """Return what `encode` returned; `msgspec.ValidationError` or `DecodeError` for anything else."""
        return msgspec.json.decode(value, type=cls)
