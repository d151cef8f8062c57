"""The state folder of a job: snapshots, the journal behind them, fitted models, and requests from outside."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from stream_hc.runtime.config import StateConfig
from stream_hc.runtime.disk import commands
from stream_hc.runtime.disk.entries import Entry, RefitDone
from stream_hc.runtime.disk.journal import Journal, JournalError
from stream_hc.runtime.disk.keeper import Failed, Keeper, Loaded, Saved
from stream_hc.runtime.disk.place import Place
from stream_hc.snapshot import SnapshotError, inspect
from stream_hc.snapshot.atomic import sync_path

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
            self.place = Place() if self.loaded is None else _place_in(self.loaded)
            self.journal = Journal(self.path / JOURNAL)
        except BaseException:
            self.keeper.close()
            raise
        self.is_broken = False
        # Newer ones than the one that was loaded are damaged: nobody goes on from them.
        newest = 0 if self.loaded is None else self.loaded.number
        sound = [number for number in self.keeper.numbers() if number <= newest]
        self._places = {number: _place_of(self.keeper.path(number)) for number in sound}
        self._saving = Place()  # of the snapshot that is being written

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
                sync_path(path)
            return parts()

        self.keeper.save_in_background(synced_parts, place.extra())
        self._saving = place
        self.is_broken = False  # from here on the entries fit this snapshot

    def poll(self) -> Saved | Failed | None:
        """Tell, once, how saving in the background ended."""
        return self._noted(self.keeper.poll())

    def wait(self) -> Saved | Failed | None:
        """Wait for saving in the background, if it is under way; answer as `poll` does."""
        return self._noted(self.keeper.wait())

    def _noted(self, result: Saved | Failed | None) -> Saved | Failed | None:
        if isinstance(result, Saved):
            self._saved(result.number, self._saving)
        return result

    def save(self, parts: dict[str, Any], place: Place, outputs: Iterable[str]) -> int:
        """Save here and now; return the number of the snapshot."""
        for path in outputs:
            sync_path(path)
        number = self.keeper.save(parts, place.extra())
        self.is_broken = False
        self._saved(number, place)
        return number

    def _saved(self, number: int, place: Place) -> None:
        """Drop the entries that no snapshot needs any more."""
        kept = self.keeper.numbers()
        self._places = {each: at for each, at in (self._places | {number: place}).items() if each in kept}
        with suppress(JournalError):  # then it stays longer than need be
            self.journal.trim(self.oldest_entry + 1)

    @property
    def oldest_entry(self) -> int:
        """The last entry that the oldest snapshot includes: models named after it are still needed."""
        return min((place.journal for place in self._places.values()), default=0)

    @property
    def warm_fits(self) -> set[int]:
        """The fits with which the next one began, or begins, behind one of the snapshots."""
        return {place.fitted for place in self._places.values() if place.fitted is not None}

    def fits_done(self) -> list[tuple[int, int]]:
        """Return the fits that the snapshot in use includes and an older one does not, with their entries."""
        found = []
        with suppress(JournalError):  # entries are missing: nobody goes on from there
            for number, entry in self.journal.after(self.oldest_entry):
                if number > self.place.journal:
                    break
                if isinstance(entry, RefitDone):
                    found.append((number, entry.number))
        return found

    def requests(self, done: set[str]) -> list[commands.Request]:
        """Return what somebody asked for, but for what was `done`."""
        return commands.take(self.path, done)

    def forget_request(self, name: str) -> None:
        """Remove a request that was written down."""
        commands.remove(self.path, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.close()
        self.keeper.close()


def _place_in(loaded: Loaded) -> Place:
    try:
        return Place.of(loaded.extra)
    except ValueError as error:
        raise SnapshotError(f"snapshot {loaded.number}: {error}") from error


def _place_of(path: str) -> Place:
    """Return where a job stood; at the beginning, which keeps the whole journal, if that cannot be read."""
    try:
        return Place.of(inspect(path).extra)
    except (SnapshotError, ValueError):
        return Place()
