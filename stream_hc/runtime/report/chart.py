"""What a line chart shows, and how large it is drawn.

A chart is drawn twice, wide and narrow, since text in a picture that is scaled down cannot be read.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stream_hc.runtime.events import Event
from stream_hc.runtime.report.summary import Points, Span

__all__ = ["MOST_LABELS", "NARROW", "WIDE", "Chart", "Curve", "Lane", "Size"]

MOST_LABELS = 12  # beside the ends of lines; the legend has all of them


class Size(NamedTuple):
    """How large a chart is drawn, in pixels."""

    name: str
    width: int
    height: int  # of the part with the lines
    left: int
    right: int  # without the names at the ends of lines
    points: int


WIDE = Size("wide", 1000, 330, 70, 30, 700)
NARROW = Size("narrow", 344, 230, 62, 10, 220)


class Curve(NamedTuple):
    """A line; without a number it is what was served, thick and in the colour of the text."""

    name: str
    points: Points
    number: tuple[int, int] | None = None
    ends: bool = True  # whether to name it at its end
    form: str = ".3f"  # of the number there


class Lane(NamedTuple):
    """A row of marks above the lines, with the word for them."""

    word: str
    events: Sequence[Event]


class Chart(NamedTuple):
    """What to draw: `key` makes the ids unique on the page, `end` is where the x axis ends."""

    key: str
    title: str
    about: str
    curves: Sequence[Curve]
    end: int
    lanes: Sequence[Lane] = ()
    band: Sequence[tuple[Span, int]] = ()  # with the colour of the model
