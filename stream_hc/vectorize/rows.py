"""Arrays of features -> sorted float32 rows without zeros, or an error that names the culprit."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from stream_hc.kernels import Floats, Ints, Longs
from stream_hc.kernels import rows as kernels
from stream_hc.vectorize.hashing import FeatureError

__all__ = ["LARGEST_FEATURE", "RANGE", "Rows", "feature_rows", "joined", "sliced"]

# Far from where float32 ends, so that weights and margins cannot become infinite however long the stream is.
LARGEST_FEATURE = 1e12
RANGE = f"features must be finite numbers of at most {LARGEST_FEATURE:.0e}: scale them"


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


def sliced(rows: Rows, first: int, last: int) -> Rows:
    """Return some of the rows; indices and values are views."""
    begin, end = rows.indptr[first], rows.indptr[last]
    return Rows(rows.indptr[first : last + 1] - begin, rows.indices[begin:end], rows.values[begin:end])


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


def _describe(X: object) -> str:
    shape = getattr(X, "shape", None)
    return type(X).__name__ if shape is None else f"{type(X).__name__} of shape {shape}"
