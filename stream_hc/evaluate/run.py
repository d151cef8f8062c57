"""What came out of one pass of one learner: its losses, document by document."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc import losses
from stream_hc.checks import whole_number
from stream_hc.evaluate.means import running_mean, windowed_mean
from stream_hc.taxonomy import Taxonomy

__all__ = ["MEASURES", "Measure", "Run", "score"]

Doubles = NDArray[np.float64]
Measure = Literal["zero_one", "h_loss", "normalized_h_loss", "symmetric_difference"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
"""Losses kept for every document. `h_loss` has uniform costs, `normalized_h_loss` is not defined on a DAG."""


@dataclass(frozen=True, eq=False)
class Run:
    """The predictions of one learner on one stream, scored.

    Parameters
    ----------
    name
        Who predicted.
    taxonomy
        Labels and their parents.
    losses
        Measure -> loss of every document, in stream order, read-only. On a DAG without `normalized_h_loss`.
    h_loss_by_depth
        Uniform H-loss per document, shared out over the depths of the nodes where it is charged.
    micro_f1
        Over all decisions of all documents.
    seconds
        Time spent in predicting and learning, nothing else.
    n_processed
        Documents predicted or learned in that time: with a held-out test, the training documents too.
    delay
        Documents between a prediction and the arrival of its labels.
    window
        How many documents `windowed` looks back, unless told otherwise.
    predictions
        The predicted labels as bool rows, if they were kept.
    """

    name: str
    taxonomy: Taxonomy
    losses: Mapping[Measure, Doubles]
    h_loss_by_depth: Doubles
    micro_f1: float
    seconds: float
    n_processed: int
    delay: int = 0
    window: int = 1000
    predictions: csr_array | None = None

    def __len__(self) -> int:
        return int(self.losses["zero_one"].size)

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {len(self)} documents, H-loss {self.mean('h_loss'):.4f})"

    def values(self, measure: Measure = "h_loss") -> Doubles:
        """Return the loss of every document."""
        if measure not in self.losses:
            raise ValueError(f"unknown measure {measure!r}: choose one of {', '.join(self.losses)}")
        return self.losses[measure]

    def mean(self, measure: Measure = "h_loss") -> float:
        """Return the mean over all documents."""
        return float(self.values(measure).mean())

    def running(self, measure: Measure = "h_loss") -> Doubles:
        """Return at every document the mean so far."""
        return running_mean(self.values(measure))

    def windowed(self, measure: Measure = "h_loss", window: int | None = None) -> Doubles:
        """Return at every document the mean over the last `window` documents (fewer at the beginning)."""
        return windowed_mean(self.values(measure), self.window if window is None else window)

    @property
    def documents_per_second(self) -> float:
        """How many documents it predicted and learned in a second."""
        return self.n_processed / self.seconds if self.seconds > 0 else 0.0

    def summary(self) -> dict[str, Any]:
        """Return the numbers of a table row as plain values.

        Keys: `name`, `documents`, `delay`, the four means `zero_one`, `h_loss`, `normalized_h_loss` (None on
        a DAG) and `symmetric_difference`, `micro_f1`, `h_loss_by_depth` (a list), `window`,
        `h_loss_last_window` (H-loss of the last `window` documents), `seconds`, `documents_per_second`.
        """
        return {
            "name": self.name,
            "documents": len(self),
            "delay": self.delay,
            **{measure: self.mean(measure) if measure in self.losses else None for measure in MEASURES},
            "micro_f1": self.micro_f1,
            "h_loss_by_depth": self.h_loss_by_depth.tolist(),
            "window": self.window,
            "h_loss_last_window": float(self.values("h_loss")[-self.window :].mean()),
            "seconds": self.seconds,
            "documents_per_second": self.documents_per_second,
        }

    def to_json(self) -> str:
        """Return `summary()` as JSON."""
        return json.dumps(self.summary(), ensure_ascii=False, indent=2)


def score(
    name: str,
    taxonomy: Taxonomy,
    Y_pred: Any,
    Y_true: Any,
    *,
    seconds: float = 0.0,
    n_processed: int | None = None,
    delay: int = 0,
    window: int = 1000,
    keep_predictions: bool = True,
) -> Run:
    """Score predictions that were made elsewhere; the arguments are those of `Run`.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
    >>> run = score("by hand", tax, [{"sport"}, {"politics"}], [{"tennis"}, {"politics"}])
    >>> run.mean("zero_one"), run.mean("h_loss")
    (0.5, 0.5)
    >>> run.h_loss_by_depth
    array([0. , 0.5])
    """
    whole_number("window", window, 1)
    predicted = taxonomy.label_rows(Y_pred)
    true = taxonomy.label_rows(Y_true, close=True)
    if true.shape[0] == 0:
        raise ValueError("there are no documents to score")
    by_measure: dict[Measure, Doubles] = {
        "zero_one": losses.zero_one(taxonomy, predicted, true),
        "h_loss": losses.h_loss(taxonomy, predicted, true),
        "symmetric_difference": losses.symmetric_difference(taxonomy, predicted, true),
    }
    if taxonomy.is_tree:
        by_measure["normalized_h_loss"] = losses.h_loss(taxonomy, predicted, true, costs="normalized")
    by_depth = losses.h_loss_by_depth(taxonomy, predicted, true)
    for array in (*by_measure.values(), by_depth):
        array.setflags(write=False)
    return Run(
        name=name,
        taxonomy=taxonomy,
        losses=MappingProxyType({m: by_measure[m] for m in MEASURES if m in by_measure}),
        h_loss_by_depth=by_depth,
        micro_f1=losses.precision_recall_f1(taxonomy, predicted, true).f1,
        seconds=seconds,
        n_processed=true.shape[0] if n_processed is None else n_processed,
        delay=delay,
        window=window,
        predictions=predicted if keep_predictions else None,
    )
