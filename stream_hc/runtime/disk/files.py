"""Sources that end: files, gzipped files, pipes and standard input."""

import io
import os
import select

from stream_hc.runtime.disk.positions import Position, changed, go_to, unpack_to
from stream_hc.runtime.disk.source import Source
from stream_hc.runtime.jsonl import CHUNK, Descriptor, Readable, Unzipping, open_raw

__all__ = ["Pipe", "PlainFile", "readable"]


class Pipe(Source):
    """Standard input, or a file that is a pipe or a device."""

    def __init__(self, name: str, file: io.FileIO | None, descriptor: int, max_bytes: int) -> None:
        super().__init__(name, max_bytes)
        self._file = file
        self._descriptor = descriptor
        self._source = Descriptor(descriptor)

    @property
    def position(self) -> None:
        """None: nobody can go back."""
        return None

    @property
    def done(self) -> int:
        """Nobody knows of how many."""
        return 0

    def fileno(self) -> int:
        """Return the descriptor that is readable when more has come."""
        return self._descriptor

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._file is not None:
            self._file.close()

    def _has_more(self) -> bool:
        return bool(readable([self._descriptor], 0.0))

    def _more(self) -> bytes | None:
        return self._source.read(CHUNK) if self._has_more() else None


class PlainFile(Source):
    """A file that is read to its end."""

    def __init__(self, name: str, position: Position | None, max_bytes: int) -> None:
        super().__init__(name, max_bytes)
        self._file = open_raw(name)
        try:
            self._zipped = name.endswith(".gz")
            self._source: Readable = Unzipping(self._file, name) if self._zipped else self._file
            if position is not None and position.offset:
                before = unpack_to(self._source, position) if self._zipped else go_to(self._file, position)
                if before is None:
                    raise changed(position)
                self._start_at(position.offset, position.number, before)
        except BaseException:
            self._file.close()
            raise

    @property
    def size(self) -> int:
        """Bytes of the file, packed as it is."""
        return os.fstat(self._file.fileno()).st_size

    @property
    def done(self) -> int:
        """How many of the bytes of `size` are used up."""
        return self._file.tell() if self._zipped else self._offset

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _inode(self) -> int:
        return os.fstat(self._file.fileno()).st_ino

    def _more(self) -> bytes | None:
        return self._source.read(CHUNK)


def readable(descriptors: list[int], seconds: float | None) -> list[int]:
    """Wait so long, or None for ever, until some can be read; return them."""
    poller = select.poll()
    for descriptor in descriptors:
        poller.register(descriptor, select.POLLIN)
    return [number for number, _ in poller.poll(None if seconds is None else max(seconds, 0.0) * 1000)]
