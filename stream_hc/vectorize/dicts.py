"""A dict of features -> a sorted row, mostly without a loop over its features in Python."""

from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import Floats, Ints, Longs
from stream_hc.kernels import rows as kernels
from stream_hc.vectorize.hashing import FeatureError, hashes
from stream_hc.vectorize.rows import LARGEST_FEATURE, RANGE, Rows

__all__ = ["from_dict"]

_encode = msgspec.msgpack.Encoder().encode
_NOT_PLAIN = b"\x81\xc0\xc0"  # {None: None}
_PLAIN = {float, int, bool}
_BYTE = np.dtype(np.uint8)

# river's loop predicts a document and then learns it: the second time its row is at hand. The dict is copied
# and compared, not recognised by identity, because the caller may have changed it in between.
_latest: dict[int, tuple[dict[Hashable, Any], Rows]] = {}


def from_dict(x: Mapping[Hashable, Any], n_features: int) -> Rows:
    """Return one document given as a dict of features; names that share a column are added up."""
    if type(x) is not dict and not isinstance(x, Mapping):  # the usual kind is known at once
        raise FeatureError(f"a document must be a dict of features, not {type(x).__name__}")
    remembered = _latest.get(n_features)
    if remembered is not None and len(x) == len(remembered[0]) and _equal(x, remembered[0]):
        return remembered[1]
    status, indptr, indices, values = _packed(x, n_features)
    if status == kernels.UNKNOWN:
        given = hashes(x, n_features), _numbers(x)
        status, indptr, indices, values = kernels.sorted_row(*given, n_features, LARGEST_FEATURE)
    if status == kernels.OUT_OF_RANGE:
        name = _culprit(x)
        raise FeatureError(f"feature {name!r} is {x[name]}: {RANGE}")
    rows = Rows(indptr, indices, values)
    _latest.clear()
    _latest[n_features] = dict(x), rows
    return rows


def _packed(x: Mapping[Hashable, Any], n_features: int) -> tuple[int, Longs, Ints, Floats]:
    """Let the fastest reader of dicts at hand write it down, and compiled code read that."""
    try:
        packed = _encode(x) if isinstance(x, dict) else _NOT_PLAIN
    except (TypeError, ValueError, OverflowError, RecursionError):
        packed = _NOT_PLAIN  # what is the matter with it is found out in Python
    return kernels.packed_row(np.frombuffer(packed, _BYTE), n_features, LARGEST_FEATURE)


def _equal(x: Mapping[Hashable, Any], remembered: dict[Hashable, Any]) -> bool:
    try:
        return bool(x == remembered)
    except ValueError:  # values that are no numbers, such as arrays
        return False


def _numbers(x: Mapping[Hashable, Any]) -> NDArray[np.float64]:
    """Return the values; anything but real numbers raises (a str that looks like one too)."""
    given = x.values()
    if {*map(type, given)} <= _PLAIN:
        try:
            return np.fromiter(given, np.float64, len(x))
        except OverflowError:
            pass  # an int beyond all floats
    try:
        numbers = np.array(list(given))
    except ValueError:  # values of uneven lengths
        numbers = np.array([None])
    if numbers.dtype.kind not in "biuf" or numbers.ndim != 1:
        numbers = np.array([_number(name, value) for name, value in x.items()])
    return numbers.astype(np.float64, copy=False)


def _number(name: Hashable, value: Any) -> float:
    if (
        not isinstance(value, Real | np.bool_) or np.asarray(value).dtype.kind == "m"
    ):  # a duration is no number
        raise FeatureError(f"feature {name!r} is {value!r}, not a number: encode it first")
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _culprit(x: Mapping[Hashable, Any]) -> Hashable:
    bad = [name for name, value in x.items() if not abs(_number(name, value)) <= LARGEST_FEATURE]
    return bad[0] if bad else next(iter(x))
