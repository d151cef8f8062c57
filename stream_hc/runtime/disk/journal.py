"""What a job decided and the records do not determine, in the order in which it happened.

A snapshot remembers the number of the last entry it includes; after a crash the entries behind it are
followed again.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator
from typing import BinaryIO, Self

import msgspec

from stream_hc.runtime.disk.entries import Entry, Numbered, RefitFailed, decoded, encoded
from stream_hc.runtime.disk.sinks import FileSink, SinkError
from stream_hc.snapshot import SnapshotError
from stream_hc.snapshot.atomic import replacing

__all__ = ["Journal", "JournalError"]

MAX_ENTRY = 2**16  # bytes of a line
MAX_PROBLEM = 2_000  # characters
INDEXED = 1_000  # every so many entries the place is remembered
COPIED = 2**16  # bytes at a time


class JournalError(ValueError):
    """A journal that cannot be written, or is damaged; the message names it."""


class Journal:
    """A file of entries, opened to append and to read again.

    An end that a power cut tore is dropped: what is not sound and has nothing sound behind it.

    Parameters
    ----------
    path
        The file; it is made if it does not exist.

    Attributes
    ----------
    last
        Number of the last entry.
    dropped
        Bytes of a torn end that were dropped.

    Raises
    ------
    JournalError
        The file cannot be used, or a line that is not at its end is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from stream_hc.runtime.disk import Batch, Tick
    >>> with tempfile.TemporaryDirectory() as folder, Journal(f"{folder}/journal.jsonl") as journal:
    ...     numbers = [journal.append(Batch(0, "a", 7)), journal.append(Tick(7, 2.5), sync=True)]
    ...     list(journal.after(1))
    [Numbered(number=2, entry=Tick(at=7, now=2.5))]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.last = 0
        self.dropped = 0
        self._unbroken = 1  # no number is missing from this one on
        self._index: list[tuple[int, int]] = []  # number and place of some entries
        length = self._scan() if os.path.exists(self.path) else 0
        self._sink = self._open_sink(length)

    def append(self, entry: Entry, sync: bool = False) -> int:
        """Write an entry, to the disk if `sync`; return its number."""
        if isinstance(entry, RefitFailed) and len(entry.problem) > MAX_PROBLEM:
            entry = msgspec.structs.replace(entry, problem=f"{entry.problem[: MAX_PROBLEM - 1]}…")
        number = self.last + 1
        line = encoded(number, entry)
        if len(line) > MAX_ENTRY:
            raise JournalError(f"{self.path}: an entry of {len(line)} bytes, the limit is {MAX_ENTRY}")
        place = self._sink.length or 0
        try:
            self._sink.write(line)
        except SinkError as error:
            raise JournalError(str(error)) from None
        self._remember(number, place)
        if sync:
            self.sync()
        return number

    def sync(self) -> None:
        """Wait until all entries are on the disk."""
        try:
            self._sink.sync()
        except SinkError as error:
            raise JournalError(str(error)) from None

    def after(self, number: int) -> Iterator[Numbered]:
        """Return the entries behind that one, a few at a time in memory; later ones than now are left out.

        A snapshot may know more than the journal if the machine lost its power. Then there is nothing to
        follow, and the numbers go on behind the snapshot. Do not `trim` before the last one was taken.
        """
        if number >= self.last:
            self._unbroken = number + 1 if number > self.last else self._unbroken
            self.last = number
            return iter(())
        if number + 1 < self._unbroken:
            problem = f"entries {number + 1} to {self._unbroken - 1} are missing"
            raise JournalError(f"{self.path}: {problem}: use a newer snapshot, or begin anew")
        return self._entries(number + 1, self._sink.length or 0)

    def trim(self, before: int) -> None:
        """Drop the entries in front of that one; the last entry stays, since it knows the number."""
        first, length = min(before, self.last), self._sink.length or 0
        place = self._place(first, length)
        if place == 0:
            return
        try:
            with open(self.path, "rb") as old, replacing(self.path) as new:
                old.seek(place)
                while chunk := old.read(COPIED):
                    new.write(chunk)
        except (OSError, SnapshotError) as error:
            raise JournalError(f"{self.path}: cannot shorten: {error}") from None
        finally:
            self._sink.close()
            self._sink = self._open_sink(os.path.getsize(self.path))
            if self._sink.length != length:  # also if only the last step failed, to sync the folder
                self._index = [(number, there - place) for number, there in self._index if there >= place]
                self._unbroken = max(self._unbroken, first)

    def close(self) -> None:
        """Close the file."""
        self._sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_sink(self, length: int) -> FileSink:
        try:
            return FileSink(self.path, length)
        except SinkError as error:
            raise JournalError(str(error)) from None

    def _remember(self, number: int, place: int) -> None:
        if not self._index or number >= self._index[-1][0] + INDEXED:
            self._index.append((number, place))
        if number != self.last + 1:
            self._unbroken = number
        self.last = number

    def _scan(self) -> int:
        """Check every line; return the length of what is sound."""
        sound = place = 0
        damaged: int | None = None
        with self._opened() as file:
            for count, line in enumerate(_lines(file), 1):
                found = decoded(line)
                if found is None or found.number <= self.last:
                    damaged = count if damaged is None else damaged
                elif damaged is not None:
                    problem = f"line {damaged} is damaged: put the file back from a backup, or begin anew"
                    raise JournalError(f"{self.path}: {problem}")
                else:
                    self._remember(found.number, place)
                    sound = place + len(line)
                place += len(line)
        self.dropped = place - sound
        return sound

    def _place(self, number: int, end: int) -> int:
        """Return where the first entry begins whose number is at least that one."""
        index = bisect_right(self._index, (number, end)) - 1
        place = self._index[index][1] if index >= 0 else 0
        with self._opened() as file:
            file.seek(place)
            for line in _lines(file):
                found = decoded(line)
                if found is None or found.number >= number:
                    break
                place += len(line)
        return place

    def _entries(self, first: int, end: int) -> Iterator[Numbered]:
        with self._opened() as file:
            place = self._place(first, end)
            file.seek(place)
            while place < end:
                line = file.readline(MAX_ENTRY)
                found = decoded(line)
                if found is None:
                    raise JournalError(f"{self.path}: was changed by somebody else while it was read")
                place += len(line)
                yield found

    def _opened(self) -> BinaryIO:
        try:
            return open(self.path, "rb")
        except OSError as error:
            raise JournalError(f"{self.path}: cannot read: {error.strerror}") from None


def _lines(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(MAX_ENTRY):
        yield line
