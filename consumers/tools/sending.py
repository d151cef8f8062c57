"""Records on their way: a bounded number of them, and every one acknowledged or an error."""

from collections import deque
from typing import Any

from kafka import KafkaProducer

__all__ = ["Sending"]

MOST_RECORDS, MOST_BYTES = 20_000, 2**25  # on their way


class Sending:
    """Sends records and waits for the oldest where too many are on their way.

    Parameters
    ----------
    producer
        Idempotent: what it sends again arrives once.
    patience
        Seconds to wait for an acknowledgement.
    """

    def __init__(self, producer: KafkaProducer, patience: float) -> None:
        self._producer = producer
        self._patience = patience
        self._waiting: deque[tuple[Any, int]] = deque()
        self._bytes = 0
        self.acknowledged = 0

    @property
    def n_waiting(self) -> int:
        """How many are on their way."""
        return len(self._waiting)

    def send(self, topic: str, value: bytes, key: bytes | None) -> None:
        """Send a record; an earlier one that failed is an error now."""
        self._waiting.append((self._producer.send(topic, value, key), len(value)))
        self._bytes += len(value)
        self.look()
        while len(self._waiting) > MOST_RECORDS or self._bytes > MOST_BYTES:
            self._settle_first()

    def look(self) -> None:
        """Count those that have arrived, without waiting; raises the error of one that failed."""
        while self._waiting and self._waiting[0][0].is_done:
            self._settle_first()

    def finish(self) -> None:
        """Wait until all have arrived."""
        self._producer.flush(self._patience)
        while self._waiting:
            self._settle_first()

    def _settle_first(self) -> None:
        future, size = self._waiting[0]
        future.get(self._patience)
        self._waiting.popleft()
        self._bytes -= size
        self.acknowledged += 1
