"""How wrong each node is, as a table for people, and the worst of them."""

from typing import Any

import msgspec
import numpy as np

from stream_hc.kernels import Doubles, Longs
from stream_hc.kernels.node_counts import CHARGED, HITS, PREDICTED, SUPPORT
from stream_hc.runtime.node_counts import Counted, NodeCounts
from stream_hc.taxonomy import CostScheme, Taxonomy

__all__ = ["NodeNumbers", "NodeRow", "NodeTable", "WorstNode"]

LONGEST_NAME = 200  # characters of a node in a label of Prometheus


class NodeNumbers(msgspec.Struct):
    """What became of the documents at a node.

    `support` of them belong there, `predicted` were filed there, `hits` both; of `charged` the H-loss was
    charged there. `error` is the share that was wrong among those that belong there or were filed there.
    """

    support: int
    predicted: int
    hits: int
    charged: int
    precision: float | None
    recall: float | None
    error: float | None


class NodeRow(msgspec.Struct):
    """A node, over everything and recently."""

    name: str
    parents: list[str]
    depth: int
    cost: float
    all: NodeNumbers
    recent: NodeNumbers


class WorstNode(msgspec.Struct):
    """One of the nodes with most of the recent H-loss: its part of the mean, and its recent documents."""

    name: str
    hloss: float
    error: float
    documents: int


class NodeTable:
    """Rows and ranks from the counts of a processor.

    Parameters
    ----------
    taxonomy
        Names and parents.
    counts
        They go on counting.
    costs
        Of the H-loss.
    """

    def __init__(self, taxonomy: Taxonomy, counts: NodeCounts, costs: CostScheme) -> None:
        self.taxonomy = taxonomy
        self._counts = counts
        self._costs = taxonomy.costs(costs)
        self._n_depths = int(taxonomy.depth.max(initial=-1)) + 1

    def rows(self, nodes: list[int] | None = None) -> list[NodeRow]:
        """Return some nodes, or all, in the order of the taxonomy."""
        tax = self.taxonomy
        places = list(range(len(tax))) if nodes is None else nodes
        ever, lately = _numbers(self._counts.all(), places), _numbers(self._counts.recent(), places)
        return [
            NodeRow(
                tax.nodes[node],
                [tax.nodes[parent] for parent in tax.parents(node).tolist()],
                int(tax.depth[node]),
                float(self._costs[node]),
                ever[place],
                lately[place],
            )
            for place, node in enumerate(places)
        ]

    def counted(self) -> tuple[int, int]:
        """Return how many labelled documents are behind the rows: all, and the recent ones."""
        return self._counts.all().n_documents, self._counts.recent().n_documents

    def by_depth(self) -> tuple[list[float], list[float]]:
        """Return the mean H-loss of what was served, shared out over the depths: of all, and recently."""
        return self._shared(self._counts.all()), self._shared(self._counts.recent())

    def _shared(self, counted: Counted) -> list[float]:
        sums = np.bincount(self.taxonomy.depth, self._charged(counted), self._n_depths)
        shares: list[float] = (sums / max(counted.n_documents, 1)).tolist()
        return shares

    def _charged(self, counted: Counted) -> Doubles:
        return counted.counts[:, CHARGED] * self._costs

    def worst(self, most: int) -> list[WorstNode]:
        """Return the nodes where most of the recent H-loss is charged, worst first."""
        counted = self._counts.recent()
        charged = self._charged(counted)
        order = np.argsort(-charged, kind="stable")[:most].tolist()
        found = []
        for node in order:
            support, predicted, hits, _ = counted.counts[node].tolist()
            documents = support + predicted - hits
            if charged[node]:
                mean, error = charged[node] / counted.n_documents, 1 - hits / documents
                found.append(WorstNode(self._short_name(node), float(mean), error, documents))
        return found

    def _short_name(self, node: int) -> str:
        name = self.taxonomy.nodes[node]
        # The number keeps names apart that are alike at the beginning.
        return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}… ({node})"


def _numbers(counted: Counted, nodes: list[int]) -> list[NodeNumbers]:
    counts = counted.counts[nodes]
    support, predicted, hits = counts[:, SUPPORT], counts[:, PREDICTED], counts[:, HITS]
    there = support + predicted - hits
    shares = (_shares(hits, predicted), _shares(hits, support), _shares(there - hits, there))
    columns: list[list[Any]] = [*counts.T.tolist(), *shares]
    return [NodeNumbers(*row) for row in zip(*columns, strict=True)]


def _shares(part: Longs, whole: Longs) -> list[float | None]:
    """Return parts as shares; None where there is nothing to share."""
    pairs = zip(part.tolist(), whole.tolist(), strict=True)
    return [some / all_of_them if all_of_them else None for some, all_of_them in pairs]
