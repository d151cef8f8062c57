"""What learners of whole paths share: one path is predicted, and kept above all the others."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc.checks import positive, whole_number
from stream_hc.kernels import Doubles, Ints
from stream_hc.kernels import paths as kernels
from stream_hc.learners.base import ColdStart, LabelRows, Predicted
from stream_hc.learners.sparse import SparseSum, SparseTable
from stream_hc.learners.sparse_learner import SparseLearner
from stream_hc.taxonomy import Taxonomy, TaxonomyError
from stream_hc.vectorize import Rows

__all__ = ["PathLearner"]


class PathLearner(SparseLearner):
    """Predicts one path, that with the highest total score, and learns to keep it above all the others.

    A path ends at a leaf, with `partial_paths` at any node. The score of a node is w·x. Before the first
    update, and for a document without features, no path is predicted; of equal totals the first node wins.

    A document may have several paths: then the one with the lowest total is set against the best wrong one. A
    document without labels changes nothing; without `partial_paths`, neither does a label at an inner node.

    Weights are stored for the pairs of feature and node that an update has touched, and no others: taxonomies
    may have tens of thousands of nodes.

    `predict_proba_one` returns the softmax of the totals of all paths, added up over those through a node. It
    is not calibrated.
    """

    _flat = False
    _concepts = 1
    _seed = 0

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        n_features: int = 2**18,
        C: float = 1.0,
        partial_paths: bool = False,
        averaged: bool = False,
        cold_start: ColdStart = "negative",
    ) -> None:
        positive("C", C)
        for name, flag in (("partial_paths", partial_paths), ("averaged", averaged)):
            if not isinstance(flag, bool):
                raise ValueError(f"{name} must be True or False, not {flag!r}")
        if taxonomy is not None and isinstance(taxonomy, Taxonomy) and not taxonomy.is_tree:
            raise TaxonomyError(
                f"{type(self).__name__} scores the path to a node, and in a DAG there may be several: "
                "use RankingPerceptron, or keep one parent of each node"
            )
        super().__init__(taxonomy, n_features, cold_start)
        self.C = C
        self.partial_paths = partial_paths
        self.averaged = averaged
        self._table = SparseTable(n_features, averaged)

    def strongest(self, node: int | str, k: int = 10) -> list[tuple[int, float]]:
        """Return the `k` features that count most at a node, as (column, weight), for or against it.

        `TextVectorizer.names_of` tells which words the columns are. Several concepts are put together.
        """
        first = self._number(node) * self._concepts
        return self._strongest(first, first + self._concepts, k)

    def fit(self, X: Any, Y: Any, epochs: int = 10, seed: int = 0) -> Self:
        """Train on a file, from nothing, as Qiu et al. (2011) print it; forget what was learned before.

        Each epoch begins with weights 0 and takes the rows in an order of its own, drawn from the seed; the
        weights in the end are the mean of those at the ends of the epochs.
        """
        whole_number("epochs", epochs, 1)
        if self.averaged:
            raise ValueError("fit takes the mean over epochs: use it without averaged=True")
        order = np.random.default_rng(whole_number("seed", seed, 0))
        rows = csr_array(X)
        labels = self._labels.label_rows(Y, close=True)
        total = SparseSum()
        for _ in range(epochs):
            once = self.clone()  # a row that cannot be learned must leave this one as it is
            shuffled = order.permutation(rows.shape[0])
            once.learn_many(rows[shuffled], labels[shuffled])
            total.add(once.state())
        self._table = total.mean(self.n_features)
        self._t = epochs * rows.shape[0]
        return self

    def _ends(self) -> Ints:
        """Return the nodes where a path may end."""
        return np.arange(len(self._labels), dtype=np.int32) if self.partial_paths else self._labels.leaves

    def _stream(self, rows: Rows, labels: LabelRows, delay: int, start: int = 0) -> Predicted:
        tax = self._labels
        true_ends = labels if delay < 0 else self._true_ends(labels)
        graph = (tax.parent, tax.depth, self._ends())
        rule = (self._flat, self._concepts, float(self.C), self._seed)
        how = (*graph, *rule, *rows, *true_ends)
        return self._run_rows(kernels.stream_paths, how, start, rows.indptr.size - 1, delay)

    def _true_ends(self, labels: LabelRows) -> LabelRows:
        """Return the labels of each row at which a path ends."""
        may_end = np.zeros(len(self._labels), np.bool_)
        may_end[self._ends()] = True
        return self._most_specific(labels, may_end)

    def _margins(self, rows: Rows) -> NDArray[np.float32]:
        margins = np.empty((rows.indptr.size - 1, len(self._labels)), np.float32)
        kernels.score_rows(*self._table.model, self._concepts, *rows, margins)
        return margins

    def _probabilities(self, rows: Rows) -> Doubles:
        parent, ends = self._labels.parent, self._ends()
        totals = self._margins(rows).astype(np.float64)
        if not self._flat:
            for node in np.flatnonzero(parent >= 0):
                totals[:, node] += totals[:, parent[node]]
        p = np.zeros_like(totals)
        if ends.size:
            at_ends = np.exp(totals[:, ends] - totals[:, ends].max(axis=1, keepdims=True))
            p[:, ends] = at_ends / at_ends.sum(axis=1, keepdims=True)
        for node in np.flatnonzero(parent >= 0)[::-1]:
            p[:, parent[node]] += p[:, node]
        return np.minimum(p, 1.0)

    def _add_nodes(self, n_nodes: int) -> None:
        """Nothing to do: a weight appears when it is first touched."""

    def _own_state(self) -> dict[str, Any]:
        return self._table.state()

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._table.restore(state, len(self._labels) * self._concepts)
