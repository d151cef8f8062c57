"""napkinXC: a probabilistic label tree, trained in one pass by AdaGrad."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from napkinxc.models import PLT
from scipy.sparse import csr_array, csr_matrix

from bench.contest import Contestant, Entrant
from bench.labels import rows_of_labels
from bench.material import Material, Split
from bench.ours import ROWS_GROUP
from bench.peers.quiet import quiet

__all__ = ["TREE", "contestants", "deep_contestants", "entrants"]

TREE = "napkinXC PLT"


def contestants(material: Material) -> list[Contestant]:
    """Return the tree; learning alone."""
    X, Y = _matrix(material.X), _lists(material.Y)
    return [
        Contestant(
            TREE, ROWS_GROUP, X.shape[0], lambda model: _fit(model, X, Y), lambda: _tree(material.folder)
        )
    ]


deep_contestants = contestants


def entrants() -> list[Entrant]:
    """Return the tree."""
    return [Entrant(TREE, _train_and_test)]


def _tree(folder: Path, **options: Any) -> PLT:
    settings = {
        "tree_type": "huffman",
        "optimizer": "adagrad",
        "epochs": 1,
        "threads": 1,
        "seed": 1,
    } | options
    return PLT(tempfile.mkdtemp(prefix="napkin-", dir=folder), **settings)


def _fit(model: PLT, X: csr_matrix, Y: list[list[int]]) -> None:
    with quiet():
        model.fit(X, Y)


def _train_and_test(split: Split, **options: Any) -> csr_array:
    model = _tree(split.folder, **options)
    _fit(model, _matrix(split.X_train), _lists(split.train.Y))
    with quiet():
        answers = model.predict(_matrix(split.X_test), threshold=0.5)
    return rows_of_labels(answers, split.train.stream.taxonomy)


def _matrix(X: csr_array) -> csr_matrix:
    return csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def _lists(Y: csr_array) -> list[list[int]]:
    return [nodes.tolist() for nodes in np.split(Y.indices, Y.indptr[1:-1])]
