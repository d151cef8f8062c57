"""Which view belongs to which model; and the view of a learner whose margins are calibrated."""
# ruff: noqa: SLF001 (a wrapper and its learner are of the same family)

from typing import Any

import numpy as np

from stream_hc.explain.fitted import HM3View, RankingSVMView
from stream_hc.explain.nodes import LinearView, SecondOrderView
from stream_hc.explain.paths import PathView, RankingView
from stream_hc.explain.view import NotLinearError, View
from stream_hc.kernels import Doubles
from stream_hc.kernels.calibration import LARGEST_LOG_ODDS
from stream_hc.learners import Calibrated, LinearLearner, PathLearner, RankingPerceptron, SecondOrderLearner
from stream_hc.maxmargin import HM3, RankingSVM
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows

__all__ = ["CalibratedView", "taxonomy_of", "view_of"]


class CalibratedView(View):
    """Log-odds at a margin of 0, the bias, and what the margin adds: each word its share of the margin."""

    def __init__(self, model: Calibrated, taxonomy: Taxonomy, row: Rows) -> None:
        super().__init__(model, taxonomy, row)
        self._inner = view_of(model.model, row)
        self._offsets = model._lines.log_odds(np.zeros((1, len(taxonomy))))[0]
        # The line bends for large margins: what counts is how steep it is from 0 to the margin here.
        margins = self._inner.margins
        added = model._lines.log_odds(np.ascontiguousarray(margins[None]))[0] - self._offsets
        self._slopes = np.divide(added, margins, out=np.zeros_like(added), where=margins != 0.0)
        self.rule = (
            "The labels with the least expected H-loss, from the log-odds of every node."
            if model.decode == "h-bayes"
            else "A node is on if its log-odds are at least 0 and its parents are on."
        )

    def products(self, node: int) -> Doubles:
        """Return w_j x_j, as far as it moves the log-odds."""
        return self._inner.products(node) * float(self._slopes[node])

    def bias(self, node: int) -> float:
        """Return the log-odds at a margin of 0."""
        return float(self._offsets[node])

    def threshold(self, node: int) -> float | None:
        """Return 0, which is a probability of 1/2."""
        return 0.0 if self.model.decode == "top-down" else None

    def reason(self, node: int) -> str:
        """Give the probability, and the margin behind it."""
        odds = float(self.margins[node])
        how = f"p = {1.0 / (1.0 + np.exp(-odds)):.3f} below its parents, from a margin of "
        cut = ", cut off where log-odds end" if abs(odds) >= LARGEST_LOG_ODDS else ""
        return f"{how}{self._inner.total(node):.3f}{cut}"


def view_of(model: Any, row: Rows) -> View:
    """Return the view of a model on one document; `NotLinearError` if it has no weights for features."""
    for kind, view in VIEWS.items():
        if isinstance(model, kind):
            return view(model, taxonomy_of(model), row)
    raise NotLinearError(f"{type(model).__name__} has no linear weights that could be shown")


def taxonomy_of(model: Any) -> Taxonomy:
    """Return the labels of a model; those of a learner may have grown."""
    labels: Taxonomy = getattr(model, "_labels", None) or model.taxonomy
    return labels


VIEWS: dict[type[Any], type[View]] = {
    Calibrated: CalibratedView,
    LinearLearner: LinearView,
    SecondOrderLearner: SecondOrderView,
    PathLearner: PathView,
    RankingPerceptron: RankingView,
    HM3: HM3View,
    RankingSVM: RankingSVMView,
}
