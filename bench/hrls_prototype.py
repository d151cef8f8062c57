"""What H-RLS is measured against: a plain prototype that loops over nodes in Python, and bare solves.

The prototype keeps the Cholesky factor of K = I + SᵀS at each node as a square array and solves by
substitution. It notes every solve, so that the solves can be run again without anything around them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc import Taxonomy
from stream_hc.kernels import Doubles, Floats, Ints, Longs
from stream_hc.kernels import rls as kernels
from stream_hc.learners.batches import BATCH_ROWS
from stream_hc.learners.instances import factor_places

__all__ = ["Solves", "passes", "prototype", "substitutions"]


class Solves(NamedTuple):
    """The solves of a run: at which node, with how many documents stored, and whether this one was, too.

    They are in the order of `HRLS`: node by node for some hundred rows, then the next ones.
    """

    nodes: Longs
    sizes: Longs
    stored: NDArray[np.bool_]


@njit(cache=True)
def _forward(L: Doubles, k: Doubles) -> Doubles:
    z = np.empty(k.size)
    for i in range(k.size):
        total = k[i]
        for j in range(i):
            total -= L[i, j] * z[j]
        z[i] = total / L[i, i]
    return z


@njit(cache=True)
def _backward(L: Doubles, z: Doubles) -> Doubles:
    u = z.copy()
    for i in range(z.size - 1, -1, -1):
        u[i] /= L[i, i]
        for j in range(i):
            u[j] -= L[i, j] * u[i]
    return u


@njit(cache=True)
def _products(ptr: Longs, idx: Ints, values: Floats, stored: Longs, x: Doubles) -> Doubles:
    k = np.zeros(stored.size)
    for i in range(stored.size):
        for p in range(ptr[stored[i]], ptr[stored[i] + 1]):
            k[i] += values[p] * x[idx[p]]
    return k


@njit(cache=True)
def _add(v: Doubles, ptr: Longs, idx: Ints, values: Floats, stored: Longs, weights: Doubles) -> None:
    for i in range(stored.size):
        for p in range(ptr[stored[i]], ptr[stored[i] + 1]):
            v[idx[p]] += weights[i] * values[p]


def prototype(taxonomy: Taxonomy, X: csr_array, Y: csr_array) -> Solves:
    """Learn all rows; return the solves that took."""
    columns, places = np.unique(X.indices, return_inverse=True)
    ptr, idx, values = X.indptr.astype(np.int64), places.astype(np.int32), X.data
    n_nodes = len(taxonomy)
    parents = [taxonomy.parents(node).tolist() for node in range(n_nodes)]
    factors = [np.zeros((8, 8)) for _ in range(n_nodes)]
    stored = [np.zeros(0, np.int64) for _ in range(n_nodes)]
    weights, x = np.zeros((n_nodes, columns.size)), np.zeros(columns.size)
    solves: list[tuple[int, int, int, bool]] = []
    for row in range(X.shape[0]):
        part = slice(ptr[row], ptr[row + 1])
        x[idx[part]] = values[part]
        square = float(x[idx[part]] @ x[idx[part]])
        y_true = set(Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist())
        for node in range(n_nodes if square else 0):
            if not y_true.issuperset(parents[node]):
                continue
            n, v, L = stored[node].size, weights[node], factors[node]
            band = np.sqrt(5.0 * np.log(row + 1) / n) if n else np.inf
            vx = float(v[idx[part]] @ x[idx[part]])
            if abs(vx) > band * (1.0 + square):
                continue
            z = _forward(L, _products(ptr, idx, values, stored[node], x))
            r = max(square - float(z @ z), 0.0)
            wanted = abs(vx) <= band * (1.0 + r)
            solves.append((row // BATCH_ROWS, node, n, wanted))
            if not wanted:
                continue
            step = ((1.0 if node in y_true else -1.0) - vx) / (1.0 + r)
            _add(v, ptr, idx, values, stored[node], -step * _backward(L, z))
            v[idx[part]] += step * x[idx[part]]
            if n == L.shape[0]:
                factors[node] = L = np.pad(L, (0, n))
            L[n, :n], L[n, n] = z, np.sqrt(1.0 + r)
            stored[node] = np.append(stored[node], row)
        x[idx[part]] = 0.0
    _, nodes, sizes, kept = zip(*sorted(solves), strict=True)
    return Solves(np.array(nodes), np.array(sizes), np.array(kept))


@njit(cache=True)
def run_substitutions(begin: Longs, L: Doubles, solves: Solves, k: Doubles, u: Doubles) -> None:
    """Solve L z = k, and Lᵀ u = z where the document was stored. Node i has its rows from `begin[i]` on."""
    z = np.empty(k.size)
    for s in range(solves.sizes.size):
        own, n = L[begin[solves.nodes[s]] :], solves.sizes[s]
        for i in range(n):
            row = own[i * (i + 1) // 2 : i * (i + 1) // 2 + i + 1]
            z[i] = (k[i] - kernels.dot(row[:i], z[:i])) / row[i]
        if solves.stored[s]:
            u[:n] = z[:n]
            for i in range(n - 1, -1, -1):
                row = own[i * (i + 1) // 2 : i * (i + 1) // 2 + i + 1]
                u[i] /= row[i]
                for j in range(i):
                    u[j] -= row[j] * u[i]


@njit(cache=True)
def run_passes(begin: Longs, factor: Doubles, blocks: Longs, solves: Solves, k: Doubles, u: Doubles) -> None:
    """Do what `HRLS` does instead: one pass over the inverse factor of the node for each solve."""
    for s in range(solves.sizes.size):
        own = blocks[begin[solves.nodes[s]] :]
        if solves.stored[s]:
            kernels.solve(factor, own, solves.sizes[s], k, u, np.inf)
        else:
            kernels.explained(factor, own, solves.sizes[s], k)


def substitutions(solves: Solves) -> Callable[[], None]:
    """Return a run of the solves as forward and backward substitutions, and nothing else."""
    rows = _most(solves)
    sizes = rows * (rows + 1) // 2
    begin = np.cumsum(sizes) - sizes
    L = np.full(int(sizes.sum()), 1e-3)
    for first, n in zip(begin.tolist(), rows.tolist(), strict=True):
        L[first + np.cumsum(np.arange(1, n + 1)) - 1] = 1.0
    k, u = np.full(int(rows.max()), 1e-3), np.empty(int(rows.max()))
    return lambda: run_substitutions(begin, L, solves, k, u)


def passes(solves: Solves) -> Callable[[], None]:
    """Return a run of the solves as passes over inverse factors, and nothing else."""
    rows = -(-(_most(solves) + 1) // 8) * 8
    sizes, n_blocks = factor_places(rows), rows // 8
    ends = np.cumsum(sizes)
    blocks = np.concatenate(
        [
            end - size + factor_places(8 * np.arange(n))
            for end, size, n in zip(ends, sizes, n_blocks, strict=True)
        ]
    )
    factor = np.full(int(ends[-1]), 1e-3)
    k, u = np.full(int(rows.max()), 1e-3), np.empty(int(rows.max()))
    return lambda: run_passes(np.cumsum(n_blocks) - n_blocks, factor, blocks, solves, k, u)


def _most(solves: Solves) -> Longs:
    most = np.zeros(int(solves.nodes.max()) + 1, np.int64)
    np.maximum.at(most, solves.nodes, solves.sizes)
    return most
