"""Load, inspect and verify snapshots."""

import hashlib
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from stream_hc.snapshot import format as layout
from stream_hc.snapshot.errors import SnapshotError, naming
from stream_hc.snapshot.format import ArrayInfo, PartInfo, SnapshotInfo
from stream_hc.snapshot.header import fill, read_head
from stream_hc.snapshot.kinds import Snapshotable, class_of

__all__ = ["inspect", "load", "load_bytes", "opened", "verify"]

Path = str | os.PathLike[str]


def load(path: Path, wanted: Callable[[str], bool] | None = None) -> Any:
    """Return the object, or the dict of objects, that was saved.

    With `wanted`, called with the name of each part of a dict, the others are passed over, unread.

    Raises
    ------
    SnapshotError
        The file is missing, damaged, hostile or of a newer format, or its kind is unknown.

    Examples
    --------
    >>> load("no-such-folder/model.snap")
    Traceback (most recent call last):
    ...
    stream_hc.snapshot.errors.SnapshotError: no-such-folder/model.snap: cannot read: No such file or directory
    """
    with opened(path) as (stream, size):
        return _load(stream, size, wanted)


def load_bytes(data: bytes) -> Any:
    """Return the object, or the dict of objects, given to `dump_bytes`; raises like `load`."""
    with naming("snapshot bytes", "read"):
        return _load(io.BytesIO(data), len(data))


def inspect(path: Path) -> SnapshotInfo:
    """Read and check the header only: quick for a file of any size, and needs none of the classes.

    Examples
    --------
    >>> import tempfile
    >>> from stream_hc.snapshot import inspect, register, save
    >>> @register
    ... class Threshold:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def state(self):
    ...         return {"value": self.value}
    ...     @classmethod
    ...     def from_state(cls, state):
    ...         return cls(state["value"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/t.snap", Threshold(0.5), extra={"documents": 1200})
    ...     info = inspect(f"{folder}/t.snap")
    >>> info.parts[0].kind, info.parts[0].scalars, info.extra
    ('Threshold', {'value': 0.5}, {'documents': 1200})
    """
    with opened(path) as (stream, size):
        return read_head(stream, size)


def verify(path: Path) -> SnapshotInfo:
    """Check every byte of the file, in constant memory and without making the objects; return its header."""
    with opened(path) as (stream, size):
        info = read_head(stream, size)
        for part in info.parts:
            for array in part.arrays:
                _read_array(stream, info, part, array, None)
        return info


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file, and yield it with its length; errors name it."""
    name = os.fspath(path)
    with naming(name, "read"), open(name, "rb", opener=_open_without_waiting) as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise SnapshotError("not a regular file")
        yield stream, status.st_size


def _open_without_waiting(name: str, flags: int) -> int:
    # Opening a FIFO would otherwise wait for a writer, forever.
    return os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)


def _load(stream: BinaryIO, size: int, wanted: Callable[[str], bool] | None = None) -> Any:
    info = read_head(stream, size)
    parts = [part for part in info.parts if wanted is None or info.single or wanted(part.name)]
    classes = [class_of(part.kind) for part in parts]  # all known before gigabytes are read
    objects: dict[str, Any] = {}
    for part, cls in zip(parts, classes, strict=True):
        if wanted is not None and part.arrays:
            stream.seek(info.data_start + _end_before(info, part))
        objects[part.name] = _restore(stream, info, part, cls)
    return objects[layout.SINGLE] if info.single else objects


def _end_before(info: SnapshotInfo, part: PartInfo) -> int:
    """Return where the arrays before a part end, counted from the first: its padding is checked, too."""
    before = [array for each in info.parts if each.name < part.name for array in each.arrays]
    return before[-1].offset + before[-1].bytes if before else 0


def _restore(stream: BinaryIO, info: SnapshotInfo, part: PartInfo, cls: type[Snapshotable]) -> Snapshotable:
    state: dict[str, Any] = dict(part.scalars)
    for array in part.arrays:
        try:
            values = np.empty(array.shape, dtype=layout.DTYPES[array.dtype])
        except (MemoryError, ValueError) as error:
            raise SnapshotError(
                f"array {array.key!r} needs {array.bytes} bytes of memory: {error}"
            ) from error
        _read_array(stream, info, part, array, values.reshape(-1).view(np.uint8).data)
        state[array.key] = values.astype(values.dtype.newbyteorder("="), copy=False)
    try:
        return cls.from_state(state)
    except Exception as error:  # the state comes from the file: whatever it provokes is the file's fault
        problem = f"{type(error).__name__}: {error}"
        raise SnapshotError(f"part {part.name!r}: the state does not fit {part.kind}: {problem}") from error


def _read_array(
    stream: BinaryIO, info: SnapshotInfo, part: PartInfo, array: ArrayInfo, target: memoryview | None
) -> None:
    """Check the padding and the bytes of the next array. Writes `target` if there is one."""
    where = f"part {part.name!r}, array {array.key!r}"
    padding = bytearray(info.data_start + array.offset - stream.tell())
    fill(stream, memoryview(padding))
    if any(padding):
        raise SnapshotError(f"{where}: padding before it is not zero: the file is damaged")
    digest, truth_values = hashlib.sha256(), True
    scratch = memoryview(bytearray(min(layout.CHUNK, array.bytes) if target is None else 0))
    for start in range(0, array.bytes, layout.CHUNK):
        stop = min(start + layout.CHUNK, array.bytes)
        block = scratch[: stop - start] if target is None else target[start:stop]
        fill(stream, block)
        digest.update(block)
        if array.dtype == "bool":
            truth_values = truth_values and bool((np.frombuffer(block, np.uint8) <= 1).all())
    if digest.hexdigest() != array.sha256:
        raise SnapshotError(f"{where}: does not match its checksum: the file is damaged")
    if not truth_values:
        raise SnapshotError(f"{where}: a bool that is neither 0 nor 1")
