"""Learners cut into those of shards and joined again: the same bits as if nobody had cut them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc import (
    HAROW,
    HPA,
    HRLS,
    ApproxHBayes,
    Calibrated,
    HPerceptron,
    NodePA,
    Perceptron,
    RankingPerceptron,
    Taxonomy,
)
from stream_hc.datasets import make_news
from stream_hc.learners.base import LabelRows
from stream_hc.losses.mistakes import as_rows
from stream_hc.sharding import Plan, check_shardable, cut_learner, join_learners
from stream_hc.snapshot import dump_bytes, load_bytes
from stream_hc.vectorize import TextVectorizer
from tests.sharding import naive
from tests.strategies import N_FEATURES, dags, examples, forests, size, streams, to_rows

# In a DAG the first one is refused: see `test_a_path_that_may_lead_to_other_shards`.
IN_FORESTS = [(HPerceptron, {}), (HPerceptron, {"cold_start": "paper", "threshold": -0.25})]
ANYWHERE = [
    (HPerceptron, {"parents": "all"}),
    (HPerceptron, {"judged_by": "node"}),
    (HPerceptron, {"judged_by": "node", "parents": "all"}),
    (Perceptron, {}),
    (Perceptron, {"parents": "all", "threshold": 0.5}),
    (HAROW, {}),
    (HAROW, {"threshold": "learned", "parents": "all"}),
    (NodePA, {}),
    (NodePA, {"parents": "all", "C": 0.25}),
    (HRLS, {}),
    (HRLS, {"parents": "all", "cold_start": "paper"}),
    (HRLS, {"budget": 1}),
    (HRLS, {"budget": 3, "eviction": "redundant"}),
    (HRLS, {"budget": 2, "eviction": "coefficient"}),
]
every_learner = pytest.mark.parametrize(("kind", "settings_of"), [*IN_FORESTS, *ANYWHERE])


def taxonomies(kind, settings_of):
    return forests() if (kind, settings_of) in IN_FORESTS else st.one_of(forests(), dags())


def plans(taxonomy):
    return st.builds(Plan.cut, st.just(taxonomy), st.integers(1, min(4, len(naive.groups(taxonomy)))))


def labels_of(taxonomy, ys):
    return LabelRows(*as_rows(taxonomy.encode(ys)))


def projected(shard, ys):
    """The labels of a shard, as sets of names."""
    rows = shard.project(labels_of(shard.whole, ys))
    pairs = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [{shard.taxonomy.nodes[node] for node in rows.nodes[first:last]} for first, last in pairs]


@every_learner
@settings(max_examples=examples(50))
@given(st.data())
def test_shards_that_learn_the_same_stream_join_to_what_one_learner_becomes(kind, settings_of, data):
    taxonomy, xs, ys = data.draw(streams(taxonomies(kind, settings_of)))
    plan = data.draw(plans(taxonomy))
    made = {"n_features": N_FEATURES, **settings_of}
    one, parts = kind(taxonomy, **made), [kind(shard.taxonomy, **made) for shard in plan.shards]
    X, until = to_rows(xs), data.draw(st.integers(0, len(xs)))
    delay = data.draw(st.integers(0, 3))
    given_labels = [
        (one, ys),
        *((part, projected(s, ys)) for part, s in zip(parts, plan.shards, strict=True)),
    ]
    for model, labels in given_labels:
        model.learn_many(X[:until], labels[:until])
        model.predict_then_learn(X[until:], labels[until:], delay=delay)
    joined = join_learners(plan, [load_bytes(dump_bytes(part)) for part in parts])
    assert dump_bytes(joined) == dump_bytes(one)
    for shard, part in zip(plan.shards, parts, strict=True):
        # The ancestors that a shard trains beside its own are what their owners have, too.
        np.testing.assert_array_equal(part.margins(X), one.margins(X)[:, shard.columns])


@every_learner
@settings(max_examples=examples(50))
@given(st.data())
def test_a_learner_that_is_cut_goes_on_in_parts(kind, settings_of, data):
    taxonomy, xs, ys = data.draw(streams(taxonomies(kind, settings_of)))
    plan, other = data.draw(plans(taxonomy)), data.draw(plans(taxonomy))
    one = kind(taxonomy, n_features=N_FEATURES, **settings_of)
    X, until = to_rows(xs), data.draw(st.integers(0, len(xs)))
    one.learn_many(X[:until], ys[:until])
    before = dump_bytes(one)
    parts = [cut_learner(one, shard) for shard in plan.shards]
    assert dump_bytes(one) == before  # it was not changed
    assert dump_bytes(join_learners(plan, parts)) == before
    recut = [cut_learner(join_learners(plan, parts), shard) for shard in other.shards]
    one.learn_many(X[until:], ys[until:])
    for learners, by in ((parts, plan), (recut, other)):
        for shard, part in zip(by.shards, learners, strict=True):
            part.learn_many(X[until:], projected(shard, ys[until:]))
        assert dump_bytes(join_learners(by, learners)) == dump_bytes(one)


@every_learner
@settings(max_examples=examples(40))
@given(st.data())
def test_shards_at_different_places_give_each_node_what_its_owner_knows(kind, settings_of, data):
    """Also in different orders: the shards of several partitions need not read them alike."""
    taxonomy, xs, ys = data.draw(streams(taxonomies(kind, settings_of)))
    plan = data.draw(plans(taxonomy))
    parts = [kind(shard.taxonomy, n_features=N_FEATURES, **settings_of) for shard in plan.shards]
    X = to_rows(xs)
    for shard, part in zip(plan.shards, parts, strict=True):
        order = data.draw(st.permutations(range(len(xs))))[: data.draw(st.integers(0, len(xs)))]
        part.learn_many(X[order], projected(shard, [ys[row] for row in order]))
    joined = join_learners(plan, parts, level=False)
    assert joined.n_learned == min(part.n_learned for part in parts)
    for shard, part in zip(plan.shards, parts, strict=True):
        own = shard.columns[shard.own]
        np.testing.assert_array_equal(joined.margins(X)[:, own], part.margins(X)[:, shard.own])
        np.testing.assert_array_equal(joined.n_updates[own], part.n_updates[shard.own])
    assert dump_bytes(load_bytes(dump_bytes(joined))) == dump_bytes(joined)


@pytest.mark.parametrize("kind", [HPerceptron, HAROW, HRLS])
def test_news_in_four_shards(kind):
    news = make_news(size(1500, 60), seed=4)
    X = TextVectorizer(n_features=2**12).learn_transform(news.documents)
    one, plan = kind(news.taxonomy, n_features=2**12), Plan.cut(news.taxonomy, 4)
    one.learn_many(X, news.labels)
    parts = [kind(shard.taxonomy, n_features=2**12) for shard in plan.shards]
    for shard, part in zip(plan.shards, parts, strict=True):
        part.learn_many(X, projected(shard, news.labels))
    assert dump_bytes(join_learners(plan, parts)) == dump_bytes(one)
    assert any((~shard.own).any() for shard in plan.shards)


TREE = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None), ("party", "politics")])
DAG = Taxonomy([("a", None), ("b", None), ("c", "a"), ("c", "b"), ("d", "c")])


def test_features_of_which_nothing_is_left_are_not_lost():
    one, plan = HPerceptron(TREE, n_features=8, judged_by="node"), Plan.cut(TREE, 3)
    one.learn_one({1: 1.0}, {"tennis"})
    one.learn_one({1: 1.0}, set())  # takes it back at the roots, but not below
    state = one.state()
    state["weights"][:] = 0.0
    emptied = HPerceptron.from_state(state)
    parts = [cut_learner(emptied, shard) for shard in plan.shards]
    assert [part.state()["features"].tolist() for part in parts] == [[1], [], []]
    assert dump_bytes(join_learners(plan, parts)) == dump_bytes(emptied)


def test_documents_are_shared_by_the_nodes_of_several_shards():
    one, plan = HRLS(TREE, n_features=8), Plan.cut(TREE, 3)
    for feature in range(6):
        one.learn_one({feature: 1.0}, {("tennis", "party")[feature % 2]})
    parts = [cut_learner(one, shard) for shard in plan.shards]
    assert max(part.state()["stamps"].size for part in parts) == 6
    joined = join_learners(plan, parts, level=False)  # level they are, so no document is there twice
    assert dump_bytes(joined) == dump_bytes(one)


def test_documents_of_different_streams_are_not_mixed():
    plan = Plan.cut(TREE, 3)
    parts = [HRLS(shard.taxonomy, n_features=8) for shard in plan.shards]
    for feature, part in enumerate(parts):
        part.learn_one({feature: 1.0}, {part.nodes[-1]})
    with pytest.raises(ValueError, match="learned different documents: they are not of the same stream"):
        join_learners(plan, parts)
    joined = join_learners(plan, parts, level=False)
    assert joined.state()["stamps"].tolist() == [1, 2, 3]


def test_learners_that_cannot_be_cut():
    shard = Plan.cut(TREE, 2).shards[0]
    for learner in (HPA(TREE), ApproxHBayes(TREE), RankingPerceptron(TREE), Calibrated(HAROW(TREE))):
        with pytest.raises(ValueError, match=r"cannot be sharded: choose one of h-perceptron, .*h-rls"):
            cut_learner(learner, shard)
    with pytest.raises(ValueError, match="labels that turn up one by one cannot be cut"):
        cut_learner(HAROW(), shard)
    with pytest.raises(ValueError, match="made for another taxonomy"):
        cut_learner(HAROW(DAG), shard)


def test_a_path_that_may_lead_to_other_shards():
    """Where any parent is enough, a child that is on switches its parents on: no shard has all of that."""
    for fine in (HPerceptron(DAG, parents="all"), HPerceptron(DAG, judged_by="node"), HPerceptron(TREE)):
        check_shardable(fine)
    with pytest.raises(ValueError, match='set parents="all" or judged_by="node"'):
        check_shardable(HPerceptron(DAG))
    plan = Plan.cut(DAG, 2)
    assert any(shard.taxonomy.is_tree for shard in plan.shards)  # so the shard alone does not tell
    with pytest.raises(ValueError, match="a path may depend on nodes of other shards"):
        join_learners(plan, [HPerceptron(shard.taxonomy) for shard in plan.shards])


def test_what_does_not_belong_together_is_not_joined():
    plan = Plan.cut(TREE, 2)
    parts = [HAROW(shard.taxonomy, n_features=8) for shard in plan.shards]
    with pytest.raises(ValueError, match="1 learners for 2 shards"):
        join_learners(plan, parts[:1])
    with pytest.raises(ValueError, match="the learner of shard 0 is HAROW, that of shard 1 NodePA"):
        join_learners(plan, [parts[0], NodePA(plan.shards[1].taxonomy)])
    with pytest.raises(ValueError, match="shard 0 has other nodes than the plan gives it"):
        join_learners(plan, parts[::-1])
    with pytest.raises(ValueError, match=r"trained differently: r is 0\.1 in shard 0, in shard 1 0\.5"):
        join_learners(plan, [parts[0], HAROW(plan.shards[1].taxonomy, n_features=8, r=0.5)])
    with pytest.raises(ValueError, match="n_features is 8 in shard 0, in shard 1 16"):
        join_learners(plan, [parts[0], HAROW(plan.shards[1].taxonomy, n_features=16)])
    with pytest.raises(ValueError, match="HPA cannot be sharded"):
        join_learners(plan, [HPA(shard.taxonomy) for shard in plan.shards])
    parts[1].learn_one({0: 1.0}, set())
    with pytest.raises(ValueError, match="not learned equally many documents: shard 0 0, shard 1 1"):
        join_learners(plan, parts)
    assert join_learners(plan, parts, level=False).n_learned == 0
