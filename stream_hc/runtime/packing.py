"""Many small things as few arrays, for snapshots: one after the other, and where each ends."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = ["packed_arrays", "packed_texts", "unpacked_arrays", "unpacked_texts"]


def packed_texts(name: str, texts: Iterable[str]) -> dict[str, Any]:
    """Return texts as two arrays, under `name` (UTF-8) and `name` + "_ptr".

    >>> unpacked_texts("ids", packed_texts("ids", ["a", "", "né"]))
    ['a', '', 'né']
    """
    return packed_arrays(name, [text.encode() for text in texts], np.uint8)


def unpacked_texts(name: str, state: Mapping[str, Any]) -> list[str]:
    """Return the texts that `packed_texts` packed, or raise `ValueError`."""
    return [data.decode() for data in unpacked_arrays(name, state, np.uint8)]


def packed_arrays(name: str, parts: Sequence[bytes], dtype: type) -> dict[str, Any]:
    """Return raw arrays as one, under `name`, and where each ends, under `name` + "_ptr"."""
    width = np.dtype(dtype).itemsize
    pointers = np.cumsum([0, *(len(part) // width for part in parts)], dtype=np.int64)
    return {name: np.frombuffer(b"".join(parts), dtype).copy(), f"{name}_ptr": pointers}


def unpacked_arrays(name: str, state: Mapping[str, Any], dtype: type) -> list[bytes]:
    """Return the raw arrays that `packed_arrays` packed, or raise `ValueError`."""
    values, pointers = state[name], state[f"{name}_ptr"]
    if values.dtype != dtype or values.ndim != 1 or pointers.dtype != np.int64 or pointers.ndim != 1:
        raise ValueError(f"{name}: expected {np.dtype(dtype).name} and pointers")
    if not pointers.size or pointers[0] != 0 or pointers[-1] != values.size or (np.diff(pointers) < 0).any():
        raise ValueError(f"{name}: pointers do not fit")
    data = values.tobytes()
    return [data[begin:end] for begin, end in pairwise((pointers * values.itemsize).tolist())]
