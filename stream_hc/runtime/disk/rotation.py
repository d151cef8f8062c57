"""What becomes of a file under a name that passes to another one: NAME.1, NAME.2 or NAME-20250131."""

import io
import os
import re
from collections.abc import Iterator
from contextlib import suppress

from stream_hc.runtime.disk.positions import Position, changed, go_to
from stream_hc.runtime.jsonl import open_raw

__all__ = ["find", "inode_of", "later_names", "open_if_there", "path_of"]


def find(name: str, position: Position) -> tuple[io.FileIO, bytes]:
    """Open the file of the position, whatever it is called by now: NAME, NAME.1, NAME-20250131."""
    # A file that was moved keeps its inode; one that was copied, as by `copytruncate`, keeps only its bytes.
    rotated = [path for path in _siblings(name) if re.fullmatch(r"[.-]\d[\d.T_-]*", path[len(name) :])]
    for paths, moved in (([name, *_siblings(name)], True), ([name, *rotated], False)):
        for path in paths:
            if moved and inode_of(path) != position.inode:
                continue
            file = open_if_there(path)
            if file is None:
                continue
            before = go_to(file, position) if moved or position.offset else None
            if before is not None:
                return file, before
            file.close()
    raise changed(position)


def _siblings(name: str) -> Iterator[str]:
    folder, base = os.path.split(name)
    with suppress(OSError):
        for other in sorted(os.listdir(folder or ".")):
            if other.startswith((f"{base}.", f"{base}-")) and not other.endswith(
                (".gz", ".xz", ".bz2", ".zst")
            ):
                yield os.path.join(folder, other)


def path_of(name: str, inode: int) -> str | None:
    """Return what the file of that inode is called now, if it is still there."""
    return next((path for path in (name, *_siblings(name)) if inode_of(path) == inode), None)


def later_names(name: str, path: str | None) -> list[str]:
    """Return the names of the files after the one that is now at `path`, the next one first."""
    suffix = "" if path is None else path[len(name) :]
    if re.fullmatch(r"\.\d{1,3}", suffix):  # NAME.1 is the newest
        return [*(f"{name}.{number}" for number in range(int(suffix[1:]) - 1, 0, -1)), name]
    if re.search(r"\d", suffix):  # by date: those of the same shape that sort behind it
        shape = re.sub(r"\d", "0", suffix)
        same = [other for other in _siblings(name) if re.sub(r"\d", "0", other[len(name) :]) == shape]
        return [*(other for other in same if path is not None and other > path), name]
    return [name]


def open_if_there(name: str) -> io.FileIO | None:
    """Open a file if it exists."""
    return open_raw(name) if os.path.exists(name) else None


def inode_of(name: str) -> int:
    """Return the inode behind a name; 0 if there is none."""
    try:
        return os.stat(name).st_ino
    except OSError:
        return 0
