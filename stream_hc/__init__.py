"""Hierarchical, multi-label text classification while the documents stream by."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stream_hc.decoding import h_bayes
    from stream_hc.learners import (
        HAROW,
        HPA,
        HRLS,
        LHPA,
        PA,
        ApproxHBayes,
        Calibrated,
        HPerceptron,
        NodePA,
        Perceptron,
        RankingPerceptron,
    )
    from stream_hc.maxmargin import HM3, HSVM, FlatSVM, RankingSVM
    from stream_hc.taxonomy import Taxonomy
    from stream_hc.vectorize import SequenceVectorizer, TextVectorizer

__version__ = "0.1.0"

__all__ = [
    "HAROW",
    "HM3",
    "HPA",
    "HRLS",
    "HSVM",
    "LHPA",
    "PA",
    "ApproxHBayes",
    "Calibrated",
    "FlatSVM",
    "HPerceptron",
    "NodePA",
    "Perceptron",
    "RankingPerceptron",
    "RankingSVM",
    "SequenceVectorizer",
    "Taxonomy",
    "TextVectorizer",
    "h_bayes",
]

# Names are looked up on first use, so that importing the package stays cheap for what needs little of it.
_HOME = {
    "ApproxHBayes": "stream_hc.learners",
    "Calibrated": "stream_hc.learners",
    "FlatSVM": "stream_hc.maxmargin",
    "HAROW": "stream_hc.learners",
    "HM3": "stream_hc.maxmargin",
    "HPA": "stream_hc.learners",
    "HPerceptron": "stream_hc.learners",
    "HRLS": "stream_hc.learners",
    "HSVM": "stream_hc.maxmargin",
    "LHPA": "stream_hc.learners",
    "NodePA": "stream_hc.learners",
    "PA": "stream_hc.learners",
    "Perceptron": "stream_hc.learners",
    "RankingPerceptron": "stream_hc.learners",
    "RankingSVM": "stream_hc.maxmargin",
    "SequenceVectorizer": "stream_hc.vectorize",
    "Taxonomy": "stream_hc.taxonomy",
    "TextVectorizer": "stream_hc.vectorize",
    "h_bayes": "stream_hc.decoding",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'stream_hc' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
