"""The bytes of a model as records of a topic, and back: a reader sees a whole version or none."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from consumers.models.manifest import DIGEST, VERSION, ChunkKey, Manifest, ShardKey

__all__ = ["Assembler", "Broken", "Complete", "Record", "check", "chunks_of", "count_chunks", "digest_of"]
__all__ += ["digests_of"]

Headers = Sequence[tuple[str, bytes]]


class Record(NamedTuple):
    """One record of the topic of models."""

    key: str
    value: bytes | None
    headers: Headers = ()


class Broken(ValueError):  # noqa: N818 (it says what is the matter)
    """A version that cannot be used, and why."""


def count_chunks(size: int, largest: int) -> int:
    """Return how many chunks so many bytes make.

    >>> count_chunks(10, 4), count_chunks(0, 4)
    (3, 0)
    """
    return -(-size // largest)


def digests_of(data: bytes, largest: int) -> list[bytes]:
    """Return the checksum of each chunk of so many bytes."""
    view = memoryview(data)
    starts = range(0, len(data), largest)
    return [hashlib.sha256(view[first : first + largest]).digest() for first in starts]


def digest_of(digests: Sequence[bytes]) -> str:
    """Return the checksum of a manifest from those of the chunks."""
    return hashlib.sha256(b"".join(digests)).hexdigest()


def chunks_of(shard: ShardKey, manifest: Manifest, data: bytes, digests: Sequence[bytes]) -> Iterator[Record]:
    """Yield the chunks of a version, each with its checksum."""
    version, largest = (VERSION, manifest.version.encode()), manifest.chunk
    for place, digest in enumerate(digests):
        part = data[place * largest : (place + 1) * largest]
        headers = [version, (DIGEST, digest.hex().encode())]
        yield Record(str(ChunkKey(shard, manifest.slot, place)), part, headers)


class Chunk(NamedTuple):
    """A part of a version, as it was read."""

    version: bytes
    digest: bytes
    value: bytes


class Complete(NamedTuple):
    """A version whose manifest has come, with the chunks that came before it."""

    shard: ShardKey
    manifest: Manifest
    chunks: Sequence[Chunk | None]

    def data(self) -> bytes:
        """Return the bytes, every one of them checked; `Broken` if that is not what was published.

        A version that is in a store has none here.
        """
        named = self.manifest.version.encode()
        digests = list[bytes]()
        for place, chunk in enumerate(self.chunks):
            where = f"chunk {place} of {len(self.chunks)}"
            if chunk is None or chunk.version != named:
                raise Broken(f"{where} is missing")
            digests.append(hashlib.sha256(chunk.value).digest())
            if digests[-1].hex().encode() != chunk.digest:
                raise Broken(f"{where} does not match its checksum")
        data = b"".join(chunk.value for chunk in self.chunks if chunk is not None)
        _check(len(data), digests, self.manifest)
        return data


def check(data: bytes, manifest: Manifest) -> None:
    """Raise `Broken` where bytes are not those that the manifest is about."""
    _check(len(data), digests_of(data, manifest.chunk), manifest)


def _check(size: int, digests: Sequence[bytes], manifest: Manifest) -> None:
    if size != manifest.size:
        raise Broken(f"{size} bytes, not {manifest.size}")
    if digest_of(digests) != manifest.sha256:
        raise Broken("the bytes do not match the checksum of the manifest")


class Assembler:
    """Puts versions together from records in the order of the topic.

    It holds the chunks of versions that are being written, and of the last complete one of each shard until
    they are not needed any more.
    """

    def __init__(self) -> None:
        self._slots: dict[tuple[ShardKey, int], dict[int, Chunk]] = defaultdict(dict)
        self._last: dict[ShardKey, Complete] = {}

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        slots = [
            *(slot.values() for slot in self._slots.values()),
            *(last.chunks for last in self._last.values()),
        ]
        return sum(len(chunk.value) for slot in slots for chunk in slot if chunk is not None)

    def forget_chunks(self) -> None:
        """Let the bytes of complete versions go: they were read."""
        self._last = {shard: complete._replace(chunks=()) for shard, complete in self._last.items()}

    def add(self, record: Record) -> Complete | None:
        """Take a record; returns the version that it is the end of.

        Raises
        ------
        Broken
            It is the end of something that is no version. Records of other kinds are passed over.
        """
        chunk = ChunkKey.of(record.key)
        if chunk is not None:
            self._put(chunk, record)
            return None
        shard = ShardKey.of(record.key)
        if shard is None or record.value is None:
            return None
        try:
            manifest = Manifest.of(record.value)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Broken(f"the manifest of {shard} cannot be read: {error}") from None
        last = self._last.get(shard)
        if last is not None and last.manifest.version == manifest.version:
            complete = last._replace(manifest=manifest)  # it is as it was, and that is the news
        elif manifest.store is not None:
            complete = Complete(shard, manifest, ())
        else:
            found = self._slots.pop((shard, manifest.slot), {})
            complete = Complete(shard, manifest, [found.get(place) for place in range(manifest.chunks)])
        self._last[shard] = complete
        return complete

    def _put(self, key: ChunkKey, record: Record) -> None:
        slot = self._slots[key.shard, key.slot]
        if record.value is None:
            slot.pop(key.place, None)
            return
        told = dict(record.headers)
        slot[key.place] = Chunk(told.get(VERSION, b""), told.get(DIGEST, b""), record.value)
