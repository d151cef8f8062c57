"""Running precision, recall and F1 of the nodes at one depth."""

from stream_hc.losses.confusion import PrecisionRecallF1, micro_scores
from stream_hc.metrics.score import Score
from stream_hc.taxonomy import Taxonomy, TaxonomyError

__all__ = ["LevelF1", "LevelPrecision", "LevelRecall"]


class _Level(Score):
    def __init__(self, taxonomy: Taxonomy, level: int) -> None:
        super().__init__(taxonomy)
        deepest = int(taxonomy.depth.max(initial=-1))
        if not 0 <= level <= deepest:
            raise TaxonomyError(f"there is no level {level}: levels run from 0 (roots) to {deepest}")
        self.level = level

    def _scores(self) -> PrecisionRecallF1[float]:
        return micro_scores(*self._node_counts()[:, self.taxonomy.depth == self.level])


class LevelPrecision(_Level):
    """Micro precision of the nodes at one depth.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    level
        Depth of the nodes that count; 0 are the roots.

    Examples
    --------
    >>> metric = LevelPrecision(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]), level=0)
    >>> metric.update({"tennis"}, {"sport", "politics"})
    >>> metric
    LevelPrecision: 50.00%
    """

    _value = "precision"


class LevelRecall(_Level):
    """Micro recall of the nodes at one depth.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    level
        Depth of the nodes that count; 0 are the roots.

    Examples
    --------
    >>> metric = LevelRecall(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]), level=0)
    >>> metric.update({"tennis"}, {"sport", "politics"})
    >>> metric
    LevelRecall: 100.00%
    """

    _value = "recall"


class LevelF1(_Level):
    """Micro F1 of the nodes at one depth.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    level
        Depth of the nodes that count; 0 are the roots.

    Examples
    --------
    >>> metric = LevelF1(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]), level=0)
    >>> metric.update({"tennis"}, {"sport", "politics"})
    >>> metric
    LevelF1: 66.67%
    """

    _value = "f1"
