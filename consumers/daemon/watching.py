"""What `stream-hc kafka consume` says on standard error: how it goes, now and then, and what happens."""

import time

from consumers.daemon.job import KafkaJob
from stream_hc.cli.console import say
from stream_hc.cli.watching import Tally
from stream_hc.runtime.events import Event
from stream_hc.runtime.pipeline import Processed
from stream_hc.runtime.watcher import Watcher

__all__ = ["ConsumeWatcher"]

REPORTED = ("drift", "swap", "rollback", "promoted", "refit_failed")


class ConsumeWatcher(Watcher[KafkaJob]):
    """Writes one line now and then.

    Parameters
    ----------
    seconds
        Between two lines about how it goes.
    quiet
        Say only what somebody should know.
    """

    def __init__(self, seconds: float, quiet: bool = False) -> None:
        self.tally: Tally | None = None
        self._seconds = seconds
        self._quiet = quiet
        self._said = time.monotonic()

    def begin(self, job: KafkaJob) -> None:
        """Say where it goes on."""
        self.tally = Tally(job.processor)
        kafka, progress = job.config.kafka, job.processor.progress
        topics = ", ".join(job.membership.topics)
        self._say(f"reading {topics} as {kafka.group}, after {progress.records} records")

    def processed(self, job: KafkaJob, done: Processed) -> None:
        """Say what happened, and how it goes if it is time."""
        for entry in done.outcome.log:
            if isinstance(entry, Event) and entry.what in REPORTED:
                names = " after ".join(name for name in (entry.model, entry.before) if name)
                self._say(": ".join(part for part in (entry.what, names, entry.detail) if part))
        if time.monotonic() - self._said >= self._seconds and self.tally is not None:
            self._said = time.monotonic()
            self._say(f"{self.tally.remark()}, {sum(job.lag.values()):,} records behind")

    def note(self, text: str) -> None:
        """Say what somebody should know."""
        say(text, "yellow")

    def summary(self) -> str:
        """Say in one line what was done."""
        return "nothing was read" if self.tally is None else self.tally.summary()

    def _say(self, text: str) -> None:
        if not self._quiet:
            say(text)
