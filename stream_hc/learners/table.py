"""Weights of features × nodes where a feature gets a row when it is first touched."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_hc.kernels import Floats, Ints, Longs
from stream_hc.kernels.linear import Model

__all__ = ["WeightTable"]

LANE = 16  # float32 numbers in a cache line of 64 bytes: rows are padded to whole lines
FIRST_ROWS = 64
SMALL_TABLE = 2**24  # bytes: below this, growing by four saves copying, and pages not yet used are free


class WeightTable:
    """The arrays behind a linear learner, growing with the features and nodes in use.

    Row 0 stands for every feature without a row of its own: weights 0, variances 1. The kernel that gives a
    feature its row sets the variances in it to 1. The variances of a feature lie right behind its weights:
    whoever has asked for those gets these on the way.

    Parameters
    ----------
    n_features
        Number of columns of the documents.
    n_nodes
        Number of nodes of the taxonomy.
    with_variances
        Whether each weight has a variance (AROW).
    """

    def __init__(self, n_features: int, n_nodes: int, with_variances: bool = False) -> None:
        self.with_variances = with_variances
        # Fresh zero pages cost no memory until they are written, so unused columns are free.
        slots = np.zeros(n_features, np.int32)
        counts = _counts(1, np.zeros(n_nodes, np.int64))
        self.model = Model(slots, counts, self._new(min(FIRST_ROWS, n_features + 1), _padded(n_nodes)))

    @property
    def n_updates(self) -> Longs:
        """How often each node was updated."""
        return self.model.counts[1:]

    @property
    def n_rows(self) -> int:
        """Rows in use, without row 0."""
        return int(self.model.counts[0]) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of weights and variances held, spare rows included."""
        return int(self.model.table.nbytes)

    @property
    def weights(self) -> Floats:
        """Rows of weights, row 0 first, with padding and spare rows."""
        return self.model.table[:, 0]

    @property
    def variances(self) -> Floats:
        """Rows of variances, like `weights`; meaningful in the rows in use."""
        return self.model.table[:, -1]

    def column(self, node: int) -> tuple[Ints, Floats]:
        """Return the features that have a row, ascending, and their weights at a node."""
        features = np.flatnonzero(self.model.slots).astype(np.int32)
        return features, self.weights[self.model.slots[features], node]

    def reserve(self, n_more: int) -> None:
        """Make room for `n_more` further rows, at least doubling so that growth stays linear in total.

        There is never room for more rows than there are columns, and row 0.
        """
        most = self.model.slots.size + 1
        needed = min(int(self.model.counts[0]) + n_more, most)
        capacity, _, width = self.model.table.shape
        if needed > capacity:
            factor = 4 if self.nbytes < SMALL_TABLE else 2
            self._reshape(max(min(factor * capacity, most), needed), width)

    def add_nodes(self, n_nodes: int) -> None:
        """Append nodes up to `n_nodes` in all, never trained so far."""
        n_updates = np.zeros(n_nodes, np.int64)
        n_updates[: self.n_updates.size] = self.n_updates
        self.model = self.model._replace(counts=_counts(int(self.model.counts[0]), n_updates))
        n_rows, _, width = self.model.table.shape
        if n_nodes > width:
            self._reshape(n_rows, max(_padded(n_nodes), 2 * width))

    def _reshape(self, n_rows: int, width: int) -> None:
        used, old = int(self.model.counts[0]), self.model.table
        table = self._new(n_rows, width)
        if self.with_variances:
            table[:used, 1] = 1.0  # also at nodes that are still to come
        table[:used, :, : old.shape[2]] = old[:used]
        self.model = self.model._replace(table=table)

    def _new(self, n_rows: int, width: int) -> Floats:
        """Return a table of which only row 0 is set: the pages of the others stay untouched."""
        table = _zeros(n_rows, 2 if self.with_variances else 1, width)
        if self.with_variances:
            table[0, 1] = 1.0
        return table

    def state(self) -> dict[str, Any]:
        """Return copies of what is in use: no spare rows, no padding.

        Features ascend, whatever the order in which they got their rows: tables that know the same are equal.
        """
        n_nodes = self.n_updates.size
        features = np.flatnonzero(self.model.slots).astype(np.int32)
        slots = self.model.slots[features]
        state = {
            "features": features,
            "weights": self.weights[slots, :n_nodes],
            "n_updates": self.n_updates.copy(),
        }
        if self.with_variances:
            state["variances"] = self.variances[slots, :n_nodes]
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` holds, or raise `ValueError` and change nothing."""
        features, n_updates = state["features"], state["n_updates"]
        n_features, n_nodes = self.model.slots.size, self.n_updates.size
        tables = {"weights": state["weights"]}
        if self.with_variances:
            tables["variances"] = state["variances"]
        for name, table in tables.items():
            if table.shape != (features.size, n_nodes) or table.dtype != np.float32:
                raise ValueError(
                    f"{name} of shape {table.shape} do not fit {features.size} features × {n_nodes} nodes"
                )
            if not np.isfinite(table).all() or (name == "variances" and not (table > 0).all()):
                raise ValueError(f"{name} are not all {'positive and ' * (name == 'variances')}finite")
        if n_updates.shape != (n_nodes,) or n_updates.dtype != np.int64 or (n_updates < 0).any():
            raise ValueError("n_updates must be a count for every node")
        if features.ndim != 1 or features.dtype != np.int32 or np.unique(features).size != features.size:
            raise ValueError("features must be distinct columns")
        if features.size and not 0 <= features.min() <= features.max() < n_features:
            raise ValueError(f"features must be columns below n_features={n_features}")
        self.reserve(features.size)
        self.model.slots[features] = np.arange(1, features.size + 1, dtype=np.int32)
        self.model.counts[0] = features.size + 1
        self.weights[1 : features.size + 1, :n_nodes] = tables["weights"]
        if self.with_variances:
            self.variances[1 : features.size + 1] = 1.0
            self.variances[1 : features.size + 1, :n_nodes] = tables["variances"]
        self.n_updates[:] = n_updates


def _padded(n_nodes: int) -> int:
    return max(LANE, -(-n_nodes // LANE) * LANE)


def _counts(n_rows: int, n_updates: Longs) -> Longs:
    return np.concatenate([np.array([n_rows], np.int64), n_updates])


def _zeros(*shape: int) -> Floats:
    """Return zeros whose rows begin where a cache line does: shifted, each would take one line more."""
    size = math.prod(shape)
    flat = np.zeros(size + LANE, np.float32)
    first = -(flat.ctypes.data // flat.itemsize) % LANE
    return flat[first : first + size].reshape(shape)
