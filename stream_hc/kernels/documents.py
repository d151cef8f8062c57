"""Stored documents: their lengths, their products with new ones, and which of them are still needed.

Products come in two ways with the same result, bit for bit, since sums always run over ascending features: an
index of the stored documents, feature by feature, or a walk over them for those that are not in it yet.
"""

import numpy as np
from numba import njit

from stream_hc.kernels import Array, Doubles, Floats, Ints, Longs

__all__ = [
    "index_documents",
    "keep_used",
    "move_segments",
    "multiply_indexed",
    "multiply_rows",
    "square_rows",
]


@njit(cache=True, nogil=True)
def square_rows(ptr: Longs, values: Floats, squares: Doubles) -> None:
    """Compute ‖x‖² of each row. Writes `squares`."""
    for row in range(squares.size):
        squares[row] = 0.0
        for p in range(ptr[row], ptr[row + 1]):
            squares[row] += np.float64(values[p]) * np.float64(values[p])


@njit(cache=True, nogil=True)
def index_documents(
    ptr: Longs, features: Ints, values: Floats, n_documents: int, found: Ints, place: Ints
) -> tuple[Ints, Longs, Ints, Floats]:
    """List the documents of every feature; return features, where their lists end, documents and values.

    The list of feature f is number `place[f]`, and number 0 is empty. `found` are the features of an older
    index, whose places are forgotten. Writes `place`.
    """
    for f in range(found.size):
        place[found[f]] = 0
    n_entries = ptr[n_documents]
    n_found = 0
    counts, new = np.zeros(n_entries + 1, np.int64), np.empty(n_entries, np.int32)
    for p in range(n_entries):
        if place[features[p]] == 0:
            new[n_found] = features[p]
            n_found += 1
            place[features[p]] = n_found
        counts[place[features[p]]] += 1
    ends = np.cumsum(counts[: n_found + 1])
    at = ends - counts[: n_found + 1]
    documents, entries = np.empty(n_entries, np.int32), np.empty(n_entries, np.float32)
    for document in range(n_documents):
        for p in range(ptr[document], ptr[document + 1]):
            q = at[place[features[p]]]
            documents[q], entries[q] = document, values[p]
            at[place[features[p]]] += 1
    return new[:n_found].copy(), ends, documents, entries


@njit(cache=True, nogil=True)
def multiply_indexed(
    place: Ints,
    ends: Longs,
    documents: Ints,
    entries: Floats,
    n_documents: int,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    first: int,
    last: int,
    products: Doubles,
) -> None:
    """Multiply rows `first` to `last` by the documents of an index. Writes `products` (rows × documents)."""
    for row in range(first, last):
        sums = products[row - first]
        sums[:n_documents] = 0.0
        for p in range(x_ptr[row], x_ptr[row + 1]):
            number, x = place[x_idx[p]], np.float64(x_values[p])
            if number > 0:
                part = slice(ends[number - 1], ends[number])
                having, values = documents[part], entries[part]
                for q in range(having.size):
                    sums[having[q]] += x * values[q]


@njit(cache=True, nogil=True)
def multiply_rows(
    ptr: Longs,
    features: Ints,
    values: Floats,
    begin: int,
    end: int,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    first: int,
    last: int,
    lookup: Ints,
    products: Doubles,
) -> None:
    """Multiply rows `first` to `last` by the stored documents `begin` to `end`, walking over these once.

    The rows are turned over first: which of them have a feature. `lookup` has a 0 for every feature, and
    again on return. Writes `products` (rows × documents).
    """
    p0, p1 = x_ptr[first], x_ptr[last]
    n_found = 0
    counts = np.zeros(p1 - p0 + 1, np.int64)
    for p in range(p0, p1):
        if lookup[x_idx[p]] == 0:
            n_found += 1
            lookup[x_idx[p]] = n_found
        counts[lookup[x_idx[p]]] += 1
    ends = np.cumsum(counts[: n_found + 1])
    starts = ends - counts[: n_found + 1]
    rows = np.empty(p1 - p0, np.int32)
    x = np.empty(p1 - p0, np.float64)
    at = starts.copy()
    for row in range(first, last):
        for p in range(x_ptr[row], x_ptr[row + 1]):
            place = lookup[x_idx[p]]
            rows[at[place]], x[at[place]] = row - first, x_values[p]
            at[place] += 1
    sums = np.zeros(last - first)
    for document in range(begin, end):
        for p in range(ptr[document], ptr[document + 1]):
            place, value = lookup[features[p]], np.float64(values[p])
            for q in range(starts[place], ends[place]):
                sums[rows[q]] += x[q] * value
        products[:, document] = sums
        sums[:] = 0.0
    for p in range(p0, p1):
        lookup[x_idx[p]] = 0


@njit(cache=True, nogil=True)
def keep_used(begin: Longs, n_stored: Longs, ids: Ints, first: int, used: Array) -> int:
    """Renumber the documents from `first` on without those that no node holds, and return how many remain.

    A node holds its documents in ascending order. Writes `ids`, `used`.
    """
    used[:] = False
    for node in range(begin.size):
        for j in range(begin[node] + n_stored[node] - 1, begin[node] - 1, -1):
            if ids[j] < first:
                break
            used[ids[j] - first] = True
    new = np.cumsum(used.astype(np.int64)) - 1
    for node in range(begin.size):
        for j in range(begin[node] + n_stored[node] - 1, begin[node] - 1, -1):
            if ids[j] < first:
                break
            ids[j] = first + new[ids[j] - first]
    return int(new[-1]) + 1 if used.size > 0 else 0


@njit(cache=True, nogil=True)
def move_segments(source: Array, begin: Longs, sizes: Longs, target: Array, target_begin: Longs) -> None:
    """Copy each segment to its new place, which none of the old ones overlaps. Writes `target`."""
    for i in range(begin.size):
        target[target_begin[i] : target_begin[i] + sizes[i]] = source[begin[i] : begin[i] + sizes[i]]
