"""What `stream-hc demo` does beside its job: a stream at a speed that people can follow, and fits beside it.

The job waits for each fit at a fixed document, so that it does the same on every machine. Here the fit begins
as soon as it is asked for, and the stream comes slowly until it is done: nothing ever stands still.
"""

import threading
import time
from collections.abc import Callable
from typing import cast

from stream_hc.cli.console import say
from stream_hc.cli.live import LiveView
from stream_hc.cli.watching import Tally
from stream_hc.runtime.disk import Source
from stream_hc.runtime.events import Event, Standing
from stream_hc.runtime.job import Job
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.outcome import FitRequest, Fitted
from stream_hc.runtime.pipeline import Processed
from stream_hc.runtime.refit import Refitter
from stream_hc.runtime.refit.outcome import Finished
from stream_hc.runtime.watcher import Watcher

__all__ = ["DemoWatcher", "EarlyFits"]

BATCH = 20  # lines
FRAME = 0.1  # seconds between two looks at a fit


class EarlyFits:
    """Fits that begin when they are asked for and are waited for when the job needs them.

    The job asks from the thread in which it learns, the watcher sees to them from the main one.
    """

    def __init__(self) -> None:
        self.refitter: Refitter | None = None
        self.ended: Callable[[Finished], None] = lambda finished: None
        self._lock = threading.Lock()
        self._begun = 0  # number of the last fit that was begun
        self._finished: Finished | None = None

    def look(self) -> bool:
        """Tell whether a fit is under way; take the model of one that is over."""
        with self._lock:
            if self.refitter is not None and self.refitter.running is not None:
                finished = self.refitter.poll()
                if finished is not None:
                    self._finished = finished
                    self.ended(finished)
            return self.refitter is not None and self.refitter.running is not None

    def progress(self) -> dict[str, float] | None:
        """Return the last epoch of the fit under way, with nothing in it before there is one."""
        busy = self.look()
        return (self.refitter.progress() or {}) if busy and self.refitter is not None else None

    def begin(self, request: FitRequest | None) -> None:
        """Begin a fit, unless it was begun before."""
        with self._lock:
            if request is not None and request.number > self._begun and self.refitter is not None:
                self.refitter.start(request.number, request.window, request.warm)
                self._begun, self._finished = request.number, None

    def fetch(self, request: FitRequest) -> Fitted:
        """Return the model; waits for it if need be."""
        self.begin(request)
        while self.look():
            time.sleep(FRAME / 4)
        finished = self._finished
        assert finished is not None
        return Fitted(request.number, finished.model, finished.problem)


class DemoWatcher(Watcher[Job]):
    """Shows the job, keeps its speed, begins its fits.

    Parameters
    ----------
    view
        Shows the numbers.
    fits
        Those of the job.
    pauses
        Seconds for every line, and for every line while a fit is under way.
    """

    def __init__(self, view: LiveView, fits: EarlyFits, pauses: tuple[float, float]) -> None:
        self._view, self._fits, self._pauses = view, fits, pauses
        self._tally: Tally | None = None

    def begin(self, job: Job) -> None:
        """Put the stream on a leash."""
        self._tally, self._fits.refitter = Tally(job.processor), job.refitter
        job.sources["documents"] = cast(Source, _Slowed(job.sources["documents"], self))

    def processed(self, job: Job, done: Processed) -> None:
        """Show what is new, and begin the fit that was asked for."""
        for entry in done.outcome.log:
            if isinstance(entry, Event):
                self._view.event(entry)
                if entry.what == "refit":
                    self._fits.begin(job.processor.contest.request)
            else:
                self._update(entry)

    def note(self, text: str) -> None:
        """Warn."""
        say(f"warning: {text}", "yellow")

    def wait(self) -> None:
        """Wait as long as a batch should take."""
        usual, slow = self._pauses
        is_busy = self._fits.look()
        until = time.monotonic() + BATCH * (slow if is_busy else usual)
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, FRAME))
            if is_busy:
                if self._view.standing is not None:
                    self._update(self._view.standing)
                if not self._fits.look():
                    break

    def _update(self, standing: Standing) -> None:
        rate = 0.0 if self._tally is None else self._tally.rate()
        self._view.update(standing, rate, self._fits.progress())


class _Slowed:
    """A source whose lines come a few at a time, when the watcher says so."""

    def __init__(self, source: Source, watcher: DemoWatcher) -> None:
        self._source, self._watcher = source, watcher

    def read(self, most: int | None = None) -> list[Line]:
        self._watcher.wait()
        return self._source.read(BATCH if most is None else min(most, BATCH))

    def __getattr__(self, name: str) -> object:
        return getattr(self._source, name)
