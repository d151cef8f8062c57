"""H-BAYES: from probabilities at the nodes of a forest to the multilabel with the least expected H-loss."""

import numpy as np
from numba import njit

from stream_hc.kernels import Bools, Doubles, Ints, Longs

__all__ = ["decode_rows"]


@njit(cache=True, nogil=True)
def decide_row(p: Doubles, parent: Ints, costs: Doubles, below: Doubles, on: Bools) -> None:
    """Decide every node, from the leaves upward, then switch off what hangs under a 0. Writes the last two.

    `below[node]` collects Σ H_k over the children k: the least expected loss under the node, given that it
    is a true label. Children have larger numbers than their parent, so they are finished before it.
    """
    below[:] = 0.0
    for node in range(p.size - 1, -1, -1):
        # p (2 − Σ H / c) ≥ 1 without a division, which tiny costs would make overflow
        on[node] = p[node] * (2.0 * costs[node] - below[node]) >= costs[node]
        if parent[node] >= 0:
            if on[node]:
                risk = costs[node] * (1.0 - p[node]) + p[node] * below[node]
            else:
                risk = costs[node] * p[node]
            below[parent[node]] += risk
    for node in range(p.size):
        if parent[node] >= 0 and not on[parent[node]]:
            on[node] = False


@njit(cache=True, nogil=True)
def decode_rows(p: Doubles, parent: Ints, costs: Doubles) -> tuple[Longs, Ints]:
    """Return the multilabel of every row of `p` (n × N) in CSR form: row pointers and nodes."""
    n_rows, n_nodes = p.shape
    below, on = np.empty(n_nodes, np.float64), np.empty(n_nodes, np.bool_)
    ptr = np.zeros(n_rows + 1, np.int64)
    nodes = np.empty(4 * n_rows + n_nodes, np.int32)
    size = 0
    for row in range(n_rows):
        decide_row(p[row], parent, costs, below, on)
        if size + n_nodes > nodes.size:
            longer = np.empty(2 * nodes.size, np.int32)
            longer[:size] = nodes[:size]
            nodes = longer
        for node in range(n_nodes):
            if on[node]:
                nodes[size] = node
                size += 1
        ptr[row + 1] = size
    return ptr, nodes[:size].copy()
