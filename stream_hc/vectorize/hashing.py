"""Feature names -> columns: a stable hash for text, the number itself for an integer."""

from collections.abc import Collection, Hashable, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import Longs
from stream_hc.kernels import rows as kernels

__all__ = ["FeatureError", "hash_features", "hashes"]

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


def hashes(names: Collection[Hashable], n_features: int) -> Longs:
    """Return for each name a number whose remainder by n_features is its column.

    That is the hash of a str, and an integer itself.
    A tuple of strings (river's n-grams) stands for its parts joined by a blank.
    """
    try:
        return np.fromiter(map(_hash_of.__getitem__, names), np.int64, len(names))  # type: ignore[arg-type]
    except KeyError:
        pass
    if set(map(type, names)) == {int}:
        plain = cast(Collection[int], names)
        if min(plain) >= -(2**63) and max(plain) < 2**63:
            return np.array(list(plain), np.int64)
    texts = [_text(name) for name in names]
    new = list({name: None for name in texts if isinstance(name, str) and name not in _hash_of})
    if len(_hash_of) + len(new) > CACHE_SIZE:
        _hash_of.clear()
        new = list({name: None for name in texts if isinstance(name, str)})
    _hash_of.update(zip(new, hash_features(new).tolist(), strict=True))
    return np.array([_hash_of[n] if isinstance(n, str) else n % n_features for n in texts], np.int64)


def _text(name: Hashable) -> str | int:
    if isinstance(name, str):
        return name
    if isinstance(name, int | np.integer):
        return int(name)
    if isinstance(name, tuple) and all(isinstance(part, str) for part in name):
        return " ".join(name)
    raise FeatureError(f"feature {name!r}: a feature name must be a str or an int, not {type(name).__name__}")
