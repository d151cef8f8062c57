"""Views of models that were fitted to a window."""
# ruff: noqa: SLF001 (the weights of one document are read where the model keeps them: a copy of all is large)

from typing import Any

import numpy as np

from stream_hc.explain.paths import RankedView, cut_between
from stream_hc.explain.view import NotLinearError, View
from stream_hc.kernels import Bools, Doubles, Floats, Ints
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows

__all__ = ["HM3View", "RankingSVMView", "places_of"]


def places_of(columns: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """Return where columns stand among those that ascend, and which are there at all."""
    if columns.size == 0:
        return np.zeros(wanted.size, np.int32), np.zeros(wanted.size, np.bool_)
    at = np.minimum(np.searchsorted(columns, wanted), columns.size - 1).astype(np.int32)
    return at, columns[at] == wanted


class HM3View(View):
    """H-M³: the score of a multilabel adds up U_i·x over its nodes, and the best multilabel is predicted."""

    rule = "The labels with the highest sum of node scores are predicted, parents with their children."

    def __init__(self, model: Any, taxonomy: Taxonomy, row: Rows) -> None:
        if model._node_weights is None:
            raise NotLinearError("HM3 was fitted on a kernel and has no weights for features")
        super().__init__(model, taxonomy, row)
        at, known = places_of(model._columns, row.indices)
        self._weights: Floats = np.where(known[:, None], model._node_weights[at], np.float32(0.0))
        self._numbers = next(iter(model._numbers(self.X)))[0]

    def products(self, node: int) -> Doubles:
        """Return U_ij x_j."""
        return np.asarray(self._weights[:, node], np.float64) * self.x

    def total(self, node: int) -> float:
        """Return the score of the node by itself."""
        return float(self._numbers[node])

    def reason(self, node: int) -> str:
        """Say by how much the best labels with the node are ahead of the best ones without it."""
        lead = float(self.margins[node])
        word = "ahead of" if lead > 0 else "behind"
        return f"the best labels with it are {abs(lead):.3f} {word} the best ones without it"


class RankingSVMView(RankedView):
    """Ranking SVM: F = t Σ w_u·x over the node and its ancestors u."""

    def __init__(self, model: Any, taxonomy: Taxonomy, row: Rows) -> None:
        super().__init__(model, taxonomy, row)
        at, known = places_of(model._columns, row.indices)
        self._weights: Floats = np.where(known[:, None], model._end_weights[at], np.float32(0.0))

    def products(self, node: int) -> Doubles:
        """Return t x_j Σ w_uj over what the score of the node is made of."""
        return np.asarray(self._weights[:, node], np.float64) * self.x

    def ranked(self) -> tuple[Bools, float, float | None]:
        """Return categories, cut, and the number of labels expected."""
        part = next(iter(self.model._parts(self.X)))
        n_on = int(self.model._number_of_labels(part)[0])
        expected = float((self.model._mean_size + part @ self.model._size_weights)[0])
        is_end = self.model._is_end
        return is_end, cut_between(self.margins[is_end], n_on), min(max(expected, 0.0), len(self.taxonomy))
