"""Where documents come from: folders of JSON lines, the public RCV1 files, a synthetic newswire."""

from stream_hc.datasets.dataset import Dataset, DatasetError
from stream_hc.datasets.files import load
from stream_hc.datasets.news import make_news
from stream_hc.datasets.rcv1 import load_rcv1

__all__ = ["Dataset", "DatasetError", "load", "load_rcv1", "make_news"]
