"""Time as the records tell it, so that a stream read again has the same time at the same records."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["Piece", "StreamClock"]


class Piece(NamedTuple):
    """Some records in a row, and the time that is told in front of them, if it is."""

    now: float | None
    records: Sequence[Any]


class StreamClock:
    """Says where in the stream the time is told.

    The time is the earlier one of two records in a row: a single wrong stamp moves nothing. It never goes
    back.

    Parameters
    ----------
    now
        The time that was told last; 0 if it never was.
    stamp
        Of the last record, in seconds; None if there was none.
    seconds
        How much time passes until it is told again, at least.

    Examples
    --------
    >>> from types import SimpleNamespace as Record
    >>> stream = [Record(timestamp=1000 * seconds) for seconds in (100, 101, 9999, 111, 112)]
    >>> [(piece.now, len(piece.records)) for piece in StreamClock(0.0, None, 10.0).pieces(stream)]
    [(100.0, 3), (111.0, 2)]
    """

    def __init__(self, now: float, stamp: float | None, seconds: float) -> None:
        self.now = now
        self.stamp = stamp
        self._seconds = seconds

    def pieces(self, records: Sequence[Any]) -> Iterator[Piece]:
        """Cut records in front of those where the time is told; their `timestamp` is in ms, or negative."""
        first, told = 0, None
        for place, record in enumerate(records):
            if record.timestamp is None or record.timestamp < 0:
                continue
            stamp = record.timestamp / 1000
            time = stamp if self.stamp is None else min(stamp, self.stamp)
            self.stamp = stamp
            if time >= self.now + self._seconds or self.now == 0.0 < time:
                if place > first:
                    yield Piece(told, records[first:place])
                first, told, self.now = place, time, time
        if first < len(records):
            yield Piece(told, records[first:])
