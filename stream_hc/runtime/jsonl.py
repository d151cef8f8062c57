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

__all__ = ["Line", "LineReader", "Readable", "SourceError", "open_lines"]

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
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be positive, not {max_bytes}")
        self._source = source
        self._max_bytes = max_bytes
        self._wait = wait
        self._position = position
        self.size = size
        self._number = 0
        self._rest = bytearray()  # the beginning of a line that has not ended yet
        self._dropping = False

    def position(self) -> int:
        """Return how many bytes of the source are used up (0 where nobody knows)."""
        return 0 if self._position is None else self._position()

    def __iter__(self) -> Iterator[list[Line]]:
        while self._wait is None or self._wait():
            chunk = self._source.read(CHUNK)
            if not chunk:
                last = self._lines([b""]) if self._rest else []
                if last:
                    yield last
                return
            *ends, rest = chunk.split(b"\n")
            batch = self._lines(ends)
            self._keep(rest)
            if batch:
                yield batch

    def _lines(self, ends: list[bytes]) -> list[Line]:
        """Finish a line with each of these pieces; return those that are not blank."""
        batch: list[Line] = []
        for end in ends:
            self._keep(end)
            self._number += 1
            data, too_long = bytes(self._rest).removesuffix(b"\r"), self._dropping
            self._rest.clear()
            self._dropping = False
            if self._number == 1:
                data = data.removeprefix(BOM)
            if too_long or (data and not data.isspace()):
                batch.append(Line(self._number, data, too_long))
        return batch

    def _keep(self, piece: bytes) -> None:
        """Append to the unfinished line, or drop what makes it too long."""
        if self._dropping:
            return
        self._rest += piece
        # The CR of a line end does not count, and it may be the last byte that has come so far.
        length = len(self._rest) - self._rest.endswith(b"\r")
        if length > self._max_bytes:
            del self._rest[min(KEPT_OF_TOO_LONG, self._max_bytes) :]
            self._dropping = True


@contextmanager
def open_lines(
    name: str, max_bytes: int = MAX_LINE_BYTES, wait: Callable[[int], bool] | None = None
) -> Iterator[LineReader]:
    """Open a file, gzipped if its name ends in `.gz`, or standard input for `-`, and read its lines.

    `wait` is called with the file descriptor before every read; False ends the stream there.
    """
    if name == "-":
        if sys.stdin is None:
            raise SourceError("standard input is closed: name a file")
        descriptor = sys.stdin.fileno()
        yield LineReader(_Descriptor(descriptor), max_bytes, wait and partial(wait, descriptor))
        return
    try:
        file = open(name, "rb", buffering=0)  # noqa: SIM115 (what happens inside the block is not its error)
    except OSError as error:
        raise SourceError(f"{name}: cannot read: {error.strerror}") from None
    with file:
        size = os.fstat(file.fileno()).st_size if file.seekable() else 0
        yield LineReader(
            _Unzipping(file, name) if name.endswith(".gz") else file,
            max_bytes,
            wait and partial(wait, file.fileno()),
            file.tell if size else None,
            size or None,
        )


class _Descriptor:
    """Standard input without the buffer that would wait for more."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, size: int, /) -> bytes:
        return os.read(self._descriptor, size)


class _Unzipping:
    """A gzip file whose damage is an error that names it."""

    def __init__(self, raw: io.FileIO, name: str) -> None:
        self._file = gzip.GzipFile(fileobj=raw)
        self._name = name

    def read(self, size: int, /) -> bytes:
        try:
            return self._file.read(size)
        except (OSError, EOFError, zlib.error) as error:
            raise SourceError(f"{self._name}: not a sound gzip file: {error}") from None
