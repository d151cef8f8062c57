"""Documents a second, over the last seconds."""

from collections import deque

__all__ = ["Throughput"]

SECONDS = 10.0
APART = 0.25  # seconds between two marks at least


class Throughput:
    """Remembers when how many documents were done; without new ones it falls to nothing.

    >>> speed = Throughput(now=0.0)
    >>> speed.add(100, now=2.0)
    >>> speed.at(4.0), speed.at(30.0)
    (25.0, 0.0)
    """

    def __init__(self, now: float) -> None:
        self._total = 0
        self._marks: deque[tuple[float, int]] = deque([(now, 0)])  # the total before each

    def add(self, n_documents: int, now: float) -> None:
        """Count documents that are done."""
        if now - self._marks[-1][0] >= APART:
            self._marks.append((now, self._total))
            self._forget(now)
        self._total += n_documents

    def at(self, now: float) -> float:
        """Return how many there were a second."""
        self._forget(now)
        then, total = self._marks[0]
        return (self._total - total) / max(now - then, APART)

    def _forget(self, now: float) -> None:
        while len(self._marks) > 1 and self._marks[1][0] <= now - SECONDS:
            self._marks.popleft()
        if self._marks[0][0] <= now - SECONDS and len(self._marks) == 1:
            self._marks[0] = now - SECONDS, self._total
