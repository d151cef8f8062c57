"""What comes out of the processor, and what goes in beside records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stream_hc.learners.base import LabelRows
from stream_hc.maxmargin import HM3
from stream_hc.runtime.answers import Answers
from stream_hc.runtime.charging import Charged
from stream_hc.runtime.events import Event, Standing
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.records import LabelRequest, RecordError
from stream_hc.runtime.window import Window

__all__ = ["FitRequest", "Fitted", "Lessons", "Outcome", "Told"]


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


class Lessons(NamedTuple):
    """Documents that met their labels, for those who count mistakes.

    `charged` has the predictions of every model, row by row, `served` the model whose answer was published;
    `delays` are the seconds that those waited which waited.
    """

    ids: Sequence[str]
    labels: LabelRows
    charged: Mapping[str, Charged]
    served: list[str]
    delays: Sequence[float]


class Told(NamedTuple):
    """Where everything stands behind some records, for those who watch."""

    standing: Standing
    previous: str | None
    candidates: Sequence[str]
    happened: Mapping[str, int]


@dataclass
class Outcome:
    """What became of some records, in the order of the records.

    `lessons` and `told` are filled in where somebody watches (`Processor.is_watched`).
    """

    answers: list[Answers] = field(default_factory=list)
    rejects: list[tuple[Line, RecordError]] = field(default_factory=list)
    requests: list[LabelRequest] = field(default_factory=list)
    log: list[Event | Standing] = field(default_factory=list)
    fit: FitRequest | None = None
    lessons: list[Lessons] = field(default_factory=list)
    told: Told | None = None

    @property
    def events(self) -> list[Event]:
        """The events among the lines of the log."""
        return [line for line in self.log if isinstance(line, Event)]
