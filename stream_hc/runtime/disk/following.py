"""Files that grow, read as `tail -F` does.

Such a file may not exist yet, it may be renamed and created anew, it may be cut off. One that is cut off and
written again past the place of the reader between two looks cannot be told from one that grew.
"""

import io
import os

from stream_hc.runtime.disk.positions import Position
from stream_hc.runtime.disk.rotation import find, inode_of, later_names, open_if_there, path_of
from stream_hc.runtime.disk.source import Source
from stream_hc.runtime.jsonl import CHUNK

__all__ = ["FollowedFile"]


class FollowedFile(Source):
    """A file that grows, and whose name may pass to another one."""

    def __init__(self, name: str, position: Position | None, max_bytes: int) -> None:
        super().__init__(name, max_bytes)
        self._file: io.FileIO | None = None
        self._next: io.FileIO | None = None
        if position is not None and position.inode:
            self._file, before = find(name, position)
            self._start_at(position.offset, position.number, before)

    @property
    def size(self) -> int | None:
        """Bytes of the file that is read now; None before there is one."""
        return os.fstat(self._file.fileno()).st_size if self._file else None

    def close(self) -> None:
        """Close the file, and the next one."""
        for file in (self._file, self._next):
            if file is not None:
                file.close()

    def _inode(self) -> int:
        return os.fstat(self._file.fileno()).st_ino if self._file else 0

    def _has_more(self) -> bool:
        if self._file is None or self._next is not None:
            return self._next is not None or os.path.exists(self.name)
        moved = inode_of(self.name) not in (0, self._inode())
        return moved or self.size != self._file.tell()

    def _more(self) -> bytes | None:
        if self._file is None or self._next is not None:
            file, self._next = self._next or open_if_there(self.name), None
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
        if inode_of(self.name) == inode:
            return None
        path = path_of(self.name, inode)
        for later in later_names(self.name, path):
            file = open_if_there(later)
            if file is None:
                continue
            # Names that moved on in the meantime could make us skip a file: then look again later.
            if os.fstat(file.fileno()).st_ino != inode and path_of(self.name, inode) == path:
                return file
            file.close()
            return None
        return None
