"""Feature names -> columns: a stable hash for text, the number itself for an integer."""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import hashing as kernels

__all__ = ["FeatureError", "columns", "hash_features"]

# Names repeat endlessly in a stream. The cache is emptied when full rather than kept by age: that costs one
# dictionary look-up a name and nothing else, and a full vocabulary is hashed again in a fraction of a second.
CACHE_SIZE = 1_000_000
_hash_of: dict[str, int] = {}


class FeatureError(ValueError):
    """A feature has no name or no number that can be learned from."""


def hash_features(names: Sequence[str]) -> NDArray[np.uint32]:
    """Return the stable 32-bit hash of each name: FNV-1a over UTF-8, finished as MurmurHash3 finishes.

    >>> hash_features(["football", "Fußball"])
    array([4145210112, 1245823895], dtype=uint32)
    """
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]
    ends = np.cumsum([len(data) for data in encoded], dtype=np.int64)
    return kernels.hash_tokens(np.frombuffer(b"".join(encoded), np.uint8), ends)


def columns(names: Iterable[Hashable], n_features: int) -> list[int]:
    """Return the column of each name, modulo n_features: a str is hashed, an integer stands for itself.

    A tuple of strings (river's n-grams) stands for its parts joined by a blank.
    """
    try:
        return [_hash_of[name] % n_features for name in names]  # type: ignore[index]
    except KeyError:
        names = list(names)
        texts = [name for name in map(_text, names) if isinstance(name, str) and name not in _hash_of]
        if len(_hash_of) + len(texts) > CACHE_SIZE:
            _hash_of.clear()
        _hash_of.update(zip(texts, hash_features(texts).tolist(), strict=True))
    return [_column(name, n_features) for name in map(_text, names)]


def _column(name: str | int, n_features: int) -> int:
    if isinstance(name, int):
        return name % n_features
    known = _hash_of.get(name)  # the clearing above may have dropped it
    return (int(hash_features([name])[0]) if known is None else known) % n_features


def _text(name: Hashable) -> str | int:
    if isinstance(name, str):
        return name
    if isinstance(name, int | np.integer):
        return int(name)
    if isinstance(name, tuple) and all(isinstance(part, str) for part in name):
        return " ".join(name)
    raise FeatureError(f"feature {name!r}: a feature name must be a str or an int, not {type(name).__name__}")
