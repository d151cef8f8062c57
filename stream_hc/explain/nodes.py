"""Views of learners that decide at every node by its own margin, from the roots downward."""
# ruff: noqa: SLF001 (the weights of one document are read where the learner keeps them: a copy of all is large)

import numpy as np

from stream_hc.explain.view import View, number
from stream_hc.kernels import Doubles
from stream_hc.learners import ApproxHBayes, SecondOrderLearner
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows

__all__ = ["LinearView", "SecondOrderView", "TopDownView"]


class TopDownView(View):
    """A node is on if its margin exceeds its threshold and its parents let it."""

    rule = "A node is on if its margin exceeds its threshold and a parent of it is on."

    def threshold(self, node: int) -> float | None:
        """Return the threshold of the node."""
        return 0.0

    def reason(self, node: int) -> str:
        """Compare the margin with the threshold, then look at the parents."""
        margin, cut = float(self.margins[node]), self.threshold(node) or 0.0
        if margin == 0.0:
            own = self.model.cold_start == "paper"
            said = f"nothing is known about this document, which counts as {'yes' if own else 'no'}"
        else:
            own = margin > cut
            said = f"{number(margin)} {'exceeds' if own else 'does not exceed'} the threshold {number(cut)}"
        if own == self.on[node]:
            return said
        if own:
            return f"{said}, but it is not reached: no parent that would do is on"
        return f"{said}, but a node below it is on through another parent"


class LinearView(TopDownView):
    """H-PERC, perceptron, node PA, H-AROW: margin = w·x."""

    def products(self, node: int) -> Doubles:
        """Return w_j x_j."""
        table = self.model._table
        weights = table.weights[table.model.slots[self.row.indices], node]
        return np.asarray(weights, np.float64) * self.x

    def threshold(self, node: int) -> float | None:
        """Return the threshold of the node, fixed or learned."""
        return float(self.model.thresholds[node])


class SecondOrderView(TopDownView):
    """H-RLS and APPROX-H-BAYES: margin = v·x / (1 + r), v from the documents stored and r = xᵀA⁻¹x."""

    def __init__(self, model: SecondOrderLearner, taxonomy: Taxonomy, row: Rows) -> None:
        super().__init__(model, taxonomy, row)
        model._weights.refresh(model._stored)
        self._square = float(self.x @ self.x)
        if isinstance(model, ApproxHBayes):
            self.rule = "The labels with the least expected H-loss, from p = (1 + margin) / 2 at every node."

    def _find_margins(self) -> Doubles:
        found: Doubles = self.model._exact_margins(self.row)[0]
        return found

    def products(self, node: int) -> Doubles:
        """Return v_j x_j / (1 + r)."""
        products = self._weights(node) * self.x
        return products * self._share(node, float(products.sum()))

    def threshold(self, node: int) -> float | None:
        """Return 0; what lies below a node has a say in APPROX-H-BAYES."""
        return None if isinstance(self.model, ApproxHBayes) else 0.0

    def reason(self, node: int) -> str:
        """Add r, and for APPROX-H-BAYES the probability."""
        product = float((self._weights(node) * self.x).sum())
        r = 1.0 / self._share(node, product) - 1.0
        how = f"w·x = {number(product)}, r = {r:.3f}"
        if not isinstance(self.model, ApproxHBayes):
            return f"{how}: {super().reason(node)}"
        p = float(self.model._conditional(self.margins[node : node + 1])[0])
        said = "costs less than" if self.on[node] else "is expected to cost more than"
        return f"{how}, p = {p:.3f} below its parent: to name it {said} to leave it out"

    def _weights(self, node: int) -> Doubles:
        features, weights = self.model._weights.of(node)
        found = np.zeros(self.x.size)
        if features.size:
            order = np.argsort(features)
            at = np.minimum(np.searchsorted(features[order], self.row.indices), features.size - 1)
            hit = features[order][at] == self.row.indices
            found[hit] = weights[order][at][hit]
        return found

    def _share(self, node: int, product: float) -> float:
        """Return 1 / (1 + r), where r lies between 0 and ‖x‖²: it follows from the margin."""
        if product == 0.0:
            return 1.0
        return float(np.clip(self.margins[node] / product, 1.0 / (1.0 + self._square), 1.0))
