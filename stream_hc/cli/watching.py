"""What `stream-hc run` shows of a job: rejected lines, a bar or the live view, one line at the end."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from stream_hc.cli.console import Update, say
from stream_hc.cli.live import LiveView
from stream_hc.runtime.events import Event
from stream_hc.runtime.job import Job
from stream_hc.runtime.pipeline import Processed
from stream_hc.runtime.processor import Processor
from stream_hc.runtime.scoring import SERVED
from stream_hc.runtime.watcher import Watcher

__all__ = ["RunWatcher", "Tally"]

SHOWN_REJECTS = 10


@dataclass
class Tally:
    """What a processor has done since it was first looked at."""

    processor: Processor
    began: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self._before = self._numbers()

    def _numbers(self) -> tuple[int, int, float, int, int]:
        board, score = self.processor.contest.board, self.processor.contest.board.score(SERVED)
        rejected = sum(self.processor.room.rejected.values())
        return (
            self.processor.progress.documents,
            score.scored,
            score.mean * score.scored,
            board.n_wrong,
            rejected,
        )

    def since(self) -> tuple[int, int, float, int, int]:
        """Return documents, labelled ones, the sums of their H-loss and zero-one loss, and rejected lines."""
        pairs = zip(self._numbers(), self._before, strict=True)
        documents, labelled, loss, wrong, rejected = (now - before for now, before in pairs)
        return int(documents), int(labelled), loss, int(wrong), int(rejected)

    def remark(self) -> str:
        """Say it in a few words, for the progress bar."""
        documents, labelled, loss, _, _ = self.since()
        told = f", H-loss {loss / labelled:.3f}" if labelled else ""
        return f"{documents:,} docs{told}, {self.rate():,.0f}/s"

    def summary(self) -> str:
        """Say it in one line."""
        documents, labelled, loss, wrong, rejected = self.since()
        losses = "no losses: no labels"
        if labelled:
            losses = f"H-loss {loss / labelled:.4f}, zero-one {wrong / labelled:.4f}"
        counts = f"{documents} documents, {labelled} labelled, {rejected} rejected"
        return f"{counts}; {losses}; {self.rate():.0f} documents/s"

    def rate(self) -> float:
        """Documents per second."""
        return self.since()[0] / max(time.perf_counter() - self.began, 1e-9)


class RunWatcher(Watcher[Job]):
    """Shows a job on standard error.

    Parameters
    ----------
    update
        The progress bar.
    view
        The live view, for jobs with several models.
    saved
        Called with the processor when something is to be saved that is not in the state folder.
    """

    def __init__(
        self, update: Update, view: LiveView | None = None, saved: Callable[[Processor], None] | None = None
    ) -> None:
        self.tally: Tally | None = None
        self._update, self._view, self._saved = update, view, saved
        self._rejected: dict[str, int] = {}

    def begin(self, job: Job) -> None:
        """Begin to count."""
        self.tally = Tally(job.processor)

    def processed(self, job: Job, done: Processed) -> None:
        """Show the first rejected lines, and how far it has come."""
        tally = self.tally
        assert tally is not None
        if done.outcome.rejects:
            path = job.sources[done.source].name
            name = "standard input" if path == "-" else path
            for line, error in done.outcome.rejects:
                self._rejected[name] = self._rejected.get(name, 0) + 1
                if sum(self._rejected.values()) <= SHOWN_REJECTS:
                    say(f"{name}:{line.number}: {error.reason}: {error.detail}")
        if self._view is not None:
            refit = None if job.refitter is None else job.refitter.progress()
            for entry in done.outcome.log:
                if isinstance(entry, Event):
                    self._view.event(entry)
                else:
                    self._view.update(entry, tally.rate(), refit)
        self._update(sum(source.done for source in job.sources.values()), tally.remark())

    def save(self, job: Job) -> None:
        """Save the model file, if there is one."""
        if self._saved is not None:
            self._saved(job.processor)

    def note(self, text: str) -> None:
        """Warn."""
        say(f"warning: {text}", "yellow")

    @property
    def n_rejected(self) -> int:
        """Lines rejected in this run."""
        return 0 if self.tally is None else self.tally.since()[4]

    def summary(self) -> str:
        """Say in one line what was done."""
        assert self.tally is not None
        return self.tally.summary()

    def finish(self) -> None:
        """Say how many rejected lines were not shown."""
        more = sum(self._rejected.values()) - SHOWN_REJECTS
        if more > 0:
            say(f"{next(reversed(self._rejected))}: {more} more rejected lines not shown")
