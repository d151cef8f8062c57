"""The last documents that met their labels: which were wrong at a node, and how."""

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Literal

import msgspec
import numpy as np

from stream_hc.kernels import Ints, Longs
from stream_hc.learners.base import LabelRows, Predicted
from stream_hc.runtime.outcome import Lessons
from stream_hc.taxonomy import Taxonomy

__all__ = ["Mistake", "Mistakes"]

KEPT = 5_000  # documents
SHOWN = 20


class Mistake(msgspec.Struct):
    """A document that was wrong at a node: it belongs there and was not filed there, or the other way round.

    `labelled` tells its place among the labelled documents of this process; `predicted` and `true` are the
    most specific labels.
    """

    id: str
    labelled: int
    model: str
    loss: float
    kind: Literal["missed", "wrong"]
    predicted: list[str]
    true: list[str]


class Mistakes:
    """Keeps the arrays of the last batches; nothing is looked at before somebody asks."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self._kept: deque[tuple[int, Lessons]] = deque()
        self._n_seen = 0

    def add(self, lessons: Lessons) -> None:
        """Keep some, and forget what is too old."""
        names = lessons.served[:1]  # mostly all the same: then nobody has to look at each
        if lessons.served.count(names[0]) < len(lessons.served):
            names = list(dict.fromkeys(lessons.served))
        served = {name: lessons.charged[name] for name in names}
        self._kept.append((self._n_seen, lessons._replace(charged=served)))
        self._n_seen += len(lessons.served)
        while len(self._kept) > 1 and self._n_seen - self._kept[1][0] >= KEPT:
            self._kept.popleft()

    def at_node(self, node: int, most: int = SHOWN) -> list[Mistake]:
        """Return the last mistakes at a node, newest first."""
        return list(islice(self._at_node(node), most))

    def _at_node(self, node: int) -> Iterator[Mistake]:
        for number, lessons in reversed(self._kept):
            true = _rows_with(lessons.labels.indptr, lessons.labels.nodes, node)
            wrong: list[int] = []
            for name, charged in lessons.charged.items():
                filed = _rows_with(charged.predicted.indptr, charged.predicted.nodes, node)
                differing = np.setxor1d(true, filed, assume_unique=True).tolist()
                wrong += [row for row in differing if lessons.served[row] == name]
            missed = set(true.tolist())
            for row in sorted(wrong, reverse=True):
                name = lessons.served[row]
                yield Mistake(
                    lessons.ids[row],
                    number + row + 1,
                    name,
                    float(lessons.charged[name].losses[row]),
                    "missed" if row in missed else "wrong",
                    self._names(lessons.charged[name].predicted, row),
                    self._names(lessons.labels, row),
                )

    def _names(self, rows: Predicted | LabelRows, row: int) -> list[str]:
        names = self._taxonomy.nodes
        nodes = rows.nodes[rows.indptr[row] : rows.indptr[row + 1]].tolist()
        ends = self._taxonomy.most_specific({names[node] for node in nodes})
        return [names[node] for node in nodes if names[node] in ends]


def _rows_with(indptr: Longs, nodes: Ints, node: int) -> Longs:
    """Return the rows that have a node."""
    places = np.flatnonzero(nodes == node)
    return np.searchsorted(indptr, places, side="right") - 1
