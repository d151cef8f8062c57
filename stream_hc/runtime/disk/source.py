"""What all sources have in common: lines in the batches the caller wants, and a position behind each."""

from abc import ABC, abstractmethod
from typing import Self

from stream_hc.runtime.disk.positions import REMEDY, Position, Trail, digest
from stream_hc.runtime.jsonl import Line, LineSplitter, SourceError

__all__ = ["Source"]


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
        before = digest(self._trail.before(self._offset))
        return Position(self.name, self._inode(), self._offset, self._number, before)

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
        self._trail = Trail(before, offset)
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
