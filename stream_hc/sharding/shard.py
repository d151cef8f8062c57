"""One shard: the groups of siblings it owns, and the ancestors it trains beside them."""

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np

from stream_hc.checks import whole_number
from stream_hc.kernels import Bools, Ints
from stream_hc.kernels.labels import close_rows
from stream_hc.learners.base import LabelRows
from stream_hc.sharding.groups import sibling_groups
from stream_hc.snapshot import register
from stream_hc.taxonomy import Edge, Taxonomy

__all__ = ["Shard", "check_owner", "ownership_digest", "read_taxonomy", "text_array"]


@register
class Shard:
    """A part of a taxonomy that is trained by itself: nodes of its own, and all above them.

    Parameters
    ----------
    whole
        The taxonomy that was cut.
    owner
        The number of the shard that owns each node.
    number
        Which one this is, from 0 on.

    Attributes
    ----------
    n_shards
        Of how many it is one.
    columns
        The columns of its nodes in the whole taxonomy (int32), ascending.
    own
        Which of its nodes it owns; the others are ancestors of those.

    Examples
    --------
    >>> from stream_hc.sharding import Plan
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None), ("party", "politics")])
    >>> shard = Plan.cut(tax, 3).shards[2]
    >>> shard.taxonomy.nodes, shard.columns, shard.own
    (('politics', 'party'), array([1, 3], dtype=int32), array([False,  True]))
    """

    def __init__(self, whole: Taxonomy, owner: Ints, number: int) -> None:
        self.whole = whole
        self.owner = check_owner(whole, owner)
        self.n_shards = int(self.owner.max()) + 1
        self.number = whole_number("number", number, 0, self.n_shards - 1)
        owned = np.flatnonzero(self.owner == self.number).astype(np.int32)
        row = np.array([0, owned.size], np.int64)
        self.columns = close_rows(row, owned, whole.parent_ptr, whole.parent_idx)[1]
        self.own: Bools = self.owner[self.columns] == self.number
        self._local = np.full(len(whole), -1, np.int32)
        self._local[self.columns] = np.arange(self.columns.size, dtype=np.int32)

    @cached_property
    def taxonomy(self) -> Taxonomy:
        """Its nodes and their parents: column i is column `columns[i]` of the whole taxonomy.

        Nodes are ordered by depth, then by their parents, and all parents are here: the order stays.
        """
        whole, edges = self.whole, list[Edge]()
        for node in self.columns.tolist():
            above = whole.parents(node).tolist()
            edges += [(whole.nodes[node], whole.nodes[parent]) for parent in above] or [
                (whole.nodes[node], None)
            ]
        taxonomy = Taxonomy(edges)
        if [whole.column_of[name] for name in taxonomy.nodes] != self.columns.tolist():
            raise AssertionError("the nodes of a shard are in the order of the whole taxonomy")
        return taxonomy

    @cached_property
    def digest(self) -> str:
        """That of the plan it belongs to."""
        return ownership_digest(self.whole, self.owner)

    def project(self, labels: LabelRows) -> LabelRows:
        """Return the labels that are nodes of this shard; rows are closed upward here if they were there."""
        local = self._local[labels.nodes]
        kept = local >= 0
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
        return LabelRows(ends[labels.indptr], local[kept])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Shard):
            return NotImplemented
        same_owner = np.array_equal(self.owner, other.owner)
        return self.number == other.number and same_owner and self.whole == other.whole

    def __hash__(self) -> int:
        return hash((self.digest, self.number))

    def __repr__(self) -> str:
        own, n_nodes = int(self.own.sum()), self.columns.size
        return f"Shard({self.number} of {self.n_shards}, {own} nodes + {n_nodes - own}, {self.digest})"

    def state(self) -> dict[str, Any]:
        """Return the number, and the plan as arrays."""
        return {"number": self.number, "taxonomy": text_array(self.whole), "owner": self.owner.copy()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the shard that `state` describes, or raise `ValueError`."""
        return cls(read_taxonomy(state["taxonomy"]), state["owner"], state["number"])


def check_owner(taxonomy: Taxonomy, owner: Ints) -> Ints:
    """Return who owns each node; `ValueError` where that is no plan: a shard without nodes, a group split."""
    if owner.shape != (len(taxonomy),) or owner.dtype != np.int32 or owner.size == 0:
        raise ValueError(f"owner must be the number of a shard (int32) for each of {len(taxonomy)} nodes")
    if owner.min() != 0 or np.bincount(owner).min() == 0:
        raise ValueError("owner must number the shards from 0 on, and each must own a node")
    groups = sibling_groups(taxonomy)
    first = np.unique(groups, return_index=True)[1]
    if not np.array_equal(owner[first][groups], owner):
        raise ValueError("owner must not split siblings")
    frozen = owner.copy()
    frozen.setflags(write=False)
    return frozen


def ownership_digest(taxonomy: Taxonomy, owner: Ints) -> str:
    """Return a short name of a cut: equal ones mean the same taxonomy, cut alike."""
    data = taxonomy.digest.encode() + owner.astype("<i4").tobytes()
    return hashlib.sha256(data).hexdigest()[:16]


def text_array(taxonomy: Taxonomy) -> np.ndarray:
    """Return a taxonomy as an array of bytes: it may be too long for the header of a snapshot."""
    return np.frombuffer(taxonomy.to_json().encode(), np.uint8).copy()


def read_taxonomy(array: np.ndarray) -> Taxonomy:
    """Return the taxonomy that `text_array` wrote, or raise `ValueError`."""
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError("taxonomy must be a text, as bytes")
    return Taxonomy.from_json(array.tobytes().decode())
