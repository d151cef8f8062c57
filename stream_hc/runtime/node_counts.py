"""How wrong each node is: counts over everything, and over the last documents."""

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from stream_hc.checks import whole_number
from stream_hc.kernels import Longs
from stream_hc.kernels.node_counts import count_nodes
from stream_hc.learners.base import LabelRows, Predicted
from stream_hc.snapshot import register

__all__ = ["Counted", "NodeCounts"]

N_COLUMNS = 4  # see `kernels.node_counts`


class Counted(NamedTuple):
    """Counts of every node (N × 4), over so many documents."""

    n_documents: int
    counts: Longs


@register
class NodeCounts:
    """Counts what was served and what would have been right, node by node.

    Recent documents are those since the last but one multiple of `size`: between one and two times as many.
    Counts do not depend on how the documents came in batches. Other threads may look at any time.

    Parameters
    ----------
    n_nodes
        Of the taxonomy.
    size
        After so many documents the recent ones begin anew.

    Examples
    --------
    >>> table = NodeCounts(n_nodes=2, size=10)
    >>> first, both = (LabelRows(np.array([0, n]), np.arange(n, dtype=np.int32)) for n in (1, 2))
    >>> missed = LabelRows(np.array([0, 1]), np.array([1], np.int32))
    >>> table.add(predicted=first, labels=both, charged=missed, first=0, last=1)
    >>> table.all().counts  # belong there, filed there, both, charged
    array([[1, 1, 1, 0],
           [1, 0, 0, 1]])
    """

    def __init__(self, n_nodes: int, size: int) -> None:
        self.size = whole_number("size", size, 1)
        self.n_counted = 0
        self._before, self._previous, self._current = np.zeros((3, n_nodes, N_COLUMNS), np.int64)
        self._lock = threading.Lock()  # kernels let other threads run

    def add(
        self, predicted: LabelRows | Predicted, labels: LabelRows, charged: LabelRows, first: int, last: int
    ) -> None:
        """Count the documents of some rows."""
        rows = (predicted.indptr, predicted.nodes, *labels, *charged)
        with self._lock:
            while first < last:
                until = min(last, first + self.size - self.n_counted % self.size)
                count_nodes(self._current, first, until, *rows)
                self.n_counted += until - first
                first = until
                if self.n_counted % self.size == 0:
                    self._before += self._current
                    self._previous, self._current = self._current, np.zeros_like(self._current)

    def all(self) -> Counted:
        """Return the counts over everything."""
        with self._lock:
            return Counted(self.n_counted, self._before + self._current)

    def recent(self) -> Counted:
        """Return the counts over the last documents."""
        with self._lock:
            n_previous = self.size if self.n_counted >= self.size else 0
            return Counted(n_previous + self.n_counted % self.size, self._previous + self._current)

    def state(self) -> dict[str, Any]:
        """Return everything as plain numbers and copied arrays."""
        with self._lock:
            counts = np.array([self._before, self._previous, self._current])
            return {"size": self.size, "n_counted": self.n_counted, "counts": counts}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return counts that go on where `state` was taken, or raise `ValueError`."""
        counts = state["counts"]
        if counts.dtype != np.int64 or counts.ndim != 3 or counts.shape[::2] != (3, N_COLUMNS):
            raise ValueError(f"counts must have the shape (3, nodes, {N_COLUMNS})")
        if (counts < 0).any():
            raise ValueError("counts must not be negative")
        table = cls(counts.shape[1], state["size"])
        table.n_counted = whole_number("n_counted", state["n_counted"], 0, 2**62)
        table._before, table._previous, table._current = counts.copy()
        return table

    @property
    def n_nodes(self) -> int:
        """How many nodes are counted."""
        return len(self._current)
