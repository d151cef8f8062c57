"""Where lines come from, with a position to go on from: files, packed or followed, and standard input."""

import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress

from stream_hc.runtime.disk.files import Pipe, PlainFile, readable
from stream_hc.runtime.disk.following import FollowedFile
from stream_hc.runtime.disk.positions import Position
from stream_hc.runtime.disk.source import Source
from stream_hc.runtime.jsonl import open_raw, standard_input
from stream_hc.runtime.records import MAX_LINE_BYTES

__all__ = ["open_source", "wait_for"]

POLL = 0.2  # seconds between two looks at a followed file


def open_source(
    name: str, position: Position | None = None, follow: bool = False, max_bytes: int = MAX_LINE_BYTES
) -> Source:
    """Open a file, gzipped if its name ends in `.gz`, or standard input for `-`.

    Line numbers are those of the file in which a line stands. Standard input, pipes and gzipped files are not
    followed: they end.

    Parameters
    ----------
    name
        The file; if it is followed, it need not exist yet.
    position
        Where an earlier source of that name stood; None for the beginning.
    follow
        Wait for more at the end of the file, as `tail -F` does.
    max_bytes
        Longer lines come cut off and marked.

    Raises
    ------
    SourceError
        The file cannot be read, or what is before the position is not what was read.
    """
    if name == "-":
        return Pipe(name, None, standard_input(), max_bytes)
    with suppress(OSError):
        if not stat.S_ISREG(os.stat(name).st_mode):
            file = open_raw(name)
            return Pipe(name, file, file.fileno(), max_bytes)
    if follow and not name.endswith(".gz"):
        return FollowedFile(name, position, max_bytes)
    return PlainFile(name, position, max_bytes)


def wait_for(sources: Iterable[Source], timeout: float | None = None, stop: int | None = None) -> bool:
    """Wait until one of the sources is worth reading.

    The answer is False if `timeout` seconds have passed, if the descriptor `stop` became readable (it is not
    read here), or if all sources have ended.
    """
    alive = [source for source in sources if not source.ended]
    descriptors = [number for source in alive if (number := source.fileno()) is not None]
    looked_at = len(descriptors) < len(alive)
    until = None if timeout is None else time.monotonic() + timeout
    while alive and not any(source.pending() for source in alive):
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            return False
        step = POLL if looked_at and (left is None or left > POLL) else left
        if stop in readable([*descriptors, *([] if stop is None else [stop])], step):
            return False
    return bool(alive)
