"""The one exception of this package, and how a message gets the name of its file."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["SnapshotError", "naming"]

MAX_MESSAGE = 600  # a hostile file must not fill the log


class SnapshotError(ValueError):
    """A snapshot cannot be written, or a file is not a sound snapshot; the message is one line.

    Examples
    --------
    >>> from stream_hc.snapshot import load_bytes
    >>> load_bytes(b"cats and dogs")
    Traceback (most recent call last):
    ...
    stream_hc.snapshot.errors.SnapshotError: snapshot bytes: not a stream_hc snapshot
    """


@contextmanager
def naming(where: str, action: str) -> Iterator[None]:
    """Put `where` in front of a SnapshotError raised inside; turn an OSError into one."""
    if "\0" in where:
        raise SnapshotError(f"{where!r}: cannot {action}: a path cannot hold a NUL character")
    try:
        yield
    except SnapshotError as error:
        error.args = (_one_line(f"{where}: {error}"),)
        raise
    except OSError as error:
        raise SnapshotError(_one_line(f"{where}: cannot {action}: {error.strerror or error}")) from error


def _one_line(text: str) -> str:
    line = " ".join(text.splitlines())
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + "…"
