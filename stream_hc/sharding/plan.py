"""A taxonomy cut into shards that have about the same work."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np

from stream_hc.checks import whole_number
from stream_hc.kernels import Bools, Ints, Longs
from stream_hc.kernels.labels import close_rows
from stream_hc.sharding.groups import group_rows, leaf_counts, node_costs, read_traffic, sibling_groups
from stream_hc.sharding.shard import Shard, check_owner, ownership_digest, read_taxonomy, text_array
from stream_hc.snapshot import register
from stream_hc.taxonomy import Taxonomy

__all__ = ["Plan"]


@register
class Plan:
    """Which shard owns each node of a taxonomy; `Plan.cut` makes one.

    Parameters
    ----------
    taxonomy
        That is cut.
    owner
        The number of the shard that owns each node (int32), the same for all siblings.
    costs
        The work at each node: on how many documents it is eligible (int64). If not given, every leaf is taken
        to be equally frequent.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("football", "sport"), ("tennis", "sport"), ("politics", None)])
    >>> plan = Plan.cut(tax, 2, traffic={"sport": 60, "football": 50, "tennis": 10, "politics": 40})
    >>> print(plan.table())
    shard  own nodes  ancestors  work
        0          2          0  62.5 %
        1          2          1  68.8 %
    >>> plan.shards[1].taxonomy.nodes
    ('sport', 'football', 'tennis')
    """

    def __init__(self, taxonomy: Taxonomy, owner: Ints, costs: Longs | None = None) -> None:
        self.taxonomy = taxonomy
        self.owner = check_owner(taxonomy, owner)
        self.n_shards = int(self.owner.max()) + 1
        if costs is None:
            costs = node_costs(taxonomy, leaf_counts(taxonomy), taxonomy.leaves.size)
        if costs.shape != owner.shape or costs.dtype != np.int64 or (costs < 0).any():
            raise ValueError(f"costs must be a count (int64) for each of {len(taxonomy)} nodes")
        self.costs = costs

    @classmethod
    def cut(
        cls,
        taxonomy: Taxonomy,
        n_shards: int,
        traffic: Mapping[str, int] | Any = None,
        n_documents: int | None = None,
    ) -> Self:
        """Cut a taxonomy: the same arguments always give the same plan.

        Groups of siblings are given away one after the other, the costliest first, each to the shard that has
        least work with it. A node costs the documents on which it is eligible, and a shard pays for the
        ancestors of its groups, too, once each.

        Parameters
        ----------
        taxonomy
            Labels and their parents.
        n_shards
            At most as many as there are groups of siblings.
        traffic
            How many documents have each node, as a dict by name or as an array by column; a document counts
            at all ancestors of its labels. If not given, every leaf is taken to be equally frequent.
        n_documents
            How many documents `traffic` is about; if not given, each is taken to have one root.
        """
        n_shards = whole_number("n_shards", n_shards, 1)
        groups = sibling_groups(taxonomy) if len(taxonomy) else np.zeros(0, np.int32)
        n_groups = int(groups.max(initial=-1)) + 1
        if n_shards > n_groups:
            raise ValueError(f"{n_shards} shards, but siblings stay together: {n_groups} at most")
        counts = leaf_counts(taxonomy) if traffic is None else read_traffic(taxonomy, traffic)
        if n_documents is None:
            total = int(taxonomy.leaves.size if traffic is None else counts[taxonomy.roots].sum())
        else:
            total = whole_number("n_documents", n_documents, int(counts.max(initial=0)), 2**40)
        costs = node_costs(taxonomy, counts, total)
        return cls(taxonomy, _assigned(taxonomy, groups, costs, n_shards), costs)

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """All shards, in order."""
        return tuple(Shard(self.taxonomy, self.owner, number) for number in range(self.n_shards))

    @cached_property
    def loads(self) -> Longs:
        """The work of each shard: at the nodes it owns and at their ancestors."""
        return np.array([self.costs[shard.columns].sum() for shard in self.shards], np.int64)

    @property
    def imbalance(self) -> float:
        """The work of the shard that has most, as a multiple of the mean: 1 is perfect."""
        mean = float(self.loads.mean())
        return float(self.loads.max()) / mean if mean else 1.0

    @cached_property
    def digest(self) -> str:
        """A short name: equal ones mean the same taxonomy, cut alike."""
        return ownership_digest(self.taxonomy, self.owner)

    def table(self) -> str:
        """Return the shards as text, a line each; work is a share of what one trainer would do alone."""
        lines = ["shard  own nodes  ancestors  work"]
        total = max(int(self.costs.sum()), 1)
        for shard, load in zip(self.shards, self.loads.tolist(), strict=True):
            own = int(shard.own.sum())
            above = shard.own.size - own
            lines.append(f"{shard.number:5}  {own:9}  {above:9}  {100 * load / total:.1f} %")
        return "\n".join(lines)

    def __len__(self) -> int:
        return self.n_shards

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return np.array_equal(self.owner, other.owner) and self.taxonomy == other.taxonomy

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Plan({self.n_shards} shards, {len(self.taxonomy)} nodes, {self.digest})"

    def state(self) -> dict[str, Any]:
        """Return it as arrays."""
        owned = {"owner": self.owner.copy(), "costs": self.costs.copy()}
        return {"taxonomy": text_array(self.taxonomy), **owned}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the plan that `state` describes, or raise `ValueError`."""
        return cls(read_taxonomy(state["taxonomy"]), state["owner"], state["costs"])


def _assigned(taxonomy: Taxonomy, groups: Ints, costs: Longs, n_shards: int) -> Ints:
    """Return the owner of every node: groups go, the costliest first, where they make the least total.

    With a group, a shard that was empty never has more work than one that was not, and among equals the one
    that owns least takes it: so no shard stays empty.
    """
    indptr, nodes = group_rows(groups)
    with_ancestors, trained = close_rows(indptr, nodes, taxonomy.parent_ptr, taxonomy.parent_idx)
    group_costs = np.add.reduceat(costs[nodes], indptr[:-1])
    holds: Bools = np.zeros((n_shards, len(taxonomy)), np.bool_)
    loads, sizes = np.zeros(n_shards, np.int64), np.zeros(n_shards, np.int64)
    owner = np.empty(len(taxonomy), np.int32)
    for group in np.argsort(-group_costs, kind="stable").tolist():
        needed = trained[with_ancestors[group] : with_ancestors[group + 1]]
        totals = loads + np.where(holds[:, needed], 0, costs[needed]).sum(axis=1)
        best = int(np.lexsort((sizes, totals))[0])  # the first of equal ones: the sort is stable
        members = nodes[indptr[group] : indptr[group + 1]]
        owner[members] = best
        holds[best, needed] = True
        loads[best] = totals[best]
        sizes[best] += members.size
    return owner
