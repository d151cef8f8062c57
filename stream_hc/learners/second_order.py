"""What the second-order learners share: documents stored at nodes by margins in a band that narrows."""

import abc
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc.checks import one_of, whole_number
from stream_hc.kernels import Bools, Doubles, Ints, Longs
from stream_hc.kernels import rls as kernels
from stream_hc.learners.base import (
    ColdStart,
    LabelRows,
    OnlineLearner,
    Parents,
    Predicted,
    along_paths,
    closed_upward,
)
from stream_hc.learners.batches import Batches
from stream_hc.learners.instances import Instances
from stream_hc.learners.node_weights import NodeWeights
from stream_hc.learners.stored_state import check_state, with_stamps
from stream_hc.learners.workers import Workers
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows, feature_rows, from_dict

__all__ = ["AT_A_TIME", "Eviction", "SecondOrderLearner"]

Eviction = Literal["oldest", "coefficient", "redundant", "influence"]

AT_A_TIME = 64  # documents that a node gets room for: few stops on the way, and little room to spare


class SecondOrderLearner(OnlineLearner):
    """Regularised least squares at every node, from the documents stored there; subclasses decide.

    An eligible node stores a document if its margin m is small: |m| ≤ √(5 ln t / N) with N documents stored
    so far, t seen. m takes x itself into account: m = vᵀx / (1 + r), where v are the weights and r = xᵀA⁻¹x.
    """

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        n_features: int = 2**18,
        cold_start: ColdStart = "negative",
        budget: int | None = None,
        eviction: Eviction = "oldest",
        parents: Parents = "any",
    ) -> None:
        super().__init__(taxonomy, n_features, cold_start)
        one_of("parents", parents, Parents)
        self.parents: Parents = parents
        self.budget = None if budget is None else whole_number("budget", budget, 1, 2**20)
        one_of("eviction", eviction, Eviction)
        self.eviction: Eviction = eviction
        self._stored = Instances(n_features, len(self._labels))
        self._weights = NodeWeights(len(self._labels))

    @abc.abstractmethod
    def _run(self, batch: kernels.Batch, workers: Workers) -> None:
        """Predict and learn a batch. Writes the model, `batch.on` and `batch.scores`."""

    # What is stored

    @property
    def n_stored(self) -> NDArray[np.int64]:
        """How many documents each node has in store; 0 means never trained."""
        return self._stored.n_stored.copy()

    @property
    def n_updates(self) -> NDArray[np.int64]:
        """How many documents each node has ever stored."""
        return self._stored.n_updates.copy()

    @property
    def nbytes(self) -> int:
        """Bytes held: documents, factors, coefficients and weights, with the spare room of each."""
        return self._stored.nbytes + self._weights.nbytes

    @property
    def node_nbytes(self) -> NDArray[np.int64]:
        """Bytes held for each node alone; the documents, which nodes share, come on top."""
        return self._stored.node_nbytes + self._weights.node_nbytes

    def strongest(self, node: int | str, k: int = 10) -> list[tuple[int, float]]:
        """Return the `k` features that count most at a node, as (column, weight), for or against it.

        `TextVectorizer.names_of` tells which words the columns are.
        """
        self._weights.refresh(self._stored)
        features, weights = self._weights.of(self._labels.index(node) if isinstance(node, str) else int(node))
        order = np.lexsort((features, -np.abs(weights)))[: max(0, k)]
        return list(zip(features[order].tolist(), weights[order].tolist(), strict=True))

    # Is a label worth asking for?

    def query_one(self, x: Mapping[Hashable, Any]) -> dict[str, float]:
        """Return the nodes that would learn from this document, were its labels known, with their margins.

        These are the nodes whose margin is within the band, so that the document would be stored. Which nodes
        are eligible depends on the true labels; as long as those are unknown, the predicted ones stand in:
        a node is asked if its parents are predicted. Empty: the labels are not worth asking for.
        """
        found = self._query(from_dict(x, self.n_features))
        return {
            self._labels.nodes[node]: m for node, m in zip(found.indices, found.data.tolist(), strict=True)
        }

    def query_many(self, X: Any) -> csr_array:
        """Return the margins of the nodes that would learn from each row (n × N); a margin may be 0."""
        return self._query(feature_rows(X, self.n_features))

    def _query(self, rows: Rows) -> csr_array:
        on = self._closed(self._predict(rows))
        asked, margins = np.zeros_like(on), np.zeros(on.shape)
        for part, x, products in self._seen(rows):
            docs, nodes = self._stored.arrays()
            answers = kernels.Answers(on[part], asked[part], margins[part])
            kernels.ask_nodes(docs, nodes, self._graph(), x, part.start, products, self._t + 1, answers)
        columns = np.nonzero(asked)[1].astype(np.int32)
        answer = csr_array((margins[asked].astype(np.float32), columns, _pointers(asked)), shape=on.shape)
        answer.has_canonical_format = True
        return answer

    # The hooks of OnlineLearner

    def _stream(self, rows: Rows, labels: LabelRows, delay: int, start: int = 0) -> Predicted:
        if delay < 0:
            return _predicted(self._closed(self._predict(rows)))
        return _predicted(self._stream_all(rows, labels, delay, start)[0])

    def _scored_stream(self, rows: Rows, labels: LabelRows, delay: int, start: int = 0) -> Predicted:
        return _predicted(*self._stream_all(rows, labels, delay, start, scores=True))

    def _stream_all(
        self, rows: Rows, labels: LabelRows, delay: int, start: int = 0, scores: bool = False
    ) -> tuple[Bools, Doubles]:
        """Predict and learn by the products with what is stored; exact margins only where wanted."""
        on = np.zeros((rows.indptr.size - 1 - start, len(self._labels)), np.bool_)
        margins = np.zeros(on.shape) if scores else np.zeros((0, 0))
        with Workers() as workers:
            batches = Batches(self._stored, workers, rows, labels, delay, self._t + 1 - max(start - delay, 0))
            first = start
            while first < start + on.shape[0]:
                part = slice(first - start, first - start + batches.size())
                batch = batches.make(first, on[part], margins[part])
                self._run(batch, workers)
                self._stored.drop_unused(batch.document)
                first += batch.on.shape[0]
        return self._closed(on), margins

    @abc.abstractmethod
    def _predict(self, rows: Rows) -> Bools:
        """Return whether each row belongs to each node; nothing is learned."""

    def _margins(self, rows: Rows) -> NDArray[np.float32]:
        return self._exact_margins(rows).astype(np.float32)

    def _exact_margins(self, rows: Rows) -> Doubles:
        margins = np.zeros((rows.indptr.size - 1, len(self._labels)))
        for part, x, products in self._seen(rows):
            kernels.margin_nodes(
                *self._stored.arrays(), self._order(), x, part.start, products, margins[part]
            )
        return margins

    def _conditional(self, m: Doubles) -> Doubles:
        """Return the estimates of P(node | parent on) for margins."""
        p = np.clip((1.0 + m) / 2.0, 0.0, 1.0)
        # However small the margin is: above 1/2 where it is positive.
        return np.where(m > 0.0, np.maximum(p, np.nextafter(0.5, 1.0)), p)

    def _probabilities(self, rows: Rows) -> NDArray[np.float64]:
        return along_paths(self._labels, self._conditional(self._exact_margins(rows)), self.parents)

    def _add_nodes(self, n_nodes: int) -> None:
        self._stored.add_nodes(n_nodes)
        self._weights.add_nodes(n_nodes)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a learner that goes on exactly where `state` was taken."""
        return super().from_state(with_stamps(state))

    def _own_state(self) -> dict[str, Any]:
        return self._stored.state()

    def _restore(self, state: Mapping[str, Any]) -> None:
        check_state(state, self.n_features, len(self._labels), self.budget)
        self._stored.restore(state)

    # Inside

    def _likely(self, batch: kernels.Batch) -> Longs:
        """Guess how many documents of a batch each node will store: not more than it is eligible for."""
        n_eligible = kernels.count_eligible(self._graph(), batch.y_true[batch.silent :])
        return np.minimum(n_eligible, AT_A_TIME)

    def _reserve(self, n_more: Longs) -> None:
        """Make room for so many more documents at each node."""
        needed = self._stored.n_stored + n_more
        self._stored.reserve(needed if self.budget is None else np.minimum(needed, self.budget))

    def _seen(self, rows: Rows) -> Iterator[tuple[slice, kernels.Documents, Doubles]]:
        """Yield which rows come next, all rows, and the products of the next ones with what is stored."""
        with Workers() as workers:
            batches = Batches(self._stored, workers, rows)
            for first in range(0, rows.indptr.size - 1, batches.size()):
                last = min(first + batches.size(), rows.indptr.size - 1)
                yield slice(first, last), batches.x, batches.products(first, last)

    def _graph(self) -> kernels.Graph:
        needs_all = self.parents == "all" or self._labels.is_tree
        return kernels.Graph(self._labels.parent_ptr, self._labels.parent_idx, needs_all)

    def _closed(self, on: Bools) -> Bools:
        """Switch on the ancestors of what is on; in a forest they are. Writes `on`."""
        if not self._labels.is_tree:
            closed_upward(self._labels, on)
        return on

    def _rule(self) -> kernels.Rule:
        return kernels.Rule(
            self.cold_start == "paper", self.budget or 0, get_args(Eviction).index(self.eviction)
        )

    def _order(self) -> Ints:
        return np.arange(len(self._labels), dtype=np.int32)


def _pointers(on: Bools) -> Longs:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(on.sum(axis=1, dtype=np.int64))])


def _predicted(on: Bools, margins: Doubles | None = None) -> Predicted:
    nodes = np.nonzero(on)[1].astype(np.int32)
    scores = np.zeros(nodes.size) if margins is None else margins[on]
    return Predicted(_pointers(on), nodes, scores.astype(np.float32))
