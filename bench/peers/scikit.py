"""scikit-learn: `HashingVectorizer`, and a linear model at every node with `partial_fit` in batches."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import Perceptron, SGDClassifier

from bench.contest import Contestant, Entrant
from bench.material import Material, Split
from bench.ours import BATCH, ROWS_GROUP, TEXT_GROUP

__all__ = ["HASHING", "NODES", "contestants", "entrants", "from_texts", "nodes"]

HASHING = "scikit-learn HashingVectorizer"
NODES = "scikit-learn Perceptron per node"
PA_NODES = "scikit-learn SGD pa1 per node"

Models = list[Any]


def contestants(material: Material) -> list[Contestant]:
    """Return the vectorizer and both kinds of model."""
    return [
        from_texts(material),
        nodes(material),
        nodes(material, PA_NODES, _passive_aggressive),
    ]


def from_texts(material: Material) -> Contestant:
    """Tokens, hash, counts, unit rows; no idf."""
    texts = material.stream.texts
    vectorizer = HashingVectorizer(n_features=2**18)
    return Contestant(HASHING, TEXT_GROUP, len(texts), lambda _: vectorizer.transform(texts))


def nodes(material: Material, name: str = NODES, make: Callable[[], Any] | None = None) -> Contestant:
    """One model for each node, learning batch after batch; predicting is not even asked for."""
    X, dense = _narrow(material.X, np.unique(material.X.indices)), material.Y.toarray()
    starts = range(0, X.shape[0], BATCH)
    batches = [(X[start : start + BATCH], dense[start : start + BATCH].T.copy()) for start in starts]

    def run(models: Models) -> None:
        for part, labels in batches:
            _learn(models, part, labels)

    n_nodes = dense.shape[1]
    return Contestant(
        name, ROWS_GROUP, X.shape[0], run, lambda: [(make or _perceptron)() for _ in range(n_nodes)]
    )


def entrants() -> list[Entrant]:
    """Return both kinds of model."""
    return [
        Entrant(NODES, lambda split: _train_and_test(split, _perceptron)),
        Entrant(PA_NODES, lambda split: _train_and_test(split, _passive_aggressive)),
        # A threshold was chosen for ours (seed 1), so one is chosen for the strongest peer in the same way.
        Entrant(
            f"{PA_NODES}, threshold −0.2",
            lambda split: _train_and_test(split, _passive_aggressive, -0.2),
        ),
        Entrant("scikit-learn SGD hinge per node", lambda split: _train_and_test(split, _hinge)),
    ]


def _perceptron() -> Perceptron:
    return Perceptron(random_state=0)


def _passive_aggressive() -> SGDClassifier:
    # What PassiveAggressiveClassifier was; eta0 is its C.
    return SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1", eta0=1.0, random_state=0)


def _hinge() -> SGDClassifier:
    return SGDClassifier(loss="hinge", alpha=3e-5, random_state=0)


def _train_and_test(split: Split, make: Callable[[], Any], threshold: float = 0.0) -> csr_array:
    used = np.unique(split.X_train.indices)
    X, dense = _narrow(split.X_train, used), split.train.Y.toarray()
    models = [make() for _ in range(dense.shape[1])]
    for start in range(0, X.shape[0], BATCH):
        _learn(models, X[start : start + BATCH], dense[start : start + BATCH].T)
    weights = np.stack([model.coef_[0] for model in models], axis=1)
    margins = _narrow(split.X_test, used) @ weights + np.array([model.intercept_[0] for model in models])
    return csr_array(margins > threshold)


def _learn(models: Models, X: csr_matrix, labels_by_node: Any) -> None:
    for model, labels in zip(models, labels_by_node, strict=True):
        model.partial_fit(X, labels, classes=(False, True))


def _narrow(X: csr_array, used: NDArray[np.int64]) -> csr_matrix:
    """Return the columns in use, with 32-bit indices as scikit-learn wants them.

    Its models are dense: on all 2^18 columns they were four times as slow.
    """
    rows = csr_matrix(X[:, used])
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows
