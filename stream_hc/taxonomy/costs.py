"""What a mistake at a node costs: uniform, or shared out from the roots downward."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from stream_hc.taxonomy.graph import TaxonomyError

if TYPE_CHECKING:
    from stream_hc.taxonomy.taxonomy import Taxonomy

__all__ = ["CostScheme", "node_costs"]

CostScheme = Literal["uniform", "normalized", "sibling", "subtree"]


def node_costs(
    taxonomy: "Taxonomy", scheme: CostScheme | NDArray[np.floating[Any]] | Sequence[float]
) -> NDArray[np.float64]:
    """Return the cost c_i of every node.

    `uniform`: 1. `normalized`: a root 1 / number of roots, a child its parent's cost / number of siblings
    (itself included). `sibling`: the same with 1 at every root. `subtree`: |sub(i)| / |sub(root of i)|.
    """
    if not isinstance(scheme, str):
        return _own_costs(taxonomy, scheme)
    if scheme not in get_args(CostScheme):
        raise TaxonomyError(f"unknown costs {scheme!r}: choose one of {', '.join(get_args(CostScheme))}")
    if scheme == "uniform" or not len(taxonomy):
        return np.ones(len(taxonomy))
    if not taxonomy.is_tree:
        raise TaxonomyError(
            f"{scheme!r} costs are defined on forests only: on a DAG use 'uniform' or your own vector"
        )
    if scheme == "subtree":
        return _subtree_costs(taxonomy)
    n_children = np.diff(taxonomy.child_ptr)
    costs = np.full(len(taxonomy), 1.0 / taxonomy.roots.size if scheme == "normalized" else 1.0)
    for level in range(1, int(taxonomy.depth.max(initial=0)) + 1):
        nodes = np.flatnonzero(taxonomy.depth == level)
        above = taxonomy.parent[nodes]
        costs[nodes] = costs[above] / n_children[above]
    return costs


def _subtree_costs(taxonomy: "Taxonomy") -> NDArray[np.float64]:
    size = np.ones(len(taxonomy))
    root_of = np.arange(len(taxonomy))
    for node in range(len(taxonomy) - 1, -1, -1):
        if taxonomy.parent[node] >= 0:
            size[taxonomy.parent[node]] += size[node]
    for node in range(len(taxonomy)):
        if taxonomy.parent[node] >= 0:
            root_of[node] = root_of[taxonomy.parent[node]]
    costs: NDArray[np.float64] = size / size[root_of]
    return costs


def _own_costs(
    taxonomy: "Taxonomy", given: NDArray[np.floating[Any]] | Sequence[float]
) -> NDArray[np.float64]:
    costs = np.array(given, dtype=np.float64)
    if costs.shape != (len(taxonomy),):
        raise TaxonomyError(f"costs of shape {costs.shape} do not fit {len(taxonomy)} nodes")
    bad = np.flatnonzero(~(np.isfinite(costs) & (costs > 0)))
    if bad.size:
        raise TaxonomyError(
            f"the cost of {taxonomy.nodes[bad[0]]!r} is {costs[bad[0]]}: costs must be positive and finite"
        )
    return costs
