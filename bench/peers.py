"""What a river user builds by hand: a binary perceptron at every node, predicted from the roots downward."""

from river import linear_model

from stream_hc import Taxonomy

__all__ = ["RiverTopDown"]


class RiverTopDown:
    """River's perceptron at every node, trained where the parent label holds."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        self.models = [linear_model.Perceptron() for _ in taxonomy]

    def predict_then_learn_one(self, x: dict[str, float], y: frozenset[str]) -> set[str]:
        """Predict one document, then learn it."""
        on: set[int] = set()
        for node, model in enumerate(self.models):
            if on.issuperset(self.taxonomy.parents(node).tolist()) and model.predict_one(x):
                on.add(node)
        true = set(self.taxonomy.columns(y))
        for node, model in enumerate(self.models):
            if true.issuperset(self.taxonomy.parents(node).tolist()):
                model.learn_one(x, node in true)
        return {self.taxonomy.nodes[node] for node in on}
