"""H-PERC: a perceptron at every node, updated only where the true parent label holds; and flat PERC.

Notation: w_i -> `weights[:, node]`; m_i = w_i·x -> `margins[node]`; y, ŷ -> `y_true`, `on`.
"""

from stream_hc.kernels import linear as kernels
from stream_hc.learners.base import LinearLearner

__all__ = ["HPerceptron", "Perceptron"]


class HPerceptron(LinearLearner):
    """Hierarchical perceptron: w += ±x at every eligible node that was predicted wrongly.

    A node is eligible if it is a root or its parent is a true label. Its prediction is the top-down one:
    under a parent predicted 0 it is 0, whatever its own margin.

    Parameters
    ----------
    taxonomy
        Labels and their parents; None grows a flat taxonomy from the labels seen by `learn_one`.
    n_features
        Number of columns; the names of dict features are hashed into it.
    cold_start
        What a margin of exactly 0 predicts: 0 ("negative") or, as printed, 1 ("paper").

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

    def _rule(self) -> kernels.Rule:
        return kernels.Rule(kernels.PERCEPTRON, 0.0, self.cold_start == "paper")


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

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> model = Perceptron(Taxonomy([("sport", None), ("tennis", "sport")]), n_features=64)
    >>> model.learn_one({"racket": 1.0}, {"sport"})
    >>> model.predict_one({"racket": 1.0})
    {'sport': True, 'tennis': False}
    """

    def _rule(self) -> kernels.Rule:
        return kernels.Rule(kernels.FLAT_PERCEPTRON, 0.0, self.cold_start == "paper")
