"""The array side of a taxonomy: neighbours in CSR form, label sets as sparse rows."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse

from stream_hc.kernels import Ints, Longs
from stream_hc.kernels import labels as kernels
from stream_hc.taxonomy.graph import TaxonomyError

if TYPE_CHECKING:
    from stream_hc.taxonomy.taxonomy import Labels, Taxonomy

__all__ = [
    "close",
    "empty_lists",
    "encode",
    "encode_closed",
    "label_columns",
    "label_rows",
    "longest_depth",
    "reachable",
    "reverse",
    "to_csr",
    "truncate",
    "unknown_label",
]


PLAIN_SETS = frozenset([set, frozenset, list, tuple])


def to_csr(lists: Sequence[Sequence[int]]) -> tuple[Longs, Ints]:
    """Return lists of nodes as row pointers and one flat array."""
    ptr = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(nodes) for nodes in lists], out=ptr[1:])
    return ptr, np.array([node for nodes in lists for node in nodes], dtype=np.int32)


def reverse(ptr: Longs, idx: Ints) -> tuple[Longs, Ints]:
    """Turn lists of parents into lists of children, each ascending."""
    n_nodes = ptr.size - 1
    child_of_edge = np.repeat(np.arange(n_nodes, dtype=np.int32), np.diff(ptr))
    child_ptr = np.zeros(n_nodes + 1, np.int64)
    np.cumsum(np.bincount(idx, minlength=n_nodes), out=child_ptr[1:])
    return child_ptr, child_of_edge[np.argsort(idx, kind="stable")]


def longest_depth(parent_lists: Sequence[Sequence[int]]) -> Ints:
    """Return the edges on the longest path from a root to each node; parents must come first."""
    depth: list[int] = []
    for above in parent_lists:
        depth.append(1 + max((depth[p] for p in above), default=-1))
    return np.array(depth, dtype=np.int32)


def empty_lists(ptr: Longs) -> Ints:
    """Return the nodes whose list is empty, as an array that cannot be written."""
    nodes: Ints = np.flatnonzero(np.diff(ptr) == 0).astype(np.int32)
    nodes.setflags(write=False)
    return nodes


def reachable(start: int, ptr: Longs, idx: Ints, with_start: bool) -> Ints:
    """Return the nodes that can be reached from `start`, ascending."""
    found = {start}
    climbing = [start]
    while climbing:
        node = climbing.pop()
        new = [n for n in idx[ptr[node] : ptr[node + 1]].tolist() if n not in found]
        found.update(new)
        climbing += new
    if not with_start:
        found.discard(start)
    return np.array(sorted(found), dtype=np.int32)


def unknown_label(label: object, nodes: Sequence[str]) -> str:
    """Say which label is unknown and which known ones look like it."""
    similar = difflib.get_close_matches(label, nodes[:10_000], n=2) if isinstance(label, str) else []
    hint = f" (did you mean {' or '.join(map(repr, similar))}?)" if similar else ""
    return f"unknown label {label!r}{hint}"


def label_columns(labels: "Labels", column: Mapping[str, int]) -> list[int]:
    """Return the columns of the labels as given: a set or list of names, or a dict name -> bool."""
    if type(labels) in PLAIN_SETS:  # the usual case, without asking what else it might be
        try:
            return [column[name] for name in labels]
        except (KeyError, TypeError):
            pass  # which label it is, is found out below
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise TaxonomyError(f"labels must be a set, a list or a dict of names, not {labels!r}")
    try:
        names = list(labels)
    except TypeError:  # an array without dimensions
        raise TaxonomyError(f"labels must be a set, a list or a dict of names, not {labels!r}") from None
    try:
        found = [column[name] for name in names]
    except (KeyError, TypeError):
        unknown = [name for name in names if not isinstance(name, str) or name not in column]
        raise TaxonomyError(unknown_label(unknown[0], list(column))) from None
    if isinstance(labels, Mapping):
        return [node for node, on in zip(found, labels.values(), strict=True) if on]
    return found


def encode(label_sets: Iterable["Labels"], column: Mapping[str, int]) -> csr_array:
    """Return label sets as bool rows, as given."""
    if isinstance(label_sets, str | Mapping) or not isinstance(label_sets, Iterable):
        raise TaxonomyError("expected a list of label sets, one for each document")
    lists = []
    for row, labels in enumerate(label_sets):
        try:
            lists.append(sorted(set(label_columns(labels, column))))
        except TaxonomyError as error:
            raise TaxonomyError(f"row {row}: {error}") from None
    return _matrix(*to_csr(lists), n_nodes=len(column))


def encode_closed(taxonomy: "Taxonomy", label_sets: Iterable["Labels"]) -> csr_array:
    """Return label sets as bool rows with all ancestors."""
    if isinstance(label_sets, list) and {*map(type, label_sets)} <= PLAIN_SETS:
        indptr = np.zeros(len(label_sets) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, label_sets), np.int64, len(label_sets)), out=indptr[1:])
        columns = map(taxonomy.column_of.__getitem__, chain.from_iterable(label_sets))
        try:
            flat = np.fromiter(columns, np.int32, int(indptr[-1]))
        except (KeyError, TypeError):
            pass  # which label it is, is found out below
        else:
            parts = kernels.close_rows(indptr, flat, taxonomy.parent_ptr, taxonomy.parent_idx)
            return _matrix(*parts, n_nodes=len(taxonomy))
    return close(taxonomy, encode(label_sets, taxonomy.column_of))


def close(taxonomy: "Taxonomy", Y: csr_array) -> csr_array:
    """Add the ancestors to every row."""
    parts = kernels.close_rows(*_parts(Y), taxonomy.parent_ptr, taxonomy.parent_idx)
    return _matrix(*parts, n_nodes=len(taxonomy))


def truncate(taxonomy: "Taxonomy", Y: csr_array) -> csr_array:
    """Take away from every row what misses an ancestor."""
    parts = kernels.truncate_rows(*_parts(Y), taxonomy.parent_ptr, taxonomy.parent_idx)
    return _matrix(*parts, n_nodes=len(taxonomy))


def label_rows(taxonomy: "Taxonomy", Y: Any, close_upward: bool) -> csr_array:
    """Bring sparse rows, a dense array or label sets to sorted bool CSR without stored zeros."""
    if issparse(Y) or isinstance(Y, np.ndarray):
        if Y.ndim != 2 or Y.shape[1] != len(taxonomy):
            raise TaxonomyError(
                f"labels of shape {Y.shape} do not fit {len(taxonomy)} nodes: expected (n, {len(taxonomy)})"
            )
        matrix = csr_array(Y)
        if matrix.dtype == np.bool_ and kernels.are_closed(
            *_parts(matrix), matrix.data, taxonomy.parent_ptr, taxonomy.parent_idx
        ):
            return matrix
        matrix = _booleans(matrix, len(taxonomy))
        if not (matrix.has_canonical_format and matrix.data.all()):
            matrix = matrix.copy()
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
    elif isinstance(Y, set | frozenset | Mapping):
        matrix = encode([Y], taxonomy.column_of)
    else:
        matrix = encode(Y, taxonomy.column_of)
    return close(taxonomy, matrix) if close_upward else matrix


def _booleans(matrix: csr_array, n_nodes: int) -> csr_array:
    """Return 0/1 rows as bool; a kernel trusts the columns, so they are looked at here."""
    if matrix.indices.size and not 0 <= matrix.indices.min() <= matrix.indices.max() < n_nodes:
        raise TaxonomyError("labels have a column outside their shape: the sparse array is damaged")
    if matrix.dtype.kind not in "biuf":
        raise TaxonomyError(f"labels hold {matrix.dtype}: expected 0 and 1")
    wrong = np.flatnonzero((matrix.data != 0) & (matrix.data != 1))
    if wrong.size:
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        raise TaxonomyError(f"row {row}: a label is {matrix.data[wrong[0]]}: expected 0 or 1")
    return matrix.astype(np.bool_)


def _parts(Y: csr_array) -> tuple[Longs, Ints]:
    """Return row pointers and columns in the types the kernels are compiled for."""
    return Y.indptr.astype(np.int64, copy=False), Y.indices.astype(np.int32, copy=False)


def _matrix(indptr: Longs, indices: Ints, n_nodes: int) -> csr_array:
    matrix = csr_array((np.ones(indices.size, np.bool_), indices, indptr), shape=(indptr.size - 1, n_nodes))
    matrix.has_canonical_format = True
    return matrix
