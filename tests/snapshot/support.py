"""Small classes to save, and files taken apart and put together again."""

import hashlib
import io
import json
import math
import os
import struct
from pathlib import Path
from typing import Any, Self

import numpy as np

from stream_hc.snapshot import (
    SnapshotError,
    SnapshotInfo,
    dump_bytes,
    load,
    load_bytes,
    register,
)
from stream_hc.snapshot.header import read_head

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
]
PREFIX = struct.Struct("<8sIIQ")


class Base:
    def __init__(self, /, **values: Any) -> None:
        self.values = values

    def state(self) -> dict[str, Any]:
        return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in self.values.items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        return cls(**state)


@register
class Bag(Base):
    """Holds anything."""


@register
class Strict(Base):
    """Accepts a state with an array `w` of two numbers, and complains in several ways about others."""

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        if state["w"].shape != (2,):
            raise ValueError("w must have\ntwo numbers")
        return super().from_state(state)


def again(**values: Any) -> dict[str, Any]:
    found: Bag = load_bytes(dump_bytes(Bag(**values)))
    return found.values


def info_of(data: bytes) -> SnapshotInfo:
    return read_head(io.BytesIO(data), len(data))


def small() -> dict[str, Bag]:
    """Two parts; padding between arrays, an empty array, every kind of scalar."""
    return {
        "first": Bag(w=np.array([1.5, -0.0, np.nan]), on=np.array([True, False]), name="é", t=3, c=math.inf),
        "second": Bag(
            none=None, flag=True, rate=0.1, ids=np.arange(3, dtype=np.int16), none_yet=np.zeros((0, 2))
        ),
    }


def unpack(data: bytes) -> tuple[bytes, bytes]:
    """Return header and data section."""
    length = PREFIX.unpack_from(data)[2]
    return data[PREFIX.size : PREFIX.size + length], data[-(-(PREFIX.size + length + 32) // 64) * 64 :]


def pack(header: bytes, data: bytes = b"", *, version: int = 1, total: int | None = None) -> bytes:
    """Build a file with a correct checksum around any header."""
    start = -(-(PREFIX.size + len(header) + 32) // 64) * 64
    total = start + len(data) if total is None else total
    head = PREFIX.pack(b"\x89SHC\r\n\x1a\n", version, len(header), total) + header
    return (head + hashlib.sha256(head).digest()).ljust(start, b"\0") + data


def loads(data: bytes) -> bool:
    """Whether the bytes load; the only error that may come is a SnapshotError of one line."""
    try:
        load_bytes(data)
    except SnapshotError as error:
        message = str(error)
    else:
        return True
    assert len(message.splitlines()) == 1
    assert len(message) < 700
    return False


def encode(header: Any) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def edited(place: str, value: Any) -> bytes:
    """Return a snapshot with one header field set, or deleted (`...`), and the checksum made right."""
    header, data = unpack(dump_bytes(Bag(w=np.array([1.0, 2.0]), v=np.array([3], dtype=np.int8))))
    tree = node = json.loads(header)
    *parents, last = place.split()
    for name in parents:
        node = node[name]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return pack(encode(tree), data)


def assert_untouched(old: Path) -> None:
    assert load(old).values == {"t": 1}
    assert os.listdir(old.parent) == [old.name]
