"""Views of learners of paths and rankings, where the weights of several nodes make a score."""
# ruff: noqa: SLF001 (the weights of one document are read where the learner keeps them: a copy of all is large)

from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from stream_hc.explain.view import View, number
from stream_hc.kernels import Bools, Doubles, sparse
from stream_hc.learners.sparse import SparseTable
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows

__all__ = ["PathView", "RankedView", "RankingView", "column", "cut_between", "document_weights"]


def document_weights(table: SparseTable, row: Rows, n_owners: int) -> csc_array:
    """Return the weights of the features of a document (features × owners), averages where they are kept."""
    ptr, owners, weights, sums = sparse.entries(*table.model, row.indices)
    numbers = weights.astype(np.float64)
    if sums.size:
        numbers -= sums / max(1, int(table.model.used[sparse.LEARNED]))
    return csc_array(csr_array((numbers, owners, ptr), shape=(row.indices.size, n_owners)))


def column(matrix: csc_array, owner: int) -> Doubles:
    """Return a column as an array."""
    found = np.zeros(matrix.shape[0])
    part = slice(matrix.indptr[owner], matrix.indptr[owner + 1])
    found[matrix.indices[part]] = matrix.data[part]
    return found


def cut_between(scores: Doubles, n_on: int) -> float:
    """Return what lies between the `n_on` highest scores and the others.

    >>> cut_between(np.array([3.0, 1.0, 2.0]), 1)
    2.5
    """
    order = np.sort(scores)[::-1]
    if n_on == 0 or order.size == 0:
        return float(order.max(initial=0.0)) + 1.0
    return float(order[n_on - 1] + order[n_on]) / 2.0 if n_on < order.size else float(order[-1]) - 1.0


class PathView(View):
    """PA, HPA, LHPA: a score w·x at every node, of its best concept; the path with the highest total wins."""

    def __init__(self, model: Any, taxonomy: Taxonomy, row: Rows) -> None:
        super().__init__(model, taxonomy, row)
        self._weights = document_weights(model._table, row, len(taxonomy) * model._concepts)
        self._scores = self.x @ self._weights
        self._totals = self.margins.copy()
        if not model._flat:
            for node in np.flatnonzero(taxonomy.parent >= 0):
                self._totals[node] += self._totals[taxonomy.parent[node]]
        added = "score of its end" if model._flat else "sum of the scores along it"
        self.rule = f"The path with the highest {added} is predicted."

    def products(self, node: int) -> Doubles:
        """Return w_j x_j of the best concept of the node."""
        return column(self._weights, self._owner(node)) * self.x

    def reason(self, node: int) -> str:
        """Set the best path through the node against the best one that goes elsewhere."""
        ends = self.model._ends()
        inside = np.isin(ends, self.taxonomy.subtree(node))
        said = []
        for which, words in ((inside, "the best path through it"), (~inside, "the best other one")):
            if which.any():
                end = int(ends[which][np.argmax(self._totals[ends[which]])])
                said.append(f"{words} ends at {self.taxonomy.nodes[end]} with {number(self._totals[end])}")
        concept = self._owner(node) % self.model._concepts + 1
        if self.model._concepts > 1:
            said.append(f"concept {concept} of {self.model._concepts} speaks for it")
        return ", ".join(said) or "no path can go through it"

    def _owner(self, node: int) -> int:
        first: int = node * self.model._concepts
        return first + int(np.argmax(self._scores[first : first + self.model._concepts]))


class RankedView(View):
    """Categories in the order of their scores: as many as are expected, and all above them, are predicted."""

    rule = (
        "The categories with the highest scores, as many as are expected, and all above them are predicted."
    )

    def ranked(self) -> tuple[Bools, float, float | None]:
        """Return which nodes are categories, where the cut lies, and how many labels are expected."""
        raise NotImplementedError

    def threshold(self, node: int) -> float | None:
        """Return the cut between what is predicted and what is not; None for a node that is no category."""
        seen, cut, _ = self.ranked()
        return cut if seen[node] else None

    def reason(self, node: int) -> str:
        """Say which place a category has, and what is on below a node."""
        seen, cut, expected = self.ranked()
        below = [int(each) for each in self.taxonomy.subtree(node) if each != node and self.on[each]]
        said = []
        if seen[node]:
            place = 1 + int((self.margins[seen] > self.margins[node]).sum())
            said.append(f"number {place} of {int(seen.sum())} categories, the cut is at {number(cut)}")
        if expected is not None:
            said.append(f"{expected:.2f} labels expected")
        if below:
            best = max(below, key=lambda each: float(self.margins[each]))
            said.append(f"on below it: {self.taxonomy.nodes[best]}")
        return ", ".join(said) or "never the most specific label of a document so far"


class RankingView(RankedView):
    """Ranking perceptron: F = t Σ w_u·x over the node and its ancestors u."""

    def __init__(self, model: Any, taxonomy: Taxonomy, row: Rows) -> None:
        super().__init__(model, taxonomy, row)
        self._weights = document_weights(model._table, row, 1 + 2 * len(taxonomy))
        totals, sizes = model._ranked(row)
        self._totals, self._size = totals[0], float(sizes[0])
        if model.chosen_by == "positive":
            self.rule = "The categories with a positive score are predicted, and all above them."

    def products(self, node: int) -> Doubles:
        """Return t x_j Σ w_uj over what the score of the node is made of."""
        found = np.zeros(self.x.size)
        for owner in self._owners(node):
            found += column(self._weights, owner)
        return found * self.x * float(self.model._scale)

    def total(self, node: int) -> float:
        """Return F in double precision."""
        return float(self._totals[node])

    def through(self, node: int) -> list[tuple[str, float]]:
        """Return what the node itself and each of its ancestors add."""
        nodes = self.taxonomy.nodes
        return [
            (
                nodes[(owner - 1) // 2] + (" (nothing more specific)" if owner % 2 == 0 else ""),
                float(column(self._weights, owner) @ self.x * self.model._scale),
            )
            for owner in self._owners(node)
        ]

    def ranked(self) -> tuple[Bools, float, float | None]:
        """Return categories, cut, and the number of labels expected."""
        seen = self.model._seen
        if self.model.chosen_by == "positive":
            return seen, 0.0, None
        expected = min(max(self._size, 0.0), float(len(self.taxonomy)))
        known = self.row.indices.size > 0 and self.model.n_updates > 0
        return seen, cut_between(self._totals[seen], int(expected + 0.5) if known else 0), expected

    def _owners(self, node: int) -> list[int]:
        ptr, owners = self.model._above
        return owners[ptr[node] : ptr[node + 1]].tolist()  # type: ignore[no-any-return]
