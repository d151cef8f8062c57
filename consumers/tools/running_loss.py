"""Predictions meet their labels, whichever comes first; how wrong they are so far."""

from collections.abc import Iterable

from stream_hc.metrics import HLoss, ZeroOneLoss
from stream_hc.taxonomy import CostScheme, Taxonomy, TaxonomyError

__all__ = ["RunningLoss"]

KEPT = 200_000  # ids that wait, of either kind; the oldest give way


class RunningLoss:
    """The mean losses of those predictions whose labels have come.

    Parameters
    ----------
    taxonomy
        None if there is none: then nothing is scored.
    costs
        Of the H-loss.

    Examples
    --------
    >>> loss = RunningLoss(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]), "uniform")
    >>> loss.predict("1", ["sport"])
    >>> loss.label("1", ["tennis"])
    >>> loss.label("2", ["politics"])
    >>> loss.predict("2", ["politics"])
    >>> loss.n_scored, loss.h_loss, loss.zero_one
    (2, 0.5, 0.5)
    """

    def __init__(self, taxonomy: Taxonomy | None, costs: CostScheme) -> None:
        self._metrics = None if taxonomy is None else (HLoss(taxonomy, costs), ZeroOneLoss(taxonomy))
        self._predictions: dict[str, tuple[str, ...]] = {}
        self._labels: dict[str, tuple[str, ...]] = {}
        self.n_scored = 0
        self.n_unknown = 0  # predictions or labels that name no node of this taxonomy

    @property
    def is_possible(self) -> bool:
        """Whether there is a taxonomy to score with."""
        return self._metrics is not None

    @property
    def h_loss(self) -> float:
        """The mean H-loss; 0 before anything is scored."""
        return 0.0 if self._metrics is None else float(self._metrics[0].get())

    @property
    def zero_one(self) -> float:
        """The share of those with anything wrong."""
        return 0.0 if self._metrics is None else float(self._metrics[1].get())

    def predict(self, name: str, nodes: Iterable[str]) -> None:
        """Take a prediction, with all nodes on its paths."""
        if self._metrics is not None:
            if name in self._labels:
                self._score(tuple(nodes), self._labels[name])
            else:
                _keep(self._predictions, name, tuple(nodes))

    def label(self, name: str, labels: Iterable[str]) -> None:
        """Take the labels of a document; of several the last ones count."""
        if self._metrics is not None:
            _keep(self._labels, name, tuple(labels))
            if name in self._predictions:
                self._score(self._predictions.pop(name), self._labels[name])

    def _score(self, predicted: tuple[str, ...], labels: tuple[str, ...]) -> None:
        assert self._metrics is not None
        try:
            for metric in self._metrics:
                metric.update(labels, predicted)
            self.n_scored += 1
        except TaxonomyError:
            self.n_unknown += 1


def _keep(waiting: dict[str, tuple[str, ...]], name: str, nodes: tuple[str, ...]) -> None:
    waiting.pop(name, None)  # to the end of the queue
    waiting[name] = nodes
    if len(waiting) > KEPT:
        del waiting[next(iter(waiting))]
