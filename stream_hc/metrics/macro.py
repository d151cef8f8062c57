"""Running precision, recall and F1 as means over the nodes."""

from stream_hc.losses.confusion import Over, PrecisionRecallF1, macro_scores
from stream_hc.metrics.score import Score
from stream_hc.taxonomy import Taxonomy, TaxonomyError

__all__ = ["MacroF1", "MacroPrecision", "MacroRecall"]


class _Macro(Score):
    def __init__(self, taxonomy: Taxonomy, over: Over = "seen") -> None:
        super().__init__(taxonomy)
        if over not in ("seen", "all"):
            raise TaxonomyError(f"unknown over {over!r}: choose seen or all")
        self.over = over

    def _scores(self) -> PrecisionRecallF1[float]:
        hits, predicted, actual = self._node_counts()
        return macro_scores(hits, predicted, actual, self.over)


class MacroPrecision(_Macro):
    """Mean over the nodes of the node's precision.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    over
        Nodes in the mean: those that occur in the truth or a prediction ("seen"), or "all".

    Examples
    --------
    >>> metric = MacroPrecision(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]))
    >>> metric.update({"tennis"}, {"sport", "politics"})
    >>> metric
    MacroPrecision: 33.33%
    """

    _value = "precision"


class MacroRecall(_Macro):
    """Mean over the nodes of the node's recall.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    over
        Nodes in the mean: those that occur in the truth or a prediction ("seen"), or "all".

    Examples
    --------
    >>> metric = MacroRecall(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]))
    >>> metric.update({"tennis"}, {"sport", "politics"})
    >>> metric
    MacroRecall: 33.33%
    """

    _value = "recall"


class MacroF1(_Macro):
    """Mean over the nodes of the node's F1 = 2PR / (P + R).

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    over
        Nodes in the mean: those that occur in the truth or a prediction ("seen"), or "all".

    Examples
    --------
    >>> metric = MacroF1(Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)]))
    >>> metric.update({"tennis"}, {"sport", "politics"})
    >>> metric
    MacroF1: 33.33%
    """

    _value = "f1"
