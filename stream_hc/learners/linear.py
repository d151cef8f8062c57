"""A linear learner at every node, predicting from the roots downward; subclasses name the update rule."""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stream_hc.checks import finite, one_of
from stream_hc.kernels import Doubles, Floats, Ints, Longs
from stream_hc.kernels import linear as kernels
from stream_hc.learners.base import ColdStart, LabelRows, OnlineLearner, Parents, Predicted, along_paths
from stream_hc.learners.table import WeightTable
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows, joined

__all__ = ["LinearLearner", "Threshold", "edge_array"]

Threshold = float | Literal["learned"]


class LinearLearner(OnlineLearner):
    """A linear learner at every node, predicting from the roots downward.

    A node is on if its margin w·x exceeds its threshold and its parent is on, so predictions respect the
    taxonomy. In a DAG, where a node may have several parents, one of them is enough (`parents="any"`), and
    the ancestors of a node that is on are then on, too; or it takes them all (`parents="all"`). Nodes learn
    where they are eligible: where the true labels have one of their parents, or all of them. A margin of
    exactly 0 means that the node knows nothing about the document: `cold_start` decides it, whatever the
    threshold.

    `predict_proba_one` returns 1 / (1 + e^−(margin − threshold)), no larger than at its parents. It orders
    documents as the margins do, with 1/2 at the threshold, and is not calibrated: wrap the learner in
    `Calibrated` for probabilities that can be trusted.
    """

    _with_variances: ClassVar[bool] = False

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        n_features: int = 2**18,
        cold_start: ColdStart = "negative",
        threshold: Threshold = 0.0,
        parents: Parents = "any",
    ) -> None:
        super().__init__(taxonomy, n_features, cold_start)
        one_of("parents", parents, Parents)
        self.threshold: Threshold = threshold if threshold == "learned" else finite("threshold", threshold)
        self.parents: Parents = parents
        self._cuts = np.zeros((0, 2 + kernels.BINS if threshold == "learned" else 1))
        self._add_cuts(len(self._labels))
        self._table = WeightTable(n_features, len(self._labels), self._with_variances)
        self._remembered: tuple[kernels.Model, tuple[Any, ...]] | None = None
        self._judged: tuple[Rows, int, Floats] | None = None  # the latest row predicted, when, its margins

    @abc.abstractmethod
    def _update_rule(self) -> tuple[int, float]:
        """Return the kind of update and its strength, as `kernels.Rule` takes them."""

    @property
    def n_updates(self) -> NDArray[np.int64]:
        """How often each node was updated; 0 means never trained."""
        return self._table.n_updates.copy()

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """What the margin of each node must exceed."""
        return self._cuts[:, 0].copy()

    @property
    def nbytes(self) -> int:
        """Bytes of the weights held."""
        return self._table.nbytes

    def strongest(self, node: int | str, k: int = 10) -> list[tuple[int, float]]:
        """Return the `k` features that count most at a node, as (column, weight), for or against it.

        `TextVectorizer.names_of` tells which words the columns are.
        """
        column = self._labels.index(node) if isinstance(node, str) else int(node)
        features, weights = self._table.column(column)
        order = np.lexsort((features, -np.abs(weights)))[: max(0, k)]
        return list(zip(features[order].tolist(), weights[order].tolist(), strict=True))

    def _probabilities(self, rows: Rows) -> NDArray[np.float64]:
        margins = self._margins(rows).astype(np.float64)
        # At a margin of 0 the node knows nothing: 1/2, whatever the threshold.
        above = np.where(margins == 0.0, 0.0, margins - self._cuts[:, 0])
        p = 1.0 / (1.0 + np.exp(-np.clip(above, -500.0, 500.0)))
        return along_paths(self._labels, p, self.parents)

    def _stream(self, rows: Rows, labels: LabelRows, delay: int, start: int = 0) -> Predicted:
        """Run the kernel over the rows, making room for new features whenever it asks."""
        stop = rows.indptr.size - 1
        parts: list[tuple[Longs, Ints, Floats]] = []
        row = start
        while True:
            arguments = (*self._arrays(), *self._rule(), *rows, *labels, row, stop, delay)
            row, indptr, nodes, margins = kernels.stream_rows(*arguments)
            parts.append((indptr, nodes, margins))
            if row == stop:
                return Predicted(*(parts[0] if len(parts) == 1 else joined(parts)))
            self._table.reserve(int(rows.indptr[row - delay + 1] - rows.indptr[row - delay]))

    def file_in_turn(self, rows: Rows, taught: Rows, labels: LabelRows, until: Longs) -> Predicted:
        """Predict rows and learn others in turn, in one call of the kernel: see `OnlineLearner`.

        A step predicts one row and then learns one; where only one of the two is due, the other is a row
        without features, of which nothing is learned. The lessons stand in front, a whole delay ahead.
        """
        n_taught = int(taught.indptr.size - 1)
        shares = np.diff(until, append=n_taught)  # lessons behind each row
        n_before = int(until[0]) if until.size else n_taught
        steps_of_rows = n_before + np.cumsum(np.maximum(shares, 1)) - np.maximum(shares, 1)
        steps_of_lessons = np.arange(n_taught)
        steps_of_lessons[n_before:] += np.repeat(steps_of_rows - until, shares)
        n_steps = n_before + int(np.maximum(shares, 1).sum())
        label_counts = np.zeros(n_steps, np.int64)
        label_counts[steps_of_lessons] = np.diff(labels.indptr)
        spread = LabelRows(np.concatenate([[0], np.cumsum(label_counts)]), labels.nodes)
        both = joined([_spread(taught, steps_of_lessons, n_steps), _spread(rows, steps_of_rows, n_steps)])
        predicted = self._stream(both, spread, delay=n_steps, start=n_steps)
        self._t += n_taught
        if until.size == n_steps:
            return predicted
        is_row = np.zeros(n_steps, np.bool_)
        is_row[steps_of_rows] = True
        counts = np.diff(predicted.indptr)
        kept = np.repeat(is_row, counts)
        indptr = np.concatenate([[0], np.cumsum(counts[is_row])])
        return Predicted(indptr, predicted.nodes[kept], predicted.margins[kept])

    def _predict_row(self, row: Rows) -> list[int]:
        slots, _, table, edges = self._arrays()
        decision = (self._cuts, self.cold_start == "paper")
        margins = self._margins_of(row, table.shape[2])[0]
        on = kernels.predict_row(slots, table, edges, *decision, row.indices, row.values, margins)
        self._judged = row, self._t, margins
        return on.tolist()  # type: ignore[no-any-return]

    def _learn_row(self, row: Rows, labels: Ints) -> None:
        margins, known = self._margins_of(row, self._table.model.table.shape[2])
        document: tuple[Any, ...] = (*self._rule(), row.indices, row.values, labels, margins, known)
        while not kernels.learn_row(*self._arrays(), *document):
            self._table.reserve(row.indices.size)

    def _margins_of(self, row: Rows, width: int) -> tuple[Floats, bool]:
        """Return room for the margins of a document, and whether they are there already.

        river's loop predicts a document and learns it at once: the same row, and nothing learned in between.
        """
        if self._judged is None or self._judged[2].size != width:
            return np.empty(width, np.float32), False
        judged, t, margins = self._judged
        return margins, judged is row and t == self._t

    def _rule(self) -> tuple[int, float, Doubles, bool]:
        """Return the fields of `kernels.Rule`."""
        return (*self._update_rule(), self._cuts, self.cold_start == "paper")

    def _arrays(self) -> tuple[Any, ...]:
        """Return the arrays of the table and the graph; put together anew when the table has changed."""
        model = self._table.model
        if self._remembered is None or self._remembered[0] is not model:
            self._remembered = model, (*model, edge_array(self._labels, self.parents))
        return self._remembered[1]

    def _margins(self, rows: Rows) -> NDArray[np.float32]:
        model = self._table.model
        margins = np.empty((rows.indptr.size - 1, model.table.shape[2]), np.float32)
        kernels.margin_rows(model.slots, model.table, rows.indptr, rows.indices, rows.values, margins)
        return margins[:, : len(self._labels)]

    def _add_nodes(self, n_nodes: int) -> None:
        self._table.add_nodes(n_nodes)
        self._add_cuts(n_nodes)

    def _add_cuts(self, n_nodes: int) -> None:
        more = np.zeros((n_nodes - len(self._cuts), self._cuts.shape[1]))
        more[:, 0] = 0.0 if self.threshold == "learned" else self.threshold
        self._cuts = np.concatenate([self._cuts, more])

    def _own_state(self) -> dict[str, Any]:
        learned = {"cuts": self._cuts.copy()} if self.threshold == "learned" else {}
        return self._table.state() | learned

    def _restore(self, state: Mapping[str, Any]) -> None:
        if self.threshold == "learned":
            cuts = state["cuts"]
            if cuts.shape != self._cuts.shape or cuts.dtype != np.float64 or not np.isfinite(cuts).all():
                raise ValueError(f"cuts must be finite numbers of shape {self._cuts.shape}")
            if (np.abs(cuts[:, 0]) > kernels.BINS / kernels.PER_UNIT / 2).any() or (cuts[:, 1] < 0).any():
                raise ValueError("cuts must be thresholds within the bins and counts of documents")
        self._table.restore(state)
        if self.threshold == "learned":
            self._cuts = cuts.copy()


def _spread(rows: Rows, places: Longs, n_rows: int) -> Rows:
    """Put rows at some places among `n_rows`; the others have no features."""
    counts = np.zeros(n_rows, np.int64)
    counts[places] = np.diff(rows.indptr)
    return Rows(np.concatenate([[0], np.cumsum(counts)]), rows.indices, rows.values)


def edge_array(taxonomy: Taxonomy, parents: Parents = "any") -> Ints:
    """Return the graph of a taxonomy as one array, which `kernels` takes apart again."""
    sizes = [len(taxonomy), taxonomy.parent_idx.size, taxonomy.roots.size, parents == "all"]
    upward = (taxonomy.parent_ptr, taxonomy.parent_idx)
    downward = (taxonomy.child_ptr, taxonomy.child_idx)
    return np.concatenate([sizes, *upward, *downward]).astype(np.int32)
