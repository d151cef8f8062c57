"""The ranking perceptron of Cai and Hofmann, on trees and DAGs.

Notation: F(x, v) -> `margins`; t -> `_scale`; c -> `margin`; Δ -> the number of nodes two ends do not share.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from stream_hc.checks import finite, one_of, whole_number
from stream_hc.kernels import Doubles
from stream_hc.kernels import ranking as kernels
from stream_hc.kernels.labels import close_rows
from stream_hc.learners.base import ColdStart, LabelRows, Predicted, closed_upward
from stream_hc.learners.sparse import SparseTable
from stream_hc.learners.sparse_learner import SparseLearner
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows, feature_rows

__all__ = ["RankingPerceptron"]

Chosen = Literal["size", "positive"]
Order = Literal["online", "minover"]


class RankingPerceptron(SparseLearner):
    """Ranks the categories: every label of a document above every category that is none, by a margin.

    A category may have several parents. Its score adds up what all its ancestors say, each once:
    F(x, v) = t Σ w_u·x over v and its ancestors u, with t = 1 / √(the largest number of them). If the label
    with the lowest score is not more than `margin` above the best category that is none, the nodes that only
    one of the two has move by ± Δ t x, where Δ is the number of these nodes: the farther off, the further.

    Categories are the leaves, and inner nodes that were the most specific label of a document so far. Such a
    node stands for a miscellaneous category below it, with weights of its own, so that being filed there is
    something else than being filed below.

    A ranking becomes labels by their number: the mean number of labels, and what the words of the document
    say about it, learned beside the ranking. The categories at the top are predicted, and all above them.

    `predict_proba_one` is 1 / (1 + e^−(F − cut)), where the cut lies in the middle between the last category
    that is predicted and the first that is not; a node above others has at least theirs. Not calibrated.

    Parameters
    ----------
    taxonomy
        Labels and their parents, a forest or a DAG; None grows a flat taxonomy from the labels learned.
    n_features
        Number of columns; the names of dict features are hashed into it.
    flat
        Whether a category has weights of its own only and mistakes are all equal (t = Δ = 1), a baseline.
    margin
        How far a label has to be above what is none (c).
    chosen_by
        Which categories are predicted: as many as are expected ("size"), or all with F > 0 ("positive").
    cold_start
        Means nothing here: before the first update nothing is predicted.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> edges = [("sport", None), ("health", None), ("yoga", "sport"), ("yoga", "health"), ("golf", "sport")]
    >>> model = RankingPerceptron(Taxonomy(edges), n_features=64)
    >>> for _ in range(3):
    ...     model.learn_one({"mat": 1.0}, {"yoga"})
    ...     model.learn_one({"tee": 1.0}, {"golf"})
    >>> model.predict_one({"mat": 1.0})
    {'sport': True, 'health': True, 'yoga': True, 'golf': False}

    References
    ----------
    Cai, Hofmann: Exploiting known taxonomies in learning overlapping concepts (2007).
    """

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        n_features: int = 2**18,
        flat: bool = False,
        margin: float = 1.0,
        chosen_by: Chosen = "size",
        cold_start: ColdStart = "negative",
    ) -> None:
        if not isinstance(flat, bool):
            raise ValueError(f"flat must be True or False, not {flat!r}")
        one_of("chosen_by", chosen_by, Chosen)
        super().__init__(taxonomy, n_features, cold_start)
        self.flat = flat
        self.margin = finite("margin", margin)
        self.chosen_by: Chosen = chosen_by
        self._forget()
        self._set_ends()

    def strongest(self, node: int | str, k: int = 10) -> list[tuple[int, float]]:
        """Return the `k` features that count most at a node by itself, as (column, weight).

        `TextVectorizer.names_of` tells which words the columns are. What its ancestors say is not counted;
        the miscellaneous category of an inner node is.
        """
        number = self._number(node)
        return self._strongest(1 + 2 * number, 3 + 2 * number, k)

    def fit(
        self, X: Any, Y: Any, order: Order = "minover", epochs: int = 10, max_steps: int = 10_000
    ) -> Self:
        """Train on a file, from nothing; forget what was learned before.

        "online" takes the rows in their order, `epochs` times. "minover" goes where it is worst: at each of
        up to `max_steps` steps it takes the document with the least margin of all, until each has what it
        should. That needs room for rows × nodes numbers, and time for as many at every step. No document is
        taken more than `epochs` times: those that contradict each other would be for ever.
        """
        one_of("order", order, Order)
        whole_number("epochs", epochs, 1)
        whole_number("max_steps", max_steps, 0)
        rows = feature_rows(X, self.n_features)
        labels, n_rows = self._labels.label_rows(Y, close=True), rows.indptr.size - 1
        if labels.shape[0] != n_rows:
            raise ValueError(f"{n_rows} documents, but labels for {labels.shape[0]}")
        true_ends = self._most_specific(
            LabelRows(labels.indptr.astype(np.int64), labels.indices.astype(np.int32))
        )
        # From here on nothing can be wrong any more.
        self._forget()
        self._set_ends()
        if order == "online":
            for _ in range(epochs):
                self._run(rows, true_ends, 0, 0, self.margin)
        else:
            self._minover(rows, true_ends, epochs, max_steps)
        self._t = n_rows * (epochs if order == "online" else 1)
        return self

    def _minover(self, rows: Rows, true_ends: LabelRows, epochs: int, max_steps: int) -> None:
        self._seen[true_ends.nodes] = True
        totals = np.zeros((rows.indptr.size - 1, len(self._labels)))
        pairs = np.zeros((max_steps, 3), np.int32)
        graph = (*self._above, self._seen)
        scale, by_distance = self._scale, not self.flat
        arguments: tuple[Any, ...] = (*graph, scale, self.margin, by_distance, *rows, *true_ends, totals)
        arguments += (self.n_features, epochs, pairs)
        n_done = kernels.least_margins(*arguments)
        pairs, n_done = pairs[:n_done], 0
        while n_done < len(pairs):
            arguments = (*self._table.model, *graph, scale, by_distance, *rows, pairs, n_done)
            n_done = kernels.add_pairs(*arguments)
            if n_done < len(pairs):
                self._table.grow()
        # No pair is closer than −∞: only the numbers of labels are learned.
        self._run(rows, true_ends, 0, 0, margin=-np.inf)

    # The hooks of OnlineLearner

    def _stream(self, rows: Rows, labels: LabelRows, delay: int, start: int = 0) -> Predicted:
        return self._run(
            rows, labels if delay < 0 else self._most_specific(labels), delay, start, self.margin
        )

    def _run(self, rows: Rows, true_ends: LabelRows, delay: int, start: int, margin: float) -> Predicted:
        tax = self._labels
        graph = (*self._above, tax.parent_ptr, tax.parent_idx, self._seen, self._counts)
        rule = (self._scale, margin, not self.flat, self.chosen_by == "size")
        how = (*graph, *rule, *rows, *true_ends)
        return self._run_rows(kernels.stream_ranks, how, start, rows.indptr.size - 1, delay)

    def _margins(self, rows: Rows) -> NDArray[np.float32]:
        return self._ranked(rows)[0].astype(np.float32)

    def _ranked(self, rows: Rows) -> tuple[Doubles, Doubles]:
        """Return F of each row at every node, and how many labels each row is expected to have."""
        n_rows = rows.indptr.size - 1
        totals, sizes = np.empty((n_rows, len(self._labels))), np.empty(n_rows)
        how = (*self._above, self._counts, self._scale)
        kernels.rank_rows(*self._table.model, *how, *rows, totals, sizes)
        return totals, sizes

    def _probabilities(self, rows: Rows) -> Doubles:
        totals, sizes = self._ranked(rows)
        known = (np.diff(rows.indptr) > 0) & (self.n_updates > 0)
        n_on = np.where(known, np.floor(np.clip(sizes, 0, len(self._labels)) + 0.5), 0).astype(int)
        p = np.zeros_like(totals)
        for row in range(totals.shape[0]):
            ranked = totals[row, self._seen]
            cut = _cut(ranked, int(n_on[row])) if self.chosen_by == "size" else 0.0
            p[row, self._seen] = 1.0 / (1.0 + np.exp(-np.clip(ranked - cut, -500.0, 500.0)))
        closed_upward(self._labels, p)
        return p

    def _forget(self) -> None:
        self._table = SparseTable(self.n_features, averaged=False)
        self._seen = np.zeros(0, np.bool_)
        self._counts = np.zeros(2)

    def _set_ends(self) -> None:
        """Work out what each category is made of, and which are there from the beginning."""
        tax, n_nodes = self._labels, len(self._labels)
        alone = np.arange(n_nodes, dtype=np.int32)
        is_leaf = np.diff(tax.child_ptr) == 0
        ptr, nodes = np.arange(n_nodes + 1), alone
        if not self.flat:
            ptr, nodes = close_rows(ptr, alone, tax.parent_ptr, tax.parent_idx)
        ends = [nodes[ptr[node] : ptr[node + 1]] for node in range(n_nodes)]
        made_of = [
            1 + 2 * above if leaf else np.append(2 * above + 1 if not self.flat else above[:0], 2 + 2 * node)
            for node, (above, leaf) in enumerate(zip(ends, is_leaf, strict=True))
        ]
        sizes = np.array([len(owners) for owners in made_of], np.int64)
        owners = np.concatenate([np.sort(some) for some in made_of]) if made_of else np.zeros(0)
        self._above = np.concatenate([[0], np.cumsum(sizes)]), owners.astype(np.int32)
        self._scale = 1.0 / np.sqrt(max(1, int(sizes.max(initial=1))))
        seen = is_leaf.copy()
        seen[: self._seen.size] |= self._seen
        self._seen = seen

    def _add_nodes(self, n_nodes: int) -> None:
        self._set_ends()

    def _own_state(self) -> dict[str, Any]:
        return {**self._table.state(), "seen": self._seen.copy(), "label_counts": self._counts.copy()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        seen, counts = state["seen"], state["label_counts"]
        if seen.shape != self._seen.shape or seen.dtype != np.bool_ or not seen[self._seen].all():
            raise ValueError("seen must say of each node whether it is a category, and leaves are")
        if (
            counts.shape != (2,)
            or counts.dtype != np.float64
            or not (np.isfinite(counts) & (counts >= 0)).all()
        ):
            raise ValueError("label_counts must be two counts")
        self._table.restore(state, 1 + 2 * len(self._labels))
        self._seen, self._counts = seen.copy(), counts.copy()


def _cut(scores: Doubles, n_on: int) -> float:
    """Return what lies between the `n_on` highest scores and the others."""
    order = np.sort(scores)[::-1]
    if n_on == 0 or order.size == 0:
        return float(order.max(initial=0.0)) + 1.0
    return float(order[n_on - 1] + order[n_on]) / 2.0 if n_on < order.size else float(order[-1]) - 1.0
