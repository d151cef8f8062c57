"""APPROX-H-BAYES: the margins of H-RLS as probabilities, and the multilabel of least expected H-loss."""

import numpy as np

from stream_hc.checks import one_of
from stream_hc.decoding.bayes import require_forest
from stream_hc.kernels import Bools, Doubles
from stream_hc.kernels import rls as kernels
from stream_hc.learners.base import NO_LABELS, ColdStart
from stream_hc.learners.second_order import AT_A_TIME, Eviction, SecondOrderLearner
from stream_hc.learners.workers import Workers
from stream_hc.taxonomy import CostScheme, Taxonomy
from stream_hc.vectorize import Rows

__all__ = ["ApproxHBayes"]


class ApproxHBayes(SecondOrderLearner):
    """Approximate H-BAYES: stores what H-RLS stores, and decides by the least expected H-loss.

    The margin of a node gives an estimate of P(node | parent on), p = clip((1 + m) / 2, 0, 1). From the
    leaves upward, a node is on if p (2 − Σ H_k / c) ≥ 1, where H_k is the least expected loss below its
    child k (`stream_hc.h_bayes` has the recursion); then everything under a 0 is 0. A prediction needs r at
    all nodes in question, O(N²) each, except where the interval [0, ‖x‖²] of r leaves no choice.

    `predict_proba_one` returns p, no larger than at any parent. A label with p > 1/2 need not be predicted.

    Parameters
    ----------
    taxonomy
        A forest of labels; None grows a flat taxonomy from the labels seen by `learn_one`.
    n_features
        Number of columns; the names of dict features are hashed into it.
    costs
        Those of the H-loss to expect: "normalized", "uniform", "sibling" or "subtree".
    cold_start
        What p is at a margin of 0, where a node knows nothing about a document: 0 ("negative"), as if it were
        not there, or 1/2 ("paper").
    budget
        How many documents a node may store; None stores as many as the rule says, without end.
    eviction
        Which one goes when the budget is reached, as in `HRLS`.

    Examples
    --------
    >>> model = ApproxHBayes(Taxonomy([("sport", None), ("tennis", "sport")]), n_features=64)
    >>> model.learn_one({"racket": 1.0}, {"tennis"})
    >>> model.predict_one({"racket": 1.0})
    {'sport': True, 'tennis': True}

    References
    ----------
    Cesa-Bianchi, Conconi, Gentile: Incremental algorithms for hierarchical classification (2004), section 4.
    """

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        n_features: int = 2**18,
        costs: CostScheme = "normalized",
        cold_start: ColdStart = "negative",
        budget: int | None = None,
        eviction: Eviction = "oldest",
    ) -> None:
        super().__init__(taxonomy, n_features, cold_start, budget, eviction, parents="all")
        one_of("costs", costs, CostScheme)
        self.costs: CostScheme = costs
        require_forest(self._labels)
        self._node_costs = self._labels.costs(costs)

    def _add_nodes(self, n_nodes: int) -> None:
        super()._add_nodes(n_nodes)
        self._node_costs = self._labels.costs(self.costs)

    def _conditional(self, m: Doubles) -> Doubles:
        known = super()._conditional(m)
        return known if self.cold_start == "paper" else np.where(m == 0.0, 0.0, known)

    def _predict(self, rows: Rows) -> Bools:
        return self._stream_all(rows, NO_LABELS, delay=-1)[0]

    def _run(self, batch: kernels.Batch, workers: Workers) -> None:
        forest, step = kernels.Forest(self._labels.parent, self._node_costs), 0
        n_more = self._likely(batch)
        while step < batch.on.shape[0]:
            self._reserve(n_more)
            how = (forest, self._rule())
            step = kernels.stream_bayes(*self._stored.arrays(), *how, batch, self._stored.room, step)
            n_more = np.where(self._stored.n_stored == self._stored.room, AT_A_TIME, 0)
