"""Checks that the state of a second-order learner is one that it could have written."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_hc.checks import whole_number
from stream_hc.kernels.rows import are_sound
from stream_hc.learners.instances import factor_places
from stream_hc.vectorize.rows import LARGEST_FEATURE

__all__ = ["check_state", "with_stamps"]

DTYPES = {
    "document_ptr": np.int64,
    "features": np.int32,
    "values": np.float32,
    "stamps": np.int64,
    "stored_ptr": np.int64,
    "stored": np.int32,
    "targets": np.int8,
    "coefficients": np.float64,
    "spreads": np.float64,
    "factors": np.float64,
    "n_updates": np.int64,
}


def with_stamps(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a state as it is written today: earlier ones did not say when a document was learned.

    Only the order of the stamps counts, so the documents pass for the last ones learned.
    """
    if "stamps" in state:
        return state
    n_documents, t = state["document_ptr"].size - 1, whole_number("t", state["t"], 0, 2**63 - 1)
    return {**state, "stamps": np.arange(n_documents) + (t - n_documents + 1)}


def check_state(state: Mapping[str, Any], n_features: int, n_nodes: int, budget: int | None) -> None:
    """Raise ValueError that says what does not fit."""
    for name, dtype in DTYPES.items():
        if state[name].ndim != 1 or state[name].dtype != dtype:
            raise ValueError(f"{name} must be a list of {np.dtype(dtype)}")
    ptr, stored_ptr, stored = state["document_ptr"], state["stored_ptr"], state["stored"]
    rows = (ptr, state["features"], state["values"])
    if ptr.size == 0 or state["values"].size != state["features"].size:
        raise ValueError("features and values must be those of the documents")
    if not are_sound(*rows, n_features, LARGEST_FEATURE) or (np.diff(ptr) == 0).any():
        raise ValueError(f"documents must have ascending features below n_features={n_features}")
    if state["stamps"].size != ptr.size - 1 or (np.diff(state["stamps"], prepend=0) <= 0).any():
        raise ValueError("stamps must ascend from 1 on, one for each document")
    if stored_ptr.size != n_nodes + 1 or stored_ptr[0] != 0 or stored_ptr[-1] != stored.size:
        raise ValueError(f"stored_ptr must say what each of {n_nodes} nodes has stored")
    n_stored = np.diff(stored_ptr)
    if (n_stored < 0).any() or (budget is not None and (n_stored > budget).any()):
        raise ValueError("stored_ptr must ascend, by no more than the budget")
    if not np.array_equal(np.unique(stored), np.arange(ptr.size - 1)):
        raise ValueError("stored must name each document, and no others")
    inner = np.ones(stored.size, np.bool_)
    inner[stored_ptr[:-1][n_stored > 0]] = False
    if (np.diff(stored, prepend=-1)[inner] <= 0).any():
        raise ValueError("stored must ascend at each node")
    for name in ("targets", "coefficients", "spreads"):
        if state[name].size != stored.size:
            raise ValueError(f"{name} must have a number for each stored document")
    if not (np.abs(state["targets"]) == 1).all():
        raise ValueError("targets must be 1 or -1")
    if state["factors"].size != factor_places(n_stored).sum():
        raise ValueError("factors must have a row for each stored document")
    for name in ("coefficients", "spreads", "factors"):
        if not np.isfinite(state[name]).all():
            raise ValueError(f"{name} are not all finite")
    if not (state["spreads"] > 0).all():
        raise ValueError("spreads are not all positive")
    if state["n_updates"].size != n_nodes or (state["n_updates"] < n_stored).any():
        raise ValueError("n_updates must be a count for every node, no less than it has stored")
