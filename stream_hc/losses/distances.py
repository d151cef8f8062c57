"""How far apart two nodes are: tree-induced error, and the pair loss of Cai and Hofmann.

Both take two names and return a number, or two equally long sequences of names and return an array.
"""

from collections.abc import Callable
from typing import TypeAlias, overload

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from stream_hc.kernels import Ints, Longs
from stream_hc.kernels import labels as label_kernels
from stream_hc.kernels import losses as kernels
from stream_hc.taxonomy import Taxonomy, TaxonomyError

__all__ = ["pair_loss", "tree_induced_error"]

Names: TypeAlias = list[str] | tuple[str, ...]


@overload
def tree_induced_error(taxonomy: Taxonomy, a: str, b: str) -> int: ...
@overload
def tree_induced_error(taxonomy: Taxonomy, a: Names, b: Names) -> Longs: ...
def tree_induced_error(taxonomy: Taxonomy, a: str | Names, b: str | Names) -> int | Longs:
    """Return the number of edges on the shortest way between two nodes, up or down.

    The roots hang under a virtual root, so two roots are 2 apart.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> tree_induced_error(tax, "tennis", "football")
    2
    >>> tree_induced_error(tax, ["tennis", "tennis"], ["sport", "politics"])
    array([1, 3])
    """
    return _on_names(taxonomy, a, b, _forest_edges if taxonomy.is_tree else _graph_edges)


@overload
def pair_loss(taxonomy: Taxonomy, a: str, b: str) -> int: ...
@overload
def pair_loss(taxonomy: Taxonomy, a: Names, b: Names) -> Longs: ...
def pair_loss(taxonomy: Taxonomy, a: str | Names, b: str | Names) -> int | Longs:
    """Return |anc⁺(a) △ anc⁺(b)|, anc⁺ with the node itself (Cai and Hofmann 2007, equation 3).

    In a forest this is the tree-induced error; in a DAG it counts every ancestor that is not shared.

    Examples
    --------
    >>> tax = Taxonomy([("a", None), ("b", None), ("ab", "a"), ("ab", "b"), ("only b", "b")])
    >>> pair_loss(tax, "ab", "only b"), tree_induced_error(tax, "ab", "only b")
    (3, 2)
    """
    return _on_names(taxonomy, a, b, _unshared_ancestors)


def _on_names(
    taxonomy: Taxonomy,
    a: str | Names,
    b: str | Names,
    measure: Callable[[Taxonomy, Ints, Ints], Longs],
) -> int | Longs:
    if isinstance(a, str) != isinstance(b, str):
        raise TaxonomyError("expected two names, or two sequences of names")
    columns = [
        np.array([taxonomy.index(name) for name in ([names] if isinstance(names, str) else names)], np.int32)
        for names in (a, b)
    ]
    if columns[0].size != columns[1].size:
        raise TaxonomyError(f"{columns[0].size} names do not pair with {columns[1].size} names")
    result = measure(taxonomy, *columns)
    return int(result[0]) if isinstance(a, str) else result


def _forest_edges(taxonomy: Taxonomy, a: Ints, b: Ints) -> Longs:
    return kernels.tree_distances(a, b, taxonomy.parent)


def _graph_edges(taxonomy: Taxonomy, a: Ints, b: Ints) -> Longs:
    virtual_root = len(taxonomy)
    lower = np.repeat(np.arange(len(taxonomy)), np.diff(taxonomy.parent_ptr))
    starts = np.concatenate([lower, taxonomy.roots])
    ends = np.concatenate([taxonomy.parent_idx, np.full(taxonomy.roots.size, virtual_root)])
    graph = csr_array((np.ones(starts.size), (starts, ends)), shape=(virtual_root + 1, virtual_root + 1))
    edges = np.zeros(a.size, np.int64)
    for start in np.unique(a):
        here = a == start
        edges[here] = dijkstra(graph, directed=False, unweighted=True, indices=start)[b[here]]
    return edges


def _unshared_ancestors(taxonomy: Taxonomy, a: Ints, b: Ints) -> Longs:
    one_a_row = np.arange(a.size + 1)
    above_a, above_b = (
        label_kernels.close_rows(one_a_row, nodes, taxonomy.parent_ptr, taxonomy.parent_idx)
        for nodes in (a, b)
    )
    ptr, _ = kernels.compare_rows(*above_a, *above_b, False)
    return np.diff(ptr)
