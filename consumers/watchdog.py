"""What may hang is given a time: single calls, and the process as a whole."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from kafka.errors import KafkaTimeoutError

from stream_hc.cli.errors import Code

__all__ = ["Watchdog", "timed"]

T = TypeVar("T")


def timed(seconds: float, what: str, call: Callable[..., T], *args: Any) -> T:
    """Return what a call returns, or raise `KafkaTimeoutError` while it goes on in a thread of its own.

    Some calls of the client wait for a broker without an end. Who gives up one of them must not use the same
    client again.
    """
    result: Future[T] = Future()

    def work() -> None:
        try:
            result.set_result(call(*args))
        except BaseException as error:  # it is raised again where it is waited for
            result.set_exception(error)

    # A daemon: the interpreter does not wait for it at the end.
    threading.Thread(target=work, name=what, daemon=True).start()
    try:
        return result.result(seconds)
    except TimeoutError:
        raise KafkaTimeoutError(f"{what} takes longer than {seconds:g} s") from None


class Watchdog:
    """Ends the process when nothing has moved for too long: whoever watches over it starts it again.

    Nothing is lost by that: what was not committed is done again.
    """

    def __init__(self, seconds: float, end: Callable[[], object] | None = None) -> None:
        self._seconds = seconds
        self._end = self._end_process if end is None else end
        self._last = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def beat(self) -> None:
        """Say that something has moved."""
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        self.beat()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(min(1.0, self._seconds / 4)):
            if time.monotonic() - self._last > self._seconds:
                self._end()
                return

    def _end_process(self) -> None:
        told = f"error: nothing has moved for {self._seconds:g} s: ending, to be started again\n"
        os.write(2, told.encode())
        os._exit(Code.STUCK)  # the main thread hangs: nobody else can end it
