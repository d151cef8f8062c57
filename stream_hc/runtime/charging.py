"""The H-loss of predictions: for each row, and at which nodes it is charged."""

from typing import NamedTuple

import numpy as np

from stream_hc.kernels import Bools, Doubles, Ints, Longs
from stream_hc.kernels.losses import row_sums
from stream_hc.learners.base import LabelRows, Predicted
from stream_hc.losses.mistakes import charged_by_h
from stream_hc.sharding import Shard
from stream_hc.taxonomy import CostScheme, Taxonomy

__all__ = ["Charged", "Charges"]


class Charged(NamedTuple):
    """The loss of each row, and the nodes charged; NaN and no nodes where nothing was predicted."""

    losses: Doubles
    indptr: Longs
    nodes: Ints
    predicted: Predicted | LabelRows


class Charges:
    """Charges predictions with the H-loss.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    costs
        Of a mistake at each node.
    shard
        Whose nodes are charged, if only some are: each costs what it costs in the whole taxonomy.
    """

    def __init__(self, taxonomy: Taxonomy, costs: CostScheme, shard: Shard | None = None) -> None:
        self._taxonomy = taxonomy if shard is None else shard.taxonomy
        self._costs = taxonomy.costs(costs) if shard is None else taxonomy.costs(costs)[shard.columns]
        self.n_depths = int(self._taxonomy.depth.max(initial=-1)) + 1

    def charge(
        self, predicted: Predicted | LabelRows, labels: LabelRows, is_known: Bools | None = None
    ) -> Charged:
        """Compare predicted rows with the labels; rows that are not known are not charged."""
        indptr, nodes = charged_by_h(self._taxonomy, (predicted.indptr, predicted.nodes), labels)
        losses = row_sums(indptr, nodes, self._costs)
        if is_known is not None and not is_known.all():
            losses[~is_known] = np.nan
        return Charged(losses, indptr, nodes, predicted)

    def depths(self, charged: Charged, first: int, last: int) -> tuple[Ints, Doubles]:
        """Return the depths of the nodes charged in some rows, and what each cost."""
        nodes = charged.nodes[charged.indptr[first] : charged.indptr[last]]
        return self._taxonomy.depth[nodes], self._costs[nodes]
