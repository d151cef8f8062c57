"""Weights of features × owners, of which a feature keeps only those it ever touched."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_hc.kernels import Floats, Ints
from stream_hc.kernels import sparse as kernels

__all__ = ["SparseSum", "SparseTable"]

FIRST_PLACES = 2**12
MOST_PLACES = 2**31 - 1
MOST_BITS = 31
COUNTS = slice(kernels.UPDATES, kernels.IN_DENSE + 1)
N_COUNTS = kernels.IN_DENSE


class SparseTable:
    """The arrays behind a learner of paths; they grow with the pairs of feature and owner in use.

    Parameters
    ----------
    n_features
        Number of columns of the documents.
    averaged
        Whether to keep what the averages of the weights need.
    """

    def __init__(self, n_features: int, averaged: bool) -> None:
        # Fresh zero pages cost no memory until they are written, so unused columns are free.
        self.model = kernels.Weights(
            np.zeros(n_features, np.int64),
            np.zeros(n_features, np.int8),
            np.zeros(n_features, np.int32),
            np.zeros(FIRST_PLACES, np.int32),
            np.zeros(FIRST_PLACES, np.float32),
            np.zeros(FIRST_PLACES if averaged else 0, np.float64),
            np.full(MOST_BITS, -1, np.int64),
            np.zeros(4, np.int64),
        )

    @property
    def n_updates(self) -> int:
        """How many documents led to an update."""
        return int(self.model.used[kernels.UPDATES])

    @property
    def nbytes(self) -> int:
        """Bytes of owners, weights and sums held, spare places included."""
        return sum(array.nbytes for array in (self.model.owners, self.model.weights, self.model.sums))

    def grow(self) -> None:
        """Make room: at least twice as much, so that growth stays linear in total."""
        places = self.model.owners.size
        if places > MOST_PLACES // 2:
            raise MemoryError("more than 2³¹ weights: use fewer features or a smaller taxonomy")
        self._resize(2 * places)

    def _resize(self, places: int) -> None:
        def longer(array: Any) -> Any:
            if array.size == 0:
                return array
            new = np.zeros(places, array.dtype)
            new[: array.size] = array
            return new

        model = self.model
        self.model = model._replace(
            owners=longer(model.owners), weights=longer(model.weights), sums=longer(model.sums)
        )

    def state(self) -> dict[str, Any]:
        """Return copies of what is in use, features and owners ascending."""
        features = self._features()
        ptr, owners, weights, sums = kernels.entries(*self.model, features)
        return {
            "features": features,
            "owner_ptr": ptr,
            "owners": owners,
            "weights": weights,
            "sums": sums,
            "dense": self.model.bits[features] == kernels.DENSE,
            "used": self.model.used[COUNTS].copy(),
        }

    def restore(self, state: Mapping[str, Any], n_owners: int) -> None:
        """Take over what `state` holds, owners below `n_owners`, or raise `ValueError` and change nothing."""
        _check(state, self.model.begin.size, n_owners, self.model.sums.size > 0)
        dense, sizes = state["dense"], np.diff(state["owner_ptr"])
        # A sparse block has less than twice the places it needs, and two at least.
        places = np.where(dense, n_owners, 2 * np.maximum(sizes, 1))
        self._resize(max(FIRST_PLACES, int(places.sum())))
        names = ("features", "owner_ptr", "owners", "weights", "sums", "dense")
        arguments = (*self.model, *(state[name] for name in names), n_owners)
        kernels.add_entries(*arguments)
        self.model.used[COUNTS] = state["used"]

    def of_owners(self, first: int, last: int) -> tuple[Ints, Floats]:
        """Return features and weights of the owners from `first` to `last` - 1, counted from 0."""
        features = self._features()
        ptr, owners, weights, _ = kernels.entries(*self.model, features)
        wanted = (owners >= first) & (owners < last)
        return np.repeat(features, np.diff(ptr))[wanted], weights[wanted]

    def _features(self) -> Ints:
        features: Ints = np.flatnonzero(self.model.bits).astype(np.int32)
        return features


def _check(state: Mapping[str, Any], n_features: int, n_owners: int, with_sums: bool) -> None:
    """Refuse what cannot be the state of a table, with the reason."""
    features, ptr, owners = (state[name] for name in ("features", "owner_ptr", "owners"))
    dtypes = (np.int32, np.int64, np.int32, np.float32, np.float64, np.bool_, np.int64)
    names = ("features", "owner_ptr", "owners", "weights", "sums", "dense", "used")
    for name, dtype in zip(names, dtypes, strict=True):
        if state[name].ndim != 1 or state[name].dtype != dtype:
            raise ValueError(f"{name} must be a list of {np.dtype(dtype)}")
    if ptr.size != features.size + 1 or ptr[0] != 0 or ptr[-1] != owners.size or (np.diff(ptr) < 0).any():
        raise ValueError("owner_ptr must say which owners belong to each feature")
    if features.size and not (features.min() >= 0 and features.max() < n_features):
        raise ValueError(f"features must be columns below n_features={n_features}")
    first = np.zeros(owners.size + 1, np.bool_)
    first[ptr] = True
    if (np.diff(features) <= 0).any() or (np.diff(owners)[~first[1 : owners.size]] <= 0).any():
        raise ValueError("features, and the owners of each, must ascend")
    if owners.size and not (owners.min() >= 0 and owners.max() < n_owners):
        raise ValueError(f"owners must lie between 0 and {n_owners - 1}")
    if state["weights"].size != owners.size or state["sums"].size != owners.size * with_sums:
        raise ValueError("weights and sums must be those of the owners")
    if not (np.isfinite(state["weights"]).all() and np.isfinite(state["sums"]).all()):
        raise ValueError("weights and sums must be finite")
    if state["used"].size != N_COUNTS or (state["used"] < 0).any():
        raise ValueError("used must count updates, documents and places")
    if state["dense"].size != features.size or np.count_nonzero(state["dense"]) * n_owners > MOST_PLACES // 8:
        raise ValueError("dense must say of each feature whether its block is dense")
    if (np.diff(ptr)[~state["dense"]] == 0).any():
        raise ValueError("a feature without a dense block must have owners")


class SparseSum:
    """Adds up the weights of tables, for their mean."""

    def __init__(self) -> None:
        self._n_tables = 0
        self._pairs = np.zeros(0, np.int64)  # feature · 2³² + owner, ascending
        self._weights = np.zeros(0, np.float64)
        self._used = np.zeros(N_COUNTS, np.int64)

    def add(self, state: Mapping[str, Any]) -> None:
        """Add the weights of one more table, given by its state."""
        features = np.repeat(state["features"].astype(np.int64), np.diff(state["owner_ptr"]))
        pairs = np.concatenate([self._pairs, features << 32 | state["owners"]])
        weights = np.concatenate([self._weights, state["weights"].astype(np.float64)])
        self._pairs, place = np.unique(pairs, return_inverse=True)
        self._weights = np.bincount(place, weights, self._pairs.size).astype(np.float64)
        self._used += state["used"]
        self._used[-1] = 0  # all blocks of the mean are sparse at first
        self._n_tables += 1

    def mean(self, n_features: int) -> SparseTable:
        """Return a table with the means."""
        features, sizes = np.unique(self._pairs >> 32, return_counts=True)
        owners = (self._pairs & 0xFFFFFFFF).astype(np.int32)
        table = SparseTable(n_features, averaged=False)
        state = {
            "features": features.astype(np.int32),
            "owner_ptr": np.concatenate([[0], np.cumsum(sizes)]),
            "owners": owners,
            "weights": (self._weights / self._n_tables).astype(np.float32),
            "sums": np.zeros(0, np.float64),
            "dense": np.zeros(features.size, np.bool_),
            "used": self._used,
        }
        table.restore(state, int(owners.max(initial=-1)) + 1)
        return table
