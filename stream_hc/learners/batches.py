"""A stream cut into batches, each with the products of its rows with the stored documents."""

import numpy as np

from stream_hc.kernels import Bools, Doubles
from stream_hc.kernels.documents import square_rows
from stream_hc.kernels.rls import Batch, Documents
from stream_hc.learners.base import NO_LABELS, LabelRows
from stream_hc.learners.instances import Instances
from stream_hc.learners.workers import Workers
from stream_hc.vectorize import Rows

__all__ = ["Batches", "with_squares"]

BATCH_ROWS = 256
BATCH_PRODUCTS = 2**22  # 32 MB
WORTH_A_THREAD = 2**18  # products


class Batches:
    """Makes batches of a stream: row l, learned `delay` rows later, is the (t + l)-th document learned."""

    def __init__(
        self,
        stored: Instances,
        workers: Workers,
        rows: Rows,
        labels: LabelRows = NO_LABELS,
        delay: int = -1,
        t: int = 0,
    ) -> None:
        self.x = with_squares(rows)
        self._stored, self._workers, self._t = stored, workers, t
        self._rows, self._labels, self._delay = rows, labels, delay

    def size(self) -> int:
        """Return how many rows a batch may have, so that its products take little memory."""
        return max(1, min(BATCH_ROWS, BATCH_PRODUCTS // (self._stored.documents.n_documents + BATCH_ROWS)))

    def make(self, first: int, on: Bools, scores: Doubles) -> Batch:
        """Return the batch from row `first` on; what it teaches is appended to the stored documents."""
        n_steps, delay = on.shape[0], self._delay
        silent = n_steps if delay < 0 else min(max(delay - first, 0), n_steps)
        begin, end = first + silent - delay, first + n_steps - delay  # the rows it learns
        y_true = np.zeros_like(on)
        document = self._stored.documents.n_documents
        if silent < n_steps:
            self._stored.add_documents(self._rows, begin, end, self._t + begin)
            ptr = self._labels.indptr[begin : end + 1]
            steps = np.repeat(np.arange(silent, n_steps), np.diff(ptr))
            y_true[steps, self._labels.nodes[ptr[0] : ptr[-1]]] = True
        seen = taught = self.products(first, first + n_steps)
        if delay > 0:
            taught = np.empty_like(seen)
            if silent < n_steps:
                taught[silent:] = self.products(begin, end)
        t = self._t + begin
        return Batch(self.x, first, seen, taught, y_true, delay, silent, document, t, on, scores)

    def products(self, first: int, last: int) -> Doubles:
        """Return the products of some rows with all stored documents."""
        documents, n_rows = self._stored.documents, last - first
        products = np.empty((n_rows, documents.n_documents))
        n_parts = min(n_rows, self._workers.n_threads) if products.size >= WORTH_A_THREAD else 1
        ends = [n_rows * part // n_parts for part in range(n_parts + 1)]

        def call(part: int) -> None:
            begin, end = ends[part], ends[part + 1]
            # A new notebook of zeros costs next to nothing, but two threads cannot share one.
            lookup = documents.lookup if part == 0 else np.zeros_like(documents.lookup)
            documents.multiply(self._rows, first + begin, first + end, lookup, products[begin:end])

        self._workers.map(call, range(n_parts))
        return products


def with_squares(rows: Rows) -> Documents:
    """Return the rows with ‖x‖² of each."""
    squares = np.empty(rows.indptr.size - 1)
    square_rows(rows.indptr, rows.values, squares)
    return Documents(*rows, squares)
