"""Probabilities that can be trusted: any learner with its margins calibrated while the stream goes by.

Notation: p_i = P(y_i = 1 given y_par(i) = 1) -> conditional probabilities; ln(p_i / (1 − p_i)) -> `odds`.
"""
# ruff: noqa: SLF001 (the wrapped learner is of the same family: what it fills in is called from here, too)

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from stream_hc.checks import one_of, whole_number
from stream_hc.decoding.bayes import Costs, require_forest
from stream_hc.kernels import Doubles
from stream_hc.kernels.bayes import decode_rows
from stream_hc.kernels.calibration import marginal_rows
from stream_hc.kernels.labels import truncate_rows
from stream_hc.learners.base import LabelRows, OnlineLearner, Predicted
from stream_hc.learners.platt import PlattLines
from stream_hc.vectorize import Rows, feature_rows

__all__ = ["Calibrated", "Decode"]

Decode = Literal["top-down", "h-bayes"]

CHUNK = 256  # rows whose margins are held at a time, however many are asked for
INSIDE = "model."  # in front of the entries of the wrapped learner's state


class Calibrated(OnlineLearner):
    """A learner whose probabilities mean what they say: of the things given 0.8, four in five are true.

    Every node has a line from its margins to log-odds (Platt scaling), learned online from the margins that
    the model had *before* it learned a document, and only where the node was eligible: a root, or its
    parents true labels. A node seen rarely follows a line shared by all nodes, so nothing is certain after a
    few documents. Memory is seven numbers a node.

    What the numbers mean: `conditional_probabilities` are p_i = P(y_i = 1 given y_par(i) = 1), which
    `h_bayes` takes. Multiplied along the path they give the marginal P(y_i = 1), never larger than the
    parent's: `predict_proba_one` and `predict_proba_many` return these. `margins` and scores are log-odds
    of p_i. So `predict_one` may well name a label whose marginal probability is below 1/2: each step of its
    path was more likely than not. In a DAG p_i is given that all parents are labels, and the marginal is an
    upper bound.

    Parameters
    ----------
    model
        Any learner of this package, fresh or trained. It belongs to the wrapper from now on, which makes it
        learn; its own decisions (`cold_start`, `threshold`) are not asked for.
    decode
        "top-down": a node is on if p_i ≥ 1/2 and its parents are on. "h-bayes": the multilabel with the
        least expected H-loss; forests only.
    costs
        Of that H-loss: the name of a scheme, or a positive number for each node.
    memory
        How many eligible documents back a node's line looks, roughly: older ones fade.

    Examples
    --------
    >>> from stream_hc import HAROW, Taxonomy
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
    >>> model = Calibrated(HAROW(tax, n_features=64), decode="h-bayes")
    >>> for _ in range(20):
    ...     model.learn_one({"racket": 1.0}, {"tennis"})
    ...     model.learn_one({"vote": 1.0}, {"politics"})
    >>> model.predict_one({"racket": 1.0})
    {'sport': True, 'politics': False, 'tennis': True}
    >>> p = model.predict_proba_one({"racket": 1.0})
    >>> 0.9 < p["tennis"][True] < p["sport"][True] < 1.0
    True

    References
    ----------
    Platt: Probabilistic outputs for support vector machines (1999). Here with a Gaussian belief about each
    line, updated one document at a time, in place of a fit to a held-out set with smoothed targets;
    `docs/calibration.md` has the measurements.
    """

    def __init__(
        self,
        model: OnlineLearner,
        decode: Decode = "top-down",
        costs: Costs = "normalized",
        memory: int = 500,
    ) -> None:
        if not isinstance(model, OnlineLearner) or isinstance(model, Calibrated):
            raise ValueError(f"model must be a learner of this package, not {type(model).__name__}")
        one_of("decode", decode, Decode)
        whole_number("memory", memory, 2, 2**31 - 1)
        super().__init__(model.taxonomy, model.n_features, model.cold_start)
        self.model = model
        self.decode: Decode = decode
        self.costs = costs
        self.memory = memory
        self._set_labels(model._labels)
        if decode == "h-bayes":
            require_forest(self._labels)
            if self.taxonomy is None and not isinstance(costs, str):
                raise ValueError("own costs need a taxonomy: labels that turn up later would have none")
        self._node_costs = self._costs_now()
        self._t = model.n_learned
        self._lines = PlattLines(len(self._labels), memory)

    def conditional_probabilities(self, X: Any) -> NDArray[np.float64]:
        """Return for each row of `X` and each node P(y_i = 1 given that its parents are labels), n × N."""
        return _sigmoid(self._log_odds(feature_rows(X, self.n_features)))

    def predict_proba_many(self, X: Any) -> NDArray[np.float64]:
        """Return the marginal probability P(y_i = 1) of each row of `X` at each node, n × N."""
        return self._probabilities(feature_rows(X, self.n_features))

    def state(self) -> dict[str, Any]:
        """Return everything it knows, that of the wrapped learner under names that begin with "model."."""
        costs = self.costs if isinstance(self.costs, str) else np.array(self.costs, np.float64)
        own = {
            "kind": type(self.model).__name__,
            "decode": self.decode,
            "costs": costs,
            "memory": self.memory,
        }
        inside = {f"{INSIDE}{key}": value for key, value in self.model.state().items()}
        return {**own, **self._own_state(), **inside}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a learner that goes on exactly where `state` was taken."""
        inside = {key.removeprefix(INSIDE): state[key] for key in state if key.startswith(INSIDE)}
        model = _learner_class(state["kind"]).from_state(inside)
        calibrated = cls(model, state["decode"], state["costs"], state["memory"])
        calibrated._restore(state)
        if state.keys() != calibrated.state().keys():
            raise ValueError(f"unknown entries: {sorted(state.keys() - calibrated.state().keys())}")
        return calibrated

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": _learner_class("HAROW")()}  # for river's checks: a wrapper has no default

    # What every learner fills in

    def _stream(
        self, rows: Rows, labels: LabelRows, delay: int, start: int = 0, scores: bool = False
    ) -> Predicted:
        stop = rows.indptr.size - 1
        sizes, nodes, found = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
        for first in range(start, stop, CHUNK):
            end = min(first + CHUNK, stop)
            if delay < 0:
                odds = self._log_odds(_some(rows, first, end))
            else:
                odds = np.concatenate(
                    [self._odds_then_learn(rows, labels, row, delay) for row in range(first, end)]
                )
            part = self._decoded(odds)
            sizes.append(np.diff(part.indptr))
            nodes.append(part.nodes)
            found.append(part.margins)
        return Predicted(np.cumsum(np.concatenate(sizes)), np.concatenate(nodes), np.concatenate(found))

    def _margins(self, rows: Rows) -> NDArray[np.float32]:
        return self._log_odds(rows).astype(np.float32)

    def _probabilities(self, rows: Rows) -> NDArray[np.float64]:
        p = _sigmoid(self._log_odds(rows))
        marginal_rows(p, self._labels.parent_ptr, self._labels.parent_idx)
        return p

    def _add_nodes(self, n_nodes: int) -> None:
        self.model._set_labels(self._labels)
        self.model._add_nodes(n_nodes)
        self._lines.add_nodes(n_nodes)
        self._node_costs = self._costs_now()

    def _own_state(self) -> dict[str, Any]:
        return self._lines.state()

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._lines.restore(state)

    # Inside

    def _odds_then_learn(self, rows: Rows, labels: LabelRows, row: int, delay: int) -> Doubles:
        """Return the log-odds of a row; then learn the row that is `delay` rows older, if there is one."""
        margins = self._model_margins(_some(rows, row, row + 1))
        odds = self._lines.log_odds(margins)
        if row >= delay:
            old = row - delay
            document = _some(rows, old, old + 1)
            if delay:  # the model has moved on since this document was predicted
                margins = self._model_margins(document)
            nodes = labels.nodes[labels.indptr[old] : labels.indptr[old + 1]]
            if document.indices.size:  # without features it teaches nothing
                self._lines.learn(margins[0], nodes, self._labels)
            self.model._stream(document, LabelRows(np.array([0, nodes.size], np.int64), nodes), delay=0)
            self.model._t += 1
        return odds

    def _log_odds(self, rows: Rows) -> Doubles:
        odds = np.empty((rows.indptr.size - 1, len(self._labels)))
        for first in range(0, odds.shape[0], CHUNK):
            part = odds[first : first + CHUNK]
            part[:] = self._lines.log_odds(self._model_margins(_some(rows, first, first + part.shape[0])))
        return odds

    def _model_margins(self, rows: Rows) -> Doubles:
        """Return the margins of the model, in the one type the kernels are compiled for."""
        return np.ascontiguousarray(self.model._margins(rows), np.float64)

    def _decoded(self, odds: Doubles) -> Predicted:
        p = _sigmoid(odds)
        if self.decode == "h-bayes":
            ptr, nodes = decode_rows(p, self._labels.parent, self._node_costs)
        else:
            row, node = np.nonzero(p >= 0.5)
            likely = np.searchsorted(row, np.arange(p.shape[0] + 1))
            graph = (self._labels.parent_ptr, self._labels.parent_idx)
            ptr, nodes = truncate_rows(likely, node.astype(np.int32), *graph)
        row_of = np.repeat(np.arange(p.shape[0]), np.diff(ptr))
        return Predicted(ptr, nodes, odds[row_of, nodes].astype(np.float32))

    def _costs_now(self) -> Doubles:
        return self._labels.costs(self.costs if self.decode == "h-bayes" else "uniform")


def _some(rows: Rows, first: int, stop: int) -> Rows:
    begin, end = rows.indptr[first], rows.indptr[stop]
    return Rows(rows.indptr[first : stop + 1] - begin, rows.indices[begin:end], rows.values[begin:end])


def _sigmoid(odds: Doubles) -> Doubles:
    p: Doubles = 1.0 / (1.0 + np.exp(-odds))
    return p


def _learner_class(name: Any) -> type[OnlineLearner]:
    """Return the learner of that name among those imported; of several the one defined last."""
    found = [kind for kind in _kinds(OnlineLearner) if kind.__name__ == name and not inspect.isabstract(kind)]
    if not found or issubclass(found[-1], Calibrated):
        raise ValueError(f"there is no learner {name!r} to calibrate")
    return found[-1]


def _kinds(base: type[Any]) -> Iterator[type[OnlineLearner]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)
