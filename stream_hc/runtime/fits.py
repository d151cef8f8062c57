"""The fits of a job: begun when the processor asks, taken over as a decision, and kept as long as needed."""

from collections import Counter
from collections.abc import Callable

from stream_hc.maxmargin import HM3
from stream_hc.runtime.disk import RefitDone, RefitFailed, StateFolder
from stream_hc.runtime.outcome import FitRequest, Fitted
from stream_hc.runtime.refit import Refitter
from stream_hc.runtime.refit.outcome import Finished
from stream_hc.snapshot import SnapshotError

__all__ = ["Fits"]


class Fits:
    """Between a processor that wants models and the process that fits them.

    Parameters
    ----------
    refitter
        Fits, in another process; None where no fits are wanted.
    counts
        Of the job: how fits ended.
    note
        Called with what somebody should know.
    ended
        Called with every fit that has ended; in step with the stream, from its thread.
    keeps_models
        Whether somebody may go on from earlier, and need models of earlier fits; else the last one will do.
    """

    def __init__(
        self,
        refitter: Refitter | None,
        counts: Counter[str],
        note: Callable[[str], None],
        ended: Callable[[Finished], None],
        keeps_models: bool = False,
    ) -> None:
        self._refitter = refitter
        self._counts = counts
        self._note = note
        self._ended = ended
        self._keeps_models = keeps_models
        self.done: list[tuple[int, int]] = []  # entry of the journal, number of the fit

    def start(self, request: FitRequest) -> None:
        """Begin a fit, without waiting for anything."""
        if self._refitter is not None:
            if not self._keeps_models:
                self._refitter.forget(set() if request.warm is None else {request.warm})
            self._refitter.start(request.number, request.window, request.warm)

    def fetch(self, request: FitRequest) -> Fitted:
        """Fit here and now, for jobs that go in step with their fits."""
        assert self._refitter is not None
        self.start(request)
        finished = self._refitter.wait()
        self._end(finished)
        return Fitted(request.number, finished.model, finished.problem)

    def take(self, at: int) -> tuple[RefitDone | RefitFailed, HM3 | None] | None:
        """Return how a fit ended, as a decision after so many records, if one did since the last time."""
        finished = None if self._refitter is None else self._refitter.poll()
        if finished is None:
            return None
        self._end(finished)
        if finished.model is not None:
            return RefitDone(at, finished.number), finished.model
        self._note(f"fit {finished.number} {finished.outcome}: {finished.problem}")
        return RefitFailed(at, finished.number, finished.outcome, finished.problem), None

    def _end(self, finished: Finished) -> None:
        self._counts[f"refits_{finished.outcome}"] += 1
        self._ended(finished)

    def load(self, number: int) -> Fitted:
        """Return the model of a fit before a restart."""
        if self._refitter is None:
            return Fitted(number, None, "fits were switched off")
        try:
            return Fitted(number, self._refitter.load(number))
        except SnapshotError as error:
            self._counts["models_lost"] += 1
            self._note(f"{error}: it will be fitted again")
            return Fitted(number, None, "lost")

    def forget(self, state: StateFolder, warm: int | None) -> None:
        """Remove models that neither a replay nor a warm start needs."""
        if self._refitter is not None:
            self.done = [each for each in self.done if each[0] > state.oldest_entry]
            kept = {number for _, number in self.done} | state.warm_fits
            self._refitter.forget(kept if warm is None else {*kept, warm})

    def stop(self) -> None:
        """Kill the fit under way, if there is one."""
        if self._refitter is not None:
            self._refitter.stop()
