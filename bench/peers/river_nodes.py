"""What a river user builds by hand: a binary model at every node, predicted from the roots downward."""

from collections.abc import Callable, Collection, Hashable
from typing import Any

import numpy as np
from river import feature_extraction, linear_model
from scipy.sparse import csr_array

from bench.contest import Contestant, Entrant, mid_stream
from bench.labels import rows_of_labels
from bench.material import Material, Split
from bench.ours import DICT_GROUP, TEXT_GROUP
from stream_hc import Taxonomy

__all__ = ["NODES", "RiverTopDown", "contestants", "entrants", "from_texts"]

NODES = "river perceptrons, top-down"
PA_NODES = "river PA, top-down"

X = dict[Hashable, float]


class RiverTopDown:
    """A model of river's at every node of a forest, trained where the parent label holds.

    Only children of nodes predicted on are asked, only children of true nodes are trained.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    make
        Returns a fresh binary classifier.
    """

    def __init__(self, taxonomy: Taxonomy, make: Callable[[], Any] = linear_model.Perceptron) -> None:
        self.models = [make() for _ in taxonomy]
        self._roots = taxonomy.roots.tolist()
        self._children = [taxonomy.children(node).tolist() for node in range(len(taxonomy))]

    def predict_one(self, x: X) -> set[int]:
        """Return the nodes that are on."""
        on: set[int] = set()
        waiting = list(self._roots)
        while waiting:
            node = waiting.pop()
            if self.models[node].predict_one(x):
                on.add(node)
                waiting += self._children[node]
        return on

    def learn_one(self, x: X, nodes: Collection[int]) -> None:
        """Learn from the true nodes, closed upward."""
        for node in self._roots:
            self.models[node].learn_one(x, node in nodes)
        for parent in nodes:
            for node in self._children[parent]:
                self.models[node].learn_one(x, node in nodes)


def contestants(material: Material) -> list[Contestant]:
    """Perceptrons and passive-aggressive models, one document at a time."""
    stream = material.stream

    def contestant(name: str, make: Callable[[], Any]) -> Contestant:
        return mid_stream(
            name,
            DICT_GROUP,
            len(stream.texts),
            lambda: list(zip(material.dicts, _true_nodes(material.Y), strict=True)),
            lambda: RiverTopDown(stream.taxonomy, make),
        )

    return [contestant(NODES, linear_model.Perceptron), contestant(PA_NODES, _passive_aggressive)]


def from_texts(material: Material) -> Contestant:
    """River's tf-idf, one text at a time: learn, then transform."""
    texts = material.stream.texts

    def run(model: feature_extraction.TFIDF) -> list[dict[str, float]]:
        rows = []
        for text in texts:
            model.learn_one(text)
            rows.append(model.transform_one(text))
        return rows

    return Contestant("river TFIDF", TEXT_GROUP, len(texts), run, feature_extraction.TFIDF)


def entrants() -> list[Entrant]:
    """Return both."""
    return [
        Entrant(NODES, lambda split: _train_and_test(split, linear_model.Perceptron)),
        Entrant(PA_NODES, lambda split: _train_and_test(split, _passive_aggressive)),
    ]


def _passive_aggressive() -> linear_model.PAClassifier:
    # With its intercept, undamped on sparse data, it is much worse.
    return linear_model.PAClassifier(C=1.0, mode=1, learn_intercept=False)


def _train_and_test(split: Split, make: Callable[[], Any]) -> csr_array:
    taxonomy = split.train.stream.taxonomy
    model = RiverTopDown(taxonomy, make)
    for x, nodes in zip(_by_column(split.X_train), _true_nodes(split.train.Y), strict=True):
        model.learn_one(x, nodes)
    return rows_of_labels([sorted(model.predict_one(x)) for x in _by_column(split.X_test)], taxonomy)


def _true_nodes(Y: csr_array) -> list[frozenset[int]]:
    return [frozenset(nodes.tolist()) for nodes in np.split(Y.indices, Y.indptr[1:-1])]


def _by_column(rows: csr_array) -> list[dict[Hashable, float]]:
    indices, values = np.split(rows.indices, rows.indptr[1:-1]), np.split(rows.data, rows.indptr[1:-1])
    return [dict(zip(i.tolist(), v.tolist(), strict=True)) for i, v in zip(indices, values, strict=True)]
