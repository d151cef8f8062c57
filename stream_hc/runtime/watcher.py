"""Who looks on while a job runs, and who may stop it."""

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from stream_hc.runtime.pipeline import Processed
from stream_hc.runtime.refit.outcome import Finished

if TYPE_CHECKING:
    from stream_hc.runtime.work import Work

__all__ = ["StopRequest", "Watcher", "Watchers"]

W = TypeVar("W", bound="Work", contravariant=True)


class StopRequest(Protocol):
    """Whether somebody wants the job to end after this batch."""

    @property
    def requested(self) -> bool:
        """True from the first signal on."""

    @property
    def descriptor(self) -> int | None:
        """Becomes readable then."""


class Watcher(Generic[W]):
    """Is told what happens; this one does not listen."""

    def begin(self, job: W) -> None:
        """Take note of a job that is ready to begin."""

    def live(self, job: W) -> None:
        """Take note of a job that has done again what was done before a restart: new records come."""

    def processed(self, job: W, done: Processed) -> None:
        """Take note of a batch that is done."""

    def looked(self, job: W) -> None:
        """Take note that it goes on: several times a second, whether or not records come."""

    def fitted(self, finished: Finished) -> None:
        """Take note of how a fit ended; from any thread."""

    def saved(self, job: W) -> None:
        """Take note of a snapshot that is on the disk."""

    def save(self, job: W) -> None:
        """Save what it keeps of its own: when a snapshot is due, with nothing under way, and at the end."""

    def note(self, text: str) -> None:
        """Take note of what somebody should know, in one line."""


class Watchers(Watcher[W]):
    """Several who look on."""

    def __init__(self, *watchers: Watcher[W]) -> None:
        self._watchers = watchers

    def begin(self, job: W) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.begin(job)

    def live(self, job: W) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.live(job)

    def processed(self, job: W, done: Processed) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.processed(job, done)

    def looked(self, job: W) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.looked(job)

    def fitted(self, finished: Finished) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.fitted(finished)

    def saved(self, job: W) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.saved(job)

    def save(self, job: W) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.save(job)

    def note(self, text: str) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.note(text)
