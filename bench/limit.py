"""The bare limit: what reading the weights costs a learner that keeps one row of them for each feature."""

import numpy as np
from numba import njit

from bench.contest import Contestant
from bench.material import Material
from stream_hc.kernels import Floats, Ints, Longs

__all__ = ["GATHER", "gather", "limit"]

GATHER = "bare gather"
LANE = 16  # float32 numbers in a cache line


@njit(cache=True, fastmath=True)
def gather(indptr: Longs, indices: Ints, values: Floats, slots: Ints, table: Floats) -> float:
    """Sum the weighted rows of each document's features, and nothing else.

    Fast-math is allowed here, unlike in our kernels: nobody relies on the last bit of a limit.
    """
    sums = np.zeros(table.shape[1], np.float32)
    kept = 0.0
    for document in range(indptr.size - 1):
        sums[:] = 0.0
        for k in range(indptr[document], indptr[document + 1]):
            row, value = table[slots[indices[k]]], values[k]
            for node in range(sums.size):
                sums[node] += value * row[node]
        kept += sums[document % sums.size]  # without this the compiler would drop the sums
    return kept


def limit(material: Material) -> Contestant:
    """Return the limit for this material: rows in order of first use, as a learner would hand them out."""
    X = material.X
    indices = X.indices.astype(np.int32)
    used, first = np.unique(indices, return_index=True)
    slots = np.zeros(X.shape[1], np.int32)
    slots[used[np.argsort(first)]] = np.arange(1, used.size + 1)
    width = -(-len(material.stream.taxonomy) // LANE) * LANE
    table = np.random.default_rng(0).random((used.size + 1, width), np.float32)
    arrays = (X.indptr.astype(np.int64), indices, X.data, slots, table)
    return Contestant(GATHER, "the limit", X.shape[0], lambda _: gather(*arrays), ours=True)
