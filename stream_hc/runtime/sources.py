"""Where lines come from, with a position to go on from: files, gzipped files, followed files, standard input.

A position proves itself: it holds a digest of the bytes in front of it, so that a file that was replaced or
rewritten is refused and never read at a wrong place. A followed file is read as `tail -F` does: it may not
exist yet, it may be renamed and created anew, it may be cut off. One that is cut off and written again past
the place of the reader between two looks cannot be told from one that grew.
"""

import hashlib
import io
import os
import re
import select
import stat
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Self

import msgspec

from stream_hc.runtime.jsonl import CHUNK, Descriptor, Line, LineSplitter, Readable, SourceError, Unzipping
from stream_hc.runtime.records import MAX_LINE_BYTES

__all__ = ["Position", "Source", "SourceError", "open_source", "wait_for"]

CHECKED = 2**16  # bytes in front of a position that must be the same after a restart
POLL = 0.2  # seconds between two looks at a followed file
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


class Source(ABC):
    """Lines in the batches in which the caller wants them; see `open_source`.

    Attributes
    ----------
    name
        As given.
    restarted
        The file had been cut off, and the last `read` began it anew.
    """

    def __init__(self, name: str, max_bytes: int) -> None:
        self.name = name
        self.restarted = False
        self._max_bytes = max_bytes
        self._exhausted = False
        self._lines: list[Line] = []
        self._ends: list[int] = []
        self._taken = 0  # of the lines
        self._start_at(0, 0, b"")

    @property
    def ended(self) -> bool:
        """Whether everything was handed out and nothing will come any more."""
        return self._exhausted and not self._lines

    @property
    def position(self) -> Position | None:
        """Just behind the last line handed out and blank ones after it; None where nobody can go back."""
        digest = hashlib.sha256(self._trail.before(self._offset)).hexdigest()
        return Position(self.name, self._inode(), self._offset, self._number, digest)

    @property
    def size(self) -> int | None:
        """Bytes of the file, packed as it is; None if nobody knows."""
        return None

    @property
    def done(self) -> int:
        """How many of the bytes of `size` are used up."""
        return self._offset

    def read(self, most: int | None = None) -> list[Line]:
        """Return complete lines that are there now, `most` at most, without waiting; [] if there are none."""
        self.restarted = False
        while not self._lines and not self._exhausted:
            chunk = self._more()
            if chunk is None:
                break
            self._take(chunk)
        stop = len(self._lines) if most is None else self._taken + most
        batch = self._lines[self._taken : stop]
        self._taken += len(batch)
        if self._taken == len(self._lines):
            self._lines, self._ends, self._taken = [], [], 0
            self._reach(self._splitter.offset, self._splitter.number)
        elif batch:
            self._reach(self._ends[self._taken - 1], batch[-1].number)
        return batch

    def pending(self) -> bool:
        """Tell, without waiting, whether `read` is worth a try."""
        return bool(self._lines) or (not self._exhausted and self._has_more())

    def fileno(self) -> int | None:
        """Return the descriptor that is readable when more has come; None for a file, which is looked at."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def _more(self) -> bytes | None:
        """Return the next piece; b"" at the end of a file, None if nothing is there now."""

    def _has_more(self) -> bool:
        return True

    def _inode(self) -> int:
        return 0

    def _at_end(self) -> None:
        self._exhausted = True

    def _start_at(self, offset: int, number: int, before: bytes) -> None:
        # A last line without an end was handed out. Its end may have come since, but no more than that.
        self._unended = number if before and not before.endswith(b"\n") else 0
        self._splitter = LineSplitter(self._max_bytes, offset, number - (self._unended > 0))
        self._trail = _Trail(before, offset)
        self._offset, self._number = offset, number

    def _take(self, chunk: bytes) -> None:
        self._reach(self._splitter.offset, self._splitter.number)  # behind blank lines
        if chunk:
            self._trail.extend(chunk, self._offset)
            self._lines, self._ends = self._splitter.feed(chunk)
        else:
            self._lines, self._ends = self._splitter.finish()
        if self._unended and self._splitter.number >= self._unended:
            if self._lines and self._lines[0].number == self._unended:
                problem = f"line {self._unended} was read as the last one and has grown since"
                raise SourceError(f"{self.name}: {problem}: {REMEDY}")
            self._unended = 0
        if not chunk:
            self._at_end()

    def _reach(self, offset: int, number: int) -> None:
        if offset > self._offset:
            self._offset, self._number = offset, number


class _Trail:
    """The bytes in front of any place in the newest piece, and of the one place that was kept before it."""

    def __init__(self, before: bytes, offset: int) -> None:
        self._start = offset  # of the piece
        self._piece = b""
        self._before = self._kept = before

    def extend(self, piece: bytes, keep: int) -> None:
        self._kept = self.before(keep)
        self._before = self.before(self._start + len(self._piece))
        self._start += len(self._piece)
        self._piece = piece

    def before(self, offset: int) -> bytes:
        length = offset - self._start
        if length < 0:
            return self._kept
        inside = self._piece[max(length - CHECKED, 0) : length]
        return (self._before + inside)[-CHECKED:] if length < CHECKED else inside


class _Pipe(Source):
    """Standard input, or a file that is a pipe or a device."""

    def __init__(self, name: str, file: io.FileIO | None, descriptor: int, max_bytes: int) -> None:
        super().__init__(name, max_bytes)
        self._file = file
        self._descriptor = descriptor
        self._source = Descriptor(descriptor)

    @property
    def position(self) -> None:
        return None

    @property
    def done(self) -> int:
        return 0

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _has_more(self) -> bool:
        return bool(_readable([self._descriptor], 0.0))

    def _more(self) -> bytes | None:
        return self._source.read(CHUNK) if self._has_more() else None


class _File(Source):
    """A file that is read to its end."""

    def __init__(self, name: str, position: Position | None, max_bytes: int) -> None:
        super().__init__(name, max_bytes)
        self._file = _open(name)
        try:
            self._zipped = name.endswith(".gz")
            self._source: Readable = Unzipping(self._file, name) if self._zipped else self._file
            if position is not None and position.offset:
                before = self._skip(position) if self._zipped else _before(self._file, position)
                if before is None:
                    raise _changed(position)
                self._start_at(position.offset, position.number, before)
        except BaseException:
            self._file.close()
            raise

    @property
    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    @property
    def done(self) -> int:
        return self._file.tell() if self._zipped else self._offset

    def close(self) -> None:
        self._file.close()

    def _inode(self) -> int:
        return os.fstat(self._file.fileno()).st_ino

    def _more(self) -> bytes | None:
        return self._source.read(CHUNK)

    def _skip(self, position: Position) -> bytes | None:
        """Unpack up to the position; return the bytes before it if they are those that were read."""
        left, before = position.offset, b""
        while left and (chunk := self._source.read(min(left, CHUNK))):
            left -= len(chunk)
            before = (before + chunk)[-CHECKED:]
        return before if not left and _fits(before, position) else None


class _Followed(Source):
    """A file that grows, and whose name may pass to another one."""

    def __init__(self, name: str, position: Position | None, max_bytes: int) -> None:
        super().__init__(name, max_bytes)
        self._file: io.FileIO | None = None
        self._next: io.FileIO | None = None
        if position is not None and position.inode:
            self._file, before = _find(name, position)
            self._start_at(position.offset, position.number, before)

    @property
    def size(self) -> int | None:
        return os.fstat(self._file.fileno()).st_size if self._file else None

    def close(self) -> None:
        for file in (self._file, self._next):
            if file is not None:
                file.close()

    def _inode(self) -> int:
        return os.fstat(self._file.fileno()).st_ino if self._file else 0

    def _has_more(self) -> bool:
        if self._file is None or self._next is not None:
            return self._next is not None or os.path.exists(self.name)
        moved = _inode_of(self.name) not in (0, self._inode())
        return moved or self.size != self._file.tell()

    def _more(self) -> bytes | None:
        if self._file is None or self._next is not None:
            file, self._next = self._next or _open_if_there(self.name), None
            if file is None:
                return None
            if self._file is not None:
                self._file.close()
            self._file = file
            self._start_at(0, 0, b"")
        chunk = self._file.read(CHUNK)
        if not chunk and os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            self._start_at(0, 0, b"")
            self.restarted = True
            chunk = self._file.read(CHUNK)
        if not chunk:
            self._next = self._successor()
            if self._next is None:
                return None
            chunk = self._file.read(CHUNK)  # what came before the name passed on
            if chunk:
                self._next.close()
                self._next = None
        return chunk

    def _at_end(self) -> None:
        """Go on: the end of a file is not that of the stream."""

    def _successor(self) -> io.FileIO | None:
        """Open the file that came after this one, if there is one."""
        inode = self._inode()
        if _inode_of(self.name) == inode:
            return None
        path = _path_of(self.name, inode)
        for later in _later(self.name, path):
            file = _open_if_there(later)
            if file is None:
                continue
            # Names that moved on in the meantime could make us skip a file: then look again later.
            if os.fstat(file.fileno()).st_ino != inode and _path_of(self.name, inode) == path:
                return file
            file.close()
            return None
        return None


def open_source(
    name: str, position: Position | None = None, follow: bool = False, max_bytes: int = MAX_LINE_BYTES
) -> Source:
    """Open a file, gzipped if its name ends in `.gz`, or standard input for `-`.

    Line numbers are those of the file in which a line stands. Standard input, pipes and gzipped files are not
    followed: they end.

    Parameters
    ----------
    name
        The file; if it is followed, it need not exist yet.
    position
        Where an earlier source of that name stood; None for the beginning.
    follow
        Wait for more at the end of the file, as `tail -F` does.
    max_bytes
        Longer lines come cut off and marked.

    Raises
    ------
    SourceError
        The file cannot be read, or what is before the position is not what was read.
    """
    if name == "-":
        if sys.stdin is None:
            raise SourceError("standard input is closed: name a file")
        return _Pipe(name, None, sys.stdin.fileno(), max_bytes)
    with suppress(OSError):
        if not stat.S_ISREG(os.stat(name).st_mode):
            file = _open(name)
            return _Pipe(name, file, file.fileno(), max_bytes)
    if follow and not name.endswith(".gz"):
        return _Followed(name, position, max_bytes)
    return _File(name, position, max_bytes)


def wait_for(sources: Iterable[Source], timeout: float | None = None, stop: int | None = None) -> bool:
    """Wait until one of the sources is worth reading.

    The answer is False if `timeout` seconds have passed, if the descriptor `stop` became readable (it is not
    read here), or if all sources have ended.
    """
    alive = [source for source in sources if not source.ended]
    descriptors = [number for source in alive if (number := source.fileno()) is not None]
    looked_at = len(descriptors) < len(alive)
    until = None if timeout is None else time.monotonic() + timeout
    while alive and not any(source.pending() for source in alive):
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            return False
        step = POLL if looked_at and (left is None or left > POLL) else left
        if stop in _readable([*descriptors, *([] if stop is None else [stop])], step):
            return False
    return bool(alive)


def _readable(descriptors: list[int], seconds: float | None) -> list[int]:
    poller = select.poll()
    for descriptor in descriptors:
        poller.register(descriptor, select.POLLIN)
    return [number for number, _ in poller.poll(None if seconds is None else max(seconds, 0.0) * 1000)]


def _open(name: str) -> io.FileIO:
    try:
        return open(name, "rb", buffering=0)
    except OSError as error:
        raise SourceError(f"{name}: cannot read: {error.strerror}") from None


def _open_if_there(name: str) -> io.FileIO | None:
    return _open(name) if os.path.exists(name) else None


def _inode_of(name: str) -> int:
    try:
        return os.stat(name).st_ino
    except OSError:
        return 0


def _fits(before: bytes, position: Position) -> bool:
    return hashlib.sha256(before).hexdigest() == position.digest


def _before(file: io.FileIO, position: Position) -> bytes | None:
    """Go to the position; return the bytes before it if they are those that were read."""
    start = max(position.offset - CHECKED, 0)
    before = os.pread(file.fileno(), position.offset - start, start)
    file.seek(position.offset)
    return before if len(before) == position.offset - start and _fits(before, position) else None


def _changed(position: Position) -> SourceError:
    place = f"byte {position.offset}, line {position.number}"
    return SourceError(f"{position.name}: not the file that was read up to {place}: {REMEDY}")


def _find(name: str, position: Position) -> tuple[io.FileIO, bytes]:
    """Open the file of the position, whatever it is called by now: NAME, NAME.1, NAME-20250131."""
    # A file that was moved keeps its inode; one that was copied, as by `copytruncate`, keeps only its bytes.
    rotated = [path for path in _siblings(name) if re.fullmatch(r"[.-]\d[\d.T_-]*", path[len(name) :])]
    for paths, moved in (([name, *_siblings(name)], True), ([name, *rotated], False)):
        for path in paths:
            if moved and _inode_of(path) != position.inode:
                continue
            file = _open_if_there(path)
            if file is None:
                continue
            before = _before(file, position) if moved or position.offset else None
            if before is not None:
                return file, before
            file.close()
    raise _changed(position)


def _siblings(name: str) -> Iterator[str]:
    folder, base = os.path.split(name)
    with suppress(OSError):
        for other in sorted(os.listdir(folder or ".")):
            if other.startswith((f"{base}.", f"{base}-")) and not other.endswith(
                (".gz", ".xz", ".bz2", ".zst")
            ):
                yield os.path.join(folder, other)


def _path_of(name: str, inode: int) -> str | None:
    return next((path for path in (name, *_siblings(name)) if _inode_of(path) == inode), None)


def _later(name: str, path: str | None) -> list[str]:
    """Return the names of the files after the one that is now at `path`, the next one first."""
    suffix = "" if path is None else path[len(name) :]
    if re.fullmatch(r"\.\d{1,3}", suffix):  # NAME.1 is the newest
        return [*(f"{name}.{number}" for number in range(int(suffix[1:]) - 1, 0, -1)), name]
    if re.search(r"\d", suffix):  # by date: those of the same shape that sort behind it
        shape = re.sub(r"\d", "0", suffix)
        same = [other for other in _siblings(name) if re.sub(r"\d", "0", other[len(name) :]) == shape]
        return [*(other for other in same if path is not None and other > path), name]
    return [name]
