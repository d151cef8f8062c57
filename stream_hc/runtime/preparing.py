"""Documents -> rows of features and labels, or what is wrong with them."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc.kernels import Bools
from stream_hc.runtime.records import Document, RecordError
from stream_hc.taxonomy import Taxonomy, TaxonomyError
from stream_hc.vectorize import FeatureError, Rows, SequenceVectorizer, TextVectorizer, from_dict

__all__ = ["Prepared", "Preparer"]


class Prepared(NamedTuple):
    """A batch on its way: what is wrong with some documents, and the others with their rows.

    A document without labels has an empty row in `Y`; `is_labelled` tells it from one that has none.
    """

    documents: Sequence[Document]
    errors: dict[int, RecordError]
    X: csr_array
    Y: csr_array
    is_labelled: Bools


class Preparer:
    """Bring documents to rows: texts by the vectorizer; features and vectors to length 1.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    vectorizer
        Its columns are shared by all documents.
    learns
        Whether the vectorizer learns the texts on the way.
    """

    def __init__(
        self, taxonomy: Taxonomy, vectorizer: TextVectorizer | SequenceVectorizer, learns: bool = True
    ) -> None:
        self.taxonomy = taxonomy
        self.vectorizer = vectorizer
        self.n_features = vectorizer.n_features
        self._known = frozenset(taxonomy.nodes)
        self._ascii_only = isinstance(vectorizer, SequenceVectorizer)
        self._to_rows = vectorizer.learn_transform if learns else vectorizer.transform

    def prepare(self, documents: Sequence[Document]) -> Prepared:
        """Put aside what cannot be used; bring the rest to rows. Only the vectorizer changes, if at all."""
        texts = [document.text for document in documents]
        if None in texts or (self._ascii_only and not all([text.isascii() for text in texts if text])):
            return self._prepare_each(documents)
        try:  # all texts with known labels, the usual case, need no look at each document
            Y, is_labelled = self._label_rows(documents)
        except TaxonomyError:
            return self._prepare_each(documents)
        X = self._to_rows(cast(list[str], texts))
        return Prepared(documents, {}, X, Y, is_labelled)

    def _prepare_each(self, documents: Sequence[Document]) -> Prepared:
        rows, errors = self._checked(documents)
        sound = [document for place, document in enumerate(documents) if place not in errors]
        Y, is_labelled = self._label_rows(sound)
        return Prepared(sound, errors, self._feature_rows(sound, rows), Y, is_labelled)

    def _label_rows(self, documents: Sequence[Document]) -> tuple[csr_array, Bools]:
        """Return the labels, and which documents have any, be it an empty list."""
        given = [document.labels for document in documents]
        if None not in given:
            return self.taxonomy.encode(cast(list[list[str]], given)), np.ones(len(given), np.bool_)
        is_labelled = np.array([labels is not None for labels in given], np.bool_)
        return self.taxonomy.encode([labels or () for labels in given]), is_labelled

    def _checked(self, documents: Sequence[Document]) -> tuple[list[Rows | None], dict[int, RecordError]]:
        """Return the rows of the documents that can be used, and what is wrong with the others."""
        rows: list[Rows | None] = []
        errors: dict[int, RecordError] = {}
        for place, document in enumerate(documents):
            try:
                rows.append(self.row(document))
            except RecordError as error:
                errors[place] = error
        return rows, errors

    def check_labels(self, labels: Sequence[str] | None) -> None:
        """Raise `RecordError` for a label that is not in the taxonomy."""
        if labels and not self._known.issuperset(labels):
            unknown = next(label for label in labels if label not in self._known)
            raise RecordError("unknown_label", f"{repr(unknown)[:80]} is not in the taxonomy")

    def row(self, document: Document) -> Rows | None:
        """Return the row of features or a vector, None for a text; `RecordError` if something is wrong."""
        self.check_labels(document.labels)
        if document.text is not None:
            if self._ascii_only and not document.text.isascii():
                raise RecordError("not_a_sequence", "a sequence must be written in ASCII letters")
            return None
        n_features = self.n_features
        if document.vector is not None and len(document.vector) > n_features:
            detail = f"{len(document.vector)} numbers, the learner has n_features={n_features}"
            raise RecordError("vector_too_long", detail)
        try:
            if document.features is not None:
                return _unit(from_dict(cast(dict[Hashable, float], document.features), n_features))
        except FeatureError as error:
            raise RecordError("number_out_of_range", str(error)) from None
        return _unit(_dense(document.vector or []))

    def _feature_rows(self, documents: Sequence[Document], rows: Sequence[Rows | None]) -> csr_array:
        """Return all documents as one sparse array."""
        texts = [document.text for document in documents if document.text is not None]
        matrix = self._to_rows(texts)
        if len(texts) == len(documents):
            return matrix
        of_text = iter(zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True))
        indices: list[NDArray[Any]] = []
        values: list[NDArray[Any]] = []
        for row in rows:
            begin, end = next(of_text) if row is None else (0, row.indices.size)
            indices.append(matrix.indices[begin:end] if row is None else row.indices)
            values.append(matrix.data[begin:end] if row is None else row.values)
        return _matrix(indices, values, self.n_features)


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
