"""What every online learner of this package offers: river's interface outside, arrays inside."""

import abc
import inspect
from collections.abc import Collection, Hashable, Mapping
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray
from river import base
from scipy.sparse import csr_array

from stream_hc.checks import one_of, whole_number
from stream_hc.kernels import Floats, Ints, Longs
from stream_hc.taxonomy import Labels, Taxonomy, TaxonomyError
from stream_hc.vectorize import Rows, feature_rows, from_dict, joined, sliced

__all__ = ["NO_LABELS", "ColdStart", "LabelRows", "OnlineLearner", "Parents", "Predicted"]
__all__ += ["along_paths", "closed_upward"]

ColdStart = Literal["negative", "paper"]
Parents = Literal["any", "all"]


class LabelRows(NamedTuple):
    """True labels in CSR form, closed upward."""

    indptr: Longs
    nodes: Ints


class Predicted(NamedTuple):
    """Predicted labels in CSR form, with the margin of each."""

    indptr: Longs
    nodes: Ints
    margins: Floats


SETS = (frozenset, set)
REMEMBERED_LABELS = 2**13  # label sets: some megabytes
NO_LABELS = LabelRows(np.zeros(1, np.int64), np.zeros(0, np.int32))
NOTHING_PREDICTED = Predicted(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))


