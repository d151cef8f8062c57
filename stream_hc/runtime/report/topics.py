"""How well each topic is filed: precision, recall and support, as a picture and as a table."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_hc.kernels import Longs
from stream_hc.runtime.node_counts import NodeCounts
from stream_hc.runtime.report.page import bar, name, section, table
from stream_hc.runtime.report.treemap import BOUNDS, NARROW_MAP, WIDE_MAP, Tile, draw_treemap
from stream_hc.taxonomy import Taxonomy

__all__ = ["Topics", "tiles_of", "topics_of", "topics_section"]

MOST_WORST, MOST_TOPICS = 15, 1_000  # in tables; the job has all of them
MOST_ABOVE = 12  # names in front of a topic


class Topics(NamedTuple):
    """Counts of every node: belong there, filed there, both, and where the H-loss was charged."""

    n_documents: int
    support: Longs
    predicted: Longs
    hits: Longs
    charged: Longs

    def seen(self, node: int) -> int:
        """Return how many documents belong there or were filed there."""
        return int(self.support[node] + self.predicted[node] - self.hits[node])

    def precision(self, node: int) -> float | None:
        """Return how many of the documents filed there belong there; None if there are none."""
        return self.hits[node] / self.predicted[node] if self.predicted[node] else None

    def recall(self, node: int) -> float | None:
        """Return how many of the documents that belong there were filed there; None if there are none."""
        return self.hits[node] / self.support[node] if self.support[node] else None

    def error(self, node: int) -> float | None:
        """Return how many of the documents seen there are wrong; None if there are none."""
        return 1.0 - self.hits[node] / self.seen(node) if self.seen(node) else None


def topics_of(counts: NodeCounts) -> tuple[Topics, Topics]:
    """Return the counts over everything, and over the last documents."""
    both = (counts.all(), counts.recent())
    whole, recent = (Topics(each.n_documents, *np.ascontiguousarray(each.counts.T)) for each in both)
    return whole, recent


def topics_section(taxonomy: Taxonomy, topics: Topics, recent: Topics | None = None) -> str:
    """Return the section on topics: a map, those that cost most, and all of them to unfold."""
    if not topics.n_documents:
        return section("h-topics", "Topics", '<p class="none">No labelled documents yet.</p>')
    lead = (
        f"What was served, over {topics.n_documents:,} labelled documents. The area of a topic is the number "
        "of documents that belong there or were filed there, its colour says how many of them are wrong."
    )
    if not taxonomy.is_tree:
        lead += " A topic with several parents is drawn below the first."
    tiles = tiles_of(taxonomy, topics)
    pictures = [draw_treemap(tiles, size) for size in (WIDE_MAP, NARROW_MAP)]
    busy = [node for node in range(len(taxonomy)) if topics.seen(node)]
    worst = sorted(busy, key=lambda node: (-int(topics.charged[node]), node))[:MOST_WORST]
    first = _table(
        "The topics at which most H-loss was charged: where predictions first went wrong on the way down",
        taxonomy,
        topics,
        recent,
        [node for node in worst if topics.charged[node]],
    )
    shown = _reading_order(taxonomy)[:MOST_TOPICS]
    left_out = len(taxonomy) - len(shown)
    every = _table(
        "In the order of the taxonomy" + (f"; {left_out:,} left out" if left_out else ""),
        taxonomy,
        topics,
        recent,
        shown,
    )
    unfold = f"<details><summary>All {len(shown):,} topics</summary>\n{every}\n</details>"
    parts = [f'<p class="lead">{lead}</p>', _legend(), *pictures, first, unfold]
    return section("h-topics", "Topics", *parts)


def tiles_of(taxonomy: Taxonomy, topics: Topics) -> list[Tile]:
    """Return a tile for each node, parents first; each is inside its first parent."""
    tiles = []
    for node in range(len(taxonomy)):
        above = taxonomy.parents(node)
        numbers = (topics.precision(node), topics.recall(node))
        shares = [
            f"{word} {_share(share)}" for word, share in zip(("precision", "recall"), numbers, strict=True)
        ]
        about = (
            f"{int(topics.support[node]):,} documents belong there, {int(topics.predicted[node]):,} were "
            f"filed there, {int(topics.hits[node]):,} of them rightly: {', '.join(shares)}"
        )
        parent = int(above[0]) if above.size else -1
        tiles.append(Tile(taxonomy.nodes[node], parent, topics.seen(node), topics.error(node), about))
    return tiles


def _table(
    caption: str, taxonomy: Taxonomy, topics: Topics, recent: Topics | None, nodes: Sequence[int]
) -> str:
    heads = [("Topic", "topic"), ("Support", "n"), ("Precision", "n"), ("Recall", "n")]
    heads += [("Wrong", "n hide-small")] + ([("Lately", "n hide-small")] if recent is not None else [])
    rows = []
    for node in nodes:
        error = topics.error(node)
        cells = [
            f"{int(topics.support[node]):,}",
            _share(topics.precision(node)),
            _share(topics.recall(node)),
        ]
        cells += [_share(error)] + ([_share(recent.error(node))] if recent is not None else [])
        rows.append([_path(taxonomy, node), *cells, bar(error or 0.0) if error is not None else ""])
    return table(caption, [*heads, ("", "bar-cell hide-small")], rows)


def _path(taxonomy: Taxonomy, node: int) -> str:
    above: list[int] = []
    while (parents := taxonomy.parents(above[-1] if above else node)).size and len(above) < MOST_ABOVE:
        above.append(int(parents[0]))
    before = "".join(f"{name(taxonomy.nodes[each])} › " for each in reversed(above))
    return f'<span class="above">{before}</span>{name(taxonomy.nodes[node])}'


def _reading_order(taxonomy: Taxonomy) -> list[int]:
    """Return all nodes as a tree is read, each below its first parent."""
    order: list[int] = []
    waiting = taxonomy.roots[::-1].tolist()
    while waiting:
        node = waiting.pop()
        order.append(node)
        below = [
            child for child in taxonomy.children(node).tolist() if int(taxonomy.parents(child)[0]) == node
        ]
        waiting += below[::-1]
    return order


def _share(share: float | None) -> str:
    return "—" if share is None else f"{100 * share:.1f} %"


def _legend() -> str:
    words = [f"up to {100 * BOUNDS[0]:.0f} %", *(f"to {100 * bound:.0f} %" for bound in BOUNDS[1:]), "more"]
    keys = "".join(f'<li><span class="key e{number}"></span>{word}</li>' for number, word in enumerate(words))
    return f'<ul class="legend" aria-label="Share of documents that are wrong">{keys}</ul>'
