"""A synthetic newswire: readable words, about a hundred topics in four trees, drift on demand.

The same arguments give the same bytes on every machine and with every version of Python and NumPy.
"""

from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from stream_hc.datasets.dataset import Dataset, DatasetError
from stream_hc.datasets.newsworld import GOLDEN, SLOTS, Bits, NewsWorld, mix, news_world

__all__ = ["Drift", "make_news"]

Drift = Literal["none", "gradual", "sudden"]

Rows = NDArray[np.int64]

CHUNK = 8192
MAX_LABELS = 3
MAX_SENTENCES = 24

# Which draw of a document decides what; draws FIRST_WORD, FIRST_WORD + 1, ... are its words.
LENGTH, N_LABELS, TOPIC, CLIMB = 0, 2, 3, 6
NOISE, NOISE_TOPIC, WORLD, SENTENCE, FIRST_WORD = 9, 10, 11, 12, 64

# Probabilities in thousandths.
TWO_LABELS, THREE_LABELS = 215, 70
STOP_AT_PARENT, STOP_HIGHER = 135, 30
WRONG_LABEL = 25
BACKGROUND_WORD = 650


def make_news(n: int = 10_000, seed: int = 0, drift: Drift | None = None) -> Dataset:
    """Write a stream of synthetic news with multiple and partial paths and a little label noise.

    Parameters
    ----------
    n
        Number of documents. Without drift a longer stream begins with the shorter one.
    seed
        Which sample; topics and their words are the same for every seed.
    drift
        "sudden": in the middle of the stream half of the topics exchange their words with another topic, and
        other topics become popular. "gradual": from 30 % to 70 % of the stream more and more documents come
        from that changed world. "none" or None: nothing changes. Before the change, all three are the same.

    Examples
    --------
    >>> news = make_news(3, seed=1)
    >>> news.ids
    ['news-0000001', 'news-0000002', 'news-0000003']
    >>> len(news.taxonomy.roots)
    4
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise DatasetError(f"n is {n!r}: it must be an integer of at least 1")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise DatasetError(f"seed is {seed!r}: it must be an integer from 0 to 2**64 - 1")
    if drift is not None and drift not in get_args(Drift):
        raise DatasetError(f"drift is {drift!r}: it must be one of {', '.join(get_args(Drift))}")
    world = news_world()
    documents: list[str] = []
    labels: list[frozenset[str]] = []
    for first in range(0, n, CHUNK):
        number = np.arange(first, min(first + CHUNK, n))
        key = _document_keys(number, seed)
        changed = _changed(number, n, drift, key)
        topics, n_labels = _topics(world, key, changed)
        documents += _texts(world, key, changed, topics, n_labels)
        labels += _labels(world, key, changed, topics, n_labels)
    ids = [f"news-{number:07d}" for number in range(1, n + 1)]
    return Dataset("news", world.taxonomy, ids, documents, labels)


def _document_keys(number: Rows, seed: int) -> Bits:
    """Give every document a key of its own, from which all its draws come."""
    stream = mix(np.array([seed], np.uint64) + np.uint64(GOLDEN))
    return mix(stream + (number + 1).astype(np.uint64) * np.uint64(GOLDEN))


def _draw(key: Bits, which: int | Rows) -> Bits:
    """Return 64 random bits for each key; `which` counts the draws of a document."""
    return mix(key + np.asarray(which + 1).astype(np.uint64) * np.array([GOLDEN], np.uint64))


def _below(key: Bits, which: int, size: int) -> Rows:
    """Draw whole numbers 0 ... size - 1."""
    return ((_draw(key, which) >> np.uint64(32)) * np.uint64(size) >> np.uint64(32)).astype(np.int64)


def _changed(number: Rows, n: int, drift: Drift | None, key: Bits) -> Rows:
    """Return 1 for the documents that come from the world after the drift, else 0."""
    if drift == "sudden":
        return (2 * number >= n).astype(np.int64)
    if drift == "gradual":
        return (_below(key, WORLD, 2**20) * 4 * n < (10 * number - 3 * n) * 2**20).astype(np.int64)
    return np.zeros_like(number)


def _topics(world: NewsWorld, key: Bits, changed: Rows) -> tuple[Rows, Rows]:
    """Choose what each document is about: topics [document, MAX_LABELS] and how many of them count."""
    count = _below(key, N_LABELS, 1000)
    n_labels = 1 + (count < TWO_LABELS + THREE_LABELS) + (count < THREE_LABELS)
    columns: list[Rows] = []
    for k in range(MAX_LABELS):
        topic = world.popularity[changed, _below(key, TOPIC + k, SLOTS)]
        climb = _below(key, CLIMB + k, 1000)
        for limit in (STOP_AT_PARENT + STOP_HIGHER, STOP_HIGHER):
            up = world.parent[topic]
            topic = np.where((climb < limit) & (up >= 0), up, topic)
        columns.append(topic)
    return np.stack(columns, axis=1), n_labels


def _labels(world: NewsWorld, key: Bits, changed: Rows, topics: Rows, n_labels: Rows) -> list[frozenset[str]]:
    """Return the most specific topics of each document; in some the first is a wrong one."""
    wrong = _below(key, NOISE, 1000) < WRONG_LABEL
    told = topics.copy()
    told[wrong, 0] = world.popularity[changed, _below(key, NOISE_TOPIC, SLOTS)][wrong]
    given = np.arange(MAX_LABELS) < n_labels[:, None]
    for k in range(MAX_LABELS):
        for other in range(MAX_LABELS):
            given[:, k] &= ~(given[:, other] & world.above[told[:, k], told[:, other]])
    return [
        frozenset(world.topics[topic] for topic, use in zip(row, uses, strict=True) if use)
        for row, uses in zip(told.tolist(), given.tolist(), strict=True)
    ]


def _texts(world: NewsWorld, key: Bits, changed: Rows, topics: Rows, n_labels: Rows) -> Iterator[str]:
    """Write the documents: each word comes from the background or from one of the topics."""
    length = 30 + _below(key, LENGTH, 41) + _below(key, LENGTH + 1, 41)
    end = np.cumsum(length)
    document = np.repeat(np.arange(length.size), length)
    position = np.arange(document.size) - (end - length)[document]
    bits = _draw(key[document], FIRST_WORD + position)
    which = ((bits >> np.uint64(16) & np.uint64(0xFFFF)).astype(np.int64) * n_labels[document]) >> 16
    from_background = (bits >> np.uint64(32)) * np.uint64(1000) >> np.uint64(32) < BACKGROUND_WORD
    row = np.where(from_background, len(world.topics), topics[document, which])
    word = world.words[changed[document], row, (bits % np.uint64(SLOTS)).astype(np.int64)]

    last = np.zeros(document.size, np.bool_)
    stop = end - length - 1
    for k in range(MAX_SENTENCES):
        stop = np.minimum(stop + 5 + _below(key, SENTENCE + k, 10), end - 1)
        last[stop] = True
    opening = np.concatenate([[True], last[:-1]])
    spelling = np.array([*world.vocabulary, *map(str.capitalize, world.vocabulary)], dtype=object)
    tokens = spelling[word + len(world.vocabulary) * opening]
    tokens[last] += "."
    tokens = tokens.tolist()
    return (" ".join(tokens[a:b]) for a, b in zip((end - length).tolist(), end.tolist(), strict=True))
