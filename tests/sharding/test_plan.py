"""Plans and shards: what stays together, who owns what, and how columns map."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc import Taxonomy
from stream_hc.learners.base import LabelRows
from stream_hc.losses.mistakes import as_rows
from stream_hc.sharding import Plan, Shard
from stream_hc.sharding.groups import sibling_groups
from stream_hc.snapshot import SnapshotError, dump_bytes, load_bytes
from tests.sharding import naive
from tests.strategies import dags, examples, forests, label_sets

NEWS = Taxonomy(
    [("sport", None), ("football", "sport"), ("tennis", "sport"), ("politics", None), ("party", "politics")]
)
taxonomies = st.one_of(forests(), dags())


@st.composite
def cuts(draw, taxonomies=taxonomies, max_shards=9):
    """A taxonomy, a number of shards it can have, traffic or none."""
    taxonomy = draw(taxonomies)
    n_shards = draw(st.integers(1, min(max_shards, len(naive.groups(taxonomy)))))
    if draw(st.booleans()):
        return taxonomy, n_shards, None
    documents = draw(st.lists(label_sets(taxonomy), max_size=20))
    return taxonomy, n_shards, np.asarray(taxonomy.encode(documents).sum(axis=0)).astype(np.int64)


@given(taxonomies)
def test_groups_are_those_that_share_a_parent(taxonomy):
    numbers = sibling_groups(taxonomy)
    found = [np.flatnonzero(numbers == group).tolist() for group in range(numbers.max() + 1)]
    assert found == naive.groups(taxonomy)


@given(cuts())
def test_every_node_has_one_owner_and_siblings_the_same(cut):
    taxonomy, n_shards, traffic = cut
    plan = Plan.cut(taxonomy, n_shards, traffic)
    assert len(plan) == plan.n_shards == len(plan.shards) == n_shards
    owned = [set(shard.columns[shard.own].tolist()) for shard in plan.shards]
    assert all(owned)
    assert sorted(node for nodes in owned for node in nodes) == list(range(len(taxonomy)))
    for group in naive.groups(taxonomy):
        assert sum(not nodes.isdisjoint(group) for nodes in owned) == 1
    for shard, nodes in zip(plan.shards, owned, strict=True):
        assert set(shard.columns.tolist()) == naive.trained(taxonomy, nodes)
    assert plan == Plan.cut(taxonomy, n_shards, traffic)
    n_documents = taxonomy.leaves.size if traffic is None else traffic[taxonomy.roots].sum()
    counts = naive.leaf_traffic(taxonomy) if traffic is None else traffic.tolist()
    assert plan.costs.tolist() == naive.costs(taxonomy, counts, n_documents)
    assert plan.loads.tolist() == naive.loads(taxonomy, plan.costs.tolist(), owned)


@settings(max_examples=examples(60))
@given(cuts(st.one_of(forests(7), dags(7)), max_shards=4))
def test_no_shard_has_more_than_the_best_plan_and_the_mean(cut):
    """When the last group went to the busiest shard, all others had as much, or would have had with it.

    A group with its ancestors never costs more than the best plan's busiest shard, which has it somewhere. So
    the busiest one exceeds the mean by no more than that.
    """
    taxonomy, n_shards, traffic = cut
    plan = Plan.cut(taxonomy, n_shards, traffic)
    best = naive.least_load(taxonomy, plan.costs.tolist(), n_shards)
    assert best <= plan.loads.max() <= best + plan.loads.mean()


def test_costs_decide_who_gets_what():
    tree = Taxonomy(
        [("r", None), *((f"{a}", "r") for a in "abcd"), *((f"{a}{i}", a) for a in "abcd" for i in "12")]
    )
    # b alone has as many documents as the others together.
    traffic = {"r": 60, "a": 10, "b": 30, "c": 10, "d": 10}
    plan = Plan.cut(tree, 3, traffic)
    assert plan.loads.max() == naive.least_load(tree, plan.costs.tolist(), 3)
    assert Plan.cut(tree, 1).imbalance == 1.0


@given(cuts())
def test_a_shard_keeps_the_order_of_the_columns(cut):
    taxonomy, n_shards, traffic = cut
    for shard in Plan.cut(taxonomy, n_shards, traffic).shards:
        assert shard.columns.dtype == np.int32
        assert (np.diff(shard.columns) > 0).all()
        assert shard.taxonomy.nodes == tuple(taxonomy.nodes[column] for column in shard.columns)
        for node, column in enumerate(shard.columns):
            above = shard.columns[shard.taxonomy.parents(node)]
            assert above.tolist() == taxonomy.parents(int(column)).tolist()


@given(cuts(), st.data())
def test_projected_labels_are_those_the_shard_knows(cut, data):
    taxonomy, n_shards, traffic = cut
    documents = data.draw(st.lists(label_sets(taxonomy), max_size=6))
    rows = LabelRows(*as_rows(taxonomy.encode(documents)))
    for shard in Plan.cut(taxonomy, n_shards, traffic).shards:
        projected = shard.project(rows)
        assert (projected.indptr.dtype, projected.nodes.dtype) == (np.int64, np.int32)
        known = [taxonomy.close(labels) & set(shard.taxonomy.nodes) for labels in documents]
        expected = LabelRows(*as_rows(shard.taxonomy.encode(known)))
        assert projected.indptr.tolist() == expected.indptr.tolist()
        assert projected.nodes.tolist() == expected.nodes.tolist()


@given(cuts())
def test_plans_and_shards_come_back_from_a_snapshot(cut):
    taxonomy, n_shards, traffic = cut
    plan = Plan.cut(taxonomy, n_shards, traffic)
    again = load_bytes(dump_bytes(plan))
    assert (again, again.digest, again.table()) == (plan, plan.digest, plan.table())
    shard = plan.shards[-1]
    loaded = load_bytes(dump_bytes({"shard": shard}))["shard"]
    assert loaded == shard
    assert (hash(loaded), loaded.digest) == (hash(shard), plan.digest)
    assert loaded.taxonomy == shard.taxonomy
    assert Plan(loaded.whole, loaded.owner) == plan


def test_the_digest_names_taxonomy_and_ownership():
    plan = Plan.cut(NEWS, 2)
    assert plan.digest == "8bcff96d0c34cdb2"
    other = Plan(NEWS, np.array([1, 1, 0, 0, 0], np.int32))
    renamed = Plan(Taxonomy([(c.upper(), p and p.upper()) for c, p in NEWS.edges]), plan.owner)
    assert len({plan.digest, other.digest, renamed.digest}) == 3
    assert len({plan, other, renamed, Plan.cut(NEWS, 2, traffic={"sport": 1})}) >= 3
    assert plan != other
    assert plan != 1
    assert plan.shards[0] != plan.shards[1]
    assert plan.shards[0] != other.shards[0]
    assert plan.shards[0] != 1
    assert repr(plan) == f"Plan(2 shards, 5 nodes, {plan.digest})"
    assert repr(plan.shards[0]).startswith("Shard(0 of 2, ")


def test_people_are_told_who_does_what():
    plan = Plan.cut(NEWS, 2, traffic={"sport": 80, "football": 30, "politics": 20}, n_documents=90)
    lines = plan.table().splitlines()
    assert lines[0].split("  ")[0] == "shard"
    total = 90 + 90 + 80 + 80 + 20
    assert lines[1:] == [
        f"    {shard.number}  {shard.own.sum():9}  {(~shard.own).sum():9}  {100 * load / total:.1f} %"
        for shard, load in zip(plan.shards, plan.loads, strict=True)
    ]
    nothing = Plan.cut(NEWS, 3, traffic={})
    assert nothing.imbalance == 1.0
    assert "0.0 %" in nothing.table()


def test_what_cannot_be_cut():
    for n_shards in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="n_shards must be a whole number of at least 1"):
            Plan.cut(NEWS, n_shards)
    with pytest.raises(ValueError, match="4 shards, but siblings stay together: 3 at most"):
        Plan.cut(NEWS, 4)
    with pytest.raises(ValueError, match="1 shards, but siblings stay together: 0 at most"):
        Plan.cut(Taxonomy([]), 1)
    with pytest.raises(ValueError, match="unknown label 'sports'"):
        Plan.cut(NEWS, 2, {"sports": 1})
    for count in (-1, 1.5, 2**41):
        with pytest.raises(ValueError, match="traffic of 'sport' must be a whole number"):
            Plan.cut(NEWS, 2, {"sport": count})
    for counts in ([1, 2], np.ones(5), [[1] * 5]):
        with pytest.raises(ValueError, match="traffic must be a count of documents for each of 5 nodes"):
            Plan.cut(NEWS, 2, counts)
    with pytest.raises(ValueError, match="traffic must be counts from 0 to"):
        Plan.cut(NEWS, 2, [1, 1, 1, 1, -1])
    with pytest.raises(ValueError, match="at all its ancestors: 'tennis' has 5, above it 'sport' 3"):
        Plan.cut(NEWS, 2, {"sport": 3, "tennis": 5})
    with pytest.raises(ValueError, match="n_documents must be a whole number from 8"):
        Plan.cut(NEWS, 2, {"sport": 8}, n_documents=7)


def test_what_is_no_plan():
    for owner in ([0, 0, 0, 0], [[0] * 5], [0.0] * 5):
        with pytest.raises(ValueError, match="owner must be the number of a shard"):
            Plan(NEWS, np.array(owner, np.float64 if owner[0] == 0.0 and len(owner) == 5 else np.int32))
    for owner in ([0, 0, 2, 2, 0], [-1, -1, 0, 0, 0], [1] * 5):
        with pytest.raises(ValueError, match="from 0 on, and each must own a node"):
            Plan(NEWS, np.array(owner, np.int32))
    with pytest.raises(ValueError, match="must not split siblings"):
        Plan(NEWS, np.array([0, 1, 0, 0, 0], np.int32))
    owner = Plan.cut(NEWS, 2).owner
    with pytest.raises(ValueError, match="costs must be a count"):
        Plan(NEWS, owner, np.array([1, 1, 1, 1, -1]))
    with pytest.raises(ValueError, match="number must be a whole number from 0 to 1"):
        Shard(NEWS, owner, 2)
    with pytest.raises(ValueError, match="taxonomy must be a text"):
        Plan.from_state({**Plan.cut(NEWS, 2).state(), "taxonomy": np.zeros(3)})
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        owner[0] = 1


def test_damaged_snapshots_of_plans_are_refused():
    class Broken(Plan):
        def state(self):
            return {**super().state(), "owner": np.array([0, 1, 0, 0, 0], np.int32)}

    Broken.__name__, Broken.__qualname__ = "Plan", "Plan"
    with pytest.raises(SnapshotError):
        load_bytes(dump_bytes(Broken(NEWS, Plan.cut(NEWS, 2).owner)))
