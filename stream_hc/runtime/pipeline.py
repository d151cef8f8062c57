"""One batch is prepared while the one before is applied, in another thread; results come in order."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import Any, NamedTuple, Self

from stream_hc.runtime.batches import RecordBatch
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.outcome import Outcome
from stream_hc.runtime.processor import Processor

__all__ = ["Pipeline", "Processed", "Took"]


class Took(NamedTuple):
    """Seconds for both halves of `Processor.process`."""

    prepare: float = 0.0
    apply: float = 0.0


class Processed(NamedTuple):
    """What became of the lines of a source; `tag` is what came with them."""

    source: str
    outcome: Outcome
    tag: Any = None
    took: Took = Took()


class Pipeline:
    """Feeds a processor. Between `flush` and the next `put` nobody else works on it."""

    def __init__(self, processor: Processor) -> None:
        self._processor = processor
        self._pool = ThreadPoolExecutor(1, "processor")
        self._source, self._tag = "", None
        self._running: Future[tuple[Outcome, Took]] | None = None

    @property
    def busy(self) -> bool:
        """Whether a batch is under way, or nobody has asked what became of it."""
        return self._running is not None

    def put(self, source: str, lines: Sequence[Line], tag: Any = None) -> Processed | None:
        """Take a batch; returns what became of the one before, if there was one under way."""
        began = perf_counter()
        batch = self._processor.prepare(lines)
        took = perf_counter() - began
        before = self.flush()
        self._source, self._tag = source, tag
        self._running = self._pool.submit(self._apply, batch, took)
        return before

    def _apply(self, batch: RecordBatch, prepare: float) -> tuple[Outcome, Took]:
        began = perf_counter()
        outcome = self._processor.apply(batch)
        return outcome, Took(prepare, perf_counter() - began)

    def flush(self) -> Processed | None:
        """Wait for the batch under way, if there is one, and return what became of it."""
        if self._running is None:
            return None
        running, self._running = self._running, None
        outcome, took = running.result()
        return Processed(self._source, outcome, self._tag, took)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
