"""The last labelled documents, as rows: what a model is fitted to.

Rows come in blocks that never change once they are closed, so a view of the window costs nothing, whatever it
holds, and may be read by another thread while the stream goes on.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from stream_hc.checks import whole_number
from stream_hc.kernels import Floats, Ints, Longs
from stream_hc.learners.base import LabelRows
from stream_hc.snapshot import register
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import LARGEST_FEATURE, Rows, joined, sliced

__all__ = ["Block", "Window", "WindowArrays", "joined_labels", "sliced_labels"]

BLOCK_ROWS = 256


class WindowArrays(NamedTuple):
    """The rows of a window, oldest first; `numbers` says the how many-th labelled document each was."""

    numbers: Longs
    indptr: Longs
    indices: Ints
    values: Floats
    label_ptr: Longs
    label_nodes: Ints


class Block(NamedTuple):
    """Rows that came after each other, from labelled document `first` on."""

    first: int
    rows: Rows
    labels: LabelRows

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return int(self.rows.indptr.size - 1)


NOTHING = Rows(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
UNLABELLED = LabelRows(np.zeros(1, np.int64), np.zeros(0, np.int32))


@register
class Window:
    """The last `size` labelled documents.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    n_features
        Columns of the rows.
    size
        How many documents it keeps.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport")])
    >>> window = Window(tax, n_features=10, size=2)
    >>> one = Rows(np.array([0, 1]), np.array([3], np.int32), np.array([1], np.float32))
    >>> for _ in range(3):
    ...     window.push(one, LabelRows(np.array([0, 2]), np.array([0, 1], np.int32)))
    >>> len(window), window.arrays().numbers
    (2, array([1, 2]))
    """

    def __init__(self, taxonomy: Taxonomy, n_features: int, size: int) -> None:
        self.taxonomy = taxonomy
        self.n_features = whole_number("n_features", n_features, 1, 2**31 - 1)
        self.size = whole_number("size", size, 1)
        self.end = 0  # the number of the next document
        self._blocks: deque[Block] = deque()
        self._open: list[Block] = []  # small ones, joined when there are enough rows
        self._open_rows = 0

    def __len__(self) -> int:
        first = self._blocks[0].first if self._blocks else self.end - self._open_rows
        return min(self.size, self.end - first)

    def push(self, rows: Rows, labels: LabelRows) -> None:
        """Append documents; the oldest make room."""
        n_rows = int(rows.indptr.size - 1)
        self._open.append(Block(self.end, rows, labels))
        self._open_rows += n_rows
        self.end += n_rows
        if self._open_rows >= BLOCK_ROWS:
            self._close()
        while self._blocks and self._blocks[0].first + self._blocks[0].n_rows <= self.end - self.size:
            self._blocks.popleft()

    def skip(self, n_rows: int) -> None:
        """Count documents that nobody will need, without keeping them."""
        self._blocks.clear()
        self._open, self._open_rows = [], 0
        self.end += n_rows

    def row(self, number: int) -> Rows | None:
        """Return the features of a labelled document, or None if it has left the window."""
        if not self.end - len(self) <= number < self.end:
            return None
        for block in reversed([*self._blocks, *self._open]):
            if block.first <= number:
                return sliced(block.rows, number - block.first, number - block.first + 1)
        raise AssertionError("a number between the first and the last is in a block")

    def relabel(self, number: int, nodes: Ints) -> None:
        """Give a document that is still there other labels, in a new block: views keep the old one."""
        self._close()
        for place, block in enumerate(self._blocks):
            at = number - block.first
            if 0 <= at < block.n_rows:
                parts = [sliced_labels(block.labels, 0, at), LabelRows(np.array([0, nodes.size]), nodes)]
                parts.append(sliced_labels(block.labels, at + 1, block.n_rows))
                self._blocks[place] = block._replace(labels=joined_labels(parts))

    def view(self) -> "Window":
        """Return the window as it is now; it stays so whatever is pushed here."""
        self._close()
        view = Window(self.taxonomy, self.n_features, self.size)
        view.end, view._blocks = self.end, self._blocks.copy()
        return view

    def arrays(self) -> WindowArrays:
        """Return all rows as arrays of their own."""
        blocks = [*self._blocks, *self._open]
        rows = joined([NOTHING, *(block.rows for block in blocks)])
        labels = joined_labels([UNLABELLED, *(block.labels for block in blocks)])
        n_rows, kept = int(rows.indptr.size - 1), len(self)
        rows, labels = sliced(rows, n_rows - kept, n_rows), sliced_labels(labels, n_rows - kept, n_rows)
        numbers = np.arange(self.end - kept, self.end, dtype=np.int64)
        copies: Any = [part.copy() for part in (*rows, *labels)]
        return WindowArrays(numbers, *copies)

    def _close(self) -> None:
        """Join what is open to one block."""
        if self._open:
            rows = joined([block.rows for block in self._open])
            labels = joined_labels([block.labels for block in self._open])
            self._blocks.append(Block(self._open[0].first, rows, labels))
            self._open, self._open_rows = [], 0

    def state(self) -> dict[str, Any]:
        """Return everything it holds as plain numbers, strings and copied arrays."""
        own = {"n_features": self.n_features, "size": self.size, "end": self.end}
        return {"taxonomy": self.taxonomy.to_json(), **own, **self.arrays()._asdict()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a window that goes on where `state` was taken, or raise `ValueError`."""
        window = cls(Taxonomy.from_json(state["taxonomy"]), state["n_features"], state["size"])
        given = WindowArrays(*(state[name] for name in WindowArrays._fields))
        window.end = whole_number("end", state["end"], 0, 2**62)
        n_rows = given.numbers.size
        if n_rows > window.size or not np.array_equal(
            given.numbers, np.arange(window.end - n_rows, window.end)
        ):
            raise ValueError("numbers must be those of the last labelled documents")
        _check_rows(given.indptr, given.indices, n_rows, window.n_features, "rows")
        _check_rows(given.label_ptr, given.label_nodes, n_rows, len(window.taxonomy), "labels")
        if given.values.dtype != np.float32 or given.values.shape != given.indices.shape:
            raise ValueError("values must be float32, one for each index")
        if not (np.abs(given.values) <= LARGEST_FEATURE).all():
            raise ValueError("values must be finite")
        if n_rows:
            rows, labels = Rows(*given[1:4]), LabelRows(*given[4:])
            window._blocks.append(Block(window.end - n_rows, rows, labels))
        return window


