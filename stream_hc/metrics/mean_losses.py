"""Running means of the losses: zero-one, symmetric difference, H-loss, H̃-loss.

The mean of a loss that charges costs c_i at nodes is Σ c_i · count_i / n, so counting how often every node
was charged is enough, and tells at which nodes and depths the loss arises.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import Doubles
from stream_hc.losses.mistakes import Costs, Rows, charged_by_h, charged_by_h_tilde, differing, require_forest
from stream_hc.metrics.base import HierarchicalMetric
from stream_hc.taxonomy import Taxonomy

__all__ = ["HLoss", "HTildeLoss", "SymmetricDifferenceLoss", "ZeroOneLoss"]


class ZeroOneLoss(HierarchicalMetric):
    """Share of the documents with anything wrong.

    Parameters
    ----------
    taxonomy
        Labels and their parents.

    Examples
    --------
    >>> metric = ZeroOneLoss(Taxonomy([("sport", None), ("tennis", "sport")]))
    >>> metric.update({"tennis"}, {"sport"})
    >>> metric.update({"tennis"}, {"sport", "tennis"})
    >>> metric
    ZeroOneLoss: 0.5
    """

    def __init__(self, taxonomy: Taxonomy) -> None:
        super().__init__(taxonomy, slots=1)

    def _slots(self, pred: Rows, true: Rows) -> NDArray[np.signedinteger[Any]]:
        ptr, _ = differing(pred, true)
        return np.zeros(np.count_nonzero(np.diff(ptr)), np.int64)

    def get(self) -> float:
        """Return the mean, 0 before the first document."""
        wrong, n_rows = self._counts.numbers()
        return float(wrong / n_rows) if n_rows else 0.0


class _NodeLoss(HierarchicalMetric):
    """A loss that charges the costs of some nodes; the slots are the nodes."""

    def __init__(self, taxonomy: Taxonomy, costs: Costs = "uniform") -> None:
        super().__init__(taxonomy, slots_per_node=1)
        self._node_costs = taxonomy.costs(costs)

    def get(self) -> float:
        """Return the mean, 0 before the first document."""
        return math.fsum(self._shares())

    def by_node(self) -> dict[str, float]:
        """Return each node's share of the mean; together they make `get()`."""
        return dict(zip(self.taxonomy.nodes, self._shares().tolist(), strict=True))

    def by_depth(self) -> Doubles:
        """Return each depth's share of the mean, roots first; together they make `get()`."""
        levels = int(self.taxonomy.depth.max(initial=-1)) + 1
        shares = np.zeros(levels)
        np.add.at(shares, self.taxonomy.depth, self._shares())
        return shares

    def _shares(self) -> Doubles:
        counts = self._counts.numbers()
        rates: Doubles = (counts[:-1] / (counts[-1] or 1)).astype(np.float64)
        return self._node_costs * rates


class SymmetricDifferenceLoss(_NodeLoss):
    """Mean number of nodes that differ.

    Parameters
    ----------
    taxonomy
        Labels and their parents.

    Examples
    --------
    >>> metric = SymmetricDifferenceLoss(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]))
    >>> metric.update({"tennis"}, {"politics"})
    >>> metric
    SymmetricDifferenceLoss: 3.
    """

    def __init__(self, taxonomy: Taxonomy) -> None:
        super().__init__(taxonomy)

    def _slots(self, pred: Rows, true: Rows) -> NDArray[np.signedinteger[Any]]:
        return differing(pred, true)[1]


class HLoss(_NodeLoss):
    """Mean H-loss: the costs of the first mistake on every path from a root (Cesa-Bianchi et al. 2004).

    Parameters
    ----------
    taxonomy
        Labels and their parents: a forest or a DAG.
    costs
        A scheme ("uniform", "normalized", "sibling", "subtree") or a positive number for each node.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> metric = HLoss(tax, costs="normalized")
    >>> metric.update({"tennis": True}, {"sport": True, "tennis": False, "politics": True})
    >>> metric
    HLoss: 0.75
    >>> metric.by_node()
    {'sport': 0.0, 'politics': 0.5, 'tennis': 0.25, 'football': 0.0}
    >>> metric.by_depth()
    array([0.5 , 0.25])
    >>> metric.revert({"tennis": True}, {"sport": True, "tennis": False, "politics": True})
    >>> metric
    HLoss: 0.

    A window over the last documents:

    >>> from river.utils import Rolling
    >>> window = Rolling(HLoss, window_size=2, taxonomy=tax)
    >>> for prediction in [{"politics"}, {"sport"}, {"sport", "tennis"}]:
    ...     window.update({"tennis"}, prediction)
    >>> window
    HLoss: 0.5
    """

    def __init__(self, taxonomy: Taxonomy, costs: Costs = "uniform") -> None:
        super().__init__(taxonomy, costs)
        self.costs = costs

    def _slots(self, pred: Rows, true: Rows) -> NDArray[np.signedinteger[Any]]:
        return charged_by_h(self.taxonomy, pred, true)[1]


class HTildeLoss(_NodeLoss):
    """Mean H̃-loss: the costs of the mistakes under a right parent (Rousu et al. 2006). Forests only.

    Parameters
    ----------
    taxonomy
        Labels and their parents: a forest.
    costs
        A scheme ("uniform", "normalized", "sibling", "subtree") or a positive number for each node.

    Examples
    --------
    >>> metric = HTildeLoss(Taxonomy([("news", None), ("sport", "news"), ("tennis", "sport")]))
    >>> metric.update({"tennis"}, {"sport"})
    >>> metric
    HTildeLoss: 2.
    """

    def __init__(self, taxonomy: Taxonomy, costs: Costs = "uniform") -> None:
        super().__init__(taxonomy, costs)
        self.costs = costs
        require_forest(taxonomy)

    def _slots(self, pred: Rows, true: Rows) -> NDArray[np.signedinteger[Any]]:
        return charged_by_h_tilde(self.taxonomy, pred, true)[1]
