"""What is read off the numbers of the nodes of each document (n × N): labels, margins, probabilities."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc.kernels import Doubles, closed_sets
from stream_hc.maxmargin.problem import graph_arrays
from stream_hc.taxonomy import Taxonomy

__all__ = ["best_labels", "chances", "preferences", "stacked"]


def best_labels(taxonomy: Taxonomy, numbers: Doubles, scores: bool = False) -> csr_array:
    """Return the best closed set of nodes of each row, as bools or, with `scores`, as their margins."""
    ptr, nodes = closed_sets.best_rows(*graph_arrays(taxonomy), numbers)
    data: NDArray[Any] = np.ones(nodes.size, np.bool_)
    if scores:
        row = np.repeat(np.arange(numbers.shape[0]), np.diff(ptr))
        data = preferences(taxonomy, numbers)[row, nodes].astype(np.float32)
    return csr_array((data, nodes, ptr), shape=numbers.shape)


def preferences(taxonomy: Taxonomy, numbers: Doubles) -> Doubles:
    """Return the best sum with each node less the best one without it."""
    margins = np.empty_like(numbers)
    closed_sets.preferences(*graph_arrays(taxonomy), numbers, margins)
    return margins


def chances(taxonomy: Taxonomy, numbers: Doubles) -> Doubles:
    """Return P(node) where closed sets have the chances exp(sum) / Z; in a DAG only something like it."""
    p = np.empty_like(numbers)
    if taxonomy.is_tree:
        closed_sets.chances(*graph_arrays(taxonomy)[:2], numbers, p)
        return p
    p = 1.0 / (1.0 + np.exp(-np.clip(preferences(taxonomy, numbers), -500.0, 500.0)))
    for node in range(len(taxonomy)):
        above = p[:, taxonomy.parents(node)]
        if above.size:
            p[:, node] = np.minimum(p[:, node], above.min(axis=1))
    return p


def stacked(parts: Sequence[csr_array], n_nodes: int, dtype: Any) -> csr_array:
    """Return rows below rows."""
    if not parts:
        return csr_array((0, n_nodes), dtype=dtype)
    ends = np.cumsum([0, *(part.nnz for part in parts)])
    ptr = np.concatenate([[0], *(part.indptr[1:] + end for part, end in zip(parts, ends[:-1], strict=True))])
    nodes = np.concatenate([part.indices for part in parts])
    data = np.concatenate([part.data for part in parts])
    return csr_array((data, nodes, ptr), shape=(ptr.size - 1, n_nodes))
