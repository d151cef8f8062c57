"""The running H-loss over a whole run in a few hundred points, and what happened on the way."""

from collections import deque
from typing import Any

import msgspec

from stream_hc.runtime.events import Event, Score, Standing
from stream_hc.runtime.report import sentence

__all__ = ["History"]

MOST_POINTS = 600
MOST_EVENTS = 300


class History:
    """Points that become fewer as the run becomes longer: half of them go when there are too many.

    Examples
    --------
    >>> history = History()
    >>> score = Score(scored=5, mean=0.5, recent=0.25)
    >>> history.add(Standing(9, 5, "a", 5, score, {"a": score}, [0.5], 0, 0, {}, {}), now=100.0)
    >>> history.points()["models"]
    {'a': {'mean': [0.5], 'recent': [0.25]}}
    """

    def __init__(self) -> None:
        self._points: list[tuple[float, Standing]] = []
        self._gap = 1  # labelled documents between two points at least
        self._latest, self._next = 0, 1
        self._events: deque[dict[str, Any]] = deque(maxlen=MOST_EVENTS)

    def add(self, standing: Standing, now: float) -> None:
        """Take a point, unless it is too near to the one before."""
        if self._latest <= standing.labelled < self._next:
            return
        points = self._points
        while points and points[-1][1].labelled > standing.labelled:  # a job that went back
            points.pop()
        points.append((now, standing))
        self._latest, self._next = standing.labelled, standing.labelled + self._gap
        if len(points) > MOST_POINTS:
            self._points = points[1::2]
            self._gap = max(2 * self._gap, standing.labelled // MOST_POINTS)
            self._next = standing.labelled + self._gap

    def note(self, event: Event, now: float) -> None:
        """Take something that happened."""
        told = msgspec.structs.asdict(event) | {"time": now, "sentence": sentence(event)}
        self._events.append(told)

    def points(self) -> dict[str, Any]:
        """Return the points as columns; None where a model was not there."""
        standings = [standing for _, standing in self._points]
        names = sorted({name for standing in standings for name in standing.scores})
        return {
            "labelled": [standing.labelled for standing in standings],
            "documents": [standing.documents for standing in standings],
            "time": [time for time, _ in self._points],
            "champion": [standing.champion for standing in standings],
            "served": _columns([standing.served for standing in standings]),
            "models": {
                name: _columns([standing.scores.get(name) for standing in standings]) for name in names
            },
        }

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened, oldest first."""
        return list(self._events)


def _columns(scores: list[Score | None]) -> dict[str, list[float | None]]:
    known = [score if score is not None and score.scored else None for score in scores]
    return {
        "mean": [None if score is None else round(score.mean, 6) for score in known],
        "recent": [None if score is None else round(score.recent, 6) for score in known],
    }
