"""Some parts of a snapshot as a snapshot of their own, byte for byte: nothing is made, nothing is hashed."""

import os
from collections.abc import Mapping
from dataclasses import replace

from stream_hc.snapshot import format as layout
from stream_hc.snapshot.errors import SnapshotError
from stream_hc.snapshot.format import ArrayInfo, PartInfo
from stream_hc.snapshot.header import fill, read_head
from stream_hc.snapshot.reading import opened

__all__ = ["copy_parts"]


def copy_parts(path: str | os.PathLike[str], names: Mapping[str, str]) -> bytes:
    """Return some parts of a file, under other names, as `dump_bytes` would with what `load` returns.

    The checksums of the arrays are copied, too: whoever loads the bytes finds out whether the file was sound.

    Parameters
    ----------
    path
        The file.
    names
        The parts that are wanted, and how they are to be called.

    Raises
    ------
    SnapshotError
        The file cannot be read, its header is damaged, or it has no such part.
    """
    with opened(path) as (stream, size):
        info = read_head(stream, size)
        found = {part.name: part for part in info.parts}
        if missing := sorted(names.keys() - found.keys()):
            raise SnapshotError(f"there is no part {missing[0]!r}")
        parts, places, end = list[PartInfo](), list[tuple[ArrayInfo, int]](), 0
        for old, new in sorted(names.items(), key=lambda pair: pair[1]):
            arrays = list[ArrayInfo]()
            for array in found[old].arrays:
                arrays.append(replace(array, offset=layout.aligned(end)))
                places.append((arrays[-1], info.data_start + array.offset))
                end = arrays[-1].offset + array.bytes
            parts.append(replace(found[old], name=new, arrays=tuple(arrays)))
        header = layout.encode_header(info.created_by, tuple(parts), False, {})
        start = layout.data_start(len(header))
        data = bytearray(start + end)
        head = layout.file_head(header, len(data))
        data[: len(head)] = head
        view = memoryview(data)
        for array, place in places:
            stream.seek(place)
            fill(stream, view[start + array.offset : start + array.offset + array.bytes])
    return bytes(data)
