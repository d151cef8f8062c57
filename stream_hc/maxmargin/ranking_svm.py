"""The hierarchical multilabel SVM of Cai and Hofmann: a ranking of categories with a large margin.

Notation: F(x, v) -> `margins`; t -> `scale`; α / Δ -> the shares of `kernels.ranking_svm`; ξ -> `slacks`.
"""

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsqr

from stream_hc.checks import positive, whole_number
from stream_hc.kernels import Bools, Floats, Ints, Longs
from stream_hc.kernels import ranking_svm as kernels
from stream_hc.kernels.labels import close_rows, most_specific
from stream_hc.maxmargin.solver import Stopped
from stream_hc.maxmargin.states import check_arrays
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows, feature_rows

__all__ = ["RankingSVM"]

VISITS = 3  # to a document, in the mean, between two looks at all
MOST_PASSES = 30  # in which they take place, where few documents have a gap
SURE = 1.0  # times the mean gap: a document with more is never left out
ROUNDING = 1e-13  # of the largest loss there could be
SIZE_DAMPING = 1.0  # of the regression behind the number of labels
SIZE_STEPS = 100  # it takes at most
AT_A_TIME = 2000  # rows: so many are predicted with dense numbers for all nodes
Progress = Callable[[dict[str, float]], object]


