"""Precision, recall and F1: over all decisions, over nodes, over closed label sets, or level by level.

Notation: for every node `hits` counts the rows where it is predicted and true, `predicted` and `actual`
those where it is predicted, and true; floats, or exact fractions in an array of objects.
P = hits / predicted, R = hits / actual, F1 = 2PR / (P + R), 0/0 := 0.
Erratum: the LHPA paper prints MacroF1 = PR / (P + R); the factor 2 is missing.
"""

from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import numpy as np

from stream_hc.kernels import Doubles
from stream_hc.kernels import losses as kernels
from stream_hc.losses.mistakes import row_pair
from stream_hc.taxonomy import Taxonomy, TaxonomyError

__all__ = [
    "Over",
    "PrecisionRecallF1",
    "level_scores",
    "macro_scores",
    "micro_scores",
    "node_scores",
    "precision_recall_f1",
]

Value = TypeVar("Value")
Over = Literal["seen", "all"]


class PrecisionRecallF1(NamedTuple, Generic[Value]):
    """The three values: floats, or one for each level."""

    precision: Value
    recall: Value
    f1: Value


@overload
def precision_recall_f1(
    taxonomy: Taxonomy,
    Y_pred: Any,
    Y_true: Any,
    average: Literal["micro", "macro", "hierarchical"] = "micro",
    over: Over = "seen",
) -> PrecisionRecallF1[float]: ...
@overload
def precision_recall_f1(
    taxonomy: Taxonomy, Y_pred: Any, Y_true: Any, average: Literal["level"], over: Over = "seen"
) -> PrecisionRecallF1[Doubles]: ...
def precision_recall_f1(
    taxonomy: Taxonomy,
    Y_pred: Any,
    Y_true: Any,
    average: Literal["micro", "macro", "hierarchical", "level"] = "micro",
    over: Over = "seen",
) -> PrecisionRecallF1[float] | PrecisionRecallF1[Doubles]:
    """Return precision, recall and F1 of all rows together.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    Y_pred, Y_true
        Labels as sparse or dense rows or as label sets. `Y_true` is closed upward, `Y_pred` taken as given.
    average
        "micro" counts every decision once; "macro" is the mean over nodes of the node's own values;
        "hierarchical" is micro with `Y_pred` closed upward too; "level" is micro for each depth.
    over
        Nodes in the macro mean: those that occur in the truth or a prediction ("seen"), or "all".

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> precision_recall_f1(tax, [{"sport"}, {"football"}], [{"tennis"}, {"football"}], "hierarchical")
    PrecisionRecallF1(precision=1.0, recall=0.75, f1=0.857142)
    >>> precision_recall_f1(tax, [{"sport"}, {"football"}], [{"tennis"}, {"football"}], "level").recall
    array([0.5, 0.5])
    """
    if average not in ("micro", "macro", "hierarchical", "level"):
        raise TaxonomyError(f"unknown average {average!r}: choose micro, macro, hierarchical or level")
    if over not in ("seen", "all"):
        raise TaxonomyError(f"unknown over {over!r}: choose seen or all")
    pred, true = row_pair(taxonomy, Y_pred, Y_true, close_pred=average == "hierarchical")
    both = kernels.compare_rows(*pred, *true, True)
    counts = np.array(
        [np.bincount(idx, minlength=len(taxonomy)) for _, idx in (both, pred, true)], np.float64
    )
    if average == "level":
        return level_scores(taxonomy, *counts)
    return (
        macro_scores(counts[0], counts[1], counts[2], over) if average == "macro" else micro_scores(*counts)
    )


def node_scores(hits: Doubles, predicted: Doubles, actual: Doubles) -> PrecisionRecallF1[Doubles]:
    """Return the three values of every entry; F1 = 2PR / (P + R) = 2 hits / (predicted + actual)."""
    return PrecisionRecallF1(
        _ratio(hits, predicted), _ratio(hits, actual), _ratio(2 * hits, predicted + actual)
    )


def micro_scores(hits: Doubles, predicted: Doubles, actual: Doubles) -> PrecisionRecallF1[float]:
    """Return the three values of the summed counts."""
    sums = (np.array([counts.sum()], counts.dtype) for counts in (hits, predicted, actual))
    return PrecisionRecallF1(*(float(value[0]) for value in node_scores(*sums)))


def macro_scores(
    hits: Doubles, predicted: Doubles, actual: Doubles, over: Over = "seen"
) -> PrecisionRecallF1[float]:
    """Return the means of the nodes' values, 0 if there are no nodes to average over."""
    n_nodes = np.count_nonzero(predicted + actual) if over == "seen" else hits.size
    # A node that never occurs has 0 in all three, so it only matters for the denominator.
    return PrecisionRecallF1(
        *(float(value.sum()) / max(n_nodes, 1) for value in node_scores(hits, predicted, actual))
    )


def level_scores(
    taxonomy: Taxonomy, hits: Doubles, predicted: Doubles, actual: Doubles
) -> PrecisionRecallF1[Doubles]:
    """Return the three values for each depth, counts summed over the nodes at that depth."""
    levels = int(taxonomy.depth.max(initial=-1)) + 1
    sums = np.zeros((3, levels))
    for level, counts in zip(sums, (hits, predicted, actual), strict=True):
        np.add.at(level, taxonomy.depth, counts)
    return node_scores(*sums)


def _ratio(part: Doubles, whole: Doubles) -> Doubles:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)
