"""H-AROW: adaptive regularisation of weights, with a diagonal covariance, at every node.

Notation: w_i -> `weights[:, node]`; σ_j of node i -> `variances[j, node]`; α, β -> `steps`, `betas`.
"""

from stream_hc.checks import positive
from stream_hc.kernels import linear as kernels
from stream_hc.learners.base import ColdStart, Parents
from stream_hc.learners.linear import LinearLearner, Threshold
from stream_hc.taxonomy import Taxonomy

__all__ = ["HAROW"]


class HAROW(LinearLearner):
    """AROW at every node, trained where the node is eligible: second order at first-order cost.

    With y = ±1, m = w·x and s = Σ σ_j x_j²: if y m < 1 then β = 1 / (s + r), α = β (1 − y m),
    w_j += α y σ_j x_j and σ_j −= β σ_j² x_j². Rare features keep a large variance and so a large step.

    Parameters
    ----------
    taxonomy
        Labels and their parents; None grows a flat taxonomy from the labels seen by `learn_one`.
    n_features
        Number of columns; the names of dict features are hashed into it.
    r
        Larger values trust a single document less.
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
    >>> model = HAROW(Taxonomy([("sport", None), ("tennis", "sport")]), n_features=64)
    >>> model.learn_one({"racket": 1.0}, {"tennis"})
    >>> model.predict_one({"racket": 1.0})
    {'sport': True, 'tennis': True}

    References
    ----------
    Crammer, Kulesza, Dredze: Adaptive regularization of weight vectors (2009), here one for each node.
    """

    _with_variances = True

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        n_features: int = 2**18,
        r: float = 0.1,
        cold_start: ColdStart = "negative",
        threshold: Threshold = 0.0,
        parents: Parents = "any",
    ) -> None:
        positive("r", r)
        super().__init__(taxonomy, n_features, cold_start, threshold, parents)
        self.r = r

    def _update_rule(self) -> tuple[int, float]:
        return kernels.AROW, float(self.r)