class RankingSVM:
    """Ranks the categories: every label of a document above every category that is none, with a large margin.

    A category may have several parents. Its score adds up what all its ancestors say, each once:
    F(x, v) = t Σ w_u·x over v and its ancestors u, with t = 1 / √(the largest number of them). Categories are
    the leaves, and inner nodes that are the most specific label of a document trained on. Such a node stands
    for a miscellaneous category below it, with weights of its own, so that being filed there is something
    else than being filed below.

    Training minimises ½|w|² + C Σ ξ_i, with F(x_i, y) − F(x_i, ȳ) ≥ 1 − ξ_i / Δ(y, ȳ) for every label y of
    document i and every category ȳ that is none, and ξ_i ≥ 0. That is (6) as the paper prints it: the slack
    is scaled, not the margin, and a document has one slack for all its pairs. Δ is the number of nodes that
    only one of the two has, as in (3), miscellaneous ones included; the experiments of the paper took half of
    it. The dual (7) has α ≥ 0 with Σ α / Δ ≤ C for each document. It rises by ascent in the variables of one
    document after the other, over a working set that the most violated pair joins. Where the paper always
    takes the worst document, documents are drawn here in proportion to their gaps.
    `duality_gap_` is at least what is missing to the optimum.

    A ranking becomes labels by their number: the mean number of (most specific) labels, and what the words
    of the document say about it, by ridge regression on the documents trained on. So many categories at the
    top are predicted, and all above them. A document without a feature that was trained on gets none.

    Parameters
    ----------
    taxonomy
        Labels and their parents, a forest or a DAG.
    C
        How much a loss in training counts against the size of the weights.
    tol
        It stops when the duality gap is at most this share of the dual objective.
    max_epochs, max_seconds
        It stops after so many looks at all documents, or so much time, whatever the gap.
    seed
        Draws the order of the documents: the same seed gives the same bits.
    n_features
        Number of columns of the documents.

    Attributes
    ----------
    dual_objective_, duality_gap_
        Sums over the documents.
    history_
        A dict for each epoch: epoch, seconds, dual_objective, duality_gap.
    stopped_
        Why it stopped: "gap", "epochs", "seconds" or "interrupted".

    Examples
    --------
    >>> from stream_hc import Taxonomy, TextVectorizer
    >>> edges = [("sport", None), ("health", None), ("yoga", "sport"), ("yoga", "health"), ("golf", "sport")]
    >>> tax, words = Taxonomy(edges), TextVectorizer()
    >>> X = words.learn_transform(["a mat and a pose", "a club and a hole", "a pill and a cure"])
    >>> model = RankingSVM(tax).fit(X, tax.encode([{"yoga"}, {"golf"}, {"health"}]))
    >>> tax.decode(model.predict_many(words.transform(["the pose", "the pill"]))) == [
    ...     {"sport", "health", "yoga"}, {"health"}]
    True
    >>> model.duality_gap_ <= 0.01 * model.dual_objective_
    True

    References
    ----------
    Cai, Hofmann: Exploiting known taxonomies in learning overlapping concepts (2007).
    """

    dual_objective_: float
    duality_gap_: float
    history_: list[dict[str, float]]
    stopped_: Stopped

    def __init__(
        self,
        taxonomy: Taxonomy,
        C: float = 1.0,
        tol: float = 0.01,
        max_epochs: int = 1000,
        max_seconds: float | None = None,
        seed: int = 0,
        n_features: int = 2**18,
    ) -> None:
        if not isinstance(taxonomy, Taxonomy):
            raise ValueError(f"taxonomy must be a Taxonomy, not {type(taxonomy).__name__}")
        self.taxonomy = taxonomy
        self.C = positive("C", C)
        self.tol = positive("tol", tol)
        self.max_epochs = whole_number("max_epochs", max_epochs, 0)
        self.max_seconds = None if max_seconds is None else positive("max_seconds", max_seconds)
        self.seed = whole_number("seed", seed, 0)
        self.n_features = whole_number("n_features", n_features, 1, 2**31 - 1)
        self._end_weights: Floats | None = None

    # Training

    def fit(self, X: Any, Y: Any, progress: Progress | None = None) -> Self:
        """Train on rows (n × n_features) and their labels; what was learned before is forgotten.

        `progress` is called with each entry of `history_`. Ctrl-C leaves the model as far as it has come,
        with its gap, and then goes on its way.
        """
        rows = feature_rows(X, self.n_features)
        window, columns = _checked_window(self.taxonomy, self.C, rows, Y)
        history, stopped = self._ascend(window, progress or (lambda entry: None))
        n_labels = np.diff(window.labels[0])
        mean, size_weights = _size_rule(window, n_labels)
        # From here on nothing can fail: the model changes all at once.
        self._set(columns, window.table.astype(np.float32), window.is_end, mean, size_weights)
        self.history_, self.stopped_ = history, stopped
        self.dual_objective_ = history[-1]["dual_objective"]
        self.duality_gap_ = history[-1]["duality_gap"]
        if stopped == "interrupted":
            raise KeyboardInterrupt
        return self

    def _ascend(self, window: "_Window", progress: Progress) -> tuple[list[dict[str, float]], Stopped]:
        began, history = time.perf_counter(), list[dict[str, float]]()
        stopped: Stopped | None = None
        while True:
            objective, gap = window.look()
            epoch, seconds = len(history), time.perf_counter() - began
            entry = {"epoch": epoch, "seconds": seconds, "dual_objective": objective, "duality_gap": gap}
            history.append(entry)
            progress(dict(entry))
            if stopped is not None:
                return history, stopped
            if gap <= max(self.tol * objective, window.rounding):
                return history, "gap"
            if epoch >= self.max_epochs:
                return history, "epochs"
            if self.max_seconds is not None and seconds >= self.max_seconds:
                return history, "seconds"
            try:
                window.improve((self.seed, epoch))
            except KeyboardInterrupt:
                stopped = "interrupted"

    # Prediction

    def predict_many(self, X: Any, scores: bool = False) -> csr_array:
        """Return the predicted labels of each row of `X` (n × n_features) as bool rows (n × N).

        With `scores` the rows hold F of each predicted label instead of True.
        """
        above = _closure(self.taxonomy)
        nodes, data, ptr = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)], [np.zeros(1, np.int64)]
        for part in self._parts(X):
            totals = np.asarray(part @ self._end_weights)
            chosen = self._top(totals, self._number_of_labels(part))
            found = csr_array(chosen) @ above
            found.sort_indices()
            row = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
            nodes.append(found.indices.astype(np.int32))
            data.append(totals[row, found.indices])
            ptr.append(found.indptr[1:] + ptr[-1][-1])
        values: NDArray[Any] = np.concatenate(data)
        values = values if scores else np.ones(values.size, np.bool_)
        indptr = np.concatenate(ptr)
        return csr_array((values, np.concatenate(nodes), indptr), (indptr.size - 1, len(self.taxonomy)))

    def margins(self, X: Any) -> Floats:
        """Return F of each row at every node."""
        parts = [np.asarray(part @ self._end_weights, np.float32) for part in self._parts(X)]
        return np.vstack([np.zeros((0, len(self.taxonomy)), np.float32), *parts])

    def _parts(self, X: Any) -> Iterator[csr_array]:
        if self._end_weights is None:
            raise ValueError("not trained: call fit first")
        rows = feature_rows(X, self.n_features)
        n_rows = rows.indptr.size - 1
        matrix = csr_array((rows.values, rows.indices, rows.indptr), shape=(n_rows, self.n_features))
        used = matrix[:, self._columns]
        for first in range(0, n_rows, AT_A_TIME):
            yield used[first : first + AT_A_TIME]

    def _number_of_labels(self, part: csr_array) -> Longs:
        expected = self._mean_size + part @ self._size_weights
        known = np.diff(part.indptr) > 0
        return np.where(known, np.floor(np.clip(expected, 0, len(self.taxonomy)) + 0.5), 0).astype(np.int64)

    def _top(self, totals: Floats, n_labels: Longs) -> Bools:
        """Return which ends are the highest of each row, the first ones among equals."""
        ends = np.flatnonzero(self._is_end)
        order = ends[np.argsort(-totals[:, ends], axis=1, kind="stable")]
        chosen = np.zeros(totals.shape, np.bool_)
        np.put_along_axis(chosen, order, np.arange(ends.size) < n_labels[:, None], axis=1)
        return chosen

    def _set(
        self, columns: Ints, weights: Floats, is_end: Bools, mean_size: float, size_weights: Floats
    ) -> None:
        (ptr, owners), scale = _made_of(self.taxonomy, is_end)
        adds = csr_array((np.full(owners.size, scale), owners, ptr), (is_end.size, weights.shape[1]))
        self._columns, self._weights, self._is_end = columns, weights, is_end
        self._mean_size, self._size_weights = mean_size, size_weights
        self._end_weights = np.ascontiguousarray((adds @ weights.T.astype(np.float64)).T, np.float32)

    # What it knows

    def state(self) -> dict[str, Any]:
        """Return what predictions need as plain numbers, strings and copied arrays; not the dual variables.

        `columns` are the features used, `weights` (columns, owners) those of the nodes and then of the
        miscellaneous categories, one for each inner node that `is_end` names. `mean_size` and `size_weights`
        tell how many labels to expect.
        """
        if self._end_weights is None:
            raise ValueError("nothing to save: call fit first")
        return {
            **{name: getattr(self, name) for name in _plain_parameters()},
            "taxonomy": self.taxonomy.to_json(),
            "columns": self._columns.copy(),
            "weights": self._weights.copy(),
            "is_end": self._is_end.copy(),
            "mean_size": self._mean_size,
            "size_weights": self._size_weights.copy(),
            "dual_objective": self.dual_objective_,
            "duality_gap": self.duality_gap_,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a model that predicts as the one whose state was taken."""
        taxonomy = Taxonomy.from_json(state["taxonomy"])
        model = cls(taxonomy, **{name: state[name] for name in _plain_parameters()})
        columns, is_end = state["columns"], state["is_end"]
        is_leaf = np.diff(taxonomy.child_ptr) == 0
        if is_end.shape != is_leaf.shape or is_end.dtype != np.bool_ or not is_end[is_leaf].all():
            raise ValueError("is_end must say of each node whether it is a category, and leaves are")
        n_owners = len(taxonomy) + int((is_end & ~is_leaf).sum())
        shapes = {"weights": (columns.size, n_owners), "size_weights": (columns.size,)}
        check_arrays(state, model.n_features, shapes)
        mean_size, objective, gap = (
            float(state[key]) for key in ("mean_size", "dual_objective", "duality_gap")
        )
        if not 0.0 <= mean_size <= len(taxonomy):
            raise ValueError("mean_size must be a mean number of labels")
        model._set(
            columns.copy(), state["weights"].copy(), is_end.copy(), mean_size, state["size_weights"].copy()
        )
        model.dual_objective_, model.duality_gap_ = objective, gap
        if state.keys() != model.state().keys():
            raise ValueError(f"unknown entries: {sorted(state.keys() - model.state().keys())}")
        return model


class _Window:
    """The documents trained on as plain arrays, and how far the ascent is: dual variables and weights."""

    def __init__(
        self,
        above: tuple[Longs, Ints],
        scale: float,
        is_end: Bools,
        C: float,
        rows: Rows,
        labels: tuple[Longs, Ints],
        n_columns: int,
    ) -> None:
        n_rows = rows.indptr.size - 1
        self.above, self.scale, self.is_end, self.C = above, scale, is_end, C
        self.rows, self.labels = rows, labels
        row = np.repeat(np.arange(n_rows), np.diff(rows.indptr))
        self.squares = np.bincount(row, rows.values.astype(np.float64) ** 2, n_rows).astype(np.float64)
        n_owners = int(above[1].max(initial=-1)) + 1
        self.table = np.zeros((n_columns, n_owners))
        self.gaps, self.slacks = np.zeros(n_rows), np.zeros(n_rows)
        # The working sets: where each begins, how many pairs it has, for how many there is room; the arena.
        self.begin, self.size, self.room = (np.zeros(n_rows, np.int64) for _ in range(3))
        self.used = np.zeros(1, np.int64)
        self.right, self.wrong, self.share = np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0)
        # No Δ is larger than the number of owners.
        self.rounding = ROUNDING * C * n_rows * n_owners

    def look(self) -> tuple[float, float]:
        """Return the dual objective and the duality gap, with weights worked out anew."""
        pairs = self.begin, self.size, self.right, self.wrong, self.share
        arguments: tuple[Any, ...] = (*self.above, self.scale, *self.rows, *pairs, self.table)
        square = kernels.table_of(*arguments)
        arguments = (*self.above, self.is_end, self.scale, self.C, *self.rows, *self.labels, self.table)
        total = kernels.gaps_of(*arguments, *pairs, self.gaps, self.slacks)
        return float(total - square / 2.0), float(self.gaps.sum())

    def improve(self, seed: tuple[int, ...]) -> float:
        """Visit documents several times, in proportion to their gaps; return the gain."""
        rng, gain, left = np.random.default_rng(seed), 0.0, VISITS * self.gaps.size
        for _ in range(MOST_PASSES):
            drawn = np.flatnonzero(self.gaps > rng.random(self.gaps.size) * SURE * self.gaps.mean())
            rng.shuffle(drawn)
            gain += self.visit(drawn.astype(np.int32))
            left -= drawn.size
            if left <= 0:
                break
        return gain

    def visit(self, rows: Ints) -> float:
        """Visit documents once, in their order; return the gain."""
        arguments: tuple[Any, ...] = (*self.above, self.is_end, self.scale, self.C)
        arguments += (*self.rows, self.squares, *self.labels, rows, self.table, self.gaps)
        arguments += (self.begin, self.size, self.room, self.used, self.right, self.wrong, self.share)
        gain, self.right, self.wrong, self.share = kernels.visit(*arguments)
        return float(gain)


def _checked_window(taxonomy: Taxonomy, C: float, rows: Rows, Y: Any) -> tuple[_Window, Ints]:
    """Return the checked window, and the features that its columns are."""
    closed, n_rows = taxonomy.label_rows(Y, close=True), rows.indptr.size - 1
    if closed.shape[0] != n_rows:
        raise ValueError(f"{n_rows} documents, but labels for {closed.shape[0]}")
    if n_rows == 0:
        raise ValueError("no documents to train on: the window is empty")
    if len(taxonomy) == 0:
        raise ValueError("no labels to train for: the taxonomy is empty")
    ptr, nodes = closed.indptr.astype(np.int64), closed.indices.astype(np.int32)
    specific = most_specific(ptr, nodes, taxonomy.parent_ptr, taxonomy.parent_idx)
    labels = np.concatenate([[0], np.cumsum(specific)])[ptr], nodes[specific]
    is_end = np.diff(taxonomy.child_ptr) == 0
    is_end[labels[1]] = True
    used = np.zeros(int(rows.indices.max(initial=-1)) + 1, np.bool_)
    used[rows.indices] = True
    features = np.flatnonzero(used).astype(np.int32)
    columns = (np.cumsum(used, dtype=np.int32) - 1)[rows.indices]
    rows = Rows(rows.indptr, columns, rows.values)
    return _Window(*_made_of(taxonomy, is_end), is_end, C, rows, labels, features.size), features


def _closure(taxonomy: Taxonomy) -> csr_array:
    """Return for each node itself and all its ancestors, as bool rows (N × N)."""
    n_nodes = len(taxonomy)
    alone = np.arange(n_nodes + 1), np.arange(n_nodes, dtype=np.int32)
    ptr, nodes = close_rows(*alone, taxonomy.parent_ptr, taxonomy.parent_idx)
    return csr_array((np.ones(nodes.size, np.bool_), nodes, ptr), (n_nodes, n_nodes))


def _made_of(taxonomy: Taxonomy, is_end: Bools) -> tuple[tuple[Longs, Ints], float]:
    """Return the owners of weights that the score of each node adds up, ascending, and t.

    Owners are the nodes, and then the miscellaneous categories of the inner nodes that are ends.
    """
    above = _closure(taxonomy)
    is_inner = is_end & (np.diff(taxonomy.child_ptr) > 0)
    ptr = above.indptr + np.concatenate([[0], np.cumsum(is_inner)])
    owners = np.empty(int(ptr[-1]), np.int32)
    terminal = np.zeros(owners.size, np.bool_)
    terminal[ptr[1:][is_inner] - 1] = True
    owners[~terminal] = above.indices
    owners[terminal] = len(taxonomy) + np.arange(int(is_inner.sum()))
    scale = 1.0 / np.sqrt(max(1, int(np.diff(ptr).max(initial=1))))
    return (ptr.astype(np.int64), owners), float(scale)


def _size_rule(window: _Window, n_labels: Longs) -> tuple[float, Floats]:
    """Return the mean number of labels, and what each column adds to it."""
    mean, n_columns = float(n_labels.mean()), window.table.shape[0]
    ptr, columns, values = window.rows
    matrix = csr_array((values.astype(np.float64), columns, ptr), shape=(n_labels.size, n_columns))
    if n_columns == 0:
        return mean, np.zeros(0, np.float32)
    found = lsqr(matrix, n_labels - mean, damp=np.sqrt(SIZE_DAMPING), iter_lim=SIZE_STEPS)[0]
    return mean, found.astype(np.float32)


def _plain_parameters() -> list[str]:
    return [name for name in inspect.signature(RankingSVM).parameters if name != "taxonomy"]
