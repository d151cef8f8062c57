"""Predicted labels as sparse rows, and two ways to make them respect the taxonomy."""

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import csr_array

from stream_hc import Taxonomy

__all__ = ["closed", "rows_of_labels", "truncated"]


def rows_of_labels(nodes_by_row: Iterable[Sequence[int]], taxonomy: Taxonomy) -> csr_array:
    """Return lists of nodes as bool rows, n × N."""
    lists = list(nodes_by_row)
    indptr = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(nodes) for nodes in lists], out=indptr[1:])
    indices = np.fromiter((node for nodes in lists for node in nodes), np.int32, indptr[-1])
    return csr_array((np.ones(indices.size, np.bool_), indices, indptr), shape=(len(lists), len(taxonomy)))


def closed(Y: csr_array, taxonomy: Taxonomy) -> csr_array:
    """Add all ancestors."""
    return taxonomy.label_rows(Y, close=True)


def truncated(Y: csr_array, taxonomy: Taxonomy) -> csr_array:
    """Take away every label with an ancestor that is not predicted."""
    on = Y.toarray().astype(np.bool_)
    for node in range(len(taxonomy)):  # parents come first
        for parent in taxonomy.parents(node).tolist():
            on[:, node] &= on[:, parent]
    return csr_array(on)
