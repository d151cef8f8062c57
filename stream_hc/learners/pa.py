"""Node PA: a binary passive-aggressive learner (PA-I) at every node."""

from stream_hc.checks import positive
from stream_hc.kernels import linear as kernels
from stream_hc.learners.base import ColdStart, Parents
from stream_hc.learners.linear import LinearLearner, Threshold
from stream_hc.taxonomy import Taxonomy

__all__ = ["NodePA"]


class NodePA(LinearLearner):
    """Passive-aggressive learner at every node, trained where the node is eligible.

    If y m < 1: w += min(C, (1 − y m) / ‖x‖²) y x. There is no intercept: undamped on sparse data it hurts.

    Parameters
    ----------
    taxonomy
        Labels and their parents; None grows a flat taxonomy from the labels seen by `learn_one`.
    n_features
        Number of columns; the names of dict features are hashed into it.
    C
        The largest step; smaller values stand more noise.
    cold_start
        What a margin of exactly 0 predicts: 0 ("negative") or 1 ("paper").
    threshold
        What a margin must exceed to predict 1; below 0 it favours recall, above 0 precision. "learned": each
        node has its own, where it would have erred least on the documents so far, younger ones counting more.
    parents
        In a DAG: whether a node is looked at below "any" of its parents or only below "all" of them.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> model = NodePA(Taxonomy([("sport", None), ("tennis", "sport")]), n_features=64)
    >>> model.learn_one({"racket": 1.0}, {"tennis"})
    >>> model.predict_one({"racket": 1.0})
    {'sport': True, 'tennis': True}

    References
    ----------
    Crammer et al.: Online passive-aggressive algorithms (2006), PA-I.
    """

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        n_features: int = 2**18,
        C: float = 1.0,
        cold_start: ColdStart = "negative",
        threshold: Threshold = 0.0,
        parents: Parents = "any",
    ) -> None:
        positive("C", C)
        super().__init__(taxonomy, n_features, cold_start, threshold, parents)
        self.C = C

    def _update_rule(self) -> tuple[int, float]:
        return kernels.PASSIVE_AGGRESSIVE, float(self.C)
