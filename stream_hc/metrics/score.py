"""What running precision, recall and F1 share: three counts for every node.

For every node the slots count the documents where it is predicted and true, predicted, and true. Definitions
as in `stream_hc.losses.precision_recall_f1`: the true labels are closed upward, predictions only where the
name says hierarchical; 0/0 := 0.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import losses as kernels
from stream_hc.losses.confusion import PrecisionRecallF1, node_scores
from stream_hc.losses.mistakes import Rows
from stream_hc.metrics.base import HierarchicalMetric
from stream_hc.taxonomy import Taxonomy

__all__ = ["Score"]


class Score(HierarchicalMetric):
    """One of the three values of some average."""

    _fmt = ".2%"
    _value: ClassVar[str]

    def __init__(self, taxonomy: Taxonomy) -> None:
        super().__init__(taxonomy, slots_per_node=3)

    @property
    def bigger_is_better(self) -> bool:
        """Whether a high value is better than a low one: yes."""
        return True

    def _slots(self, pred: Rows, true: Rows) -> NDArray[np.signedinteger[Any]]:
        _, both = kernels.compare_rows(*pred, *true, True)
        n_nodes = len(self.taxonomy)
        return np.concatenate([both.astype(np.int64), pred[1] + n_nodes, true[1] + 2 * n_nodes])

    def _node_counts(self) -> NDArray[Any]:
        """Return hits, predicted and actual as three rows over the nodes."""
        return self._counts.numbers()[:-1].reshape(3, -1)

    @abstractmethod
    def _scores(self) -> PrecisionRecallF1[float]:
        """Return the averaged values."""

    def get(self) -> float:
        """Return the value, 0 before the first document."""
        value: float = getattr(self._scores(), self._value)
        return value

    def by_node(self) -> dict[str, float]:
        """Return the value of every node by itself."""
        values: NDArray[Any] = getattr(node_scores(*self._node_counts()), self._value)
        return dict(zip(self.taxonomy.nodes, map(float, values), strict=True))
