"""Features in any accepted form -> sorted float32 rows without zeros, or an error that names the culprit."""

from collections.abc import Hashable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from stream_hc.kernels import Floats, Ints, Longs
from stream_hc.kernels import rows as kernels
from stream_hc.vectorize.hashing import FeatureError, hashes

__all__ = ["LARGEST_FEATURE", "Rows", "feature_rows", "from_dict", "joined"]


# Far from where float32 ends, so that weights and margins cannot become infinite however long the stream is.
LARGEST_FEATURE = 1e12
RANGE = f"features must be finite numbers of at most {LARGEST_FEATURE:.0e}: scale them"


_PLAIN = {float, int, bool}


class Rows(NamedTuple):
    """Documents in CSR form: `indices[indptr[row]:indptr[row + 1]]` are the columns of a row, ascending."""

    indptr: Longs
    indices: Ints
    values: Floats


def joined(parts: Sequence[tuple[Longs, Ints, Floats]]) -> Rows:
    """Return rows that came in parts, each in CSR form, as one."""
    if len(parts) == 1:
        return Rows(*parts[0])
    ends = np.cumsum([0, *(indices.size for _, indices, _ in parts)])
    pointers = [part[0][1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return Rows(
        np.concatenate([np.zeros(1, np.int64), *pointers]),
        np.concatenate([indices for _, indices, _ in parts]),
        np.concatenate([values for _, _, values in parts]),
    )


# river's loop predicts a document and then learns it: the second time its row is at hand. The dict is copied
# and compared, not recognised by identity, because the caller may have changed it in between.
_latest: dict[int, tuple[dict[Hashable, Any], Rows]] = {}


def from_dict(x: Mapping[Hashable, Any], n_features: int) -> Rows:
    """Return one document given as a dict of features; names that share a column are added up."""
    if not isinstance(x, Mapping):
        raise FeatureError(f"a document must be a dict of features, not {type(x).__name__}")
    remembered = _latest.get(n_features)
    if remembered is not None and _equal(x, remembered[0]):
        return remembered[1]
    numbers = _numbers(x)
    indptr, indices, values, in_range = kernels.sorted_row(
        hashes(x, n_features), numbers, n_features, LARGEST_FEATURE
    )
    if not in_range:
        name = _culprit(x)
        raise FeatureError(f"feature {name!r} is {x[name]}: {RANGE}")
    rows = Rows(indptr, indices, values)
    _latest.clear()
    _latest[n_features] = dict(x), rows
    return rows


def _equal(x: Mapping[Hashable, Any], remembered: dict[Hashable, Any]) -> bool:
    try:
        return bool(x == remembered)
    except ValueError:  # values that are no numbers, such as arrays
        return False


def feature_rows(X: Any, n_features: int) -> Rows:
    """Return documents given as a sparse or dense array of shape (n, n_features)."""
    if not (issparse(X) or isinstance(X, np.ndarray)) or X.ndim != 2:
        raise FeatureError(f"documents must be a sparse array of shape (n, {n_features}), not {_describe(X)}")
    if X.shape[1] != n_features:
        raise FeatureError(
            f"documents have {X.shape[1]} columns, the learner has n_features={n_features}: make them equal"
        )
    if X.dtype.kind not in "biuf":
        raise FeatureError(f"documents hold {X.dtype}, not numbers")
    matrix = csr_array(X)
    indptr, indices = _pointers(matrix)
    if matrix.dtype == np.float32 and kernels.are_sound(
        indptr, indices, matrix.data, n_features, LARGEST_FEATURE
    ):
        return Rows(indptr, indices, matrix.data)
    if matrix.indices.size and not 0 <= matrix.indices.min() <= matrix.indices.max() < n_features:
        raise FeatureError("documents have a column index outside their shape: the sparse array is damaged")
    if not (matrix.has_canonical_format and matrix.data.all()):
        matrix = matrix.astype(np.float64) if matrix is not X else matrix.astype(np.float64, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    bad = np.flatnonzero(~(np.abs(matrix.data) <= LARGEST_FEATURE))
    if bad.size:
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        where = f"row {row}, column {matrix.indices[bad[0]]}"
        raise FeatureError(f"{where} is {matrix.data[bad[0]]}: {RANGE}")
    values = matrix.data.astype(np.float32, copy=False)
    if not values.all():  # too small for float32
        matrix = csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape, copy=True)
        matrix.eliminate_zeros()
        values = matrix.data
    return Rows(*_pointers(matrix), values)


def _pointers(matrix: csr_array) -> tuple[Longs, Ints]:
    return matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)


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


def _describe(X: object) -> str:
    shape = getattr(X, "shape", None)
    return type(X).__name__ if shape is None else f"{type(X).__name__} of shape {shape}"
