"""Baselines: a linear SVM at every node, by liblinear (needs the extra `compare`)."""

from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from stream_hc.checks import positive, whole_number
from stream_hc.kernels import Bools, Doubles, Ints
from stream_hc.taxonomy import Taxonomy, truncate_rows
from stream_hc.vectorize import feature_rows

__all__ = ["HSVM", "FlatSVM"]


class FlatSVM:
    """A linear SVM at every node, trained on all documents; what is predicted is truncated to the taxonomy.

    Squared hinge loss, as scikit-learn's `LinearSVC` has it. A node that is a label of all documents it is
    trained on, or of none, always or never predicts it.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    C
        How much a loss in training counts against the size of the weights.
    intercept
        Whether a node has a constant beside its weights.
    n_features
        Number of columns of the documents.

    Examples
    --------
    >>> from stream_hc import Taxonomy, TextVectorizer
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
    >>> words = TextVectorizer()
    >>> X = words.learn_transform(["a racket and a net", "votes for a law"])
    >>> model = FlatSVM(tax).fit(X, tax.encode([{"tennis"}, {"politics"}]))
    >>> tax.decode(model.predict_many(words.transform(["the net"]))) == [{"sport", "tennis"}]
    True
    """

    def __init__(
        self, taxonomy: Taxonomy, C: float = 1.0, intercept: bool = True, n_features: int = 2**18
    ) -> None:
        if not isinstance(taxonomy, Taxonomy):
            raise ValueError(f"taxonomy must be a Taxonomy, not {type(taxonomy).__name__}")
        self.taxonomy = taxonomy
        self.C = positive("C", C)
        self.intercept = intercept
        self.n_features = whole_number("n_features", n_features, 1, 2**31 - 1)
        self._weights: Doubles | None = None

    def fit(self, X: Any, Y: Any) -> Self:
        """Train all nodes on rows (n × n_features) and their labels; what was learned before is forgotten."""
        try:
            from sklearn.svm import LinearSVC  # noqa: PLC0415 - an extra that little else needs
        except ImportError as error:
            raise ImportError("SVMs need scikit-learn: pip install 'stream_hc[compare]'") from error
        rows = feature_rows(X, self.n_features)
        labels = self.taxonomy.label_rows(Y, close=True)
        if labels.shape[0] != rows.indptr.size - 1:
            raise ValueError(f"{rows.indptr.size - 1} documents, but labels for {labels.shape[0]}")
        if labels.shape[0] == 0:
            raise ValueError("no documents to train on: the window is empty")
        columns, true = np.unique(rows.indices), np.asarray(labels.toarray(), np.bool_)
        matrix = self._matrix(rows)[:, columns]
        # liblinear takes pointers of 32 bits only.
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
        weights, bias = np.zeros((columns.size, len(self.taxonomy))), np.full(len(self.taxonomy), -1.0)
        for node in range(len(self.taxonomy)):
            chosen = self._trained_on(node, true)
            y = true[chosen, node]
            if y.any() and not y.all():
                svm = LinearSVC(C=self.C, fit_intercept=self.intercept, random_state=0)
                svm.fit(matrix if chosen.size == true.shape[0] else matrix[chosen], y)
                weights[:, node], bias[node] = svm.coef_[0], np.ravel(svm.intercept_)[0]
            elif y.any():
                bias[node] = 1.0
        self._columns, self._weights, self._bias = columns, weights, bias
        return self

    def margins(self, X: Any) -> Doubles:
        """Return the margin of every row at every node."""
        if self._weights is None:
            raise ValueError("not trained: call fit first")
        used = self._matrix(feature_rows(X, self.n_features))[:, self._columns]
        found: Doubles = used @ self._weights + self._bias
        return found

    def predict_many(self, X: Any) -> csr_array:
        """Return the labels with a positive margin whose ancestors have one, too, as bool rows (n × N)."""
        return truncate_rows(self.taxonomy, csr_array(self.margins(X) > 0.0))

    def _trained_on(self, node: int, true: Bools) -> Ints:
        return np.arange(true.shape[0], dtype=np.int32)

    def _matrix(self, rows: Any) -> csr_array:
        shape = (rows.indptr.size - 1, self.n_features)
        return csr_array((rows.values, rows.indices, rows.indptr), shape=shape)


class HSVM(FlatSVM):
    """A linear SVM at every node, trained on the documents whose parents are true there; predicts top-down.

    Parameters are those of `FlatSVM`.

    Examples
    --------
    >>> from stream_hc import Taxonomy, TextVectorizer
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("golf", "sport")])
    >>> words = TextVectorizer()
    >>> X = words.learn_transform(["a racket and a net", "a club and a hole", "votes for a law"])
    >>> model = HSVM(tax).fit(X, tax.encode([{"tennis"}, {"golf"}, set()]))
    >>> tax.decode(model.predict_many(words.transform(["the racket"]))) == [{"sport", "tennis"}]
    True

    References
    ----------
    Cesa-Bianchi, Conconi, Gentile: Incremental algorithms for hierarchical classification (2004).
    """

    def _trained_on(self, node: int, true: Bools) -> Ints:
        chosen: Ints = np.flatnonzero(true[:, self.taxonomy.parents(node)].all(axis=1)).astype(np.int32)
        return chosen
