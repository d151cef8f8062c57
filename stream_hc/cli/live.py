"""What a streaming job shows while it runs: a picture on the terminal, or lines where nobody watches."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from types import TracebackType
from typing import Any, Self

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.segment import Segment

from stream_hc.cli.console import clean, errors
from stream_hc.cli.live_chart import History
from stream_hc.cli.live_frame import draw_frame
from stream_hc.runtime.events import Event, Standing
from stream_hc.runtime.report import WORDS, family, sentence

__all__ = ["LiveView"]

REFRESHES = 8  # a second, at most
SHARE = 0.005  # of the time that may go into them: with taking the numbers it stays below a hundredth
LINE_EVERY = 10.0  # seconds between lines of numbers
N_EVENTS = 5
FINEST = 400  # points along the chart: no terminal shows more


class LiveView:
    """Show how a job is doing, on standard error.

    Parameters
    ----------
    shown
        Whether somebody watches (`console.watched`). Otherwise, and on terminals that cannot draw, every
        event is a line, and now and then the numbers are one.
    console
        Where to; by default standard error.
    clock
        Seconds that never go back.

    Examples
    --------
    >>> from stream_hc.runtime.events import Event
    >>> with LiveView(shown=False, console=Console(width=80)) as view:
    ...     view.event(Event("swap", 900, 600, model="hm3-1", before="h-arow"))
    swap after 600 labelled documents: hm3-1 answers from now on instead of h-arow
    """

    def __init__(
        self, shown: bool, console: Console | None = None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._console = errors() if console is None else console
        can_draw = not self._console.is_dumb_terminal and not self._console.options.ascii_only
        self._live = (
            Live(
                _Frame(self), console=self._console, auto_refresh=False, vertical_overflow="crop",
                redirect_stdout=False, redirect_stderr=False,
            )
            if shown and can_draw
            else None
        )  # fmt: skip
        self._clock = clock
        self._next = clock() + (0.0 if self._live is not None else LINE_EVERY)
        self._took: deque[float] | None = None  # seconds, for the last pictures
        self._is_stale = False  # something is not shown yet
        self._taken = -1  # labelled documents at the newest point of the history
        self.history = History()
        self.families: dict[str, None] = {}  # of models, in the order of their colours
        self.events: deque[Event] = deque(maxlen=N_EVENTS)
        self.standing: Standing | None = None
        self.rate = 0.0
        self.refit: Mapping[str, Any] | None = None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def update(self, standing: Standing, rate: float, refit: Mapping[str, Any] | None = None) -> None:
        """Take new numbers: where all stands, documents a second, and the last epoch of a fit under way."""
        self.standing, self.rate, self.refit = standing, rate, refit
        if standing.labelled - self._taken > standing.labelled / FINEST:
            self._take(standing)
        self._is_stale = True
        self._show()

    def event(self, event: Event) -> None:
        """Take something that happened."""
        self.events.append(event)
        if self._live is None:
            after = f"{event.labelled:,} labelled documents"
            self._print(f"{WORDS[event.what]} after {after}: {sentence(event)}")
        else:
            self._is_stale = True
            self._show()

    def close(self) -> None:
        """Show the last numbers, and leave them there."""
        if self._is_stale:
            self._show(now=True)
        if self._live is not None:
            self._live.stop()

    def _take(self, standing: Standing) -> None:
        """Put the losses into the history."""
        self._taken = standing.labelled
        self.families.update(dict.fromkeys(map(family, standing.scores)))
        losses = {name: score.recent for name, score in standing.scores.items() if score.scored}
        self.history.add(standing.labelled, standing.champion, losses)

    def _show(self, now: bool = False) -> None:
        """Draw or write what is new, if it is time."""
        began = self._clock()
        if not now and began < self._next:
            return
        self._is_stale = False
        if self._live is not None:
            if self.standing is not None:
                self._take(self.standing)
            self._live.refresh()
            pause = 1 / REFRESHES
            if self._took is None:
                self._took = deque(maxlen=5)  # the first picture loads tables: its time says nothing
            else:
                self._took.append(self._clock() - began)
                pause = max(pause, median(self._took) / SHARE)
            self._next = began + pause
        elif self.standing is not None:
            self._next = began + LINE_EVERY
            self._print(_numbers(self.standing, self.rate, self.refit))

    def _print(self, line: str) -> None:
        self._console.print(clean(line), markup=False, highlight=False, emoji=False, soft_wrap=True)


def _numbers(standing: Standing, rate: float, refit: Mapping[str, Any] | None) -> str:
    """Return the numbers as a line, in ASCII but for names."""
    scores = sorted(standing.scores.items(), key=lambda item: item[1].recent)
    parts = [
        f"{standing.documents:,} documents",
        f"{standing.labelled:,} labelled",
        f"{rate:,.0f}/s",
        f"{standing.champion} answers",
        f"H-loss {standing.served.mean:.3f}",
        f"recent {standing.served.recent:.3f}",
        "(" + " ".join(f"{name} {score.recent:.3f}" for name, score in scores if score.scored) + ")",
        f"{standing.waiting_documents:,} wait for labels",
        f"{sum(standing.rejected.values()):,} dead letters",
    ]
    if refit is not None:
        parts.append("re-fit under way")
    return ", ".join(parts).replace(", (", " (")


class _Frame:
    """What `rich` asks for a picture; made from segments at once, since tables take ten times as long."""

    def __init__(self, view: LiveView) -> None:
        self._view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        lines = draw_frame(self._view, options.max_width, options.size.height - 1)
        for number, line in enumerate(lines):
            if number:
                yield Segment.line()
            yield from line
