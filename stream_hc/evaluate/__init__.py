"""Progressive evaluation with delayed labels, held-out tests, comparison tables and plots."""

from stream_hc.evaluate.comparing import PROTOCOLS, CompareProgress, Protocol, compare
from stream_hc.evaluate.comparison import Comparison
from stream_hc.evaluate.drivers import Progress
from stream_hc.evaluate.features import vectorize_dataset
from stream_hc.evaluate.plots import plot_by_depth, plot_running
from stream_hc.evaluate.protocols import holdout, progressive
from stream_hc.evaluate.run import MEASURES, Measure, Run, score

__all__ = [
    "MEASURES",
    "PROTOCOLS",
    "CompareProgress",
    "Comparison",
    "Measure",
    "Progress",
    "Protocol",
    "Run",
    "compare",
    "holdout",
    "plot_by_depth",
    "plot_running",
    "progressive",
    "score",
    "vectorize_dataset",
]
