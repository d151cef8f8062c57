"""Read the head of a snapshot and believe none of it until it is checked.

Sizes are compared with the real file before anything is allocated. The last check encodes what was understood
and compares it with the bytes: spaces, another key order or spelling of a number are refused, so that equal
content means equal files.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, BinaryIO, NoReturn

from stream_hc.snapshot import format as layout
from stream_hc.snapshot.errors import SnapshotError
from stream_hc.snapshot.format import ArrayInfo, PartInfo, Scalar, SnapshotInfo

__all__ = ["fill", "read_head"]

_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_HEX = frozenset("0123456789abcdef")


def fill(stream: BinaryIO, target: memoryview) -> None:
    """Read exactly as many bytes as `target` holds. Writes `target`."""
    done = 0
    while done < len(target):
        # A memoryview is what readinto wants; the stub of BinaryIO does not know the method.
        count: int = stream.readinto(target[done:])  # type: ignore[attr-defined]
        if not count:
            raise SnapshotError("the file became shorter while it was read")
        done += count


def read_head(stream: BinaryIO, size: int) -> SnapshotInfo:
    """Check and decode what precedes the arrays in a stream of `size` bytes; leave it at the arrays."""
    prefix = stream.read(layout.PREFIX.size)
    if not prefix:
        raise SnapshotError("the file is empty, not a stream_hc snapshot")
    if prefix[: len(layout.MAGIC)] != layout.MAGIC:
        raise SnapshotError("not a stream_hc snapshot")
    if len(prefix) < layout.PREFIX.size:
        raise SnapshotError(f"truncated: {size} bytes")
    _, version, header_bytes, total = layout.PREFIX.unpack(prefix)
    if version > layout.FORMAT_VERSION:
        newest = layout.FORMAT_VERSION
        raise SnapshotError(
            f"format version {version}, this stream_hc reads up to {newest}: upgrade stream_hc"
        )
    if version < 1:
        raise SnapshotError(f"format version {version} does not exist: the file is damaged")
    if size != total:
        problem = "truncated" if size < total else "bytes after the end"
        raise SnapshotError(f"{problem}: the file has {size} bytes, its prefix says {total}")
    start = layout.data_start(header_bytes)
    if header_bytes > layout.MAX_HEADER or start > size:
        raise SnapshotError(f"a header of {header_bytes} bytes does not fit (limit {layout.MAX_HEADER})")

    rest = bytearray(start - len(prefix))
    fill(stream, memoryview(rest))
    header, tail = bytes(rest[:header_bytes]), rest[header_bytes:]
    digest = hashlib.sha256(prefix + header)
    if tail[: layout.DIGEST_BYTES] != digest.digest():
        raise SnapshotError("the header does not match its checksum: the file is damaged")
    if any(tail[layout.DIGEST_BYTES :]):
        raise SnapshotError("padding after the header is not zero: the file is damaged")

    fields = _members(_parse(header), "header", {"created_by", "extra", "parts", "single"})
    parts = _parts(fields["parts"], size - start)
    if type(fields["single"]) is not bool or (
        fields["single"] and [p.name for p in parts] != [layout.SINGLE]
    ):
        raise SnapshotError("header: 'single' does not fit the parts")
    info = SnapshotInfo(
        format_version=version,
        created_by=_name(fields["created_by"], "'created_by'"),
        single=fields["single"],
        parts=parts,
        extra=_scalars(fields["extra"], "extra"),
        data_start=start,
        total_bytes=size,
        sha256=digest.hexdigest(),
    )
    _check_canonical(info, header)
    return info


def _parse(header: bytes) -> Any:
    try:
        text = header.decode("utf-8")
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except SnapshotError:
        raise
    except RecursionError:
        raise SnapshotError("header: nested too deeply") from None
    except ValueError as error:  # not UTF-8, not JSON, or an integer of thousands of digits
        raise SnapshotError(f"header: not valid JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise SnapshotError("header: duplicate key")
    return members


def _no_constant(name: str) -> NoReturn:
    raise SnapshotError(f"header: {name} is not JSON")


def _check_canonical(info: SnapshotInfo, header: bytes) -> None:
    try:
        same = layout.encode_header(info.created_by, info.parts, info.single, info.extra) == header
    except UnicodeEncodeError:  # an escaped half of a surrogate pair
        same = False
    if not same:
        raise SnapshotError("header: not in the one form that stream_hc writes")


def _members(value: Any, where: str, names: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != names:
        found = sorted(value)[:10] if isinstance(value, dict) else type(value).__name__
        raise SnapshotError(f"{where}: expected the fields {sorted(names)}, found {found}")
    return value


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise SnapshotError(f"{where}: expected an object")
    return {_name(key, f"{where}: key"): value[key] for key in sorted(value)}


def _name(value: Any, where: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= layout.MAX_NAME:
        raise SnapshotError(f"{where}: expected a text of 1 to {layout.MAX_NAME} characters")
    return value


def _integer(value: Any, where: str) -> int:
    if type(value) is not int or not 0 <= value <= layout.MAX_EXTENT:
        raise SnapshotError(f"{where}: expected an integer from 0 to 2**63 - 1")
    return value


def _scalars(value: Any, where: str) -> Mapping[str, Scalar]:
    return {key: _scalar(item, f"{where}, scalar {key!r}") for key, item in _mapping(value, where).items()}


def _scalar(value: Any, where: str) -> Scalar:
    if isinstance(value, dict):
        name = _members(value, where, {"float"})["float"]
        if not isinstance(name, str) or name not in _NON_FINITE:
            raise SnapshotError(f"{where}: unknown float")
        return _NON_FINITE[name]
    if isinstance(value, int) and value.bit_length() > layout.MAX_INT_BITS:
        raise SnapshotError(f"{where}: an integer of more than {layout.MAX_INT_BITS} bits")
    if value is None or isinstance(value, str | int | float):
        return value
    raise SnapshotError(f"{where}: not a scalar")


def _parts(value: Any, available: int) -> tuple[PartInfo, ...]:
    parts: list[PartInfo] = []
    n_arrays = end = 0
    for name, item in _mapping(value, "parts").items():
        where = f"part {name!r}"
        fields = _members(item, where, {"arrays", "kind", "scalars"})
        arrays: list[ArrayInfo] = []
        for key, array in _mapping(fields["arrays"], where).items():
            arrays.append(_array(key, array, f"{where}, array {key!r}", layout.aligned(end), available))
            end = arrays[-1].offset + arrays[-1].bytes
        scalars = _scalars(fields["scalars"], where)
        if any(array.key in scalars for array in arrays):
            raise SnapshotError(f"{where}: a key is both an array and a scalar")
        n_arrays += len(arrays)
        parts.append(PartInfo(name, _name(fields["kind"], f"{where}, kind"), scalars, tuple(arrays)))
    if not 0 < len(parts) <= layout.MAX_PARTS or n_arrays > layout.MAX_ARRAYS:
        raise SnapshotError(f"{len(parts)} parts, {n_arrays} arrays: outside the limits")
    if end != available:
        raise SnapshotError(f"the arrays take {end} bytes, the file has {available} for them")
    return tuple(parts)


def _array(key: str, value: Any, where: str, offset: int, available: int) -> ArrayInfo:
    fields = _members(value, where, {"bytes", "dtype", "offset", "sha256", "shape"})
    dtype, sizes, sha256 = fields["dtype"], fields["shape"], fields["sha256"]
    if not isinstance(dtype, str) or dtype not in layout.DTYPES:
        raise SnapshotError(f"{where}: dtype {dtype!r} is not allowed")
    if not isinstance(sizes, list) or len(sizes) > layout.MAX_RANK:
        raise SnapshotError(f"{where}: the shape must have at most {layout.MAX_RANK} dimensions")
    shape = tuple(_integer(size, f"{where}, shape") for size in sizes)
    n_bytes = layout.extent(dtype, shape)
    if n_bytes is None:
        raise SnapshotError(f"{where}: shape {shape} is too large")
    if _integer(fields["bytes"], f"{where}, bytes") != n_bytes:
        raise SnapshotError(f"{where}: shape {shape} of {dtype} does not take {fields['bytes']} bytes")
    if _integer(fields["offset"], f"{where}, offset") != offset:
        raise SnapshotError(f"{where}: offset {fields['offset']}, expected {offset}")
    if offset + n_bytes > available:
        raise SnapshotError(f"{where}: {n_bytes} bytes are more than the file has")
    if not isinstance(sha256, str) or len(sha256) != 64 or not _HEX.issuperset(sha256):
        raise SnapshotError(f"{where}: the checksum is not 64 hexadecimal digits")
    return ArrayInfo(key, dtype, shape, offset, n_bytes, sha256)
