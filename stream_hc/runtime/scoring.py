"""How wrong each model is: its mean H-loss over everything, and its losses on the last documents.

Sums go document by document, so that they do not depend on how the documents came in batches.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np

from stream_hc.checks import whole_number
from stream_hc.kernels import Doubles, Ints
from stream_hc.kernels.scores import compare_losses, put_losses
from stream_hc.runtime.events import Score
from stream_hc.snapshot import register

__all__ = ["SERVED", "Lead", "Scoreboard"]

NO_LOSSES = np.zeros(0)
SERVED = ""  # the column of what was published, whoever predicted it


class Lead(NamedTuple):
    """By how much one model is ahead of another on the documents that both predicted."""

    n_documents: int
    share: float  # of the other's mean loss
    sureness: float  # in standard errors of the mean difference


@register
class Scoreboard:
    """The losses of the last `size` labelled documents, a column for each model, and sums over all.

    A document that a model did not predict has NaN in its column.

    Parameters
    ----------
    size
        How many documents are compared.
    n_depths
        Levels of the taxonomy.

    Examples
    --------
    >>> board = Scoreboard(size=4, n_depths=1)
    >>> board.add({"a": np.array([1.0, 1.0, 0.0, 1.0]), "b": np.array([0.0, 1.0, 0.0, 0.0])}, 4)
    >>> board.lead("b", over="a").share
    0.6666666666666666
    """

    def __init__(self, size: int, n_depths: int) -> None:
        self.size = whole_number("size", size, 1)
        self.n_scored = self.n_wrong = 0
        self.by_depth = np.zeros(n_depths)
        self._recent: dict[str, Doubles] = {}
        self._sums: dict[str, tuple[int, float]] = {}

    def add(self, losses: Mapping[str, Doubles], n_documents: int) -> None:
        """Take the losses of the next documents; NaN, or no column, where a model did not predict."""
        at, self.n_scored = self.n_scored % self.size, self.n_scored + n_documents
        self.n_wrong += int(np.count_nonzero(losses.get(SERVED, NO_LOSSES)))
        for name in losses.keys() - self._recent.keys():
            self._recent[name] = np.full(self.size, np.nan)
            self._sums[name] = 0, 0.0
        for name, recent in self._recent.items():
            count, total = self._sums[name]
            column = losses.get(name)
            if column is None:
                column = np.full(n_documents, np.nan)
            more, total = put_losses(recent, at, column, total)
            self._sums[name] = count + more, float(total)  # without a compiler it is a number of numpy

    def add_depths(self, depths: Ints, costs: Doubles) -> None:
        """Add what was charged at these depths to the sums by depth."""
        np.add.at(self.by_depth, depths, costs)

    def forget(self, name: str) -> None:
        """Drop the column of a model that is gone."""
        self._recent.pop(name, None)
        self._sums.pop(name, None)

    def lead(self, name: str, over: str, last: int | None = None) -> Lead:
        """Compare two models on those of the last documents that both predicted."""
        if name not in self._recent or over not in self._recent:
            return Lead(0, 0.0, 0.0)
        n_last = min(self.n_scored, self.size if last is None else min(last, self.size))
        first = (self.n_scored - n_last) % self.size
        n_both, level, mean, error = compare_losses(self._recent[name], self._recent[over], first, n_last)
        if n_both < 2:
            return Lead(n_both, 0.0, 0.0)
        share = mean / level if level > 0.0 else 0.0 if mean == 0.0 else -np.inf
        sureness = mean / error if error > 0.0 else math.copysign(math.inf, mean) if mean else 0.0
        return Lead(n_both, float(share), float(sureness))

    def count(self, name: str) -> int:
        """Return how many documents a model was scored on."""
        return self._sums.get(name, (0, 0.0))[0]

    def score(self, name: str) -> Score:
        """Return the mean loss of a model, over all and recently."""
        count, total = self._sums.get(name, (0, 0.0))
        recent = self._recent.get(name, NO_LOSSES)
        level = compare_losses(recent, recent, 0, recent.size)[1]  # the mean of those that are there
        return Score(count, total / max(count, 1), float(level))

    def state(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings and copied arrays."""
        names = sorted(self._recent)
        return {
            "size": self.size,
            "n_scored": self.n_scored,
            "n_wrong": self.n_wrong,
            "names": msgspec.json.encode(names).decode(),
            "by_depth": self.by_depth.copy(),
            "recent": np.array([self._recent[name] for name in names]).reshape(len(names), self.size),
            "counts": np.array([self._sums[name][0] for name in names], np.int64),
            "sums": np.array([self._sums[name][1] for name in names], np.float64),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a board that goes on where `state` was taken, or raise `ValueError`."""
        board = cls(state["size"], state["by_depth"].size)
        board.n_scored = whole_number("n_scored", state["n_scored"], 0, 2**62)
        board.n_wrong = whole_number("n_wrong", state["n_wrong"], 0, board.n_scored)
        board.by_depth[:] = state["by_depth"]
        names = msgspec.json.decode(state["names"], type=list[str])
        columns = zip(names, state["recent"], state["counts"].tolist(), state["sums"].tolist(), strict=True)
        for name, recent, count, total in columns:
            if recent.shape != (board.size,):
                raise ValueError(f"recent must have {board.size} columns")
            board._recent[name], board._sums[name] = recent.copy(), (count, total)
        return board
