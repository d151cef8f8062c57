"""What happens in a stream beside predictions: events, and the standing of the models now and then.

Both are lines of the log of a job. They depend on the records alone, never on a clock.
"""

from typing import Literal

import msgspec

__all__ = ["Event", "Happening", "Score", "Standing"]

Happening = Literal[
    "drift",  # the champion's H-loss has changed
    "refit",  # a fit was asked for; the detail says why
    "refit_failed",
    "candidate",  # a fitted model begins to predict beside the others
    "swap",  # another model answers from now on
    "rollback",  # the model before answers again
    "promoted",  # somebody asked for the swap
    "dropped",  # a fitted model was not good enough, or a better one came
]


class Event(msgspec.Struct, frozen=True, tag="event", tag_field="line"):
    """Something that happened after so many documents and so many labelled ones."""

    what: Happening
    documents: int
    labelled: int
    model: str = ""
    before: str = ""
    detail: str = ""


class Score(msgspec.Struct, frozen=True):
    """The mean H-loss of one model: over all it has predicted, and over the last ones."""

    scored: int
    mean: float
    recent: float


class Standing(msgspec.Struct, frozen=True, tag="standing", tag_field="line"):
    """Where everything stands after so many documents.

    `served` is the loss of what was published, `scores` that of each model; `by_depth` shares out the sum of
    the losses served over the depths where they were charged.
    """

    documents: int
    labelled: int
    champion: str
    version: int
    served: Score
    scores: dict[str, Score]
    by_depth: list[float]
    waiting_documents: int
    waiting_labels: int
    outcomes: dict[str, int]
    rejected: dict[str, int]
