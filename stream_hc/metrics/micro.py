"""Running precision, recall and F1 over all decisions, of label sets as given and closed upward."""

from stream_hc.losses.confusion import PrecisionRecallF1, micro_scores
from stream_hc.metrics.score import Score

__all__ = [
    "HierarchicalF1",
    "HierarchicalPrecision",
    "HierarchicalRecall",
    "MicroF1",
    "MicroPrecision",
    "MicroRecall",
]


class _Micro(Score):
    def _scores(self) -> PrecisionRecallF1[float]:
        return micro_scores(*self._node_counts())


class MicroPrecision(_Micro):
    """Share of the predicted labels that are true.

    Parameters
    ----------
    taxonomy
        Labels and their parents.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> metric = MicroPrecision(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]))
    >>> metric.update({"tennis"}, {"sport", "politics"})
    >>> metric
    MicroPrecision: 50.00%
    """

    _value = "precision"


class MicroRecall(_Micro):
    """Share of the true labels that are predicted.

    Parameters
    ----------
    taxonomy
        Labels and their parents.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> metric = MicroRecall(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]))
    >>> metric.update({"tennis"}, {"sport", "politics"})
    >>> metric
    MicroRecall: 50.00%
    """

    _value = "recall"


class MicroF1(_Micro):
    """Harmonic mean of `MicroPrecision` and `MicroRecall`.

    Parameters
    ----------
    taxonomy
        Labels and their parents.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> metric = MicroF1(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]))
    >>> metric.update({"tennis"}, {"sport", "politics"})
    >>> metric
    MicroF1: 50.00%
    """

    _value = "f1"


class _Hierarchical(_Micro):
    _close_pred = True


class HierarchicalPrecision(_Hierarchical):
    """Micro precision of label sets closed upward, the predicted ones too.

    Parameters
    ----------
    taxonomy
        Labels and their parents.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> metric = HierarchicalPrecision(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]))
    >>> metric.update({"tennis"}, {"tennis", "politics"})
    >>> metric
    HierarchicalPrecision: 66.67%
    """

    _value = "precision"


class HierarchicalRecall(_Hierarchical):
    """Micro recall of label sets closed upward, the predicted ones too.

    Parameters
    ----------
    taxonomy
        Labels and their parents.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> metric = HierarchicalRecall(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]))
    >>> metric.update({"tennis"}, {"sport"})
    >>> metric
    HierarchicalRecall: 50.00%
    """

    _value = "recall"


class HierarchicalF1(_Hierarchical):
    """Micro F1 of label sets closed upward, the predicted ones too.

    Parameters
    ----------
    taxonomy
        Labels and their parents.

    Examples
    --------
    >>> from stream_hc import Taxonomy
    >>> metric = HierarchicalF1(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]))
    >>> metric.update({"tennis"}, {"sport"})
    >>> metric
    HierarchicalF1: 66.67%
    """

    _value = "f1"
