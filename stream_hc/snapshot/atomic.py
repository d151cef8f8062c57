"""Replace a file all at once: write beside it, reach the disk, rename, reach the disk again.

A killed process leaves its temporary file, ``.<file name>.<pid>-<8 hex digits>.tmp``. A living writer holds a
lock on its own, and the next save to the same path removes those that nobody holds. The pid is for people: it
proves nothing, since a restarted container has the same one and its neighbours count for themselves.
"""

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from stream_hc.snapshot.errors import SnapshotError

__all__ = ["replacing", "sync_path"]


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Yield a stream whose content replaces `path` if the block ends well, and vanishes otherwise."""
    target = os.path.realpath(path)
    mode = _mode(target)
    folder, base = os.path.split(target)
    _remove_abandoned(folder, base)
    descriptor, temporary = _create(folder, base)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if mode is not None:
                os.chmod(temporary, mode)
            yield stream
            stream.flush()
            os.fsync(descriptor)
            os.replace(temporary, target)  # still locked: nobody takes it for abandoned
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    try:
        sync_path(folder)
    except OSError as error:
        raise SnapshotError(
            f"written, but may not survive a power cut: its folder could not be synced: {error.strerror}"
        ) from error


def _mode(target: str) -> int | None:
    """Permissions of the earlier file; refuse to replace a folder or a device."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise SnapshotError("exists and is not a regular file: choose another path")
    return stat.S_IMODE(status.st_mode)


def _create(folder: str, base: str) -> tuple[int, str]:
    while True:
        temporary = os.path.join(folder, f".{base}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with suppress(OSError):  # a file system without locks: then nobody can lock it to remove it either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, temporary
        os.close(descriptor)  # another process removed it between the two calls


def _remove_abandoned(folder: str, base: str) -> None:
    pattern = re.compile(re.escape(f".{base}.") + r"\d+-[0-9a-f]{8}\.tmp")
    for name in filter(pattern.fullmatch, os.listdir(folder)):
        with suppress(OSError):
            descriptor = os.open(os.path.join(folder, name), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(os.path.join(folder, name))
            finally:
                os.close(descriptor)


def sync_path(path: str) -> None:
    """Wait until a file, or which names a folder has, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
