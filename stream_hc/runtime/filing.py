"""File documents one after the other: predict each, then learn from it if it came with its labels.

A pure state machine: the same documents in the same order give the same answers and the same state, however
they are cut into batches. What is wrong with a document is found before anything changes.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc.losses import h_loss, zero_one
from stream_hc.runtime.answers import write_predictions
from stream_hc.runtime.records import Document, Prediction, RecordError
from stream_hc.taxonomy import CostScheme, Taxonomy
from stream_hc.vectorize import FeatureError, Rows, TextVectorizer, from_dict

__all__ = ["Filed", "Filer", "OnlineLearner"]


class OnlineLearner(Protocol):
    """What is needed of a learner; every one in `stream_hc.learners` has it."""

    taxonomy: Taxonomy | None
    n_features: int

    @property
    def n_learned(self) -> int:
        """How many labelled documents it has seen."""

    def predict_many(self, X: Any, *, scores: bool) -> csr_array:
        """Return the predicted labels of each row, with their margins."""

    def predict_then_learn(self, X: Any, Y: Any, *, scores: bool) -> csr_array:
        """Predict each row, then learn from it."""

    def state(self) -> dict[str, Any]:
        """Return everything it knows."""


@dataclass(frozen=True)
class Filed:
    """What became of a batch: an answer or an error for each document, the losses of those with labels."""

    outcomes: list[Prediction | RecordError]
    n_labelled: int
    h_loss: float
    zero_one: float


class Filer:
    """A learner and a vectorizer that answer documents and learn from those with labels.

    Texts go through the vectorizer, which counts every text it meets. Features and vectors are scaled to
    length 1; number j of a vector is column j. All three may come in one stream, but share their columns.

    Parameters
    ----------
    taxonomy
        That of the learner.
    learner
        Predicts and learns.
    vectorizer
        With as many features as the learner; a fresh one if not given.
    model
        The name of the learner in the predictions.
    costs
        Of the H-loss that `file` returns.

    Examples
    --------
    >>> from stream_hc import HAROW
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport")])
    >>> filer = Filer(tax, HAROW(tax, n_features=64), model="h-arow")
    >>> filed = filer.file([Document("1", "ace", labels=["tennis"]), Document("2", "ace")])
    >>> [outcome.path_labels for outcome in filed.outcomes], filer.version
    ([[], ['sport', 'tennis']], 1)
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        learner: OnlineLearner,
        vectorizer: TextVectorizer | None = None,
        model: str = "",
        costs: CostScheme = "uniform",
    ) -> None:
        vectorizer = TextVectorizer(n_features=learner.n_features) if vectorizer is None else vectorizer
        if learner.taxonomy != taxonomy:
            raise ValueError("the learner was made for another taxonomy")
        if vectorizer.n_features != learner.n_features:
            raise ValueError(
                f"the vectorizer has n_features={vectorizer.n_features}, the learner {learner.n_features}"
            )
        self.taxonomy = taxonomy
        self.learner = learner
        self.vectorizer = vectorizer
        self.model = model or type(learner).__name__
        self._costs = taxonomy.costs(costs)
        self._known = frozenset(taxonomy.nodes)

    @property
    def version(self) -> int:
        """The number of documents learned from."""
        return self.learner.n_learned

    def parts(self) -> dict[str, Any]:
        """Return what `stream_hc.snapshot.save` takes; `from_parts` goes on from there."""
        return {"learner": self.learner, "vectorizer": self.vectorizer}

    @classmethod
    def from_parts(cls, parts: Mapping[str, Any], **options: Any) -> Self:
        """Go on with what `stream_hc.snapshot.load` returned; `ValueError` if it is something else.

        The options are `model` and `costs`.
        """
        if not isinstance(parts, Mapping) or parts.keys() != {"learner", "vectorizer"}:
            raise ValueError("not the snapshot of a filer: expected the parts 'learner' and 'vectorizer'")
        learner, vectorizer = parts["learner"], parts["vectorizer"]
        if not isinstance(vectorizer, TextVectorizer) or not hasattr(learner, "predict_then_learn"):
            kinds = f"{type(learner).__name__} and {type(vectorizer).__name__}"
            raise ValueError(f"not the snapshot of a filer: found {kinds}")
        if learner.taxonomy is None:
            raise ValueError("the learner grows its labels one by one and has no taxonomy to file by")
        return cls(learner.taxonomy, learner, vectorizer, **options)

    def file(self, documents: Sequence[Document]) -> Filed:
        """Answer each document in order, and learn from those with labels."""
        outcomes: list[Any] = [self._prepare(document) for document in documents]
        kept = [row for row, outcome in enumerate(outcomes) if not isinstance(outcome, RecordError)]
        accepted = [documents[row] for row in kept]
        X = self._rows(accepted, [outcomes[row] for row in kept])
        n_labelled, h_sum, wrong = 0, 0.0, 0.0
        first = 0
        for labelled, run in groupby(document.labels is not None for document in accepted):
            last = first + sum(1 for _ in run)
            part, Y = accepted[first:last], None
            if labelled:
                Y = self.taxonomy.encode([document.labels or () for document in part])
            predictions, predicted = self._answer(part, X[first:last], Y)
            for row, prediction in zip(kept[first:last], predictions, strict=True):
                outcomes[row] = prediction
            if Y is not None:
                n_labelled += len(part)
                h_sum += float(h_loss(self.taxonomy, predicted, Y, self._costs).sum())
                wrong += float(zero_one(self.taxonomy, predicted, Y).sum())
            first = last
        return Filed(outcomes, n_labelled, h_sum, wrong)

    # Documents -> rows

    def _prepare(self, document: Document) -> Rows | RecordError | None:
        """Return the row of features or a vector, None for a text, or what is wrong. Changes nothing."""
        if document.labels and not self._known.issuperset(document.labels):
            unknown = next(label for label in document.labels if label not in self._known)
            return RecordError("unknown_label", f"{repr(unknown)[:80]} is not in the taxonomy")
        if document.text is not None:
            return None
        n_features = self.learner.n_features
        if document.vector is not None and len(document.vector) > n_features:
            detail = f"{len(document.vector)} numbers, the learner has n_features={n_features}"
            return RecordError("vector_too_long", detail)
        try:
            if document.features is not None:
                return _unit(from_dict(cast(dict[Hashable, float], document.features), n_features))
        except FeatureError as error:
            return RecordError("number_out_of_range", str(error))
        return _unit(_dense(document.vector or []))

    def _rows(self, documents: Sequence[Document], prepared: Sequence[Rows | None]) -> csr_array:
        """Return all documents as one sparse array. The vectorizer learns the texts on the way."""
        texts = [document.text for document in documents if document.text is not None]
        matrix = self.vectorizer.learn_transform(texts)
        if len(texts) == len(documents):
            return matrix
        of_text = iter(zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True))
        indices: list[NDArray[Any]] = []
        values: list[NDArray[Any]] = []
        for row in prepared:
            begin, end = next(of_text) if row is None else (0, row.indices.size)
            indices.append(matrix.indices[begin:end] if row is None else row.indices)
            values.append(matrix.data[begin:end] if row is None else row.values)
        return _matrix(indices, values, self.learner.n_features)

    # Rows -> answers

    def _answer(
        self, documents: Sequence[Document], X: csr_array, Y: csr_array | None
    ) -> tuple[list[Prediction], csr_array]:
        """Answer documents that are all labelled or all not; learn from them if they are."""
        version = self.version
        if Y is None:
            predicted = self.learner.predict_many(X, scores=True)
        else:
            predicted = self.learner.predict_then_learn(X, Y, scores=True)
        predictions = write_predictions(
            self.taxonomy, documents, predicted, self.model, version, learning=Y is not None
        )
        # A margin of exactly 0 may be a prediction, too: as a number it would be taken for none.
        predicted.data = np.ones(predicted.data.size, np.bool_)
        return predictions, predicted


def _dense(vector: list[float]) -> Rows:
    values = np.array(vector, np.float32)
    indices = np.flatnonzero(values).astype(np.int32)
    return Rows(np.array([0, indices.size], np.int64), indices, values[indices])


def _unit(row: Rows) -> Rows:
    """Scale a row to length 1; one without features stays as it is."""
    values = row.values.astype(np.float64)
    length = float(np.sqrt(np.sum(values * values)))
    if length == 0.0:
        return row
    scaled = (values / length).astype(np.float32)
    used = scaled != 0  # beside a very large number a very small one vanishes
    return Rows(np.array([0, int(used.sum())], np.int64), row.indices[used], scaled[used])


def _matrix(indices: list[NDArray[Any]], values: list[NDArray[Any]], n_columns: int) -> csr_array:
    indptr = np.zeros(len(indices) + 1, np.int64)
    np.cumsum([row.size for row in indices], out=indptr[1:])
    matrix = csr_array(
        (np.concatenate(values), np.concatenate(indices), indptr), shape=(len(indices), n_columns)
    )
    matrix.has_canonical_format = True
    return matrix
