"""From probabilities to labels, and how far probabilities can be trusted."""

from stream_hc.decoding.bayes import h_bayes
from stream_hc.decoding.reliability import Reliability, reliability

__all__ = ["Reliability", "h_bayes", "reliability"]
