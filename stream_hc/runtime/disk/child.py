"""A copy of this process that does one thing and ends.

`fork` copies the process with all its arrays, page by page and only where one of the two writes. So the copy
sees everything as it was at that moment, and what the stream waits for is the fork alone.
"""

import ctypes
import gc
import os
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, NoReturn

from stream_hc.snapshot import SnapshotError

__all__ = ["Child", "begin_child", "problem_of"]

MAX_PROBLEM = 4_000  # bytes from the child: they fit in the pipe, so that it never waits
NICE = 5
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None)


class Child(NamedTuple):
    """A copy at work, and the pipe through which it says what went wrong."""

    pid: int
    pipe: int
    since: float

    @property
    def seconds(self) -> float:
        """How long it is since it began."""
        return time.monotonic() - self.since

    def status(self, wait: bool = False) -> int | None:
        """Return the exit status; None while it runs. 0 if somebody else has asked for it."""
        try:
            found, status = os.waitpid(self.pid, 0 if wait else os.WNOHANG)
        except ChildProcessError:
            return 0  # whether its work is there then says how it ended
        return status if found else None

    def kill(self) -> None:
        """End it at once; `status` is still to be asked for."""
        os.kill(self.pid, signal.SIGKILL)

    def last_words(self) -> str:
        """Return what went wrong, if it could say so, and close the pipe."""
        try:
            os.set_blocking(self.pipe, False)
            return os.read(self.pipe, MAX_PROBLEM).decode("utf-8", "replace")
        except OSError:
            return ""
        finally:
            os.close(self.pipe)


def begin_child(work: Callable[[], object], keep: set[int]) -> Child | None:
    """Do `work` in a copy of this process, where of all files only these stay open.

    Only the calling thread runs there. None if the process cannot be copied.
    """
    since, parent = time.monotonic(), os.getpid()
    try:
        reader, writer = os.pipe()
    except OSError:
        return None
    # A signal between the fork and the first lines of the child would run handlers of the parent there.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = _fork()
        if pid == 0:
            _be_child(work, parent, writer, keep)
    except OSError:
        pid = -1
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    os.close(writer)
    if pid < 0:
        os.close(reader)
        return None
    return Child(pid, reader, since)


def problem_of(error: BaseException) -> str:
    """Return what went wrong, in one line."""
    text = str(error) if isinstance(error, SnapshotError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def _be_child(work: Callable[[], object], parent: int, writer: int, keep: set[int]) -> NoReturn:
    """Do the work and leave, whatever happens, without any clean-up: all of it is the parent's."""
    code = 1
    try:
        gc.disable()  # it would write to every object, and so copy its page
        _reset_signals()
        _die_with(parent)
        _close_others({writer, *keep})
        os.nice(NICE)
        work()
        code = 0
    except BaseException as error:
        with suppress(BaseException):
            os.write(writer, problem_of(error).encode("utf-8", "replace")[:MAX_PROBLEM])
    finally:
        os._exit(code)


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
