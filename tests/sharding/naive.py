"""Slow twins: groups of siblings, what a shard has to train and what that costs, the best of all plans."""

from itertools import product


def groups(taxonomy):
    """Nodes that have to stay together: join sets that share a node until none do."""
    sets = [set(taxonomy.roots.tolist())]
    sets += [set(taxonomy.children(node).tolist()) for node in range(len(taxonomy))]
    found = []
    for nodes in filter(None, sets):
        apart = [other for other in found if nodes.isdisjoint(other)]
        touching = [other for other in found if not nodes.isdisjoint(other)]
        found = [*apart, set.union(nodes, *touching)]
    return sorted(map(sorted, found))


def trained(taxonomy, nodes):
    """These nodes and all above them."""
    return set(nodes).union(*(taxonomy.ancestors(node).tolist() for node in nodes))


def leaf_traffic(taxonomy):
    """How many leaves each node has below it, itself included."""
    leaves = set(taxonomy.leaves.tolist())
    return [len(leaves & set(taxonomy.subtree(node).tolist())) for node in range(len(taxonomy))]


def costs(taxonomy, traffic, n_documents):
    """On how many documents each node is eligible."""
    parents = [taxonomy.parents(node).tolist() for node in range(len(taxonomy))]
    return [min(n_documents, sum(traffic[p] for p in above)) if above else n_documents for above in parents]


def loads(taxonomy, costs, parts):
    """What each shard costs that owns some nodes."""
    return [sum(costs[node] for node in trained(taxonomy, nodes)) for nodes in parts]


def least_load(taxonomy, costs, n_shards):
    """The least work that the busiest shard can have, over all plans."""
    together = groups(taxonomy)
    best = float("inf")
    for owners in product(range(n_shards), repeat=len(together)):
        parts = [
            [node for nodes, owner in zip(together, owners, strict=True) if owner == shard for node in nodes]
            for shard in range(n_shards)
        ]
        best = min(best, max(loads(taxonomy, costs, parts)))
    return best
