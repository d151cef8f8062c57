"""The entries of a journal, and their lines: a JSON object of a running number, a checksum and the entry."""

import zlib
from contextlib import suppress
from typing import NamedTuple

import msgspec

__all__ = [
    "Batch",
    "Command",
    "Entry",
    "Numbered",
    "Ranges",
    "RefitDone",
    "RefitFailed",
    "Tick",
    "decoded",
    "encoded",
]


class _Entry(msgspec.Struct, frozen=True, tag=str.lower, tag_field="kind"):
    at: int  # records processed before it


class Batch(_Entry, frozen=True):
    """The next lines came from this source."""

    source: str
    lines: int


class Ranges(_Entry, frozen=True):
    """The next records were those between two offsets of each of these partitions, merged by their time."""

    lines: int
    ranges: dict[str, tuple[int, int]]


class Tick(_Entry, frozen=True):
    """The clock was read."""

    now: float


class RefitDone(_Entry, frozen=True):
    """A fit has ended, and its model was taken."""

    number: int


class RefitFailed(_Entry, frozen=True):
    """A fit has ended without a model."""

    number: int
    outcome: str
    problem: str


class Command(_Entry, frozen=True):
    """Somebody asked for something; `name` is that of the request."""

    what: str
    model: str
    name: str = ""


Entry = Batch | Ranges | Tick | RefitDone | RefitFailed | Command


class Numbered(NamedTuple):
    """An entry and its running number, counted from 1."""

    number: int
    entry: Entry


class _Line(msgspec.Struct, frozen=True):
    number: int
    crc: int
    entry: msgspec.Raw


_line_decoder = msgspec.json.Decoder(_Line)
_entry_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


def encoded(number: int, entry: Entry) -> bytes:
    """Return the line of an entry."""
    content = msgspec.json.encode(entry)
    return b'{"number":%d,"crc":%d,"entry":%s}\n' % (number, _crc(number, content), content)


def decoded(line: bytes) -> Numbered | None:
    """Return the entry of a line, or None if anything is wrong with it."""
    if line.endswith(b"\n"):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = _line_decoder.decode(line)
            if found.crc == _crc(found.number, bytes(found.entry)):
                return Numbered(found.number, _entry_decoder.decode(found.entry))
    return None


def _crc(number: int, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(b"%d " % number))
