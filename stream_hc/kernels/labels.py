"""Label rows in CSR form: are they closed upward? Close them, or cut off what hangs in the air."""

import numpy as np
from numba import njit

from stream_hc.kernels import Bools, Ints, Longs

__all__ = ["are_closed", "close_rows", "most_specific", "truncate_rows"]

FEW = 64


@njit(cache=True, nogil=True)
def are_closed(indptr: Longs, indices: Ints, values: Bools, parent_ptr: Longs, parent_idx: Ints) -> bool:
    """Whether nodes ascend within their shape, are all true, and come with all their parents."""
    n_nodes = parent_ptr.size - 1
    seen_in = np.full(n_nodes, -1, np.int64)  # the last row that holds the node
    if indptr[0] != 0 or indptr[-1] != indices.size or indices.size != values.size:
        return False
    for row in range(indptr.size - 1):
        if indptr[row] > indptr[row + 1] or indptr[row + 1] > indices.size:
            return False
        last = -1
        for k in range(indptr[row], indptr[row + 1]):
            node = indices[k]
            if node <= last or node >= n_nodes or not values[k]:
                return False
            for j in range(parent_ptr[node], parent_ptr[node + 1]):
                if seen_in[parent_idx[j]] != row:
                    return False
            seen_in[node] = row
            last = node
    return True


@njit(cache=True, nogil=True)
def sort_nodes(nodes: Ints) -> None:
    """Sort a row, usually a short one. Writes `nodes`."""
    if nodes.size > FEW:
        nodes.sort()
        return
    for k in range(1, nodes.size):
        node, place = nodes[k], k
        while place > 0 and nodes[place - 1] > node:
            nodes[place] = nodes[place - 1]
            place -= 1
        nodes[place] = node


@njit(cache=True, nogil=True)
def close_rows(indptr: Longs, indices: Ints, parent_ptr: Longs, parent_idx: Ints) -> tuple[Longs, Ints]:
    """Return the rows with every ancestor added, sorted and without repetitions."""
    n_rows, n_nodes = indptr.size - 1, parent_ptr.size - 1
    seen_in = np.full(n_nodes, -1, np.int64)  # the last row that holds the node
    stack = np.empty(n_nodes, np.int32)
    closed_ptr = np.zeros(n_rows + 1, np.int64)
    closed = np.empty(2 * indices.size + 16, np.int32)
    size = 0
    for row in range(n_rows):
        first = size
        for k in range(indptr[row], indptr[row + 1]):
            if seen_in[indices[k]] == row:
                continue
            seen_in[indices[k]] = row
            stack[0] = indices[k]
            top = 1
            while top > 0:
                top -= 1
                node = stack[top]
                if size == closed.size:
                    larger = np.empty(2 * size, np.int32)
                    larger[:size] = closed
                    closed = larger
                closed[size] = node
                size += 1
                for j in range(parent_ptr[node], parent_ptr[node + 1]):
                    if seen_in[parent_idx[j]] != row:
                        seen_in[parent_idx[j]] = row
                        stack[top] = parent_idx[j]
                        top += 1
        sort_nodes(closed[first:size])
        closed_ptr[row + 1] = size
    return closed_ptr, closed[:size].copy()


@njit(cache=True, nogil=True)
def most_specific(indptr: Longs, indices: Ints, parent_ptr: Longs, parent_idx: Ints) -> Bools:
    """Return for each node of each row whether none of its children is in the row. Rows must be sorted."""
    has_child_in = np.full(parent_ptr.size - 1, -1, np.int64)  # the last row that holds a child of the node
    specific = np.empty(indices.size, np.bool_)
    for row in range(indptr.size - 1):
        for k in range(indptr[row + 1] - 1, indptr[row] - 1, -1):  # children come after their parents
            node = indices[k]
            specific[k] = has_child_in[node] != row
            for j in range(parent_ptr[node], parent_ptr[node + 1]):
                has_child_in[parent_idx[j]] = row
    return specific


@njit(cache=True, nogil=True)
def truncate_rows(indptr: Longs, indices: Ints, parent_ptr: Longs, parent_idx: Ints) -> tuple[Longs, Ints]:
    """Return the rows without the nodes that miss an ancestor. Rows must be sorted."""
    n_rows = indptr.size - 1
    kept_in = np.full(parent_ptr.size - 1, -1, np.int64)  # the last row that keeps the node
    kept_ptr = np.zeros(n_rows + 1, np.int64)
    kept = np.empty(indices.size, np.int32)
    size = 0
    for row in range(n_rows):
        for k in range(indptr[row], indptr[row + 1]):
            node = indices[k]
            supported = True
            for j in range(parent_ptr[node], parent_ptr[node + 1]):
                if kept_in[parent_idx[j]] != row:
                    supported = False
            if supported:
                kept_in[node] = row
                kept[size] = node
                size += 1
        kept_ptr[row + 1] = size
    return kept_ptr, kept[:size].copy()
