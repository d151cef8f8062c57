"""What takes part: something to time, or something that predicts labels to be judged."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from typing import Any

from scipy.sparse import csr_array

from bench.material import Split

__all__ = ["Contestant", "Entrant", "mid_stream"]

PARTS = 5


def _nothing() -> None:
    """Prepare nothing."""


@dataclass(frozen=True)
class Contestant:
    """Something whose speed is measured.

    Parameters
    ----------
    name
        Unique; the ratios refer to it.
    group
        What it takes and gives, as a heading of the table.
    documents
        How many documents a run handles.
    run
        What is timed; it gets what `prepare` returned.
    prepare
        Called before each run, outside the clock: makes a fresh model.
    ours
        Whether it belongs to this package.
    """

    name: str
    group: str
    documents: int
    run: Callable[[Any], object]
    prepare: Callable[[], Any] = _nothing
    ours: bool = False


def mid_stream(
    name: str,
    group: str,
    n_documents: int,
    documents: Callable[[], Sequence[tuple[Any, Any]]],
    make: Callable[[], Any],
    ours: bool = False,
) -> Contestant:
    """Time one document at a time, where such a learner is met: in the middle of a stream.

    `documents` returns the stream, of `n_documents`, when it is needed: as dicts it is large.

    The first four fifths of the documents are learned once, outside the clock. Each round then goes on with
    the next part of the last fifth, in five parts; a sixth round begins there anew.
    """
    first = n_documents * 4 // 5
    size = max(1, (n_documents - first) // PARTS)

    @cache
    def learned() -> tuple[Any, Iterator[Sequence[tuple[Any, Any]]]]:
        model, stream = make(), documents()
        for x, y in stream[:first]:
            model.learn_one(x, y)
        return model, cycle([stream[first + part * size :][:size] for part in range(PARTS)])

    def run(prepared: tuple[Any, Iterator[Sequence[tuple[Any, Any]]]]) -> None:
        model, parts = prepared
        for x, y in next(parts):
            model.predict_one(x)
            model.learn_one(x, y)

    return Contestant(name, group, size, run, learned, ours)


@dataclass(frozen=True)
class Entrant:
    """Something whose predictions are judged: one pass over the training half, then the test half.

    `predict` returns the labels of the test documents, n × N; they need not respect the taxonomy.
    """

    name: str
    predict: Callable[[Split], csr_array]
    ours: bool = False
