"""One job at a time uses a state folder: a file in it is locked, and says by whom."""

import fcntl
import os
import time

from stream_hc.snapshot import SnapshotError

__all__ = ["KeeperLocked", "lock_folder"]

PATIENCE = 1.0  # seconds: the child of a job that was killed dies soon, too, and holds the lock until then


class KeeperLocked(SnapshotError):  # noqa: N818 (it says what is the matter)
    """Another job uses the folder; `pid` is its process, if it could be read."""

    def __init__(self, folder: str, pid: int | None) -> None:
        who = "another job" if pid is None else f"the job with process id {pid}"
        super().__init__(f"{folder}: in use by {who}: stop it, or choose another state folder")
        self.pid = pid


def lock_folder(folder: str) -> int:
    """Open and lock the file that says who uses the folder, or raise `KeeperLocked`."""
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
