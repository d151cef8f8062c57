"""Why a document got its labels: which of its words pushed the margins, node by node."""

from stream_hc.explain.explaining import Explanation, Share, Step, Through, explain
from stream_hc.explain.strongest import strongest
from stream_hc.explain.view import NotLinearError, View
from stream_hc.explain.views import view_of

__all__ = [
    "Explanation",
    "NotLinearError",
    "Share",
    "Step",
    "Through",
    "View",
    "explain",
    "strongest",
    "view_of",
]
