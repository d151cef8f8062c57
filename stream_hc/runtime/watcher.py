"""Who looks on while a job runs, and who may stop it."""

from typing import TYPE_CHECKING, Protocol

from stream_hc.runtime.pipeline import Processed

if TYPE_CHECKING:
    from stream_hc.runtime.job import Job

__all__ = ["StopRequest", "Watcher"]


class StopRequest(Protocol):
    """Whether somebody wants the job to end after this batch."""

    @property
    def requested(self) -> bool:
        """True from the first signal on."""

    @property
    def descriptor(self) -> int | None:
        """Becomes readable then."""


class Watcher:
    """Is told what happens; this one does not listen."""

    def begin(self, job: "Job") -> None:
        """Take note of a job that is ready to begin."""

    def processed(self, job: "Job", done: Processed) -> None:
        """Take note of a batch that is done."""

    def save(self, job: "Job") -> None:
        """Save what it keeps of its own: when a snapshot is due, with nothing under way, and at the end."""

    def note(self, text: str) -> None:
        """Take note of what somebody should know, in one line."""
