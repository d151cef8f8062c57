"""What must not be split, and what it costs: groups of siblings, and the documents that reach their nodes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from stream_hc.checks import whole_number
from stream_hc.kernels import Ints, Longs
from stream_hc.kernels.labels import close_rows
from stream_hc.taxonomy import Taxonomy

__all__ = ["group_rows", "leaf_counts", "node_costs", "read_traffic", "sibling_groups"]

MOST = 2**40  # documents: their product with any number of nodes still fits


def sibling_groups(taxonomy: Taxonomy) -> Ints:
    """Return the number of the group that each node belongs to, in the order of their first nodes.

    All roots are one group, and so are the children of a node. In a DAG, where a node is a sibling of others
    under each of its parents, groups that share a node are one.
    """
    counts = np.diff(taxonomy.child_ptr)
    first = np.repeat(taxonomy.child_idx[taxonomy.child_ptr[:-1][counts > 0]], counts[counts > 0])
    one = np.concatenate([first, np.repeat(taxonomy.roots[:1], taxonomy.roots.size)])
    other = np.concatenate([taxonomy.child_idx, taxonomy.roots])
    n_nodes = len(taxonomy)
    pairs = coo_array((np.ones(one.size, np.bool_), (one, other)), shape=(n_nodes, n_nodes))
    labels = connected_components(pairs, directed=False)[1]
    _, places, numbers = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(places))[numbers].astype(np.int32)


def group_rows(groups: Ints) -> tuple[Longs, Ints]:
    """Return the nodes of each group, in CSR form."""
    ends = np.cumsum(np.bincount(groups))
    nodes = np.argsort(groups, kind="stable").astype(np.int32)
    return np.concatenate([np.zeros(1, np.int64), ends]), nodes


def leaf_counts(taxonomy: Taxonomy) -> Longs:
    """Return how many leaves are below each node, itself included: documents, if every leaf has one."""
    leaves = taxonomy.leaves.astype(np.int32)  # a copy: kernels would be compiled anew for one that is frozen
    each = np.arange(leaves.size + 1, dtype=np.int64)
    _, above = close_rows(each, leaves, taxonomy.parent_ptr, taxonomy.parent_idx)
    return np.bincount(above, minlength=len(taxonomy)).astype(np.int64)


def read_traffic(taxonomy: Taxonomy, traffic: Mapping[str, int] | Any) -> Longs:
    """Return the documents of each node as an array, or raise `ValueError` that says what is wrong."""
    if isinstance(traffic, Mapping):
        counts = np.zeros(len(taxonomy), np.int64)
        for name, count in traffic.items():
            counts[taxonomy.index(name)] = whole_number(f"traffic of {name!r}", count, 0, MOST)
    else:
        counts = np.asarray(traffic)
        if counts.shape != (len(taxonomy),) or counts.dtype.kind not in "iu":
            raise ValueError(f"traffic must be a count of documents for each of {len(taxonomy)} nodes")
        if counts.size and not 0 <= counts.min() <= counts.max() <= MOST:
            raise ValueError(f"traffic must be counts from 0 to {MOST}")
        counts = counts.astype(np.int64)
    children = np.repeat(np.arange(len(taxonomy)), np.diff(taxonomy.parent_ptr))
    wrong = np.flatnonzero(counts[children] > counts[taxonomy.parent_idx])
    if wrong.size:
        child, parent = int(children[wrong[0]]), int(taxonomy.parent_idx[wrong[0]])
        pair = f"{taxonomy.nodes[child]!r} has {counts[child]}, above it {taxonomy.nodes[parent]!r}"
        raise ValueError(f"traffic must count a document at all its ancestors: {pair} {counts[parent]}")
    return counts


def node_costs(taxonomy: Taxonomy, traffic: Longs, n_documents: int) -> Longs:
    """Return on how many documents each node is eligible: all at a root, else those that have a parent of it.

    In a DAG they are at most as many as its parents have together.
    """
    costs = np.zeros(len(taxonomy), np.int64)
    children = np.repeat(np.arange(len(taxonomy)), np.diff(taxonomy.parent_ptr))
    np.add.at(costs, children, traffic[taxonomy.parent_idx])
    costs[taxonomy.roots] = n_documents
    return np.minimum(costs, n_documents)
