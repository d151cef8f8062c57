"""H-RLS: regularised least squares at every node, from documents whose margin was small.

Notation: S -> the documents stored at a node; α, u, z, r, m as in `stream_hc.kernels.rls`.
"""

import numpy as np

from stream_hc.kernels import Bools, Doubles, Ints
from stream_hc.kernels import rls as kernels
from stream_hc.learners.batches import with_squares
from stream_hc.learners.second_order import AT_A_TIME, SecondOrderLearner
from stream_hc.learners.workers import Workers
from stream_hc.vectorize import Rows

__all__ = ["HRLS"]

ALONE = 8  # so many of the costliest nodes of a level get a task each
# Below so many rows, or so many multiplications in them, threads cost more than they save.
FEW_ROWS = 8
WORTH_A_THREAD = 2**22


class HRLS(SecondOrderLearner):
    """Hierarchical regularised least squares: decides by the sign of the margin, from the roots downward.

    An eligible node (a root, or below true labels: `parents`) stores a document with |m| ≤ √(5 ln t / N),
    where N is what it has stored so far and t counts the documents. The sign needs v only; r = xᵀA⁻¹x is
    worked out where its interval [0, ‖x‖²] leaves open whether to store. A prediction costs O(nnz) at a node,
    a stored document O(N²).

    `predict_proba_one` returns clip((1 + m) / 2, 0, 1), the paper's estimate of P(node | parent on), no
    larger than at any parent: above 1/2 exactly where a node is predicted, but not calibrated.

    Parameters
    ----------
    taxonomy
        Labels and their parents; None grows a flat taxonomy from the labels seen by `learn_one`.
    n_features
        Number of columns; the names of dict features are hashed into it.
    cold_start
        What a margin of 0 predicts: 0 ("negative") or, as printed, 1 ("paper").
    budget
        How many documents a node may store; None stores as many as the rule says, without end.
    eviction
        Which one goes when the budget is reached: the "oldest", the one with the smallest "coefficient" |α|,
        the most "redundant" one (whose x the others span best) or that of least "influence" (whose loss
        changes the regularised squared error least). What remains is exactly what the others alone would
        give. On real data the oldest was the best to forget by far: docs/hrls-budget.md.
    parents
        In a DAG: whether a node is looked at below "any" of its parents or only below "all" of them.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> model = HRLS(Taxonomy([("sport", None), ("tennis", "sport")]), n_features=64)
    >>> model.learn_one({"racket": 1.0}, {"tennis"})
    >>> model.predict_one({"racket": 1.0})
    {'sport': True, 'tennis': True}

    References
    ----------
    Cesa-Bianchi, Conconi, Gentile: Incremental algorithms for hierarchical classification (2004), section 4.
    """

    def _predict(self, rows: Rows) -> Bools:
        self._weights.refresh(self._stored)
        zero_is_on = self.cold_start == "paper"
        return self._weights.predict(self._stored, self._graph(), zero_is_on, with_squares(rows))

    def _run(self, batch: kernels.Batch, workers: Workers) -> None:
        reached = np.zeros(len(self._labels), np.int64)
        likely = self._likely(batch)
        self._reserve(likely)

        def call(nodes: Ints) -> Ints:
            how = (self._graph(), self._rule())
            n_done = kernels.stream_nodes(
                *self._stored.arrays(), *how, nodes, batch, self._stored.room, reached
            )
            return nodes[n_done:]

        cost = likely * (self._stored.n_stored + 1.0) ** 2
        alone = workers.n_threads == 1 or batch.on.shape[0] < FEW_ROWS or cost.sum() < WORTH_A_THREAD
        for tasks in [[self._order()]] if alone else self._levels(cost):
            left = tasks
            while left:
                left = [nodes for nodes in workers.map(call, left) if nodes.size]
                more = np.zeros_like(reached)
                more[[nodes[0] for nodes in left]] = AT_A_TIME
                self._reserve(more)

    def _levels(self, cost: Doubles) -> list[list[Ints]]:
        """Return tasks for the nodes of each level, the costliest first."""
        levels = []
        for level in range(int(self._labels.depth.max()) + 1):
            nodes = np.flatnonzero(self._labels.depth == level).astype(np.int32)
            nodes = nodes[np.argsort(-cost[nodes], kind="stable")]
            tasks = [*np.split(nodes[:ALONE], range(1, min(ALONE, nodes.size))), nodes[ALONE:]]
            levels.append([task for task in tasks if task.size])
        return levels
