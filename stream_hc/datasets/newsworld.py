"""What the synthetic newswire is drawn from: topics, how popular they are and which words they use.

Every distribution is a row of `SLOTS` slots, each holding a topic or a word, so that a draw is a lookup.
Slots are shared out with integer arithmetic and random bits come from SplitMix64: no floating point,
nothing that differs between machines or library versions.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_hc.datasets.newswords import BACKGROUND, TOPICS
from stream_hc.taxonomy import Taxonomy

__all__ = ["GOLDEN", "SLOTS", "Bits", "NewsWorld", "mix", "news_world"]

Bits = NDArray[np.uint64]
Slots = NDArray[np.int64]

SLOTS = 4096
GOLDEN = 0x9E3779B97F4A7C15

# Of a hundred words about a topic: its own, its ancestors', its siblings', which blur the difference.
OWN, ANCESTORS, SIBLINGS = 45, 28, 27


class NewsWorld(NamedTuple):
    """Tables with a leading axis of two: before and after the drift."""

    taxonomy: Taxonomy
    topics: tuple[str, ...]
    parent: Slots  # [topic], -1 at a root
    above: NDArray[np.bool_]  # [topic, topic]: the first is a strict ancestor of the second
    popularity: Slots  # [2, slot] -> leaf topic
    words: Slots  # [2, topic, slot] -> word; the row after the last topic is the background
    vocabulary: tuple[str, ...]


def mix(z: Bits) -> Bits:
    """Scramble 64-bit counters as SplitMix64 does (Stafford's variant 13 of the MurmurHash3 finalizer)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@functools.cache
def news_world() -> NewsWorld:
    """Build the tables; they are the same for every seed, which only picks the sample."""
    topics, parent, lists = _outline()
    n_topics = len(topics)
    children: list[list[int]] = [[] for _ in topics]
    for topic, up in enumerate(parent):
        if up >= 0:
            children[up].append(topic)
    paths = [_path(topic, parent) for topic in range(n_topics)]
    above = np.zeros((n_topics, n_topics), np.bool_)
    for topic, path in enumerate(paths):
        above[path[:-1], topic] = True
    leaves = [topic for topic in range(n_topics) if not children[topic]]

    background = BACKGROUND.split()
    vocabulary = tuple(sorted({word for words in lists for word in words} | set(background)))
    number = {word: k for k, word in enumerate(vocabulary)}
    before = [[number[word] for word in words] for words in lists]
    rows: list[list[Slots]] = []
    for own in (before, _exchange(before, parent)):
        rows.append([])
        for topic in range(n_topics):
            up = parent[topic]
            siblings = [t for t in children[up] if t != topic] if up >= 0 else []
            parts = [([topic], OWN), (paths[topic][:-1], ANCESTORS), (siblings, SIBLINGS)]
            rows[-1].append(_share_out(parts, own))
        rows[-1].append(_zipf([number[word] for word in background], 8, SLOTS))
    popularity = [_zipf(_shuffle(leaves, key), 4, SLOTS) for key in (1, 2)]
    edges = [(name, topics[up] if up >= 0 else None) for name, up in zip(topics, parent, strict=True)]
    return NewsWorld(
        Taxonomy(edges), topics, np.array(parent), above, np.array(popularity), np.array(rows), vocabulary
    )


def _outline() -> tuple[tuple[str, ...], list[int], list[list[str]]]:
    """Read the indented outline: names, parents, words."""
    topics: list[str] = []
    parent: list[int] = []
    lists: list[list[str]] = []
    path: list[int] = []
    for line in TOPICS.splitlines():
        name, words = line.split(":")
        level = (len(name) - len(name.lstrip())) // 2
        del path[level:]
        parent.append(path[-1] if path else -1)
        path.append(len(topics))
        topics.append(name.strip())
        lists.append(words.split())
    return tuple(topics), parent, lists


def _path(topic: int, parent: Sequence[int]) -> list[int]:
    """Return the topics from the root down to this one."""
    path = [topic]
    while parent[path[0]] >= 0:
        path.insert(0, parent[path[0]])
    return path


def _exchange(lists: Sequence[list[int]], parent: Sequence[int]) -> list[list[int]]:
    """Let every second topic below the roots exchange words with one far away in the outline."""
    changed = list(lists)
    moving = [topic for topic, up in enumerate(parent) if up >= 0][::2]
    half = len(moving) // 2
    for one, other in zip(moving[:half], moving[half:], strict=False):
        changed[one], changed[other] = lists[other], lists[one]
    return changed


def _shuffle(items: Sequence[int], key: int) -> list[int]:
    """Put items into an arbitrary order that is fixed by the key."""
    ranks = mix((np.array(items) + 1000 * key).astype(np.uint64) * np.uint64(GOLDEN)).tolist()
    return [item for _, item in sorted(zip(ranks, items, strict=True))]


def _zipf(items: Sequence[int], offset: int, size: int) -> Slots:
    """Fill `size` slots with the items, the k-th in proportion to 1 / (k + offset)."""
    weights = [10**6 // (rank + offset) for rank in range(1, len(items) + 1)]
    ends = np.cumsum(weights) * size // sum(weights)
    return np.repeat(np.array(items), np.diff(ends, prepend=0))


def _share_out(parts: Sequence[tuple[Sequence[int], int]], words: Sequence[Sequence[int]]) -> Slots:
    """Fill a row with the words of groups of topics, each group by its weight, its topics evenly."""
    present = [(topics, weight) for topics, weight in parts if topics]
    # 2520 is divisible by every group size up to ten.
    shares = [(topic, weight * 2520 // len(topics)) for topics, weight in present for topic in topics]
    ends = np.cumsum([share for _, share in shares]) * SLOTS // sum(share for _, share in shares)
    sizes = np.diff(ends, prepend=0).tolist()
    filled = [_zipf(words[topic], 4, size) for (topic, _), size in zip(shares, sizes, strict=True)]
    return np.concatenate(filled)
