"""The taxonomy: a forest or a DAG of named nodes, fixed once built.

Notation: G -> `Taxonomy`, N -> `len(taxonomy)`, i -> `node` (a column number), par(i) -> `parent[node]`,
anc(i) -> `ancestors(node)` (without i), sub(i) -> `subtree(node)` (with i), c_i -> `costs(...)[node]`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc.checks import whole_number
from stream_hc.kernels import Ints, Longs
from stream_hc.taxonomy import files, graph, rows
from stream_hc.taxonomy.costs import CostScheme, node_costs
from stream_hc.taxonomy.drawing import draw
from stream_hc.taxonomy.graph import Edge, TaxonomyError

__all__ = ["Labels", "Taxonomy"]

Labels = Iterable[str] | Mapping[str, bool]

REMEMBERED_PATH = 32  # nodes: in a chain of 100,000 all paths together would fill the memory


class Taxonomy:
    """Nested categories: a forest, or a DAG where a node may have several parents.

    Parameters
    ----------
    edges
        Pairs (child, parent) in any order; the parent of a root is None. A node with several parents has
        one pair for each. Anything wrong (a cycle, a node twice, an unknown parent, an empty name) raises
        `TaxonomyError`, a `ValueError` that names the node.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("football", "sport"), ("tennis", "sport"), ("politics", None)])
    >>> tax.nodes
    ('sport', 'politics', 'football', 'tennis')
    >>> tax.parent
    array([-1, -1,  0,  0], dtype=int32)
    >>> sorted(tax.close({"football"}))
    ['football', 'sport']
    >>> tax.costs("normalized")
    array([0.5 , 0.5 , 0.25, 0.25])
    """

    nodes: tuple[str, ...]
    parent_ptr: Longs
    parent_idx: Ints
    child_ptr: Longs
    child_idx: Ints
    depth: Ints
    column_of: Mapping[str, int]
    _paths: dict[int, list[int]]

    def __init__(self, edges: Iterable[Edge]) -> None:
        parents = graph.order_nodes(edges)
        column = {str(name): node for node, name in enumerate(parents)}
        parent_lists = [sorted(column[name] for name in above) for above in parents.values()]
        _fill(self.__dict__, column, *rows.to_csr(parent_lists), rows.longest_depth(parent_lists))

    @classmethod
    def from_paths(cls, paths: Iterable[str], separator: str = "/") -> "Taxonomy":
        """Build a forest from paths; a node is named by its full path and prefixes are added.

        >>> Taxonomy.from_paths(["sport/football", "sport/tennis", "politics"]).nodes
        ('sport', 'politics', 'sport/football', 'sport/tennis')
        """
        edges: dict[Edge, None] = {}
        for path in paths:
            if not isinstance(path, str):
                raise TaxonomyError(f"a path must be a str, not {path!r}")
            parts = path.split(separator)
            if not all(part.strip() for part in parts):
                raise TaxonomyError(f"path {path!r} has an empty part between its {separator!r}")
            above: str | None = None
            for end in range(1, len(parts) + 1):
                name = separator.join(parts[:end])
                edges[(name, above)] = None
                above = name
        return cls(edges)

    @classmethod
    def flat(cls, names: Iterable[str]) -> "Taxonomy":
        """Build a forest of roots only, quickly: for labels that turn up one by one.

        >>> Taxonomy.flat(["rock", "jazz"]).nodes
        ('rock', 'jazz')
        """
        edges: list[Edge] = [(name, None) for name in names]
        if not graph.looks_sound(edges):
            return cls(edges)  # which says what is wrong
        flat = cls.__new__(cls)
        column = {str(name): node for node, (name, _) in enumerate(edges)}
        nothing, zeros = np.zeros(0, np.int32), np.zeros(len(edges), np.int32)
        _fill(flat.__dict__, column, np.zeros(len(edges) + 1, np.int64), nothing, zeros)
        return flat

    @classmethod
    def read(cls, path: str | Path) -> "Taxonomy":
        """Read a taxonomy file: JSON if the name ends in `.json`, else lines `child<TAB>parent`."""
        edges = files.read_edges(Path(path))
        try:
            return cls(edges)
        except TaxonomyError as error:
            raise TaxonomyError(f"{path}: {error}") from None

    def write(self, path: str | Path) -> None:
        """Write a file that `read` reads back equal: JSON if the name ends in `.json`, else TSV."""
        files.write_edges(Path(path), self.edges)

    @classmethod
    def from_json(cls, text: str) -> "Taxonomy":
        """Build it from what `to_json` returned."""
        return cls(files.from_json(text))

    def to_json(self) -> str:
        """Return it as one line of JSON."""
        return files.to_json(self.edges).decode()

    # What it is made of

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes)

    def __contains__(self, name: object) -> bool:
        return name in self.column_of

    @property
    def edges(self) -> list[Edge]:
        """Pairs (child, parent) in node order; `Taxonomy(tax.edges) == tax`."""
        ptr, above = self.parent_ptr.tolist(), self.parent_idx.tolist()
        pairs: list[Edge] = []
        for node, name in enumerate(self.nodes):
            if ptr[node] == ptr[node + 1]:
                pairs.append((name, None))
            pairs += [(name, self.nodes[parent]) for parent in above[ptr[node] : ptr[node + 1]]]
        return pairs

    @property
    def is_tree(self) -> bool:
        """Whether no node has two parents (a forest counts)."""
        return bool(np.all(np.diff(self.parent_ptr) <= 1))

    @cached_property
    def roots(self) -> Ints:
        """The nodes without a parent."""
        return rows.empty_lists(self.parent_ptr)

    @cached_property
    def leaves(self) -> Ints:
        """The nodes without a child."""
        return rows.empty_lists(self.child_ptr)

    @cached_property
    def parent(self) -> Ints:
        """The parent of every node, -1 at a root. Only a forest has it: a DAG has `parents(node)`."""
        if not self.is_tree:
            raise TaxonomyError("in a DAG a node may have several parents: use parents(node)")
        single = np.full(len(self), -1, np.int32)
        single[np.diff(self.parent_ptr) == 1] = self.parent_idx
        single.setflags(write=False)
        return single

    @cached_property
    def digest(self) -> str:
        """SHA-256 of nodes and edges: equal digests mean equal taxonomies."""
        text = "\n".join(f"{child!r} {parent!r}" for child, parent in self.edges)
        return hashlib.sha256(text.encode()).hexdigest()

    def index(self, name: str) -> int:
        """Return the column of a node."""
        try:
            return self.column_of[name]
        except (KeyError, TypeError):
            raise TaxonomyError(rows.unknown_label(name, self.nodes)) from None

    def parents(self, node: int | str) -> Ints:
        """Return the parents of a node (by column or name)."""
        i = self._node(node)
        return self.parent_idx[self.parent_ptr[i] : self.parent_ptr[i + 1]]

    def children(self, node: int | str) -> Ints:
        """Return the children of a node (by column or name)."""
        i = self._node(node)
        return self.child_idx[self.child_ptr[i] : self.child_ptr[i + 1]]

    def ancestors(self, node: int | str) -> Ints:
        """Return all strict ancestors of a node, ascending."""
        return rows.reachable(self._node(node), self.parent_ptr, self.parent_idx, with_start=False)

    def subtree(self, node: int | str) -> Ints:
        """Return a node and all below it, ascending."""
        return rows.reachable(self._node(node), self.child_ptr, self.child_idx, with_start=True)

    def costs(
        self, scheme: CostScheme | NDArray[np.floating[Any]] | Sequence[float] = "uniform"
    ) -> NDArray[np.float64]:
        """Return what a mistake at each node costs: a named scheme, or your own positive vector checked."""
        return node_costs(self, scheme)

    def draw(self, max_depth: int | None = None) -> str:
        """Draw it as text, one node a line."""
        return draw(self, max_depth)

    # Labels

    def columns(self, labels: Labels) -> list[int]:
        """Return the columns of the labels and all their ancestors, ascending."""
        found: set[int] = set()
        for node in rows.label_columns(labels, self.column_of):
            if node not in found:
                found.update(self._paths.get(node) or self._climb(node))
        return sorted(found)

    def _climb(self, node: int) -> list[int]:
        """Return a node and its ancestors; short lists, the usual ones, are remembered."""
        path: list[int] = rows.reachable(node, self.parent_ptr, self.parent_idx, with_start=True).tolist()
        if len(path) <= REMEMBERED_PATH:
            self._paths[node] = path
        return path

    def close(self, labels: Labels) -> set[str]:
        """Return the labels with all their ancestors."""
        return {self.nodes[node] for node in self.columns(labels)}

    def truncate(self, labels: Labels) -> set[str]:
        """Return the labels all of whose ancestors are among them."""
        kept: set[int] = set()
        for node in sorted(set(rows.label_columns(labels, self.column_of))):
            if kept.issuperset(self.parents(node).tolist()):
                kept.add(node)
        return {self.nodes[node] for node in kept}

    def most_specific(self, labels: Labels) -> set[str]:
        """Return the labels that have none of their children among them: the ends of the paths."""
        given = set(rows.label_columns(labels, self.column_of))
        return {self.nodes[node] for node in given if given.isdisjoint(self.children(node).tolist())}

    def respects(self, labels: Labels) -> bool:
        """Whether the labels contain all their ancestors."""
        given = set(rows.label_columns(labels, self.column_of))
        return all(given.issuperset(self.parents(node).tolist()) for node in given)

    def encode(self, label_sets: Iterable[Labels]) -> csr_array:
        """Return label sets as bool rows (n × N), closed upward."""
        return rows.encode_closed(self, label_sets)

    def decode(self, Y: Any) -> list[set[str]]:
        """Return the label set of every row."""
        matrix = self.label_rows(Y)
        return [
            {self.nodes[node] for node in matrix.indices[first:last]}
            for first, last in zip(matrix.indptr, matrix.indptr[1:], strict=False)
        ]

    def label_rows(self, Y: Any, close: bool = False) -> csr_array:
        """Bring labels in any accepted form (sparse or dense rows, or label sets) to one: sorted bool CSR."""
        return rows.label_rows(self, Y, close)

    # An immutable value

    def _node(self, node: int | str) -> int:
        if isinstance(node, str):
            return self.index(node)
        try:
            return whole_number("node", node, 0, len(self) - 1)
        except ValueError as error:
            raise TaxonomyError(f"{error}: give a name or a column") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Taxonomy does not change: build a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Taxonomy does not change: {name!r} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        same_edges = np.array_equal(self.parent_ptr, other.parent_ptr) and np.array_equal(
            self.parent_idx, other.parent_idx
        )
        return self.nodes == other.nodes and same_edges

    def __hash__(self) -> int:
        return hash(self.nodes)

    def __repr__(self) -> str:
        shape = "forest" if self.is_tree else "DAG"
        levels = int(self.depth.max()) + 1 if len(self) else 0
        counts = f"{len(self)} nodes, {self.roots.size} roots, {levels} levels"
        return f"Taxonomy({shape}, {counts}, {self.digest[:12]})"

    def __copy__(self) -> "Taxonomy":
        return self

    def __deepcopy__(self, memo: object) -> "Taxonomy":
        return self

    def __reduce__(self) -> tuple[type["Taxonomy"], tuple[list[Edge]]]:
        return Taxonomy, (self.edges,)


def _fill(
    fields: dict[str, Any], column: dict[str, int], parent_ptr: Longs, parent_idx: Ints, depth: Ints
) -> None:
    """Write what a taxonomy is made of, once and for all: `__setattr__` lets nobody do it later."""
    fields["nodes"] = tuple(column)
    fields["column_of"] = MappingProxyType(column)
    fields["parent_ptr"], fields["parent_idx"] = parent_ptr, parent_idx
    fields["child_ptr"], fields["child_idx"] = rows.reverse(parent_ptr, parent_idx)
    fields["depth"] = depth
    fields["_paths"] = {}
    for array in fields.values():
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
