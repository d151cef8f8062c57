"""How a fit in another process ended, and the model that came of it."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from stream_hc import snapshot
from stream_hc.maxmargin import HM3
from stream_hc.runtime.refit.files import EXIT_FAILED, EXIT_MEMORY
from stream_hc.snapshot import SnapshotError

__all__ = ["Finished", "Outcome", "load_model", "outcome_of"]

Outcome = Literal["done", "crashed", "timeout", "memory", "failed"]
OUTCOMES: dict[int, Outcome] = {0: "done", EXIT_MEMORY: "memory", EXIT_FAILED: "failed"}


@dataclass(frozen=True)
class Finished:
    """How a fit ended.

    Attributes
    ----------
    number
        Of the fit.
    outcome
        "done", or why there is no model: the process "crashed", took too long ("timeout") or too much
        "memory", or something else went wrong that it could tell ("failed").
    seconds
        How long it took, with saving the window and loading the model.
    model
        What was fitted, ready to predict.
    problem
        What went wrong, in one line.
    """

    number: int
    outcome: Outcome
    seconds: float
    model: HM3 | None = None
    problem: str = ""

    @property
    def duality_gap(self) -> float | None:
        """How far the model is from the best one, at most."""
        return None if self.model is None else self.model.duality_gap_

    @property
    def dual_objective(self) -> float | None:
        """What the gap is to be compared with."""
        return None if self.model is None else self.model.dual_objective_


def load_model(path: Path) -> HM3:
    """Return a fitted model, after a first prediction: the next one takes no longer than any other."""
    parts = snapshot.load(path)
    model = parts.get("model") if isinstance(parts, Mapping) else None
    if not isinstance(model, HM3):
        raise SnapshotError(f"{path}: holds no fitted HM3: fit it again")
    model.predict_many(csr_array((1, model.n_features), dtype=np.float32), scores=True)
    return model


def outcome_of(code: int, last_line: str) -> tuple[Outcome, str]:
    """Return what an exit code means, and the problem, given the last line that the process wrote."""
    outcome = OUTCOMES.get(code, "crashed")
    if outcome != "crashed":
        return outcome, "" if outcome == "done" else last_line
    how = f"ended by signal {_signal(-code)}" if code < 0 else f"exit code {code}"
    return outcome, f"{how}: {last_line}" if last_line else how


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # those without a name
        return str(number)
