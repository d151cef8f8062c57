"""Max-margin models, trained on a window of documents at once."""

from stream_hc.maxmargin.hm3 import HM3
from stream_hc.maxmargin.ranking_svm import RankingSVM
from stream_hc.maxmargin.svm import HSVM, FlatSVM

__all__ = ["HM3", "HSVM", "FlatSVM", "RankingSVM"]
