"""Stop at a good moment: a signal is remembered, and ends the waiting for more input."""

import os
import select
import signal
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["Stopper"]

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopper:
    """While it is open, SIGTERM and SIGINT only set `signal`; a second one interrupts at once.

    A handler that raised could lose lines that were read and not yet answered. This one returns, and the wait
    for input ends because the signal also writes to a pipe that the wait listens to.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        """Whether a signal came."""
        return self.signal is not None

    @property
    def descriptor(self) -> int:
        """Readable when a signal came."""
        return self._awake

    def wait(self, descriptor: int) -> bool:
        """Wait until there is something to read, or a signal came: then the answer is False."""
        while self.signal is None:
            ready, _, _ = select.select([descriptor, self._awake], [], [])
            if descriptor in ready:
                break
            os.read(self._awake, 512)
        return self.signal is None

    def __enter__(self) -> Self:
        self._awake, self._waker = os.pipe()
        for end in (self._awake, self._waker):
            os.set_blocking(end, False)
        self._waker_before = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._remember) for number in SIGNALS}
        return self

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._waker_before)
        os.close(self._awake)
        os.close(self._waker)
