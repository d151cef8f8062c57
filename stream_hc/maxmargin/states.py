"""What the states of max-margin models have in common, checked before a model takes them over."""

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["check_arrays"]


def check_arrays(state: Mapping[str, Any], n_features: int, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse columns that cannot be features, and weights of other shapes or types, with a `ValueError`."""
    columns = state["columns"]
    if columns.ndim != 1 or columns.dtype != np.int32 or (np.diff(columns) <= 0).any():
        raise ValueError("columns must be ascending numbers of features")
    if columns.size and not (columns[0] >= 0 and columns[-1] < n_features):
        raise ValueError(f"columns must lie below n_features={n_features}")
    for name, shape in shapes.items():
        if state[name].shape != shape or state[name].dtype != np.float32:
            raise ValueError(f"{name} must be float32 of shape {shape}")
        if not np.isfinite(state[name]).all():
            raise ValueError(f"{name} must be finite")
