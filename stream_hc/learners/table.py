"""Weights of features × nodes where a feature gets a row when it is first touched."""

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
    feature its row sets the variances in it to 1.

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
        first_rows = min(FIRST_ROWS, n_features + 1)
        self.model = Model(
            slots,
            _counts(1, np.zeros(n_nodes, np.int64)),
            _zeros(first_rows, _padded(n_nodes)),
            _variances(first_rows if with_variances else 1, _padded(n_nodes)),
        )

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
        return int(self.model.weights.nbytes + self.model.variances.nbytes)

    def column(self, node: int) -> tuple[Ints, Floats]:
        """Return the features that have a row, ascending, and their weights at a node."""
        features = np.flatnonzero(self.model.slots).astype(np.int32)
        return features, self.model.weights[self.model.slots[features], node]

    def reserve(self, n_more: int) -> None:
        """Make room for `n_more` further rows, at least doubling so that growth stays linear in total.

        There is never room for more rows than there are columns, and row 0.
        """
        most = self.model.slots.size + 1
        needed, (capacity, width) = min(int(self.model.counts[0]) + n_more, most), self.model.weights.shape
        if needed > capacity:
            factor = 4 if self.model.weights.nbytes < SMALL_TABLE else 2
            self._reshape(max(min(factor * capacity, most), needed), width)

    def add_nodes(self, n_nodes: int) -> None:
        """Append nodes up to `n_nodes` in all, never trained so far."""
        n_updates = np.zeros(n_nodes, np.int64)
        n_updates[: self.n_updates.size] = self.n_updates
        self.model = self.model._replace(counts=_counts(int(self.model.counts[0]), n_updates))
        width = self.model.weights.shape[1]
        if n_nodes > width:
            self._reshape(self.model.weights.shape[0], max(_padded(n_nodes), 2 * width))

    def _reshape(self, n_rows: int, width: int) -> None:
        used = int(self.model.counts[0])
        weights = _zeros(n_rows, width)
        _copy_corner(self.model.weights[:used], weights)
        variances = _variances(n_rows if self.with_variances else 1, width)
        variances[:used] = 1.0  # also at nodes that are still to come
        _copy_corner(self.model.variances[:used], variances)
        self.model = self.model._replace(weights=weights, variances=variances)

    def state(self) -> dict[str, Any]:
        """Return copies of what is in use: no spare rows, no padding."""
        used, n_nodes = int(self.model.counts[0]), self.n_updates.size
        features = np.empty(used - 1, np.int32)
        touched = np.flatnonzero(self.model.slots)
        features[self.model.slots[touched] - 1] = touched
        state = {
            "features": features,
            "weights": self.model.weights[1:used, :n_nodes].copy(),
            "n_updates": self.n_updates.copy(),
        }
        if self.with_variances:
            state["variances"] = self.model.variances[1:used, :n_nodes].copy()
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
        self.model.weights[1 : features.size + 1, :n_nodes] = tables["weights"]
        if self.with_variances:
            self.model.variances[1 : features.size + 1] = 1.0
            self.model.variances[1 : features.size + 1, :n_nodes] = tables["variances"]
        self.n_updates[:] = n_updates


def _padded(n_nodes: int) -> int:
    return max(LANE, -(-n_nodes // LANE) * LANE)


def _counts(n_rows: int, n_updates: Longs) -> Longs:
    return np.concatenate([np.array([n_rows], np.int64), n_updates])


def _zeros(n_rows: int, width: int) -> Floats:
    """Return zeros whose rows begin where a cache line does: shifted, each would take one line more."""
    flat = np.zeros(n_rows * width + LANE, np.float32)
    first = -(flat.ctypes.data // flat.itemsize) % LANE
    return flat[first : first + n_rows * width].reshape(n_rows, width)


def _variances(n_rows: int, width: int) -> Floats:
    """Return variances of which only row 0 is set: the pages of the others stay untouched."""
    variances = _zeros(n_rows, width)
    variances[0] = 1.0
    return variances


def _copy_corner(source: Floats, target: Floats) -> None:
    target[: source.shape[0], : source.shape[1]] = source
