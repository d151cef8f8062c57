"""What learners with a `SparseTable` share: how its weights are read, how kernels that fill it run."""

from collections.abc import Callable
from typing import Any

import numpy as np

from stream_hc.kernels import Bools, Floats, Ints, Longs
from stream_hc.kernels.labels import most_specific
from stream_hc.learners.base import LabelRows, OnlineLearner, Predicted
from stream_hc.learners.sparse import SparseTable
from stream_hc.vectorize import joined

__all__ = ["SparseLearner"]

Part = tuple[int, Longs, Ints, Floats]


class SparseLearner(OnlineLearner):
    """A learner that keeps weights only for the pairs of feature and owner an update has touched."""

    _table: SparseTable

    @property
    def n_updates(self) -> int:
        """How many documents led to an update."""
        return self._table.n_updates

    @property
    def nbytes(self) -> int:
        """Bytes of the weights held."""
        return self._table.nbytes

    def _number(self, node: int | str) -> int:
        return self._labels.index(node) if isinstance(node, str) else int(node)

    def _strongest(self, first: int, last: int, k: int) -> list[tuple[int, float]]:
        """Return the `k` largest weights of the owners from `first` to `last` - 1, as (column, weight)."""
        features, weights = self._table.of_owners(first, last)
        order = np.lexsort((features, -np.abs(weights)))[: max(0, k)]
        return list(zip(features[order].tolist(), weights[order].tolist(), strict=True))

    def _most_specific(self, labels: LabelRows, allowed: Bools | None = None) -> LabelRows:
        """Return the labels of each row that have none below them, of those nodes that are allowed."""
        tax = self._labels
        wanted = most_specific(labels.indptr, labels.nodes, tax.parent_ptr, tax.parent_idx)
        if allowed is not None:
            wanted &= allowed[labels.nodes]
        return LabelRows(np.concatenate([[0], np.cumsum(wanted)])[labels.indptr], labels.nodes[wanted])

    def _run_rows(
        self, kernel: Callable[..., Part], how: tuple[Any, ...], start: int, stop: int, delay: int
    ) -> Predicted:
        """Run a kernel over rows, making room for new weights whenever it stops for want of it."""
        parts: list[tuple[Longs, Ints, Floats]] = []
        row = start
        while True:
            row, indptr, nodes, margins = kernel(*self._table.model, *how, row, stop, delay)
            parts.append((indptr, nodes, margins))
            if row == stop:
                return Predicted(*(parts[0] if len(parts) == 1 else joined(parts)))
            self._table.grow()
