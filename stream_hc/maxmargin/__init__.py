"""Max-margin models, trained on a window of documents at once."""

from stream_hc.maxmargin.hm3 import HM3

__all__ = ["HM3"]
