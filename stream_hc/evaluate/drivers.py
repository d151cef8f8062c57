"""Two ways to put a stream through a learner: rows in chunks, or river documents one by one.

Both predict a document before they learn it, learn it `delay` documents later, and time nothing but that.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from river import base, compose
from scipy.sparse import csr_array, issparse, vstack

from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import feature_rows

__all__ = [
    "DocumentDriver",
    "Driver",
    "Progress",
    "RowDriver",
    "driver_for",
    "last_step",
    "report",
    "same_length",
    "takes_rows",
    "taxonomy_of",
]

Progress: TypeAlias = Callable[[int, int], None]
RowNumbers: TypeAlias = NDArray[np.int64]


class RowDriver:
    """Drives a learner with an array path: `predict_then_learn`, or `fit` for one that learns in batches."""

    def __init__(self, model: Any, X: csr_array, Y: csr_array) -> None:
        self.model, self.X, self.Y = model, X, Y
        self.seconds = 0.0

    def stream(self, delay: int, chunk: int, progress: Progress | None) -> csr_array:
        """Predict, then learn, all rows in order."""
        if not hasattr(self.model, "predict_then_learn"):
            raise ValueError(f"{type(self.model).__name__} does not learn row by row: hold out a test set")
        # Nothing is learned from no rows, but the kernels are compiled: no document has to pay for that.
        self.model.predict_then_learn(self.X[:0], self.Y[:0])
        n_rows, parts = self.Y.shape[0], []
        step = max(chunk, delay)  # so that a row is copied twice at most, whatever the delay
        for first in range(0, n_rows, step):
            end, waiting = min(first + step, n_rows), min(first, delay)
            X, Y = self.X[first - waiting : end], self.Y[first - waiting : end]
            parts.append(self._timed(self.model.predict_then_learn, X, Y, delay=delay, start=waiting))
            report(progress, end, n_rows)
        return vstack(parts, format="csr") if parts else self.Y[:0]

    def learn(self, rows: RowNumbers, chunk: int, progress: Progress | None) -> None:
        """Learn these rows, in this order."""
        if not hasattr(self.model, "learn_many"):
            self._timed(self.model.fit, self.X[rows], self.Y[rows])
            return report(progress, rows.size, rows.size)
        self.model.learn_many(self.X[:0], self.Y[:0])
        for first in range(0, rows.size, chunk):
            part = rows[first : first + chunk]
            self._timed(self.model.learn_many, self.X[part], self.Y[part])
            report(progress, first + part.size, rows.size)

    def predict(self, rows: RowNumbers) -> csr_array:
        """Predict these rows and learn nothing."""
        return self._timed(self.model.predict_many, self.X[rows])

    def _timed(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        start = perf_counter()
        answer = call(*args, **kwargs)
        self.seconds += perf_counter() - start
        return answer


class DocumentDriver:
    """Drives any river multi-label classifier, or a pipeline that ends in one, document by document.

    Labels are given to it as a dict with every node of the taxonomy, as river's own classifiers need them.
    """

    def __init__(self, model: Any, documents: Sequence[Any], Y: csr_array, taxonomy: Taxonomy) -> None:
        self.model, self.documents, self.Y, self.taxonomy = model, documents, Y, taxonomy
        self.seconds = 0.0

    def stream(self, delay: int, chunk: int, progress: Progress | None) -> csr_array:
        """Predict, then learn, all documents in order."""
        n_documents, waiting, predicted = len(self.documents), deque[int](), []
        for row in range(n_documents):
            predicted.append(self._predict_one(row))
            waiting.append(row)
            if len(waiting) > delay:
                self._learn_one(waiting.popleft())
            if (row + 1) % chunk == 0 or row + 1 == n_documents:
                report(progress, row + 1, n_documents)
        return self.taxonomy.label_rows(predicted)

    def learn(self, rows: RowNumbers, chunk: int, progress: Progress | None) -> None:
        """Learn these documents, in this order."""
        for done, row in enumerate(rows.tolist(), start=1):
            self._learn_one(row)
            if done % chunk == 0 or done == rows.size:
                report(progress, done, rows.size)

    def predict(self, rows: RowNumbers) -> csr_array:
        """Predict these documents and learn nothing."""
        return self.taxonomy.label_rows([self._predict_one(row) for row in rows.tolist()])

    def _predict_one(self, row: int) -> list[str]:
        start = perf_counter()
        answer = self.model.predict_one(self.documents[row])
        self.seconds += perf_counter() - start
        return [label for label, on in answer.items() if on]

    def _learn_one(self, row: int) -> None:
        y = dict.fromkeys(self.taxonomy.nodes, False)
        for node in self.Y.indices[self.Y.indptr[row] : self.Y.indptr[row + 1]].tolist():
            y[self.taxonomy.nodes[node]] = True
        start = perf_counter()
        self.model.learn_one(self.documents[row], y)
        self.seconds += perf_counter() - start


Driver: TypeAlias = RowDriver | DocumentDriver


def driver_for(model: Any, X: Any, Y: Any, taxonomy: Taxonomy) -> Driver:
    """Choose the driver by what X is, and check that model, documents and labels fit together."""
    labels = taxonomy.label_rows(Y, close=True)
    if issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2):
        if not takes_rows(model):
            raise ValueError(
                f"{type(model).__name__} has no array path: give it its documents as a list, not as an array"
            )
        # Checked as a whole: a bad row is named by its own number, and nothing is learned before it.
        rows = feature_rows(X, X.shape[-1])
        same_length(X.shape[0], labels.shape[0])
        return RowDriver(model, csr_array((rows.values, rows.indices, rows.indptr), shape=X.shape), labels)
    if isinstance(X, str | Mapping) or not isinstance(X, Iterable):
        raise ValueError(f"expected documents as sparse rows or as a list, not {type(X).__name__}")
    if not isinstance(last_step(model), base.MultiLabelClassifier):
        raise ValueError(
            f"{type(last_step(model)).__name__} is not a multi-label classifier: documents in a list need a "
            "river MultiLabelClassifier, or a Pipeline that ends in one"
        )
    documents = X if isinstance(X, Sequence) else list(X)
    same_length(len(documents), labels.shape[0])
    return DocumentDriver(model, documents, labels, taxonomy)


def takes_rows(model: Any) -> bool:
    """Whether the model has the array path of this package (river's own mini-batches are something else)."""
    return hasattr(model, "predict_then_learn") or (hasattr(model, "fit") and hasattr(model, "predict_many"))


def last_step(model: Any) -> Any:
    """Return the model itself, or the end of a pipeline."""
    return list(model.steps.values())[-1] if isinstance(model, compose.Pipeline) else model


def taxonomy_of(model: Any, taxonomy: Taxonomy | None) -> Taxonomy:
    """Return the taxonomy to score with: the one given, or that of the model."""
    own: Taxonomy | None = getattr(last_step(model), "taxonomy", None)
    if own is None and taxonomy is None:
        raise ValueError(f"{type(last_step(model)).__name__} has no taxonomy: give one with taxonomy=...")
    if own is not None and taxonomy is not None and own != taxonomy:
        raise ValueError(f"{type(last_step(model)).__name__} was made for {own!r}, not for {taxonomy!r}")
    return own if taxonomy is None else taxonomy  # type: ignore[return-value]  # one of them is there


def same_length(n_documents: int, n_labels: int) -> None:
    """Refuse documents and labels of different numbers."""
    if n_documents != n_labels:
        raise ValueError(f"{n_documents} documents, but labels for {n_labels}")


def report(progress: Progress | None, done: int, total: int) -> None:
    """Tell whoever wants to know."""
    if progress is not None:
        progress(done, total)
