"""Losses on label sets, on pairs of nodes and on rankings; precision, recall and F1."""

from stream_hc.losses.confusion import PrecisionRecallF1, precision_recall_f1
from stream_hc.losses.distances import pair_loss, tree_induced_error
from stream_hc.losses.mistakes import (
    Costs,
    first_mistakes,
    h_loss,
    h_loss_by_depth,
    h_tilde_loss,
    symmetric_difference,
    zero_one,
)
from stream_hc.losses.ranking import (
    average_precision,
    maximal_loss,
    one_accuracy,
    parent_one_accuracy,
    ranking_loss,
)

__all__ = [
    "Costs",
    "PrecisionRecallF1",
    "average_precision",
    "first_mistakes",
    "h_loss",
    "h_loss_by_depth",
    "h_tilde_loss",
    "maximal_loss",
    "one_accuracy",
    "pair_loss",
    "parent_one_accuracy",
    "precision_recall_f1",
    "ranking_loss",
    "symmetric_difference",
    "tree_induced_error",
    "zero_one",
]
