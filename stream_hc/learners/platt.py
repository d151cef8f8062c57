"""The lines from margins to log-odds behind `Calibrated`: one shared by all nodes, and each node's own."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_hc.kernels import Doubles, Ints
from stream_hc.kernels import calibration as kernels
from stream_hc.taxonomy import Taxonomy

__all__ = ["PlattLines"]


class PlattLines:
    """Streaming Platt scaling at every node; `kernels/calibration.py` says what is believed and learned.

    Parameters
    ----------
    n_nodes
        Number of nodes of the taxonomy.
    memory
        How many eligible documents back a line looks, roughly.
    """

    def __init__(self, n_nodes: int, memory: int) -> None:
        self.keep = 1.0 - 1.0 / memory
        self.shared = _fresh(1)[0]
        self.shared[kernels.SLOPE], self.shared[kernels.OFFSET] = kernels.PRIOR_SLOPE, kernels.PRIOR_OFFSET
        self.own = _fresh(n_nodes)

    def log_odds(self, margins: Doubles) -> Doubles:
        """Return the log-odds given the parents for margins n × N."""
        odds = np.empty(margins.shape)
        kernels.log_odds_rows(self.shared, self.own, margins, odds)
        return odds

    def learn(self, margins: Doubles, labels: Ints, taxonomy: Taxonomy) -> None:
        """Learn from one document: its margins at all nodes, and its labels closed upward."""
        graph = (taxonomy.parent_ptr, taxonomy.parent_idx)
        kernels.learn_margins(self.shared, self.own, *graph, margins, labels, self.keep)

    def add_nodes(self, n_nodes: int) -> None:
        """Append nodes up to `n_nodes` in all, nothing known about them."""
        self.own = np.concatenate([self.own, _fresh(n_nodes - self.own.shape[0])])

    def state(self) -> dict[str, Any]:
        """Return copies of the arrays."""
        return {"shared_line": self.shared.copy(), "lines": self.own.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` holds, or raise `ValueError` and change nothing."""
        shared, own = state["shared_line"], state["lines"]
        for name, given, shape in (
            ("shared_line", shared, self.shared.shape),
            ("lines", own, self.own.shape),
        ):
            if not isinstance(given, np.ndarray) or given.dtype != np.float64 or given.shape != shape:
                raise ValueError(f"{name} must be float64 numbers of shape {shape}")
            a, b, c = (
                given[..., k] for k in (kernels.SLOPE_SLOPE, kernels.SLOPE_OFFSET, kernels.OFFSET_OFFSET)
            )
            sums = given[..., [kernels.SQUARES, kernels.COUNT]]
            sound = np.isfinite(given).all() and (a > 0.0).all() and (a * c > b * b).all()
            if not sound or (sums < 0.0).any() or (sums[..., 0] > 0.0)[sums[..., 1] == 0.0].any():
                raise ValueError(f"{name} hold numbers that no stream leads to")
        self.shared, self.own = shared.copy(), own.copy()


def _fresh(n: int) -> Doubles:
    lines = np.zeros((n, kernels.COUNT + 1))
    lines[:, [kernels.SLOPE_SLOPE, kernels.OFFSET_OFFSET]] = kernels.PRIOR_PRECISION
    return lines
