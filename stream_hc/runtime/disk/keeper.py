"""Numbered snapshots in a folder, written by a copy of the process while the stream goes on."""

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Self

from stream_hc.runtime.disk.child import Child, begin_child, problem_of
from stream_hc.runtime.disk.lock import lock_folder
from stream_hc.snapshot import Snapshotable, SnapshotError, inspect, load, save
from stream_hc.snapshot.format import Scalar

__all__ = ["Failed", "Keeper", "Loaded", "Saved"]

Parts = Mapping[str, Snapshotable]

_FILE = re.compile(r"snapshot-(\d{8,})\.snap")
_TEMPORARY = re.compile(r"\.snapshot-\d{8,}\.snap\.\d+-[0-9a-f]{8}\.tmp")


class Saved(NamedTuple):
    """A snapshot is complete and on the disk."""

    number: int
    path: str
    seconds: float


class Failed(NamedTuple):
    """A snapshot could not be written; the ones before are as they were."""

    number: int
    problem: str
    seconds: float


class Loaded(NamedTuple):
    """The newest sound snapshot, and the paths of newer ones that are not, each with the reason."""

    number: int
    parts: dict[str, Any]
    extra: dict[str, Scalar]
    skipped: list[tuple[str, str]]


class Keeper:
    """The snapshots of one job; it alone may use the folder while this object is open.

    Parameters
    ----------
    folder
        Made if it does not exist.
    keep
        How many snapshots stay: an older one goes when a newer one is complete.
    limit
        Seconds after which a snapshot in the background is given up.

    Raises
    ------
    KeeperLocked
        Another job has the folder.
    SnapshotError
        The folder cannot be used.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int, limit: float = 600.0) -> None:
        if keep < 1:
            raise ValueError(f"keep must be positive, not {keep}")
        self.folder = os.fspath(folder)
        self._keep = keep
        self._limit = limit
        self._child: Child | None = None
        self._killed = False
        self._result: Saved | Failed | None = None
        self._unsound: set[int] = set()
        try:
            os.makedirs(self.folder, exist_ok=True)
            self._lock = lock_folder(self.folder)
            self._remove_temporary()
            self._last = max(self.numbers(), default=0)
        except OSError as error:
            raise SnapshotError(f"{self.folder}: cannot use the folder: {error.strerror or error}") from None

    @property
    def busy(self) -> bool:
        """Whether a snapshot is being written, or its outcome was not asked for yet with `poll`."""
        return self._child is not None or self._result is not None

    def numbers(self) -> list[int]:
        """Return the numbers of the snapshots, rising."""
        return sorted(int(found[1]) for name in os.listdir(self.folder) if (found := _FILE.fullmatch(name)))

    def path(self, number: int) -> str:
        """Return the file of a snapshot."""
        return os.path.join(self.folder, f"snapshot-{number:08d}.snap")

    def save(self, parts: Parts, extra: Mapping[str, Scalar]) -> int:
        """Write a snapshot here and now, after the one in the background; return its number."""
        self._result = self.wait()
        self._last += 1
        save(self.path(self._last), parts, extra=extra)
        self._remove_old(self._last)
        return self._last

    def save_in_background(self, parts_maker: Callable[[], Parts], extra: Mapping[str, Scalar]) -> None:
        """Write a snapshot of this moment while the caller goes on; `poll` tells how it ended.

        `parts_maker` is called in a copy of the process, where only the calling thread runs and files are
        closed. If the process cannot be copied, the snapshot is written here. Call this from a thread that
        lives on: the copy ends with it.
        """
        if self.busy:
            raise SnapshotError(f"{self.folder}: snapshot {self._last} is not done: poll until it is")
        self._last += 1
        path, self._killed = self.path(self._last), False
        self._child = begin_child(lambda: save(path, parts_maker(), extra=extra), {self._lock})
        if self._child is None:
            self._result = self._save_here(parts_maker, extra)

    def poll(self) -> Saved | Failed | None:
        """Tell, once and without waiting, how the snapshot in the background ended; None before that."""
        if self._child is not None:
            status = self._child.status()
            if status is None:
                if not self._killed and self._child.seconds > self._limit:
                    self._child.kill()
                    self._killed = True
                return None
            self._result = self._outcome(self._child, status)
        result, self._result = self._result, None
        return result

    def wait(self) -> Saved | Failed | None:
        """Wait for the snapshot in the background, at most as long as it may take; answer as `poll` does."""
        while self._child is not None:
            result = self.poll()
            if result is not None:
                return result
            time.sleep(0.01)
        return self.poll()

    def load_newest(self) -> Loaded | None:
        """Load the newest snapshot, or the one before if it is damaged; None if there are none.

        Raises
        ------
        SnapshotError
            There are snapshots and none is sound.
        """
        skipped: list[tuple[str, str]] = []
        for number in reversed(self.numbers()):
            path = self.path(number)
            try:
                parts, extra = load(path), inspect(path).extra
                if not isinstance(parts, dict):
                    raise SnapshotError(f"{path}: one model, not the state of a job")
                return Loaded(number, parts, dict(extra), skipped)
            except SnapshotError as error:
                skipped.append((path, str(error)))
                self._unsound.add(number)
        if skipped:
            problem = f"none of {len(skipped)} snapshots can be used (the newest: {skipped[0][1]})"
            raise SnapshotError(
                f"{self.folder}: {problem}: put one back from a backup, or begin anew in an empty folder"
            )
        return None

    def close(self) -> None:
        """Give up a snapshot in the background and let others use the folder."""
        if self._child is not None:
            self._child.kill()
            self._outcome(self._child, self._child.status(wait=True) or 0)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _save_here(self, parts_maker: Callable[[], Parts], extra: Mapping[str, Scalar]) -> Saved | Failed:
        since, number = time.monotonic(), self._last
        try:
            save(self.path(number), parts_maker(), extra=extra)
        except Exception as error:  # as in the child: the stream goes on
            return Failed(number, problem_of(error), time.monotonic() - since)
        self._remove_old(number)
        return Saved(number, self.path(number), time.monotonic() - since)

    def _outcome(self, child: Child, status: int) -> Saved | Failed:
        """Say how a child ended, and clean up after it."""
        number = self._last  # no other was begun since
        self._child = None
        problem, seconds = child.last_words(), child.seconds
        if status == 0 and os.path.exists(self.path(number)):
            self._remove_old(number)
            return Saved(number, self.path(number), seconds)
        self._remove_temporary()
        if self._killed:
            problem = f"took longer than {self._limit:g} seconds and was killed"
        elif os.WIFSIGNALED(status):
            problem = f"its process was killed by signal {os.WTERMSIG(status)}: is there enough memory?"
        return Failed(number, problem or f"its process ended with status {status}", seconds)

    def _remove_old(self, newest: int) -> None:
        """Remove what the newest, complete one makes superfluous; an unsound one is none of the last ones."""
        sound = [number for number in self.numbers() if number not in self._unsound and number <= newest]
        for number in self.numbers():
            if number < newest and number not in sound[-self._keep :]:
                with suppress(OSError):
                    os.unlink(self.path(number))

    def _remove_temporary(self) -> None:
        """Remove what killed children left: nobody else writes here."""
        for name in filter(_TEMPORARY.fullmatch, os.listdir(self.folder)):
            with suppress(OSError):
                os.unlink(os.path.join(self.folder, name))
