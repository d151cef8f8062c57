"""Running metrics for river: the losses and precision, recall, F1, with an exact `revert`."""

from stream_hc.metrics.base import HierarchicalMetric
from stream_hc.metrics.level import LevelF1, LevelPrecision, LevelRecall
from stream_hc.metrics.macro import MacroF1, MacroPrecision, MacroRecall
from stream_hc.metrics.mean_losses import HLoss, HTildeLoss, SymmetricDifferenceLoss, ZeroOneLoss
from stream_hc.metrics.micro import (
    HierarchicalF1,
    HierarchicalPrecision,
    HierarchicalRecall,
    MicroF1,
    MicroPrecision,
    MicroRecall,
)

__all__ = [
    "HLoss",
    "HTildeLoss",
    "HierarchicalF1",
    "HierarchicalMetric",
    "HierarchicalPrecision",
    "HierarchicalRecall",
    "LevelF1",
    "LevelPrecision",
    "LevelRecall",
    "MacroF1",
    "MacroPrecision",
    "MacroRecall",
    "MicroF1",
    "MicroPrecision",
    "MicroRecall",
    "SymmetricDifferenceLoss",
    "ZeroOneLoss",
]
