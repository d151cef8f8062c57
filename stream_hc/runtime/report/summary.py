"""What a log says, brought into the shape in which people are shown it: lines, marks, spans, words."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from stream_hc.evaluate.drawing import DASHES, PALETTE
from stream_hc.runtime.events import Event, Happening, Score, Standing
from stream_hc.runtime.log import RunLog

__all__ = [
    "MARKED",
    "WORDS",
    "Points",
    "Span",
    "Summary",
    "count",
    "family",
    "printable",
    "sentence",
    "styles_of",
    "thin_out",
]

# What people call it. Those that are drawn have a row of marks of their own.
WORDS: dict[Happening, str] = {
    "drift": "drift",
    "refit": "re-fit",
    "refit_failed": "re-fit failed",
    "candidate": "candidate",
    "swap": "swap",
    "rollback": "rollback",
    "promoted": "promoted",
    "dropped": "dropped",
}
MARKED: tuple[tuple[str, tuple[Happening, ...]], ...] = (
    ("drift", ("drift",)),
    ("re-fit", ("refit",)),
    ("swap", ("swap", "promoted")),
    ("rollback", ("rollback",)),
)
MIN_SCORED = 20  # the mean of a handful of documents is noise

FIT = re.compile(r"(.+)-(\d+)")  # each fit of a model has its number behind its name

Points = list[tuple[int, float]]


class Span(NamedTuple):
    """A model that answered, and between which numbers of labelled documents."""

    model: str
    first: int
    last: int


class Summary:
    """The lines, marks and numbers of a log; without a standing there are none.

    Models are in the order in which they first appear, which decides their colours everywhere; all fits of
    one kind share a colour.
    """

    def __init__(self, log: RunLog) -> None:
        self.log = log
        self.models = list(_first_seen(log))
        self.styles = styles_of(self.models)
        self.last: Standing | None = log.standings[-1] if log.standings else None
        self.happened: Counter[str] = Counter(event.what for event in log.events)
        self.end = max([s.labelled for s in log.standings] + [e.labelled for e in log.events], default=0)

    def points(self, model: str | None, running: bool = False) -> Points:
        """Return (labelled documents, H-loss) of a model, or of what was served: recent, or since the start.

        A model fitted again under an old name begins anew; the first documents of a model are left out.
        """
        pairs = [(s.labelled, s.served if model is None else s.scores.get(model)) for s in self.log.standings]
        known = [(at, score) for at, score in pairs if score is not None and score.scored > 0]
        enough = [(at, score) for at, score in known if score.scored >= MIN_SCORED] or known
        values = [(at, score.mean if running else score.recent) for at, score in enough]
        return [(at, value) for at, value in values if math.isfinite(value)]

    def last_score(self, model: str) -> tuple[int, Score]:
        """Return the last score of a model, and after how many labelled documents that was."""
        for standing in reversed(self.log.standings):
            if model in standing.scores:
                return standing.labelled, standing.scores[model]
        return 0, Score(0, 0.0, 0.0)

    def best_single(self) -> tuple[str, Score] | None:
        """Return the model with the lowest mean of those that predicted all the time."""
        scores = self.last.scores if self.last is not None else {}
        longest = max((score.scored for score in scores.values()), default=0)
        whole = [(score.mean, name) for name, score in scores.items() if longest and score.scored == longest]
        return (min(whole)[1], scores[min(whole)[1]]) if whole else None

    def champions(self) -> list[Span]:
        """Return who answered when. An event says so to the document, a standing whenever there is one."""
        swaps = [e for e in self.log.events if e.what in ("swap", "rollback", "promoted") and e.model]
        changes = [(s.labelled, s.documents, 0, s.champion) for s in self.log.standings]
        changes += [(e.labelled, e.documents, 1, e.model) for e in swaps]
        if swaps and swaps[0].before:
            changes.append((0, 0, 0, swaps[0].before))
        spans: list[Span] = []
        for at, _, _, model in sorted(changes):
            if not spans:
                spans.append(Span(model, 0, self.end))
            elif model != spans[-1].model:
                spans[-1] = spans[-1]._replace(last=at)
                spans.append(Span(model, at, self.end))
        return [span for span in spans if span.last > span.first]

    def marks(self, kinds: Iterable[Happening]) -> list[Event]:
        """Return the events of these kinds."""
        return [event for event in self.log.events if event.what in tuple(kinds)]


def _first_seen(log: RunLog) -> dict[str, None]:
    seen: dict[str, None] = {}
    for standing in log.standings:
        seen.update(dict.fromkeys(standing.scores))
        seen.setdefault(standing.champion)
    for event in log.events:
        if event.what in ("swap", "rollback", "promoted") and event.model:
            seen.setdefault(event.model)
    return seen


def styles_of(models: list[str]) -> dict[str, tuple[int, int]]:
    """Return which colour of the palette and which dashes each model has."""
    kinds: dict[str, list[str]] = {}
    styles = {}
    for model in models:
        of_kind = kinds.setdefault(family(model), [])
        of_kind.append(model)
        number = list(kinds).index(family(model))
        dashes = number // len(PALETTE) + (len(of_kind) - 1) % 2  # a fit beside the one before it
        styles[model] = number % len(PALETTE), dashes % len(DASHES)
    return styles


def family(model: str) -> str:
    """Return what fits of the same kind have in common.

    >>> family("hm3-12"), family("h-arow")
    ('hm3', 'h-arow')
    """
    fit = FIT.fullmatch(model)
    return fit[1] if fit else model


def thin_out(points: Points, most: int) -> Points:
    """Leave out points evenly, never the last one: a picture has only so many pixels."""
    step = max(1, math.ceil(len(points) / max(most - 1, 1)))
    return points[:-1][::step] + points[-1:]


def printable(text: str) -> str:
    r"""Show what is not printable, such as marks that turn the direction of writing, as an escape.

    >>> printable("tennis\u202e")
    'tennis\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def count(number: int, what: str) -> str:
    """Return "1 swap", "2 swaps"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def sentence(event: Event) -> str:
    """Say what happened, without when.

    >>> sentence(Event("swap", 90, 60, model="hm3", before="h-arow", detail="0.31 against 0.35"))
    'hm3 answers from now on instead of h-arow: 0.31 against 0.35'
    """
    model, before = event.model or "a model", f" instead of {event.before}" if event.before else ""
    said = {
        "drift": "the H-loss of the champion has changed",
        "refit": "a fit to the window begins",
        "refit_failed": "a fit to the window failed",
        "candidate": f"{model} is fitted and predicts beside the others",
        "swap": f"{model} answers from now on{before}",
        "rollback": f"{model} answers again{before}",
        "promoted": f"somebody put {model} in charge{before}",
        "dropped": f"{model} is given up",
    }[event.what]
    return f"{said}: {event.detail}" if event.detail else said