class OnlineLearner(base.MultiLabelClassifier, abc.ABC):
    """One pass over a stream: predict, then learn. Subclasses say how, on arrays.

    A subclass fills `_stream` (predict and learn rows in order), `_margins`, `_probabilities`, `_add_nodes`
    (the flat taxonomy has grown), `_own_state` and `_restore`.
    """

    def __init__(
        self, taxonomy: Taxonomy | None = None, n_features: int = 2**18, cold_start: ColdStart = "negative"
    ) -> None:
        if taxonomy is not None and not isinstance(taxonomy, Taxonomy):
            raise ValueError(f"taxonomy must be a Taxonomy or None, not {type(taxonomy).__name__}")
        whole_number("n_features", n_features, 1, 2**31 - 1)
        one_of("cold_start", cold_start, ColdStart)
        self.taxonomy = taxonomy
        self.n_features = n_features
        self.cold_start: ColdStart = cold_start
        self._t = 0
        self._set_labels(Taxonomy([]) if taxonomy is None else taxonomy)

    # river's interface: one document as a dict

    def learn_one(self, x: Mapping[Hashable, Any], y: Labels) -> None:  # type: ignore[override]
        """Learn from the features `x` and the labels `y` (a dict label -> bool, a set or a list)."""
        row = from_dict(x, self.n_features)
        if self.taxonomy is None:
            y = y if isinstance(y, Collection) else list(y)
            self._grow(y)
        self._learn_row(row, self._label_row(y))
        self._t += 1

    def predict_one(self, x: Mapping[Hashable, Any], **kwargs: Any) -> dict[str, bool]:  # type: ignore[override]
        """Return every node of the taxonomy with whether the document belongs there."""
        predicted = self._predict_row(from_dict(x, self.n_features))
        answer, names = self._nothing.copy(), self._labels.nodes
        for node in predicted:
            answer[names[node]] = True
        return answer

    def predict_proba_one(  # type: ignore[override]
        self, x: Mapping[Hashable, Any], **kwargs: Any
    ) -> dict[str, dict[bool, float]]:
        """Return a number between 0 and 1 for every node; the class says what it means."""
        p = self._probabilities(from_dict(x, self.n_features))[0]
        return {
            name: {True: on, False: 1.0 - on} for name, on in zip(self._labels.nodes, p.tolist(), strict=True)
        }

    # The array path: many documents in CSR form

    def predict_many(self, X: Any, scores: bool = False) -> csr_array:
        """Return the predicted labels of each row of `X` (n × n_features) as bool rows (n × N).

        With `scores` the rows hold the margin of each predicted label instead of True.
        """
        stream = self._scored_stream if scores else self._stream
        return self._matrix(stream(feature_rows(X, self.n_features), NO_LABELS, delay=-1), scores)

    def learn_many(self, X: Any, Y: Any) -> None:
        """Learn from each row in order; nothing is learned if any row is bad."""
        self.predict_then_learn(X, Y)

    def predict_then_learn(
        self, X: Any, Y: Any, delay: int = 0, start: int = 0, scores: bool = False
    ) -> csr_array:
        """Predict each row, then learn from it, in order; return the predictions.

        With a `delay` the label of a row arrives that many rows later: row t is predicted by a model that
        has learned the rows before t - delay, and the last `delay` rows are not learned in this call. Rows
        before `start` were predicted in an earlier call and only wait for their turn to be learned. With
        `scores` the rows hold the margin of each predicted label instead of True.
        """
        delay = whole_number("delay", delay, 0)
        if self.taxonomy is None:
            raise TaxonomyError("rows of labels need a taxonomy: give one, or learn label sets one by one")
        rows = feature_rows(X, self.n_features)
        labels = self._labels.label_rows(Y, close=True)
        n_rows = rows.indptr.size - 1
        if labels.shape[0] != n_rows:
            raise ValueError(f"{n_rows} documents, but labels for {labels.shape[0]}")
        start = whole_number("start", start, 0, n_rows)
        given = LabelRows(
            labels.indptr.astype(np.int64, copy=False), labels.indices.astype(np.int32, copy=False)
        )
        predicted = (self._scored_stream if scores else self._stream)(rows, given, delay, start)
        self._t += max(0, n_rows - delay) - max(0, start - delay)
        return self._matrix(predicted, scores)

    def file_rows(self, rows: Rows, labels: LabelRows | None = None) -> Predicted:
        """Predict rows, and learn each at once if there are labels; for callers that know both to be sound.

        It is `predict_many` or `predict_then_learn` without their checks, which cost more than a single row.
        """
        if labels is None:
            return self._scored_stream(rows, NO_LABELS, delay=-1)
        predicted = self._scored_stream(rows, labels, delay=0)
        self._t += int(rows.indptr.size - 1)
        return predicted

    def file_in_turn(self, rows: Rows, taught: Rows, labels: LabelRows, until: Longs) -> Predicted:
        """Predict `rows`, each after the first `until` of the `taught` ones have been learned, in order.

        `until` ascends; what is left of the lessons is learned at the end. Like `file_rows` it trusts them.
        """
        parts: list[tuple[Longs, Ints, Floats]] = []
        n_learned = first = 0
        for last in [*(np.flatnonzero(np.diff(until)) + 1).tolist(), until.size]:
            if first < last:
                self._learn_rows(taught, labels, n_learned, int(until[first]))
                n_learned = int(until[first])
                parts.append(self.file_rows(sliced(rows, first, last)))
            first = last
        self._learn_rows(taught, labels, n_learned, int(taught.indptr.size - 1))
        return Predicted(*joined(parts)) if parts else NOTHING_PREDICTED

    def _learn_rows(self, rows: Rows, labels: LabelRows, first: int, last: int) -> None:
        if first < last:
            begin, end = labels.indptr[first], labels.indptr[last]
            some = LabelRows(labels.indptr[first : last + 1] - begin, labels.nodes[begin:end])
            self.file_rows(sliced(rows, first, last), some)

    def margins(self, X: Any) -> NDArray[np.float32]:
        """Return the margin of every row at every node, whatever its parents are; 0 where never trained."""
        return self._margins(feature_rows(X, self.n_features))

    # What it knows

    @property
    def nodes(self) -> tuple[str, ...]:
        """The labels it knows, in column order; they grow where no taxonomy was given."""
        return self._labels.nodes

    @property
    def n_learned(self) -> int:
        """How many labelled documents it has seen (t)."""
        return self._t

    def state(self) -> dict[str, Any]:
        """Return everything it knows as plain numbers, strings and copied arrays."""
        params = {name: value for name, value in self._get_params().items() if name != "taxonomy"}
        own = {"taxonomy": self._labels.to_json(), "grows": self.taxonomy is None, "t": self._t}
        return {**params, **own, **self._own_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a learner that goes on exactly where `state` was taken."""
        labels = Taxonomy.from_json(state["taxonomy"])
        if not isinstance(state["grows"], bool):
            raise ValueError(f"grows must be true or false, not {state['grows']!r}")
        params = {name: state[name] for name in inspect.signature(cls).parameters if name != "taxonomy"}
        model = cls(taxonomy=None if state["grows"] else labels, **params)
        if state["grows"]:
            model._set_labels(labels)
            model._add_nodes(len(labels))
        model._restore(state)
        model._t = whole_number("t", state["t"], 0, 2**63 - 1)
        if state.keys() != model.state().keys():
            raise ValueError(f"unknown entries: {sorted(state.keys() - model.state().keys())}")
        return model

    # What a subclass fills in

    @abc.abstractmethod
    def _stream(self, rows: Rows, labels: LabelRows, delay: int, start: int = 0) -> Predicted:
        """Predict the rows from `start` on and learn each row `delay` rows later, never if it is negative."""

    @abc.abstractmethod
    def _margins(self, rows: Rows) -> NDArray[np.floating[Any]]:
        """Return the margins of the rows at all nodes."""

    @abc.abstractmethod
    def _probabilities(self, rows: Rows) -> NDArray[np.float64]:
        """Return a number between 0 and 1 for each row and node, at no node larger than at its parent."""

    @abc.abstractmethod
    def _add_nodes(self, n_nodes: int) -> None:
        """Append nodes up to `n_nodes` in all, never trained so far."""

    @abc.abstractmethod
    def _own_state(self) -> dict[str, Any]:
        """Return what was learned as plain numbers, strings and copied arrays."""

    @abc.abstractmethod
    def _restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `_own_state` returned, or raise ValueError."""

    def _scored_stream(self, rows: Rows, labels: LabelRows, delay: int, start: int = 0) -> Predicted:
        """Do the same where margins are wanted, too: for learners that save their cost in `_stream`."""
        return self._stream(rows, labels, delay, start)

    def _predict_row(self, row: Rows) -> list[int]:
        """Return the nodes predicted for one document."""
        return cast("list[int]", self._stream(row, NO_LABELS, delay=-1).nodes.tolist())

    def _learn_row(self, row: Rows, labels: Ints) -> None:
        """Learn one document with these labels, closed upward."""
        self._stream(row, LabelRows(np.array([0, labels.size], np.int64), labels), delay=0)

    # Inside

    def _matrix(self, predicted: Predicted, scores: bool) -> csr_array:
        data = predicted.margins if scores else np.ones(predicted.nodes.size, np.bool_)
        shape = (predicted.indptr.size - 1, len(self._labels))
        answer = csr_array((data, predicted.nodes, predicted.indptr), shape=shape)
        answer.has_canonical_format = True
        return answer

    def _set_labels(self, labels: Taxonomy) -> None:
        self._labels = labels
        self._nothing = dict.fromkeys(labels.nodes, False)
        self._label_rows: dict[frozenset[str], Ints] = {}

    def _label_row(self, y: Labels) -> Ints:
        """Return one label set, closed upward; the same sets come again and again and are remembered."""
        key = frozenset(y) if isinstance(y, SETS) else None
        row = None if key is None else self._label_rows.get(key)
        if row is None:
            row = np.array(self._labels.columns(y), np.int32)
            if key is not None:
                if len(self._label_rows) == REMEMBERED_LABELS:
                    self._label_rows.clear()
                self._label_rows[key] = row
        return row

    def _grow(self, y: Labels) -> None:
        """Append the labels not met before to the flat taxonomy of the labels seen."""
        if isinstance(y, str | bytes):
            return  # no set of labels: `columns` says so
        new = [name for name in y if not isinstance(name, str) or name not in self._labels]
        if any(not isinstance(name, str) for name in new):
            raise TaxonomyError(f"a label must be a str, not {new[0]!r}")
        new = list(dict.fromkeys(new))
        if new:
            self._set_labels(Taxonomy.flat([*self._labels.nodes, *new]))
            self._add_nodes(len(self._labels))


def along_paths(taxonomy: Taxonomy, p: NDArray[np.float64], parents: Parents) -> NDArray[np.float64]:
    """Bring the numbers that nodes have by themselves (n × N) in line with top-down prediction. Writes `p`.

    None is larger than at a parent afterwards, and it exceeds a threshold exactly where a prediction by that
    threshold has the node on: below all its parents; or below any of them, all its ancestors then being on.
    """
    for node in range(len(taxonomy)):
        above = p[:, taxonomy.parents(node)]
        if above.size:
            p[:, node] = np.minimum(p[:, node], above.min(axis=1) if parents == "all" else above.max(axis=1))
    if not taxonomy.is_tree and parents == "any":
        closed_upward(taxonomy, p)
    return p


def closed_upward(taxonomy: Taxonomy, rows: NDArray[Any]) -> None:
    """Give every node at least what its children have: labels (bools) or numbers, n × N. Writes `rows`."""
    for node in reversed(range(len(taxonomy))):
        for parent in taxonomy.parents(node):
            np.maximum(rows[:, parent], rows[:, node], out=rows[:, parent])
