"""Documents kept in memory, each once, with an index that multiplies new ones by all of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import Bools, Doubles, Ints, Longs
from stream_hc.kernels import documents as kernels
from stream_hc.vectorize import Rows

__all__ = ["DocumentStore"]


class DocumentStore:
    """Documents in CSR form, numbered in the order they came.

    Each has a stamp, ascending, which it keeps whichever others are dropped: the how many-th one it was.

    Parameters
    ----------
    n_features
        Number of columns of the documents.
    """

    def __init__(self, n_features: int) -> None:
        self.n_documents = 0
        self.ptr = np.zeros(1, np.int64)
        self.features = np.empty(0, np.int32)
        self.values = np.empty(0, np.float32)
        self.squares = np.empty(0, np.float64)
        self.stamps = np.empty(0, np.int64)
        # Two notebooks with a number for each feature; zero pages cost no memory until they are written.
        self.lookup = np.zeros(n_features, np.int32)
        self._place = np.zeros(n_features, np.int32)
        self._n_indexed = 0
        self._found, self._members = np.zeros(0, np.int32), np.zeros(0, np.int32)
        self._ends, self._entries = np.zeros(1, np.int64), np.zeros(0, np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes held by the documents and their index."""
        documents = (self.ptr, self.features, self.values, self.squares, self.stamps)
        index = (self._found, self._ends, self._members, self._entries)
        return sum(array.nbytes for array in (*documents, *index))

    def rows(self) -> Rows:
        """Return a copy of the documents."""
        n_entries = int(self.ptr[self.n_documents])
        return Rows(
            self.ptr[: self.n_documents + 1].copy(),
            self.features[:n_entries].copy(),
            self.values[:n_entries].copy(),
        )

    def add(self, rows: Rows, first: int, last: int, stamps: Longs) -> None:
        """Append documents, each with its stamp."""
        part = slice(int(rows.indptr[first]), int(rows.indptr[last]))
        at, n_old, n_new = int(self.ptr[self.n_documents]), self.n_documents, last - first
        self._make_room(n_old + n_new, at + part.stop - part.start)
        self.features[at : at + part.stop - part.start] = rows.indices[part]
        self.values[at : at + part.stop - part.start] = rows.values[part]
        self.ptr[n_old + 1 : n_old + n_new + 1] = rows.indptr[first + 1 : last + 1] - part.start + at
        kernels.square_rows(
            self.ptr[n_old : n_old + n_new + 1], self.values, self.squares[n_old : n_old + n_new]
        )
        self.stamps[n_old : n_old + n_new] = stamps
        self.n_documents += n_new

    def keep(self, first: int, used: Bools) -> None:
        """Drop the documents from number `first` on that are not used; the others move up."""
        if used.all():
            return
        begin, end = int(self.ptr[first]), int(self.ptr[self.n_documents])
        lengths = np.diff(self.ptr[first : self.n_documents + 1])
        entries = np.repeat(used, lengths)
        for array in (self.features, self.values):
            kept = array[begin:end][entries]
            array[begin : begin + kept.size] = kept
        n_kept = int(np.count_nonzero(used))
        for numbers in (self.squares, self.stamps):
            numbers[first : first + n_kept] = numbers[first : self.n_documents][used]
        self.n_documents = first + n_kept
        self.ptr[first + 1 : self.n_documents + 1] = begin + np.cumsum(lengths[used])
        if first < self._n_indexed:
            self._renew_index()

    def multiply(self, rows: Rows, first: int, last: int, lookup: Ints, products: Doubles) -> None:
        """Multiply rows by all documents. Writes `products`, and leaves `lookup` as it was: full of zeros."""
        index = (self._place, self._ends, self._members, self._entries)
        x = (rows.indptr, rows.indices, rows.values)
        kernels.multiply_indexed(*index, self._n_indexed, *x, first, last, products)
        rest = (self.ptr, self.features, self.values, self._n_indexed, self.n_documents)
        kernels.multiply_rows(*rest, *x, first, last, lookup, products)

    def refresh_index(self) -> None:
        """Take all documents into the index if too many are missing: a walk over those costs more."""
        if self.n_documents - self._n_indexed > 32 + self._n_indexed // 32:
            self._renew_index()

    def _renew_index(self) -> None:
        self._found, self._ends, self._members, self._entries = kernels.index_documents(
            self.ptr, self.features, self.values, self.n_documents, self._found, self._place
        )
        self._n_indexed = self.n_documents

    def _make_room(self, n_documents: int, n_entries: int) -> None:
        if n_documents > self.squares.size:
            self.squares = _longer(self.squares, n_documents + n_documents // 4)
            self.stamps = _longer(self.stamps, self.squares.size)
            self.ptr = _longer(self.ptr, self.squares.size + 1)
        if n_entries > self.features.size:
            self.features = _longer(self.features, n_entries + n_entries // 4)
            self.values = _longer(self.values, self.features.size)


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    longer = np.empty(size, array.dtype)
    longer[: array.size] = array
    return longer
