"""What differs between two label rows, how much of it is charged, and how far apart nodes are.

Rows come as (`ptr`, `idx`): row r holds the nodes `idx[ptr[r]:ptr[r + 1]]`, ascending and each once.
"""

import numpy as np
from numba import njit

from stream_hc.kernels import Bools, Doubles, Ints, Longs

__all__ = [
    "compare_rows",
    "ranks",
    "row_sums",
    "topmost",
    "tree_distances",
    "under_right_parent",
    "worst_pairs",
]


@njit(cache=True, nogil=True)
def compare_rows(ptr_a: Longs, idx_a: Ints, ptr_b: Longs, idx_b: Ints, common: bool) -> tuple[Longs, Ints]:
    """Return row by row the nodes that are in both rows (`common`), or those that are in only one."""
    n_rows = ptr_a.size - 1
    ptr = np.zeros(n_rows + 1, np.int64)
    idx = np.empty(idx_a.size + idx_b.size, np.int32)
    size = 0
    for row in range(n_rows):
        a, end_a = ptr_a[row], ptr_a[row + 1]
        b, end_b = ptr_b[row], ptr_b[row + 1]
        while a < end_a or b < end_b:
            in_a = a < end_a and (b == end_b or idx_a[a] <= idx_b[b])
            in_b = b < end_b and (a == end_a or idx_b[b] <= idx_a[a])
            if (in_a and in_b) == common:
                idx[size] = idx_a[a] if in_a else idx_b[b]
                size += 1
            a += in_a
            b += in_b
        ptr[row + 1] = size
    return ptr, idx[:size].copy()


@njit(cache=True, nogil=True)
def topmost(ptr: Longs, idx: Ints, parent_ptr: Longs, parent_idx: Ints) -> tuple[Longs, Ints]:
    """Return the rows without the nodes that have a strict ancestor in the same row.

    The search climbs from every node through ancestors that need not be in the row, so each of them is
    finished once a row and remembered: linear in what lies above the row, whatever its depth.
    """
    n_nodes = parent_ptr.size - 1
    listed_in = np.full(n_nodes, -1, np.int64)  # the last row that holds the node
    reached_in = np.full(n_nodes, -1, np.int64)  # the last row whose search came by
    blocked = np.empty(n_nodes, np.bool_)  # an ancestor is in the row; meaningful where reached
    next_parent = np.empty(n_nodes, np.int64)  # where the search goes on
    stack = np.empty(n_nodes, np.int32)
    kept_ptr = np.zeros(ptr.size, np.int64)
    kept = np.empty(idx.size, np.int32)
    size = 0
    for row in range(ptr.size - 1):
        for k in range(ptr[row], ptr[row + 1]):
            listed_in[idx[k]] = row
        for k in range(ptr[row], ptr[row + 1]):
            above, top = idx[k], 0
            while True:
                if reached_in[above] != row:
                    reached_in[above], blocked[above] = row, False
                    next_parent[above] = parent_ptr[above]
                    stack[top] = above
                    top += 1
                if top == 0:
                    break
                node = stack[top - 1]
                if blocked[node] or next_parent[node] == parent_ptr[node + 1]:
                    top -= 1  # finished: the node below looks at it once more and takes over the result
                    continue
                above = parent_idx[next_parent[node]]
                if reached_in[above] == row:
                    blocked[node] = blocked[above] or listed_in[above] == row
                    next_parent[node] += 1
            if not blocked[idx[k]]:
                kept[size] = idx[k]
                size += 1
        kept_ptr[row + 1] = size
    return kept_ptr, kept[:size].copy()


@njit(cache=True, nogil=True)
def under_right_parent(ptr: Longs, idx: Ints, parent: Ints) -> tuple[Longs, Ints]:
    """Return the rows without the nodes whose parent is in the same row. Trees only."""
    listed_in = np.full(parent.size, -1, np.int64)
    kept_ptr = np.zeros(ptr.size, np.int64)
    kept = np.empty(idx.size, np.int32)
    size = 0
    for row in range(ptr.size - 1):
        for k in range(ptr[row], ptr[row + 1]):
            node = idx[k]
            listed_in[node] = row  # parents come first, so the parent has been here
            if parent[node] < 0 or listed_in[parent[node]] != row:
                kept[size] = node
                size += 1
        kept_ptr[row + 1] = size
    return kept_ptr, kept[:size].copy()


@njit(cache=True, nogil=True)
def row_sums(ptr: Longs, idx: Ints, costs: Doubles) -> Doubles:
    """Return the sum of the costs of every row's nodes."""
    sums = np.zeros(ptr.size - 1)
    for row in range(ptr.size - 1):
        for k in range(ptr[row], ptr[row + 1]):
            sums[row] += costs[idx[k]]
    return sums


@njit(cache=True, nogil=True)
def tree_distances(a: Ints, b: Ints, parent: Ints) -> Longs:
    """Return the number of edges between a[k] and b[k] in a forest whose roots hang under node -1."""
    edges = np.zeros(a.size, np.int64)
    for k in range(a.size):
        lower, other = a[k], b[k]
        while lower != other:
            # A parent has a smaller number than its children, so the larger one is above neither.
            if lower < other:
                lower, other = other, lower
            lower = parent[lower]
            edges[k] += 1
    return edges


@njit(cache=True, nogil=True)
def ranks(scores: Doubles, relevant: Bools, rows: Longs, columns: Longs) -> tuple[Longs, Longs]:
    """Return for every (row, column) how many columns, and how many relevant ones, score at least as much."""
    at_least = np.zeros(rows.size, np.int64)
    relevant_at_least = np.zeros(rows.size, np.int64)
    for k in range(rows.size):
        row, score = rows[k], scores[rows[k], columns[k]]
        for column in range(scores.shape[1]):
            if scores[row, column] >= score:
                at_least[k] += 1
                relevant_at_least[k] += relevant[row, column]
    return at_least, relevant_at_least


@njit(cache=True, nogil=True)
def worst_pairs(
    scores: Doubles, relevant: Bools, rows: Longs, columns: Longs, above_ptr: Longs, above_idx: Ints
) -> Longs:
    """Return every row's largest |anc⁺(y) △ anc⁺(ȳ)| over relevant y and irrelevant ȳ not scored below y.

    `rows`, `columns` list the relevant pairs, ordered by column, so that the distances from a column are
    computed once; `above_*` hold anc⁺ of every column.
    """
    worst = np.zeros(scores.shape[0], np.int64)
    n_columns = scores.shape[1]
    marked_by = np.full(above_idx.max() + 1 if above_idx.size else 0, -1, np.int64)
    distance = np.empty(n_columns, np.int64)
    for k in range(rows.size):
        row, y = rows[k], columns[k]
        if k == 0 or columns[k - 1] != y:
            for j in range(above_ptr[y], above_ptr[y + 1]):
                marked_by[above_idx[j]] = y
            for other in range(n_columns):
                distance[other] = above_ptr[y + 1] - above_ptr[y]
                for j in range(above_ptr[other], above_ptr[other + 1]):
                    distance[other] += -1 if marked_by[above_idx[j]] == y else 1
        for other in range(n_columns):
            if not relevant[row, other] and scores[row, other] >= scores[row, y]:
                worst[row] = max(worst[row], distance[other])
    return worst
