"""The weights of the edges of a taxonomy, and the number for every node that they make of a document.

The edges are those into node 0, then those into node 1, and so on: one for a root, from the virtual root
that is always on, and one from each parent otherwise. In a forest that is one for each node.
"""

import numpy as np
from scipy.sparse import csr_array

from stream_hc.kernels import Doubles, Floats, Ints, csga
from stream_hc.maxmargin.problem import graph_arrays
from stream_hc.taxonomy import Taxonomy

__all__ = ["edge_weights", "edges_of", "node_weights", "summed_weights"]


def edges_of(taxonomy: Taxonomy) -> tuple[Ints, Ints]:
    """Return the parent of each edge, -1 for the virtual root, and its node."""
    n_parents = np.diff(taxonomy.parent_ptr)
    nodes = np.repeat(np.arange(len(taxonomy)), np.maximum(n_parents, 1)).astype(np.int32)
    parents = np.full(nodes.size, -1, np.int32)
    parents[np.repeat(n_parents > 0, np.maximum(n_parents, 1))] = taxonomy.parent_idx
    return parents, nodes


def edge_weights(taxonomy: Taxonomy, table: Doubles, is_free: bool) -> Floats:
    """Return the weights (edges, 3, columns) of the labellings (0,0), (1,0) and (1,1) of each edge."""
    parents, nodes = edges_of(taxonomy)
    n_nodes = len(taxonomy)
    v = table.T[:n_nodes]
    above = np.where((parents >= 0)[:, None], v[parents], 0.0)
    both = v[nodes]
    if is_free:
        both = np.where((parents >= 0)[:, None], table.T[n_nodes:][nodes], both)
    off = both - above - v[nodes] if is_free else -above
    off[parents < 0] = 0.0  # the virtual root is never off
    weights: Floats = np.stack([off, above - both, both], axis=1).astype(np.float32)
    return weights


def node_weights(taxonomy: Taxonomy, table: Doubles) -> Floats:
    """Return U (columns × nodes): the score of a multilabel is Σ U_i·x over its nodes, but for a constant."""
    found = np.empty((table.shape[0], len(taxonomy)), np.float32)
    csga.node_rows(*graph_arrays(taxonomy), table, found)
    return found


def summed_weights(taxonomy: Taxonomy, weights: Floats) -> Floats:
    """Return the same from the weights of the edges."""
    parents, nodes = edges_of(taxonomy)
    n_nodes, n_edges = len(taxonomy), nodes.size
    into = csr_array((np.ones(n_edges, np.float32), (nodes, np.arange(n_edges))), (n_nodes, n_edges))
    inner = parents >= 0
    out_of = csr_array(
        (np.ones(int(inner.sum()), np.float32), (parents[inner], np.flatnonzero(inner))), (n_nodes, n_edges)
    )
    found: Floats = into @ (weights[:, 2] - weights[:, 1]) + out_of @ (weights[:, 1] - weights[:, 0])
    return np.ascontiguousarray(found.T)
