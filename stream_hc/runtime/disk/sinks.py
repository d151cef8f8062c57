"""Where lines go: files that can be cut back to the length that a snapshot knows, or standard output."""

import os
import select
import stat
import sys
from contextlib import suppress
from typing import Self

from stream_hc.snapshot.atomic import sync_path

__all__ = ["FileSink", "SinkError"]


class SinkError(ValueError):
    """An output that cannot be written; the message names it."""


class FileSink:
    r"""An output whose bytes reach the operating system with every `write`.

    Parameters
    ----------
    path
        A file, or `-` for standard output.
    length
        Cut the file back to so many bytes and go on behind them; None empties it.

    Raises
    ------
    SinkError
        The file cannot be opened, or it is shorter than `length`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with FileSink(f"{folder}/out.jsonl", None) as sink:
    ...         sink.write(b"one\ntwo\n")
    ...     with FileSink(f"{folder}/out.jsonl", 4) as sink:
    ...         sink.write(b"three\n")
    ...         sink.length, pathlib.Path(sink.path).read_bytes()
    (10, b'one\nthree\n')
    """

    def __init__(self, path: str, length: int | None) -> None:
        self.path = path
        self._length = 0
        self._own = path != "-"
        if not self._own:
            if sys.stdout is None:
                raise SinkError("standard output is closed: name a file")
            sys.stdout.flush()  # what was printed before comes before
            self._descriptor, self._regular, self._new = sys.stdout.fileno(), False, False
            return
        self._new = not os.path.exists(path)
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise self._error("write", error) from None
        self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        try:
            if self._regular or length is not None:
                self._cut(length or 0)
        except BaseException:
            self.close()
            raise

    @property
    def length(self) -> int | None:
        """Bytes of the file; None for standard output, pipes and devices, which cannot be cut back."""
        return self._length if self._regular else None

    def write(self, data: bytes) -> None:
        """Append all of `data`, or nothing; a reader of standard output that left is a BrokenPipeError."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._write(rest) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            if self._regular:
                with suppress(OSError):  # half a line must not be in front of the next one
                    os.ftruncate(self._descriptor, self._length)
            raise self._error("write", error) from None
        self._length += len(data)

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        if not self._regular:
            return
        try:
            os.fsync(self._descriptor)
            if self._new:
                sync_path(os.path.dirname(os.path.abspath(self.path)))
                self._new = False
        except OSError as error:
            raise self._error("sync", error) from None

    def close(self) -> None:
        """Close the file; standard output stays open."""
        if self._own:
            self._own = False
            os.close(self._descriptor)
            self._descriptor = -1  # whoever gets the number next must not find our lines

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cut(self, length: int) -> None:
        there = os.fstat(self._descriptor).st_size
        if there < length or not self._regular:
            problem = f"has {there} bytes, but {length} were written before: lines are missing"
            raise SinkError(f"{self.path}: {problem}: put the file back, or begin with an empty state folder")
        try:
            os.ftruncate(self._descriptor, length)
        except OSError as error:
            raise self._error("cut back", error) from None
        self._length = length

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:  # standard output that somebody else made non-blocking
            select.select([], [self._descriptor], [])
            return 0

    def _error(self, action: str, error: OSError) -> SinkError:
        name = "standard output" if self.path == "-" else self.path
        return SinkError(f"{name}: cannot {action}: {error.strerror or error}")
