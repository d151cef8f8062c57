"""Places in a source to go on from.

A position proves itself: it holds a digest of the bytes in front of it, so that a file that was replaced or
rewritten is refused and never read at a wrong place.
"""

import hashlib
import io
import os

import msgspec

from stream_hc.runtime.jsonl import CHUNK, Readable, SourceError

__all__ = ["REMEDY", "Position", "Trail", "changed", "digest", "go_to", "unpack_to"]

CHECKED = 2**16  # bytes in front of a position that must be the same after a restart
REMEDY = "put the earlier file back, or begin anew with an empty state folder"


class Position(msgspec.Struct, frozen=True):
    """A place between two lines.

    The device is left out: its number may change when the machine starts again.

    Attributes
    ----------
    name
        Of the source.
    inode
        Of the file; 0 as long as a followed file does not exist.
    offset
        Bytes before the place; of a gzipped file, after unpacking.
    number
        Lines before the place, blank ones too.
    digest
        SHA-256 of up to `CHECKED` bytes before the place.
    """

    name: str
    inode: int
    offset: int
    number: int
    digest: str


class Trail:
    """The bytes in front of any place in the newest piece, and of the one place that was kept before it."""

    def __init__(self, before: bytes, offset: int) -> None:
        self._start = offset  # of the piece
        self._piece = b""
        self._before = self._kept = before

    def extend(self, piece: bytes, keep: int) -> None:
        """Take the next piece; of the one before only what is in front of the place `keep` stays."""
        self._kept = self.before(keep)
        self._before = self.before(self._start + len(self._piece))
        self._start += len(self._piece)
        self._piece = piece

    def before(self, offset: int) -> bytes:
        """Return the bytes in front of a place that count."""
        length = offset - self._start
        if length < 0:
            return self._kept
        inside = self._piece[max(length - CHECKED, 0) : length]
        return (self._before + inside)[-CHECKED:] if length < CHECKED else inside


def digest(before: bytes) -> str:
    """Return what a position keeps of the bytes in front of it."""
    return hashlib.sha256(before).hexdigest()


def go_to(file: io.FileIO, position: Position) -> bytes | None:
    """Go to the position; return the bytes before it if they are those that were read."""
    start = max(position.offset - CHECKED, 0)
    before = os.pread(file.fileno(), position.offset - start, start)
    file.seek(position.offset)
    return before if len(before) == position.offset - start and digest(before) == position.digest else None


def unpack_to(source: Readable, position: Position) -> bytes | None:
    """Unpack up to the position; return the bytes before it if they are those that were read."""
    left, before = position.offset, b""
    while left and (chunk := source.read(min(left, CHUNK))):
        left -= len(chunk)
        before = (before + chunk)[-CHECKED:]
    return before if not left and digest(before) == position.digest else None


def changed(position: Position) -> SourceError:
    """Return the error of a file that is not the one that was read."""
    place = f"byte {position.offset}, line {position.number}"
    return SourceError(f"{position.name}: not the file that was read up to {place}: {REMEDY}")
