"""The state folder of a job: snapshots, the journal behind them, fitted models, and requests from outside."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from stream_hc.runtime import commands
from stream_hc.runtime.config import StateConfig
from stream_hc.runtime.journal import Entry, Journal, JournalError
from stream_hc.runtime.keeper import Failed, Keeper, Loaded, Saved
from stream_hc.runtime.place import Place
from stream_hc.snapshot import SnapshotError, inspect

__all__ = ["FITS", "StateFolder"]

JOURNAL, FITS = "journal.jsonl", "fits"


class StateFolder:
    """What a job keeps on disk, so that it goes on after any end as if there had been none.

    Parameters
    ----------
    config
        With a folder.

    Attributes
    ----------
    loaded
        The newest sound snapshot, or None in a new folder.
    place
        Where the job stood then.
    is_broken
        The journal could not be written: decisions since then are known to the next snapshot only.
    """

    def __init__(self, config: StateConfig) -> None:
        assert config.folder is not None
        self.path = Path(config.folder)
        self.keeper = Keeper(self.path, config.keep)
        try:
            self.loaded: Loaded | None = self.keeper.load_newest()
            self.place = Place() if self.loaded is None else Place.of(self.loaded.extra)
            self.journal = Journal(self.path / JOURNAL)
        except BaseException:
            self.keeper.close()
            raise
        self.is_broken = False
        self._journal_at = {number: _journal_of(self.keeper.path(number)) for number in self.keeper.numbers()}
        self._saving = 0  # the last entry known to the snapshot that is being written

    def write(self, entry: Entry, sync: bool = False) -> str | None:
        """Write a decision down before it is carried out; returns the problem if that is not possible."""
        if self.is_broken:
            return None
        try:
            self.journal.append(entry, sync)
        except JournalError as error:
            self.is_broken = True
            return str(error)
        return None

    def save_in_background(
        self, parts: Callable[[], dict[str, Any]], place: Place, outputs: Iterable[str]
    ) -> None:
        """Save while the stream goes on; the outputs are on the disk before the snapshot is."""
        files = list(outputs)

        def synced_parts() -> dict[str, Any]:
            for path in files:
                _sync(path)
            return parts()

        self.keeper.save_in_background(synced_parts, place.extra())
        self._saving = place.journal

    def poll(self) -> Saved | Failed | None:
        """Tell, once, how saving in the background ended."""
        result = self.keeper.poll()
        if isinstance(result, Saved):
            self._saved(result.number, self._saving)
        return result

    def save(self, parts: dict[str, Any], place: Place, outputs: Iterable[str]) -> None:
        """Save here and now."""
        for path in outputs:
            _sync(path)
        self._saved(self.keeper.save(parts, place.extra()), place.journal)

    def _saved(self, number: int, journal: int) -> None:
        """Drop the entries that no snapshot needs any more."""
        self._journal_at[number] = journal
        kept = self.keeper.numbers()
        self._journal_at = {each: at for each, at in self._journal_at.items() if each in kept}
        try:
            self.journal.trim(min(self._journal_at.values(), default=0) + 1)
            self.is_broken = False
        except JournalError:
            self.is_broken = True

    @property
    def oldest_entry(self) -> int:
        """The number of the entry behind the oldest snapshot: models named after it are still needed."""
        return min(self._journal_at.values(), default=0)

    def requests(self, done: set[str]) -> list[commands.Request]:
        """Return what somebody asked for, but for what was `done`."""
        return commands.take(self.path, done)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.close()
        self.keeper.close()


def _journal_of(path: str) -> int:
    """Return the last entry that a snapshot includes; 0, which keeps them all, if it cannot be read."""
    try:
        return Place.of(inspect(path).extra).journal
    except (SnapshotError, ValueError):
        return 0


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
