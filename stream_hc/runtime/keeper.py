"""Numbered snapshots in a folder, written by a copy of the process while the stream goes on.

`fork` copies the process with all its arrays, page by page and only where one of the two writes. So the copy
sees everything as it was at that moment, and what the stream waits for is the fork alone.
"""

import ctypes
import fcntl
import gc
import os
import re
import signal
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn, Self

from stream_hc.snapshot import Snapshotable, SnapshotError, inspect, load, save
from stream_hc.snapshot.format import Scalar

__all__ = ["Failed", "Keeper", "KeeperLocked", "Loaded", "Saved"]

Parts = Mapping[str, Snapshotable]

MAX_PROBLEM = 4_000  # bytes from the child: they fit in the pipe, so that it never waits
PATIENCE = 1.0  # seconds: the child of a job that was killed dies soon, too, and holds the lock until then
NICE = 5
PR_SET_PDEATHSIG = 1

_FILE = re.compile(r"snapshot-(\d{8,})\.snap")
_TEMPORARY = re.compile(r"\.snapshot-\d{8,}\.snap\.\d+-[0-9a-f]{8}\.tmp")
_libc = ctypes.CDLL(None)


class KeeperLocked(SnapshotError):  # noqa: N818 (it says what is the matter)
    """Another job uses the folder; `pid` is its process, if it could be read."""

    def __init__(self, folder: str, pid: int | None) -> None:
        who = "another job" if pid is None else f"the job with process id {pid}"
        super().__init__(f"{folder}: in use by {who}: stop it, or choose another state folder")
        self.pid = pid


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


class _Child(NamedTuple):
    pid: int
    pipe: int
    number: int
    since: float


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
        self._child: _Child | None = None
        self._killed = False
        self._result: Saved | Failed | None = None
        self._unsound: set[int] = set()
        try:
            os.makedirs(self.folder, exist_ok=True)
            self._lock = _locked(self.folder)
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
        since, number, parent = time.monotonic(), self._last, os.getpid()
        try:
            reader, writer = os.pipe()
        except OSError:
            self._result = self._save_here(parts_maker, extra)
            return
        # A signal between the fork and the first lines of the child would run handlers of the parent there.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = _fork()
            if pid == 0:
                self._be_child(parent, writer, parts_maker, extra)
        except OSError:
            pid = -1
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(writer)
        if pid > 0:
            self._killed = False
            self._child = _Child(pid, reader, number, since)
        else:
            os.close(reader)
            self._result = self._save_here(parts_maker, extra)

    def poll(self) -> Saved | Failed | None:
        """Tell, once and without waiting, how the snapshot in the background ended; None before that."""
        if self._child is not None:
            status = _reaped(self._child.pid, os.WNOHANG)
            if status is None:
                if not self._killed and time.monotonic() - self._child.since > self._limit:
                    os.kill(self._child.pid, signal.SIGKILL)
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
            os.kill(self._child.pid, signal.SIGKILL)
            self._outcome(self._child, _reaped(self._child.pid, 0) or 0)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _be_child(
        self, parent: int, writer: int, parts_maker: Callable[[], Parts], extra: Mapping[str, Scalar]
    ) -> NoReturn:
        """Write the snapshot and leave, whatever happens, without any clean-up: all of it is the parent's."""
        code = 1
        try:
            gc.disable()  # it would write to every object, and so copy its page
            _reset_signals()
            _die_with(parent)
            _close_others({writer, self._lock})
            os.nice(NICE)
            save(self.path(self._last), parts_maker(), extra=extra)
            code = 0
        except BaseException as error:
            with suppress(BaseException):
                os.write(writer, _problem(error).encode("utf-8", "replace")[:MAX_PROBLEM])
        finally:
            os._exit(code)

    def _save_here(self, parts_maker: Callable[[], Parts], extra: Mapping[str, Scalar]) -> Saved | Failed:
        since, number = time.monotonic(), self._last
        try:
            save(self.path(number), parts_maker(), extra=extra)
        except Exception as error:  # as in the child: the stream goes on
            return Failed(number, _problem(error), time.monotonic() - since)
        self._remove_old(number)
        return Saved(number, self.path(number), time.monotonic() - since)

    def _outcome(self, child: _Child, status: int) -> Saved | Failed:
        """Say how a child ended, and clean up after it."""
        self._child = None
        try:
            os.set_blocking(child.pipe, False)
            problem = os.read(child.pipe, MAX_PROBLEM).decode("utf-8", "replace")
        except OSError:
            problem = ""
        os.close(child.pipe)
        seconds = time.monotonic() - child.since
        if status == 0 and os.path.exists(self.path(child.number)):
            self._remove_old(child.number)
            return Saved(child.number, self.path(child.number), seconds)
        self._remove_temporary()
        if self._killed:
            problem = f"took longer than {self._limit:g} seconds and was killed"
        elif os.WIFSIGNALED(status):
            problem = f"its process was killed by signal {os.WTERMSIG(status)}: is there enough memory?"
        return Failed(child.number, problem or f"its process ended with status {status}", seconds)

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


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 and later warn if there are threads: a lock that one of them holds stays locked in the
        # child. This one takes hardly any: it copies arrays, computes digests and writes a file; it logs
        # nothing, waits for no thread and leaves by `_exit`, which flushes no buffer of the parent. Should it
        # hang all the same, it is killed after the limit: one snapshot failed, and the stream went on.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)  # the pipe of the parent
    for number in signal.valid_signals():
        with suppress(OSError, ValueError):  # SIGKILL and SIGSTOP
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def _die_with(parent: int) -> None:
    """End with the parent: a snapshot that came later could take the place of one of the next job."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _close_others(keep: set[int]) -> None:
    """Close all descriptors but these; the first three lead nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    for descriptor in map(int, os.listdir("/dev/fd")):
        if descriptor > 2 and descriptor not in keep:
            with suppress(OSError):  # that of the list itself
                os.close(descriptor)


def _problem(error: BaseException) -> str:
    text = str(error) if isinstance(error, SnapshotError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def _reaped(pid: int, options: int) -> int | None:
    """Return the exit status of that child; None while it runs. 0 if somebody else has asked for it."""
    try:
        found, status = os.waitpid(pid, options)
    except ChildProcessError:
        return 0  # whether the file is there then says how it ended
    return status if found else None


def _locked(folder: str) -> int:
    """Open and lock the file that says who uses the folder."""
    descriptor = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    until = time.monotonic() + PATIENCE
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    text = os.pread(descriptor, 20, 0).strip()
                    raise KeeperLocked(folder, int(text) if text.isdigit() else None) from None
                time.sleep(0.02)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