def sliced_labels(labels: LabelRows, first: int, last: int) -> LabelRows:
    """Return the labels of some rows; the nodes are a view."""
    begin, end = labels.indptr[first], labels.indptr[last]
    return LabelRows(labels.indptr[first : last + 1] - begin, labels.nodes[begin:end])


def joined_labels(parts: Sequence[LabelRows]) -> LabelRows:
    """Return labels that came in parts as one."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *(part.nodes.size for part in parts)])
    pointers = [part.indptr[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return LabelRows(
        np.concatenate([np.zeros(1, np.int64), *pointers]), np.concatenate([part.nodes for part in parts])
    )


def _check_rows(indptr: Longs, indices: Ints, n_rows: int, n_columns: int, what: str) -> None:
    if indptr.dtype != np.int64 or indices.dtype != np.int32 or indptr.shape != (n_rows + 1,):
        raise ValueError(f"{what}: pointers and indices do not fit {n_rows} rows")
    if indptr[0] != 0 or indptr[-1] != indices.size or (np.diff(indptr) < 0).any():
        raise ValueError(f"{what}: pointers must ascend from 0 to the number of indices")
    if indices.size and not 0 <= indices.min() <= indices.max() < n_columns:
        raise ValueError(f"{what}: indices must be below {n_columns}")
    inner = np.ones(indices.size, np.bool_)
    inner[indptr[:-1][indptr[:-1] < indices.size]] = False
    if (np.diff(indices, prepend=0)[inner] <= 0).any():
        raise ValueError(f"{what}: indices of a row must ascend")
