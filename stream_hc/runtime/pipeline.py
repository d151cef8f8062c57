"""One batch is prepared while the one before is applied, in another thread; results come in order."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Self

from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.outcome import Outcome
from stream_hc.runtime.processor import Processor

__all__ = ["Pipeline", "Processed"]


class Processed(NamedTuple):
    """What became of the lines of a source; `tag` is what came with them."""

    source: str
    outcome: Outcome
    tag: Any = None


class Pipeline:
    """Feeds a processor. Between `flush` and the next `put` nobody else works on it."""

    def __init__(self, processor: Processor) -> None:
        self._processor = processor
        self._pool = ThreadPoolExecutor(1, "processor")
        self._source, self._tag = "", None
        self._running: Future[Outcome] | None = None

    @property
    def busy(self) -> bool:
        """Whether a batch is under way, or nobody has asked what became of it."""
        return self._running is not None

    def put(self, source: str, lines: Sequence[Line], tag: Any = None) -> Processed | None:
        """Take a batch; returns what became of the one before, if there was one under way."""
        batch = self._processor.prepare(lines)
        before = self.flush()
        self._source, self._tag, self._running = source, tag, self._pool.submit(self._processor.apply, batch)
        return before

    def flush(self) -> Processed | None:
        """Wait for the batch under way, if there is one, and return what became of it."""
        if self._running is None:
            return None
        running, self._running = self._running, None
        return Processed(self._source, running.result(), self._tag)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
