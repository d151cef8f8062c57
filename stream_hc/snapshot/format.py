"""The layout of a snapshot: constants, limits, what a header says, and the bytes in front of the arrays.

Prefix (24 bytes: magic, format version, header length, file length), JSON header, SHA-256 of both, zeros up
to a multiple of 64; then the arrays, each at a multiple of 64, zeros between. Integers are little-endian.
"""

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "FORMAT_VERSION",
    "ArrayInfo",
    "PartInfo",
    "Scalar",
    "SnapshotInfo",
    "aligned",
    "data_start",
    "encode_header",
    "extent",
    "file_head",
    "scalar_to_json",
]

Scalar = str | int | float | bool | None

# The signs around the name catch a transfer in text mode, as in PNG.
MAGIC = b"\x89SHC\r\n\x1a\n"
FORMAT_VERSION = 1
PREFIX = struct.Struct("<8sIIQ")
DIGEST_BYTES = 32
ALIGNMENT = 64
CHUNK = 2**20

MAX_HEADER = 16 * 2**20
MAX_PARTS = 256
MAX_ARRAYS = 4096
MAX_RANK = 4
MAX_NAME = 200
MAX_INT_BITS = 1024
MAX_EXTENT = 2**63 - 1

SINGLE = "model"  # the part's name where one object was saved, not a dict
UNHASHED = "0" * 64  # as long as a real digest: the header's length is known before the arrays are read

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        *("bool", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64", "float32", "float64"),
    )
}


@dataclass(frozen=True)
class ArrayInfo:
    """One array as the header describes it; `offset` counts from `SnapshotInfo.data_start`."""

    key: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class PartInfo:
    """One saved object: its name in the dict that was saved, its class, its scalars and its arrays."""

    name: str
    kind: str
    scalars: Mapping[str, Scalar]
    arrays: tuple[ArrayInfo, ...]


@dataclass(frozen=True)
class SnapshotInfo:
    """What the header of a snapshot says.

    Attributes
    ----------
    format_version, created_by
        Version of the layout; package and version that wrote the file.
    single
        One object was saved (its part is called "model"), not a dict of objects.
    parts
        Sorted by name, the arrays of each sorted by key: the order in the file.
    extra
        The caller's own scalars.
    data_start, total_bytes
        Where the arrays begin; length of the file.
    sha256
        Digest of prefix and header. The header holds those of all arrays, so this one names the content.
    """

    format_version: int
    created_by: str
    single: bool
    parts: tuple[PartInfo, ...]
    extra: Mapping[str, Scalar]
    data_start: int
    total_bytes: int
    sha256: str


def aligned(position: int) -> int:
    """Round up to the alignment of arrays.

    >>> aligned(0), aligned(1), aligned(64)
    (0, 64, 64)
    """
    return -(-position // ALIGNMENT) * ALIGNMENT


def data_start(header_bytes: int) -> int:
    """Position of the first array after a header of that length."""
    return aligned(PREFIX.size + header_bytes + DIGEST_BYTES)


def extent(dtype: str, shape: tuple[int, ...]) -> int | None:
    """Bytes of an array, or None where numpy has no such array.

    As in numpy, a dimension of 0 does not excuse absurd ones beside it.
    """
    itemsize = DTYPES[dtype].itemsize
    if math.prod(max(n, 1) for n in shape) * itemsize > MAX_EXTENT:
        return None
    return math.prod(shape) * itemsize


def scalar_to_json(value: Scalar) -> Any:
    """JSON has no NaN or infinity: they become an object, which no other scalar is."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    return value


def encode_header(
    created_by: str, parts: tuple[PartInfo, ...], single: bool, extra: Mapping[str, Scalar]
) -> bytes:
    """Return the one JSON text for this content: sorted keys, no spaces, UTF-8."""
    header = {
        "created_by": created_by,
        "extra": {key: scalar_to_json(value) for key, value in extra.items()},
        "parts": {
            part.name: {
                "arrays": {
                    a.key: {
                        "bytes": a.bytes,
                        "dtype": a.dtype,
                        "offset": a.offset,
                        "sha256": a.sha256,
                        "shape": a.shape,
                    }
                    for a in part.arrays
                },
                "kind": part.kind,
                "scalars": {key: scalar_to_json(value) for key, value in part.scalars.items()},
            }
            for part in parts
        },
        "single": single,
    }
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def file_head(header: bytes, total_bytes: int) -> bytes:
    """Everything in front of the first array."""
    head = PREFIX.pack(MAGIC, FORMAT_VERSION, len(header), total_bytes) + header
    return (head + hashlib.sha256(head).digest()).ljust(data_start(len(header)), b"\0")
