"""Text, dict or array -> sorted sparse float32 rows."""

from stream_hc.vectorize.dicts import from_dict
from stream_hc.vectorize.hashing import FeatureError, hash_features
from stream_hc.vectorize.rows import LARGEST_FEATURE, Rows, feature_rows, joined, sliced
from stream_hc.vectorize.sequences import SequenceVectorizer
from stream_hc.vectorize.text import TextVectorizer

__all__ = [
    "LARGEST_FEATURE",
    "FeatureError",
    "Rows",
    "SequenceVectorizer",
    "TextVectorizer",
    "feature_rows",
    "from_dict",
    "hash_features",
    "joined",
    "sliced",
]
