"""Seeded streams to measure on: words by Zipf's law, a share of them from the topics of the document."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_hc import Taxonomy

__all__ = ["Stream", "news_like", "single_path"]

SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]


class Stream(NamedTuple):
    """Texts with their labels; `labels` are as given, not closed upward."""

    name: str
    taxonomy: Taxonomy
    texts: list[str]
    labels: list[frozenset[str]]


def news_like(
    n: int = 30_000, seed: int = 0, noise: float = 0.1, levels: tuple[int, ...] = (4, 24, 60, 15)
) -> Stream:
    """Like RCV1: 103 nodes in 4 trees, several and partial paths, about 72 different terms a document.

    In a share `noise` of the documents one label is replaced by a node drawn at random. `levels` are the
    numbers of nodes on each level.
    """
    rng = np.random.default_rng(seed)
    taxonomy = _tree(list(levels), rng)
    depth = taxonomy.depth
    # One topic in most documents, up to three; deeper nodes are more often the most specific one.
    popularity = rng.dirichlet(np.full(len(taxonomy), 0.6)) * (0.15 + depth)
    counts = rng.choice([1, 2, 3], size=n, p=[0.55, 0.33, 0.12])
    topics = rng.choice(len(taxonomy), size=(n, 3), p=popularity / popularity.sum())
    texts = _texts(taxonomy, topics, counts, rng, mean_length=80, vocabulary=47_000)
    told = topics.copy()
    wrong = rng.random(n) < noise
    told[wrong, 0] = rng.integers(0, len(taxonomy), int(wrong.sum()))
    names = taxonomy.nodes
    labels = [
        frozenset(names[t] for t in row[:k]) for row, k in zip(told.tolist(), counts.tolist(), strict=True)
    ]
    return Stream("news-like", taxonomy, texts, labels)


def single_path(n: int = 30_000, seed: int = 0, leaves: int = 5_000) -> Stream:
    """One leaf of `leaves` for each document, three levels, about 75 terms."""
    rng = np.random.default_rng(seed)
    taxonomy = _tree([20, 300, leaves], rng)
    popularity = rng.permutation(1.0 / np.arange(1, leaves + 1) ** 0.7)
    topics = rng.choice(taxonomy.leaves[-leaves:], size=(n, 1), p=popularity / popularity.sum())
    ones = np.ones(n, np.int64)
    texts = _texts(taxonomy, topics, ones, rng, mean_length=84, vocabulary=100_000)
    return Stream(
        "single-path", taxonomy, texts, [frozenset([taxonomy.nodes[t]]) for t in topics[:, 0].tolist()]
    )


def _tree(sizes: list[int], rng: np.random.Generator) -> Taxonomy:
    """Return a forest with this many nodes on each level, each under a parent drawn at random."""
    edges: list[tuple[str, str | None]] = []
    above: list[str] = []
    for level, size in enumerate(sizes):
        names = [f"{'ABCDEFGH'[level]}{k}" for k in range(size)]
        # Every parent gets a child first, so that no leaf remains above the last level by accident.
        parents = [*range(len(above)), *rng.integers(0, max(1, len(above)), size).tolist()][:size]
        edges += [
            (name, above[parent] if above else None) for name, parent in zip(names, parents, strict=True)
        ]
        above = names
    return Taxonomy(edges)


def _texts(
    taxonomy: Taxonomy,
    topics: NDArray[np.int64],
    counts: NDArray[np.int64],
    rng: np.random.Generator,
    mean_length: int,
    vocabulary: int,
) -> list[str]:
    """Write the documents: 3 of 4 words by Zipf's law, the others from a topic or one of its ancestors."""
    words = np.array(_words(vocabulary), dtype=object)
    zipf = np.cumsum(1.0 / np.arange(3, vocabulary + 3))
    zipf /= zipf[-1]
    parents = taxonomy.parent
    own = rng.integers(0, vocabulary, size=(len(taxonomy), 60))
    lengths = np.maximum(8, rng.poisson(mean_length * rng.gamma(9.0, 1 / 9.0, counts.size)))
    document = np.repeat(np.arange(counts.size), lengths)
    drawn = np.searchsorted(zipf, rng.random(document.size))
    topical = rng.random(document.size) < 0.25
    which = (rng.random(document.size) * counts[document]).astype(np.int64)
    topic = topics[document, which]
    for _ in range(int(taxonomy.depth.max())):
        climbs = (rng.random(document.size) < 0.3) & (parents[topic] >= 0)
        topic = np.where(climbs, parents[topic], topic)
    rank = (own.shape[1] * rng.random(document.size) ** 2).astype(np.int64)
    tokens = words[np.where(topical, own[topic, rank], drawn)].tolist()
    ends = np.cumsum(lengths).tolist()
    return [" ".join(tokens[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True)]


def _words(count: int) -> list[str]:
    """Return made-up words of two to four syllables, all different."""
    base = len(SYLLABLES)
    names = []
    for k in range(count):
        number, word = k + base, ""
        while number:
            word, number = word + SYLLABLES[number % base], number // base
        names.append(word)
    return names
