"""Passive-aggressive learners of paths: flat, hierarchical, and with latent concepts."""

from stream_hc.checks import whole_number
from stream_hc.learners.base import ColdStart
from stream_hc.learners.paths import PathLearner
from stream_hc.taxonomy import Taxonomy

__all__ = ["HPA", "LHPA", "PA"]


class PA(PathLearner):
    """Flat multi-class passive-aggressive learner: a weight vector for each end of a path, a margin of 1.

    With γ = w_y·x − max over wrong ends of w·x: if γ < 1, both vectors move by min(C, (1 − γ) / (2 ‖x‖²)) x.
    The labels above the winner are predicted, too.

    Parameters
    ----------
    taxonomy
        Labels and their parents, a forest; None grows a flat taxonomy from the labels seen by `learn_one`.
    n_features
        Number of columns; the names of dict features are hashed into it.
    C
        The largest step; smaller values stand more noise.
    partial_paths
        Whether a path may end at an inner node.
    averaged
        Whether to predict by the mean of the weights over all documents learned so far.
    cold_start
        Means nothing here: before the first update nothing is predicted.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> model = PA(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]), n_features=64)
    >>> model.learn_one({"racket": 1.0}, {"tennis"})
    >>> model.predict_one({"racket": 1.0})
    {'sport': True, 'politics': False, 'tennis': True}

    References
    ----------
    Crammer et al.: Online passive-aggressive algorithms (2006).
    """

    _flat = True


class HPA(PathLearner):
    """Hierarchical passive-aggressive learner: a weight vector for each node, summed up along a path.

    With F the total of a path, y the true and ŷ the best wrong one, Δ the tree-induced error between their
    ends: if F(y) − F(ŷ) < Δ, the weights of the nodes on only one of the two paths move by
    ± min(C, (Δ − F(y) + F(ŷ)) / (‖x‖² · their number)) x.

    Parameters
    ----------
    taxonomy
        Labels and their parents, a forest; None grows a flat taxonomy from the labels seen by `learn_one`.
    n_features
        Number of columns; the names of dict features are hashed into it.
    C
        The largest step; smaller values stand more noise.
    partial_paths
        Whether a path may end at an inner node.
    averaged
        Whether to predict by the mean of the weights over all documents learned so far.
    cold_start
        Means nothing here: before the first update nothing is predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from stream_hc import Taxonomy
    >>> model = HPA(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]), n_features=64)
    >>> model.learn_one({"racket": 1.0}, {"tennis"})
    >>> model.predict_one({"racket": 1.0})
    {'sport': True, 'politics': False, 'tennis': True}
    >>> model.margins(np.ones((1, 64)))  # the path of tennis is 3 = Δ above that of politics
    array([[ 1., -1.,  1.]], dtype=float32)

    References
    ----------
    Dekel, Keshet, Singer: Large margin hierarchical classification (2004).
    """


class LHPA(PathLearner):
    """HPA with several latent concepts for each node: the best one speaks for it.

    A node may be about several things, each with words of its own. Its score is that of the concept with the
    highest w·x, and only the concepts that spoke are updated. Of equal concepts, as they are at first, one is
    chosen by chance, drawn from the seed, the node and the number of documents learned.

    Parameters
    ----------
    taxonomy
        Labels and their parents, a forest; None grows a flat taxonomy from the labels seen by `learn_one`.
    n_features
        Number of columns; the names of dict features are hashed into it.
    C
        The largest step; smaller values stand more noise.
    partial_paths
        Whether a path may end at an inner node.
    averaged
        Whether to predict by the mean of the weights over all documents learned so far.
    cold_start
        Means nothing here: before the first update nothing is predicted.
    concepts
        How many for each node; one is HPA.
    seed
        Of the choice among equal concepts.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> model = LHPA(Taxonomy([("sport", None), ("politics", None)]), n_features=64, concepts=2)
    >>> for word in ("racket", "goal"):
    ...     model.learn_one({word: 1.0}, {"sport"})
    >>> model.predict_one({"goal": 1.0})
    {'sport': True, 'politics': False}

    References
    ----------
    Qiu, Huang, Liu, Zhou: Hierarchical text classification with latent concepts (2011).
    """

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        n_features: int = 2**18,
        C: float = 1.0,
        partial_paths: bool = False,
        averaged: bool = False,
        cold_start: ColdStart = "negative",
        concepts: int = 2,
        seed: int = 0,
    ) -> None:
        whole_number("concepts", concepts, 1, 2**10)
        whole_number("seed", seed, 0, 2**62)
        super().__init__(taxonomy, n_features, C, partial_paths, averaged, cold_start)
        self.concepts = self._concepts = concepts
        self.seed = self._seed = seed
