"""How far a stream has come: the few numbers that are neither a model's nor a window's."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from stream_hc.snapshot import register

__all__ = ["Outstanding", "Progress"]


class Outstanding(msgspec.Struct):
    """A fit that was asked for: which, after how many labelled documents, and why."""

    number: int
    labelled: int
    reason: str


@register
class Progress(msgspec.Struct):
    """Counters and seats; as JSON in the snapshot.

    Attributes
    ----------
    records, documents, labelled
        Processed so far; `labelled` counts those learned.
    champion, previous, swapped_at
        Who answers, whom it replaced, after how many scored documents.
    held_until
        After so many labelled documents models are judged again: somebody asked for the champion.
    outstanding
        The fit that is under way.
    fits
        Asked for so far.
    fitted
        The newest that was finished, for a warm start.
    fit_labelled, fit_time
        Labelled documents and time at the last request.
    failures
        Fits that failed, one after the other.
    drift
        A drift was noticed and not yet answered by a fit.
    costs
        Of the H-loss that is counted.
    happened
        Events by kind.
    fitted_versions
        Labelled documents known to each fitted model that is there.
    """

    champion: str
    records: int = 0
    documents: int = 0
    labelled: int = 0
    previous: str | None = None
    swapped_at: int = 0
    held_until: int = 0
    outstanding: Outstanding | None = None
    fits: int = 0
    fitted: int | None = None
    fit_labelled: int = 0
    fit_time: float = 0.0
    failures: int = 0
    drift: bool = False
    costs: str = "uniform"
    happened: dict[str, int] = {}
    fitted_versions: dict[str, int] = {}

    def state(self) -> dict[str, Any]:
        """Return it as one JSON text."""
        return {"json": msgspec.json.encode(self, order="deterministic").decode()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return what `state` was taken from, or raise `ValueError`."""
        return msgspec.json.decode(state["json"], type=cls, strict=True)
