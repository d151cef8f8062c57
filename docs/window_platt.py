"""What `Calibrated` is compared with: Platt's fit to the last margins of each node by itself."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["window_platt"]

Matrix = NDArray[np.float64]


@njit
def window_platt(margins: Matrix, y: Any, eligible: Any, size: int) -> Matrix:
    """Fit a line to the last pairs of every node, one Newton step a document."""
    n, n_nodes = margins.shape
    p = np.empty((n, n_nodes))
    seen = np.zeros(n_nodes, np.int64)
    m, hit = np.zeros((n_nodes, size)), np.zeros((n_nodes, size))
    slope, offset = np.ones(n_nodes), -np.ones(n_nodes)
    for row in range(n):
        for node in range(n_nodes):
            p[row, node] = 1.0 / (1.0 + np.exp(-(slope[node] * margins[row, node] + offset[node])))
            if not eligible[row, node]:
                continue
            m[node, seen[node] % size], hit[node, seen[node] % size] = margins[row, node], y[row, node]
            seen[node] += 1
            k = min(seen[node], size)
            positive = hit[node, :k].sum()
            high, low = (positive + 1.0) / (positive + 2.0), 1.0 / (k - positive + 2.0)
            q = 1.0 / (1.0 + np.exp(-(slope[node] * m[node, :k] + offset[node])))
            error, weight = np.where(hit[node, :k] > 0.0, high, low) - q, q * (1.0 - q)
            # A ridge of 1/4 around the line of the beginning keeps the first fits sensible.
            g0 = (error * m[node, :k]).sum() + 0.25 * (1.0 - slope[node])
            g1 = error.sum() + 0.25 * (-1.0 - offset[node])
            a, c = (weight * m[node, :k] ** 2).sum() + 0.25, weight.sum() + 0.25
            b = (weight * m[node, :k]).sum()
            d0, d1 = (c * g0 - b * g1) / (a * c - b * b), (a * g1 - b * g0) / (a * c - b * b)
            shorter = min(1.0, 2.0 / max(np.hypot(d0, d1), 1e-9))
            slope[node] += shorter * d0
            offset[node] += shorter * d1
    return p
