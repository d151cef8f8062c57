"""What comes out of the processor, and what goes in beside records."""

from dataclasses import dataclass, field
from typing import NamedTuple

from stream_hc.maxmargin import HM3
from stream_hc.runtime.answers import Answers
from stream_hc.runtime.events import Event, Standing
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.records import LabelRequest, RecordError
from stream_hc.runtime.window import Window

__all__ = ["FitRequest", "Fitted", "Outcome"]


class FitRequest(NamedTuple):
    """Fit a model to this window; `warm` is the number of an earlier fit whose dual variables may help."""

    number: int
    window: Window
    warm: int | None


class Fitted(NamedTuple):
    """How a fit ended: with a model, or with a problem."""

    number: int
    model: HM3 | None
    problem: str = ""


@dataclass
class Outcome:
    """What became of some records, in the order of the records."""

    answers: list[Answers] = field(default_factory=list)
    rejects: list[tuple[Line, RecordError]] = field(default_factory=list)
    requests: list[LabelRequest] = field(default_factory=list)
    log: list[Event | Standing] = field(default_factory=list)
    fit: FitRequest | None = None

    @property
    def events(self) -> list[Event]:
        """The events among the lines of the log."""
        return [line for line in self.log if isinstance(line, Event)]
