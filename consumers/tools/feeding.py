"""Documents at their pace, and their labels in time after them."""

import os
import select
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from consumers.tools.lines import part
from consumers.tools.sending import Sending
from stream_hc.cli.errors import CliError, Code
from stream_hc.cli.signals import Stopper
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.records import RecordError

__all__ = ["Delay", "Feed", "Pace"]

LOOK = 0.5  # seconds between two looks at what is on its way
CAUGHT_UP = 0.1  # seconds of delay that are made good by going faster


class Delay(NamedTuple):
    """When labels follow: after so many documents, or so many seconds, or not at all on their own."""

    documents: int | None = None
    seconds: float | None = None

    @property
    def is_apart(self) -> bool:
        """Whether labels are taken out of documents."""
        return self.documents is not None or self.seconds is not None


class Pace:
    """Says when the next document may go: evenly, `rate` a second.

    >>> pace = Pace(rate=10.0)
    >>> [round(pace.due(now), 3) for now in (100.0, 100.0, 100.2, 105.0, 105.0)]
    [100.0, 100.1, 100.2, 104.9, 105.0]
    """

    def __init__(self, rate: float | None) -> None:
        self._step = 0.0 if rate is None else 1.0 / rate
        self._next: float | None = None

    def due(self, now: float) -> float:
        """Return the time of the next one."""
        due = now if self._next is None else max(self._next, now - CAUGHT_UP)
        self._next = due + self._step
        return due


class Feed:
    """Brings lines to their topics.

    Parameters
    ----------
    sending
        Takes the records.
    topics
        Of documents and of labels.
    delay, pace
        When labels and documents go.
    stop
        Ends every waiting.
    strict
        A line that is no record is an error.

    Attributes
    ----------
    documents, labels
        How many records were sent to which end.
    odd
        How many of the documents are none.
    left_out
        Lines that are too long to be sent.
    """

    def __init__(
        self, sending: Sending, topics: tuple[str, str], delay: Delay, pace: Pace, stop: Stopper, strict: bool
    ) -> None:
        self._sending = sending
        self._documents_topic, self._labels_topic = topics
        self._delay = delay
        self._pace = pace
        self._stop = stop
        self._strict = strict
        self._later: deque[tuple[float, bytes, bytes | None]] = deque()  # when due, labels, key
        self.documents = self.labels = self.odd = self.left_out = 0

    @property
    def n_later(self) -> int:
        """How many labels have not been sent yet."""
        return len(self._later)

    def run(self, name: str, lines: Iterator[Line], limit: int | None, progress: Callable[[], None]) -> None:
        """Send the lines, at most so many documents, and all labels; wait until everything has arrived."""
        for line in lines:
            self._take(name, line)
            progress()
            if self._stop.requested or self.documents == limit:
                break
        while self._later and not self._stop.requested:
            if self._delay.documents is not None:  # no more documents come
                self._send_labels()
            else:
                self._pause(self._later[0][0], None)
        self._sending.finish()

    def wait(self, descriptor: int) -> bool:
        """Wait until there is something to read, or a signal came: then the answer is False."""
        return self._pause(None, descriptor)

    def _take(self, name: str, line: Line) -> None:
        if line.too_long:
            self.left_out += 1
            return
        try:
            parted = part(line.data, self._delay.is_apart, self._strict)
        except RecordError as error:
            problem = f"{name}:{line.number}: {error.reason}: {error.detail}"
            raise CliError(f"{problem} (--strict: the lines before it were sent)", Code.BAD_INPUT) from error
        if parted.is_label:
            self._sending.send(self._labels_topic, parted.value, parted.key)
            self.labels += 1
            return
        if not self._pause(self._pace.due(time.monotonic()), None):
            return
        self._sending.send(self._documents_topic, parted.value, parted.key)
        self.documents += 1
        self.odd += parted.key is None
        if parted.labels is not None:
            self._later.append((self._due(), parted.labels, parted.key))
        self._send_due()

    def _due(self) -> float:
        if self._delay.documents is not None:
            return self.documents + self._delay.documents
        return time.monotonic() + (self._delay.seconds or 0.0)

    def _send_due(self) -> None:
        now = self.documents if self._delay.documents is not None else time.monotonic()
        while self._later and self._later[0][0] <= now:
            self._send_labels()

    def _send_labels(self) -> None:
        _, labels, key = self._later.popleft()
        self._sending.send(self._labels_topic, labels, key)
        self.labels += 1

    def _pause(self, until: float | None, descriptor: int | None) -> bool:
        """Wait for a time or for something to read, and see to what is on its way; False if a signal came."""
        listened = [self._stop.descriptor, *([] if descriptor is None else [descriptor])]
        while not self._stop.requested:
            self._send_due()
            now = time.monotonic()
            if until is not None and now >= until:
                return True
            self._sending.look()
            waits = [] if until is None else [until - now]
            if self._sending.n_waiting:
                waits.append(LOOK)
            if self._later and self._delay.seconds is not None:
                waits.append(max(0.0, self._later[0][0] - now))
            ready, _, _ = select.select(listened, [], [], min(waits, default=None))
            if descriptor in ready:
                return True
            if ready:
                os.read(self._stop.descriptor, 512)
        return False
