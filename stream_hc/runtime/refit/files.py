"""The files of fits in another process: their names, and what stands in two of them.

While a fit runs there are job-<number>.json, window-<number>.snap and progress-<number>.json; of one that
ended well model-<number>.snap stays, with the model and its dual variables.
"""

import math
import os
import re
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import msgspec
import numpy as np

from stream_hc.kernels import Doubles, Longs
from stream_hc.runtime.config import RefitConfig
from stream_hc.snapshot import register
from stream_hc.taxonomy import CostScheme

__all__ = ["EXIT_ALONE", "EXIT_FAILED", "EXIT_MEMORY", "Duals", "FitFiles", "Task", "forget_files"]

# A writer that is killed leaves a hidden file whose name goes on and ends in .tmp.
FINAL = r"(?:window|model|job|progress)-(\d{1,18})\.(?:snap|json)"
NAME = re.compile(rf"{FINAL}|\.{FINAL}\.[\w-]+\.tmp")
EXIT_FAILED, EXIT_MEMORY, EXIT_ALONE = 65, 66, 67  # of the worker


class Task(msgspec.Struct, frozen=True):
    """What the worker is told: the fit, whose dual variables to begin with, settings of HM3, who helps."""

    number: int
    warm: int | None
    loss: Literal["h_tilde", "symmetric_difference"] | None
    costs: CostScheme
    C: float
    tol: float
    max_seconds: float | None
    max_memory: int
    workers: int = 1
    scheduler: str | None = None

    @classmethod
    def of(cls, number: int, warm: int | None, config: RefitConfig) -> Self:
        """Return the task of one fit."""
        limit = config.max_seconds if math.isfinite(config.max_seconds) else None  # JSON knows no infinity
        return cls(
            number,
            warm,
            config.loss,
            config.costs,
            config.C,
            config.tol,
            limit,
            config.max_memory,
            config.workers,
            config.scheduler,
        )


@register
class Duals:
    """The dual variables of a fit, divided by C, and the numbers of the documents they belong to."""

    def __init__(self, numbers: Longs, duals: Doubles) -> None:
        if numbers.dtype != np.int64 or numbers.ndim != 1 or (np.diff(numbers) <= 0).any():
            raise ValueError("numbers must be ascending whole numbers")
        if duals.dtype != np.float64 or duals.ndim != 2 or duals.shape[0] != numbers.size:
            raise ValueError("duals must be float64, a row for each number")
        self.numbers = numbers
        self.duals = duals

    def state(self) -> dict[str, Any]:
        """Return both arrays."""
        return {"numbers": self.numbers.copy(), "duals": self.duals.copy()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return what was saved, or raise `ValueError`."""
        return cls(state["numbers"], state["duals"])

    def places(self, numbers: Longs) -> Longs:
        """Return where the documents are among others, given by ascending numbers; -1 for those gone."""
        if numbers.size == 0:
            return np.full(self.numbers.size, -1, np.int64)
        found = np.minimum(np.searchsorted(numbers, self.numbers), numbers.size - 1)
        return np.where(numbers[found] == self.numbers, found, -1)


class FitFiles(NamedTuple):
    """The files of one fit."""

    folder: Path
    number: int

    @property
    def job(self) -> Path:
        """What the worker is told."""
        return self.folder / f"job-{self.number}.json"

    @property
    def window(self) -> Path:
        """The documents."""
        return self.folder / f"window-{self.number}.snap"

    @property
    def progress(self) -> Path:
        """The last epoch."""
        return self.folder / f"progress-{self.number}.json"

    @property
    def model(self) -> Path:
        """What came of it."""
        return self.folder / f"model-{self.number}.snap"

    def remove(self, *, keep_model: bool) -> None:
        """Remove them, also what a killed worker left half written."""
        for number, path in _found(self.folder):
            if number == self.number and not (keep_model and path == self.model):
                path.unlink(missing_ok=True)


def forget_files(folder: Path, numbers_to_keep: Collection[int]) -> None:
    """Remove the files of all other fits; quick, whatever their size."""
    doomed = []
    for number, path in _found(folder):
        if number not in numbers_to_keep:
            # The name goes at once. What takes time, giving the space back, is done when the file is closed.
            with suppress(OSError):
                doomed.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC))
            with suppress(OSError):
                path.unlink()
    if doomed:
        threading.Thread(target=_close, args=(doomed,), daemon=True).start()


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _found(folder: Path) -> Iterator[tuple[int, Path]]:
    for name in os.listdir(folder):
        match = NAME.fullmatch(name)
        if match:
            yield int(match[1] or match[2]), folder / name
