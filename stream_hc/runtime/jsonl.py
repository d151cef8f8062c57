"""Lines from a file or a pipe, in the batches in which they arrive.

A reader takes what is there and hands out the lines that are complete: in a pipe each line as soon as it has
ended, from a file some thousand at a time. A line that is too long is dropped while it is read, all but its
beginning, so that memory stays bounded whatever comes in.
"""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, Protocol

from stream_hc.runtime.records import MAX_LINE_BYTES

__all__ = [
    "Descriptor",
    "Line",
    "LineReader",
    "LineSplitter",
    "Readable",
    "SourceError",
    "Unzipping",
    "open_lines",
    "open_raw",
    "standard_input",
]

CHUNK = 2**20
KEPT_OF_TOO_LONG = 1_000  # bytes, for the error message and the file of rejects
BOM = b"\xef\xbb\xbf"


class SourceError(ValueError):
    """A file that cannot be read; the message names it."""


class Line(NamedTuple):
    """A line without its end, and its number, counted from 1; only the beginning of it if `too_long`."""

    number: int
    data: bytes
    too_long: bool = False


class Readable(Protocol):
    """The one method needed: up to so many bytes, as soon as there are any, and none at the end."""

    def read(self, size: int, /) -> bytes | None:
        """Read what is there."""


class LineSplitter:
    r"""Cut bytes into lines, whatever the pieces in which they come.

    Parameters
    ----------
    max_bytes
        Longer lines come cut off and marked.
    offset, number
        Where the first piece stands: its place in the source, and how many lines are before it.

    Attributes
    ----------
    offset, number
        Where the last complete line ended, and its number; blank lines count.

    Examples
    --------
    >>> splitter = LineSplitter()
    >>> splitter.feed(b"one\n\ntw")
    ([Line(number=1, data=b'one', too_long=False)], [4])
    >>> splitter.feed(b"o"), splitter.finish()
    (([], []), ([Line(number=3, data=b'two', too_long=False)], [8]))
    """

    def __init__(self, max_bytes: int = MAX_LINE_BYTES, offset: int = 0, number: int = 0) -> None:
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be positive, not {max_bytes}")
        self._max_bytes = max_bytes
        self.offset = offset
        self.number = number
        self._rest = bytearray()  # the beginning of a line that has not ended yet
        self._rest_bytes = 0  # of it, with those that were dropped
        self._dropping = False

    def feed(self, chunk: bytes) -> tuple[list[Line], list[int]]:
        """Return the lines that end in this piece, without the blank ones, and where each ends."""
        *pieces, rest = chunk.split(b"\n")
        found = self._lines(pieces, 1)
        self._keep(rest)
        return found

    def finish(self) -> tuple[list[Line], list[int]]:
        """Return the line that the end of the source ends, if there is one."""
        return self._lines([b""], 0) if self._rest else ([], [])

    def _lines(self, pieces: list[bytes], line_end: int) -> tuple[list[Line], list[int]]:
        lines: list[Line] = []
        ends: list[int] = []
        for piece in pieces:
            self._keep(piece)
            data, too_long = bytes(self._rest).removesuffix(b"\r"), self._dropping
            if self.offset == 0:
                data = data.removeprefix(BOM)
            self.number += 1
            self.offset += self._rest_bytes + line_end
            self._rest.clear()
            self._rest_bytes = 0
            self._dropping = False
            if too_long or (data and not data.isspace()):
                lines.append(Line(self.number, data, too_long))
                ends.append(self.offset)
        return lines, ends

    def _keep(self, piece: bytes) -> None:
        """Append to the unfinished line, or drop what makes it too long."""
        self._rest_bytes += len(piece)
        if self._dropping:
            return
        self._rest += piece
        # The CR of a line end does not count, and it may be the last byte that has come so far.
        length = len(self._rest) - self._rest.endswith(b"\r")
        if length > self._max_bytes:
            del self._rest[min(KEPT_OF_TOO_LONG, self._max_bytes) :]
            self._dropping = True


class LineReader:
    r"""Split a stream of bytes into batches of lines.

    Blank lines are counted and skipped, line ends may be LF or CRLF, the last line needs none, and a byte
    order mark at the beginning is taken off.

    Parameters
    ----------
    source
        An unbuffered binary stream: its `read` returns what is there.
    max_bytes
        Longer lines come cut off and marked.
    wait
        Called before every read; False ends the stream there, and an unfinished line is left out.
    position
        Tells how many bytes of the source are used up, for a progress bar.
    size
        Bytes of the source, if known.

    Examples
    --------
    >>> import io
    >>> for batch in LineReader(io.BytesIO(b"one\n\ntwo")):
    ...     print([(line.number, line.data) for line in batch])
    [(1, b'one')]
    [(3, b'two')]
    """

    def __init__(
        self,
        source: Readable,
        max_bytes: int = MAX_LINE_BYTES,
        wait: Callable[[], bool] | None = None,
        position: Callable[[], int] | None = None,
        size: int | None = None,
    ) -> None:
        self._source = source
        self._splitter = LineSplitter(max_bytes)
        self._wait = wait
        self._position = position
        self.size = size

    def position(self) -> int:
        """Return how many bytes of the source are used up (0 where nobody knows)."""
        return 0 if self._position is None else self._position()

    def __iter__(self) -> Iterator[list[Line]]:
        while self._wait is None or self._wait():
            chunk = self._source.read(CHUNK)
            batch, _ = self._splitter.feed(chunk) if chunk else self._splitter.finish()
            if batch:
                yield batch
            if not chunk:
                return


@contextmanager
def open_lines(
    name: str, max_bytes: int = MAX_LINE_BYTES, wait: Callable[[int], bool] | None = None
) -> Iterator[LineReader]:
    """Open a file, gzipped if its name ends in `.gz`, or standard input for `-`, and read its lines.

    `wait` is called with the file descriptor before every read; False ends the stream there.
    """
    if name == "-":
        descriptor = standard_input()
        yield LineReader(Descriptor(descriptor), max_bytes, wait and partial(wait, descriptor))
        return
    with open_raw(name) as file:
        size = os.fstat(file.fileno()).st_size if file.seekable() else 0
        yield LineReader(
            Unzipping(file, name) if name.endswith(".gz") else file,
            max_bytes,
            wait and partial(wait, file.fileno()),
            file.tell if size else None,
            size or None,
        )


def open_raw(name: str) -> io.FileIO:
    """Open a file without a buffer, or raise `SourceError`."""
    try:
        return open(name, "rb", buffering=0)
    except OSError as error:
        raise SourceError(f"{name}: cannot read: {error.strerror}") from None


def standard_input() -> int:
    """Return the descriptor of standard input, or raise `SourceError` if there is none."""
    if sys.stdin is None:
        raise SourceError("standard input is closed: name a file")
    return sys.stdin.fileno()


class Descriptor:
    """Standard input without the buffer that would wait for more."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, size: int, /) -> bytes:
        """Read what is there."""
        return os.read(self._descriptor, size)


class Unzipping:
    """A gzip file whose damage is an error that names it."""

    def __init__(self, raw: io.FileIO, name: str) -> None:
        self._file = gzip.GzipFile(fileobj=raw)
        self._name = name

    def read(self, size: int, /) -> bytes:
        """Unpack up to so many bytes."""
        try:
            return self._file.read(size)
        except (OSError, EOFError, zlib.error) as error:
            raise SourceError(f"{self._name}: not a sound gzip file: {error}") from None
