"""What has happened, and when."""

import time
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Diary", "Entry", "clock", "listed"]


class Entry(NamedTuple):
    """One thing that happened, so many seconds after the beginning."""

    at: float
    text: str
    is_bad: bool


class Diary:
    """Entries since it was made."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._began = time.monotonic()

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self._began

    def add(self, text: str, bad: bool = False) -> None:
        """Write down what happens now."""
        self.entries.append(Entry(self.now(), text, bad))


def clock(seconds: float) -> str:
    """Return a time as people write it.

    >>> clock(83.2)
    '1:23'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def listed(noun: str, numbers: Sequence[int]) -> str:
    """Name some numbers.

    >>> listed("partition", [2]), listed("partition", [0, 1, 3])
    ('partition 2', 'partitions 0, 1 and 3')
    """
    words = [str(number) for number in numbers]
    if len(words) < 2:
        return f"{noun} {''.join(words) or 'none'}"
    return f"{noun}s {', '.join(words[:-1])} and {words[-1]}"
