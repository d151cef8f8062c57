"""What takes part: something to time, or something that predicts labels to be judged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.sparse import csr_array

from bench.material import Split

__all__ = ["Contestant", "Entrant", "mid_stream"]


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
    name: str, group: str, documents: Sequence[tuple[Any, Any]], make: Callable[[], Any], ours: bool = False
) -> Contestant:
    """Time one document at a time, where such a learner is met: in the middle of a stream.

    The first four fifths of the documents are learned outside the clock, the last fifth inside.
    """
    cut = len(documents) * 4 // 5

    def run(model: Any, part: Sequence[tuple[Any, Any]] = documents[cut:]) -> None:
        for x, y in part:
            model.predict_one(x)
            model.learn_one(x, y)

    def prepare() -> Any:
        model = make()
        run(model, documents[:cut])
        return model

    return Contestant(name, group, len(documents) - cut, run, prepare, ours)


@dataclass(frozen=True)
class Entrant:
    """Something whose predictions are judged: one pass over the training half, then the test half.

    `predict` returns the labels of the test documents, n × N; they need not respect the taxonomy. A peer
    with `as_it_comes` false decides by a rule that was added here: it is listed, but need not be beaten.
    """

    name: str
    predict: Callable[[Split], csr_array]
    ours: bool = False
    as_it_comes: bool = True
