"""Drift in the H-loss, by ADWIN, as something that can be saved.

river's detector cannot be saved without pickle. What it has seen can: it begins anew now and then, with the
latest losses, and those since then are its state.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from river import drift

from stream_hc.kernels import Doubles
from stream_hc.snapshot import register

__all__ = ["DriftDetector"]

# river's detectors have no types.
ADWIN: Any = drift.ADWIN

REMEMBERED = 8_192  # losses; with half of them it begins anew
GRACE = 100


@register
class DriftDetector:
    """Tells when the mean of a stream of losses has grown.

    Examples
    --------
    >>> detector = DriftDetector()
    >>> detector.note(np.zeros(1000))
    >>> detector.look()
    False
    >>> detector.note(np.ones(1000))
    >>> detector.look()
    True
    """

    def __init__(self) -> None:
        self.n_detected = 0
        self._noted: list[float] = []
        self._seen: list[float] = []
        self._adwin = ADWIN(grace_period=GRACE)

    def note(self, losses: Doubles) -> None:
        """Take losses to look at later: when, must not depend on how they come in batches."""
        # ADWIN's bound holds for numbers between 0 and 1.
        self._noted += (losses / (1.0 + losses)).tolist()

    def look(self) -> bool:
        """Go through what was noted; tell whether the mean has changed for the worse."""
        noted, self._noted = self._noted, []
        grown = False
        for loss in noted:
            if len(self._seen) == REMEMBERED:
                self._begin(self._seen[REMEMBERED // 2 :])
            before = self._adwin.estimation
            self._seen.append(loss)
            self._adwin.update(loss)
            # ADWIN also notices that a model gets better: no reason to worry.
            if self._adwin.drift_detected and self._adwin.estimation > before:
                self.n_detected += 1
                grown = True
        return grown

    def _begin(self, losses: list[float]) -> None:
        self._seen, self._adwin = losses, ADWIN(grace_period=GRACE)
        for loss in losses:
            self._adwin.update(loss)

    def state(self) -> dict[str, Any]:
        """Return what it has seen."""
        losses = {"noted": np.array(self._noted, np.float64), "seen": np.array(self._seen, np.float64)}
        return {"n_detected": self.n_detected, **losses}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a detector that goes on where `state` was taken."""
        detector = cls()
        detector.n_detected = int(state["n_detected"])
        if state["seen"].ndim != 1 or state["seen"].size > REMEMBERED:
            raise ValueError(f"seen must be at most {REMEMBERED} losses")
        detector._begin(state["seen"].tolist())
        detector._noted = state["noted"].tolist()
        return detector
