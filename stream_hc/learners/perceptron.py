"""H-PERC: a perceptron at every node, updated only where the true parent label holds; and flat PERC.

Notation: w_i -> `weights[:, node]`; m_i = w_i·x -> `margins[node]`; y, ŷ -> `y_true`, `on`.
"""

from typing import Literal

from stream_hc.checks import finite, one_of
from stream_hc.kernels import linear as kernels
from stream_hc.learners.base import ColdStart, Parents
from stream_hc.learners.linear import LinearLearner
from stream_hc.taxonomy import Taxonomy

__all__ = ["HPerceptron", "Perceptron"]

JudgedBy = Literal["path", "node"]


class HPerceptron(LinearLearner):
    """Hierarchical perceptron: w += ±x at every eligible node that was predicted wrongly.

    A node is eligible if it is a root or its parent is a true label. As printed, its prediction is the
    top-down one: under a parent predicted 0 it is 0, whatever its own margin, so that a node that was right
    gets an update for the mistake of a node above it. With `judged_by="node"` it is left in peace.

    Parameters
    ----------
    taxonomy
        Labels and their parents; None grows a flat taxonomy from the labels seen by `learn_one`.
    n_features
        Number of columns; the names of dict features are hashed into it.
    cold_start
        What a margin of exactly 0 predicts: 0 ("negative") or, as printed, 1 ("paper").
    judged_by
        Which prediction decides that an eligible node was wrong: the top-down one ("path", as printed) or
        that of its own margin ("node").
    threshold
        What a margin must exceed to predict 1; below 0 it favours recall, above 0 precision.
    parents
        In a DAG: whether a node is looked at below "any" of its parents or only below "all" of them.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> model = HPerceptron(Taxonomy([("sport", None), ("tennis", "sport")]), n_features=64)
    >>> model.learn_one({"racket": 1.0}, {"tennis"})
    >>> model.predict_one({"racket": 1.0})
    {'sport': True, 'tennis': True}

    References
    ----------
    Cesa-Bianchi, Conconi, Gentile: Incremental algorithms for hierarchical classification (2004), section 4.
    The paper writes w + y x with y in {0, 1}, which would never learn from negatives: y is ±1 here.
    """

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        n_features: int = 2**18,
        cold_start: ColdStart = "negative",
        judged_by: JudgedBy = "path",
        threshold: float = 0.0,
        parents: Parents = "any",
    ) -> None:
        one_of("judged_by", judged_by, JudgedBy)
        super().__init__(taxonomy, n_features, cold_start, finite("threshold", threshold), parents)
        self.judged_by: JudgedBy = judged_by

    def _update_rule(self) -> tuple[int, float]:
        return (kernels.PERCEPTRON if self.judged_by == "path" else kernels.NODE_PERCEPTRON), 0.0


class Perceptron(LinearLearner):
    """Flat perceptron: every node learns from every document by its own margin; the baseline of H-PERC.

    Only the prediction knows the taxonomy: labels under a label that is not predicted are cut off.

    Parameters
    ----------
    taxonomy
        Labels and their parents; None grows a flat taxonomy from the labels seen by `learn_one`.
    n_features
        Number of columns; the names of dict features are hashed into it.
    cold_start
        What a margin of exactly 0 predicts: 0 ("negative") or, as printed, 1 ("paper").
    threshold
        What a margin must exceed to predict 1; below 0 it favours recall, above 0 precision.
    parents
        In a DAG: whether a node is looked at below "any" of its parents or only below "all" of them.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> model = Perceptron(Taxonomy([("sport", None), ("tennis", "sport")]), n_features=64)
    >>> model.learn_one({"racket": 1.0}, {"sport"})
    >>> model.predict_one({"racket": 1.0})
    {'sport': True, 'tennis': False}
    """

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        n_features: int = 2**18,
        cold_start: ColdStart = "negative",
        threshold: float = 0.0,
        parents: Parents = "any",
    ) -> None:
        super().__init__(taxonomy, n_features, cold_start, finite("threshold", threshold), parents)

    def _update_rule(self) -> tuple[int, float]:
        return kernels.FLAT_PERCEPTRON, 0.0
