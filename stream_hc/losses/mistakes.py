"""Losses on label sets: zero-one, symmetric difference, H-loss and H̃-loss.

Notation: y, ŷ -> `Y_true`, `Y_pred`; c_i -> `costs[node]`; anc(i) are the strict ancestors of node i.
Every function takes the labels as sparse rows (n × N), a dense bool array, or a list of label sets; one
single set or dict counts as one row. `Y_true` is closed upward first, `Y_pred` is taken as it is given.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc.kernels import Doubles, Ints, Longs
from stream_hc.kernels import losses as kernels
from stream_hc.taxonomy import CostScheme, Taxonomy, TaxonomyError

__all__ = [
    "Costs",
    "Rows",
    "as_rows",
    "charged_by_h",
    "charged_by_h_tilde",
    "differing",
    "first_mistakes",
    "h_loss",
    "h_loss_by_depth",
    "h_tilde_loss",
    "require_forest",
    "row_pair",
    "symmetric_difference",
    "zero_one",
]

Costs: TypeAlias = CostScheme | NDArray[np.floating[Any]] | Sequence[float]
Rows: TypeAlias = tuple[Longs, Ints]
"""Label rows as (row pointers, nodes): the one shape behind all the accepted ones."""


def zero_one(taxonomy: Taxonomy, Y_pred: Any, Y_true: Any, costs: Costs = "uniform") -> Doubles:
    """Return for each row whether anything differs: [ŷ ≠ y]. `costs` play no part.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> zero_one(tax, [{"sport", "tennis"}, {"sport"}], [{"tennis"}, {"tennis"}])
    array([0., 1.])
    """
    ptr, _ = differing(*row_pair(taxonomy, Y_pred, Y_true))
    return (np.diff(ptr) > 0).astype(np.float64)


def symmetric_difference(taxonomy: Taxonomy, Y_pred: Any, Y_true: Any, costs: Costs = "uniform") -> Doubles:
    """Return for each row the number of nodes that differ. `costs` play no part.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> symmetric_difference(tax, [{"politics"}], [{"tennis"}])
    array([3.])
    """
    ptr, _ = differing(*row_pair(taxonomy, Y_pred, Y_true))
    return np.diff(ptr).astype(np.float64)


def h_loss(taxonomy: Taxonomy, Y_pred: Any, Y_true: Any, costs: Costs = "uniform") -> Doubles:
    """Return for each row the H-loss: the costs of the first mistake on every path from a root.

    Sum of c_i over the nodes with ŷ_i ≠ y_i and ŷ_j = y_j for every j ∈ anc(i) (Cesa-Bianchi et al.
    2004, section 2). The same words serve a DAG: a node is charged if no ancestor on any path differs.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> h_loss(tax, [{"politics"}, {"sport", "football"}], [{"tennis"}, {"tennis"}])
    array([2., 2.])
    >>> h_loss(tax, {"politics"}, {"tennis"}, costs="normalized")
    array([1.])
    """
    per_node = taxonomy.costs(costs)
    return kernels.row_sums(*charged_by_h(taxonomy, *row_pair(taxonomy, Y_pred, Y_true)), per_node)


def h_tilde_loss(taxonomy: Taxonomy, Y_pred: Any, Y_true: Any, costs: Costs = "uniform") -> Doubles:
    """Return for each row the H̃-loss: mistakes under a parent that is right (Rousu et al. 2006).

    Sum of c_i over the nodes with ŷ_i ≠ y_i and ŷ_par(i) = y_par(i); a root has no parent to be wrong.
    It differs from the H-loss only where a prediction does not respect the taxonomy.

    Examples
    --------
    >>> tax = Taxonomy([("news", None), ("sport", "news"), ("tennis", "sport")])
    >>> h_loss(tax, {"sport"}, {"tennis"}), h_tilde_loss(tax, {"sport"}, {"tennis"})
    (array([1.]), array([2.]))
    """
    per_node = taxonomy.costs(costs)
    return kernels.row_sums(*charged_by_h_tilde(taxonomy, *row_pair(taxonomy, Y_pred, Y_true)), per_node)


def first_mistakes(taxonomy: Taxonomy, Y_pred: Any, Y_true: Any) -> csr_array:
    """Return for each row the nodes where the H-loss is charged, as bool rows (n × N).

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> sorted(*tax.decode(first_mistakes(tax, {"sport", "football", "politics"}, {"tennis"})))
    ['football', 'politics', 'tennis']
    """
    ptr, idx = charged_by_h(taxonomy, *row_pair(taxonomy, Y_pred, Y_true))
    return csr_array((np.ones(idx.size, np.bool_), idx, ptr), shape=(ptr.size - 1, len(taxonomy)))


def h_loss_by_depth(taxonomy: Taxonomy, Y_pred: Any, Y_true: Any, costs: Costs = "uniform") -> Doubles:
    """Return the mean H-loss of a row, shared out over the depths where it is charged.

    The entries sum to the mean of `h_loss`; without rows they are 0. Depth 0 are the roots; in a DAG the
    depth of a node is that of its longest path.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> h_loss_by_depth(tax, [{"politics"}, {"sport"}], [{"tennis"}, {"tennis"}])
    array([1. , 0.5])
    """
    per_node = taxonomy.costs(costs)
    ptr, idx = charged_by_h(taxonomy, *row_pair(taxonomy, Y_pred, Y_true))
    levels = int(taxonomy.depth.max(initial=-1)) + 1
    sums = np.bincount(taxonomy.depth[idx], weights=per_node[idx], minlength=levels)
    return sums / max(ptr.size - 1, 1)


def row_pair(taxonomy: Taxonomy, Y_pred: Any, Y_true: Any, close_pred: bool = False) -> tuple[Rows, Rows]:
    """Bring predicted and true labels to rows of the same number, the true ones closed upward."""
    pred = as_rows(taxonomy.label_rows(Y_pred, close=close_pred))
    true = as_rows(taxonomy.label_rows(Y_true, close=True))
    if pred[0].size != true[0].size:
        raise TaxonomyError(f"{pred[0].size - 1} predicted rows do not fit {true[0].size - 1} true rows")
    return pred, true


def differing(pred: Rows, true: Rows) -> Rows:
    """Return the nodes where prediction and truth differ."""
    return kernels.compare_rows(*pred, *true, False)


def charged_by_h(taxonomy: Taxonomy, pred: Rows, true: Rows) -> Rows:
    """Return the nodes that differ below ancestors that all agree."""
    return kernels.topmost(*differing(pred, true), taxonomy.parent_ptr, taxonomy.parent_idx)


def charged_by_h_tilde(taxonomy: Taxonomy, pred: Rows, true: Rows) -> Rows:
    """Return the nodes that differ below a parent that agrees."""
    require_forest(taxonomy)
    return kernels.under_right_parent(*differing(pred, true), taxonomy.parent)


def require_forest(taxonomy: Taxonomy) -> None:
    """Refuse a DAG, with the reason."""
    if not taxonomy.is_tree:
        raise TaxonomyError(
            "the H̃-loss asks whether the parent of a node is right and is not defined on a DAG, where a node "
            "may have several: use the H-loss"
        )


def as_rows(Y: csr_array) -> Rows:
    """Return row pointers and nodes in the types the kernels are compiled for."""
    return Y.indptr.astype(np.int64, copy=False), Y.indices.astype(np.int32, copy=False)
