"""Who looks on while a job runs, and who may stop it."""

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from stream_hc.runtime.pipeline import Processed

if TYPE_CHECKING:
    from stream_hc.runtime.work import Work

__all__ = ["StopRequest", "Watcher"]

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

    def processed(self, job: W, done: Processed) -> None:
        """Take note of a batch that is done."""

    def save(self, job: W) -> None:
        """Save what it keeps of its own: when a snapshot is due, with nothing under way, and at the end."""

    def note(self, text: str) -> None:
        """Take note of what somebody should know, in one line."""
