"""The ranking perceptron: its formulas, on DAGs and trees, online and in the Minover order."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stream_hc import RankingPerceptron, Taxonomy, losses, snapshot
from stream_hc.kernels import sparse
from stream_hc.vectorize import feature_rows
from tests import naive_ranking
from tests.learners.test_contract import same_state
from tests.strategies import N_FEATURES, streams, to_rows

DAG = Taxonomy([("a", None), ("b", None), ("ab", "a"), ("ab", "b"), ("aa", "a"), ("bb", "b"), ("bbb", "bb")])

options = st.fixed_dictionaries(
    {
        "flat": st.booleans(),
        "margin": st.sampled_from([1.0, 0.25]),
        "chosen_by": st.sampled_from(["size", "positive"]),
    }
)


def twin_of(model):
    tax = model.taxonomy
    parents = [tax.parents(node).tolist() for node in range(len(tax))]
    return naive_ranking.RankingTwin(parents, model.flat, model.margin, model.chosen_by == "size")


def ends_of(taxonomy, labels):
    """The most specific labels."""
    return sorted(taxonomy.index(name) for name in taxonomy.most_specific(taxonomy.close(labels)))


def rows_of(matrix):
    return [set(matrix.indices[a:b].tolist()) for a, b in pairwise(matrix.indptr)]


@given(streams(), options, st.sampled_from([0, 1, 3]))
def test_it_equals_the_formula(stream, how, delay):
    taxonomy, xs, ys = stream
    model = RankingPerceptron(taxonomy, N_FEATURES, **how)
    twin = twin_of(model)
    expected = naive_ranking.stream_ranks(twin, xs, [ends_of(taxonomy, labels) for labels in ys], delay)
    predicted = model.predict_then_learn(to_rows(xs), ys, delay=delay)
    scores = np.reshape(naive_ranking.rank_rows(twin, xs), (len(xs), len(taxonomy)))
    assume(not twin.close_call)
    assert model.n_updates == twin.n_updates
    np.testing.assert_allclose(model.margins(to_rows(xs)), scores, rtol=1e-5, atol=1e-5)
    assert rows_of(predicted) == expected


@given(streams(), options, st.sampled_from([1, 2, 10]), st.sampled_from([0, 1, 5, 40]))
def test_minover_takes_the_worst_pair_of_all_documents(stream, how, epochs, max_steps):
    taxonomy, xs, ys = stream
    model = RankingPerceptron(taxonomy, N_FEATURES, **how)
    twin = twin_of(model)
    ends = [ends_of(taxonomy, labels) for labels in ys]
    taken = naive_ranking.least_margins(twin, xs, ends, epochs, max_steps)
    model.fit(to_rows(xs), ys, order="minover", epochs=epochs, max_steps=max_steps)
    assume(not twin.close_call)
    assert model.n_updates == len(taken) == twin.n_updates
    scores = np.reshape(naive_ranking.rank_rows(twin, xs), (len(xs), len(taxonomy)))
    np.testing.assert_allclose(model.margins(to_rows(xs)), scores, rtol=1e-4, atol=1e-4)
    assert model.n_learned == len(xs)


@given(streams(), options)
def test_the_numbers_of_labels_are_those_of_the_twin_after_a_file(stream, how):
    """After Minover the sizes are what one pass without any ranking learns."""
    taxonomy, xs, ys = stream
    model = RankingPerceptron(taxonomy, N_FEATURES, **how).fit(to_rows(xs), ys, max_steps=0)
    twin = twin_of(model)
    twin.margin = -np.inf
    naive_ranking.stream_ranks(twin, xs, [ends_of(taxonomy, labels) for labels in ys], 0)
    expected = [twin.number(x) for x in xs]
    assume(not twin.close_call)
    assert model._ranked(feature_rows(to_rows(xs), N_FEATURES))[1] == pytest.approx(expected, abs=1e-5)


@given(streams(), options, st.integers(0, 12))
def test_one_by_one_and_after_a_restart_the_bits_are_the_same(stream, how, cut):
    taxonomy, xs, ys = stream
    whole, single = (RankingPerceptron(taxonomy, N_FEATURES, **how) for _ in range(2))
    together = rows_of(whole.predict_then_learn(to_rows(xs), ys))
    alone = []
    for row, (x, labels) in enumerate(zip(xs, ys, strict=True)):
        if row == cut:
            single = snapshot.load_bytes(snapshot.dump_bytes(single))
        alone.append({taxonomy.index(name) for name, on in single.predict_one(x).items() if on})
        single.learn_one(x, labels)
    assert alone == together
    same_state(single, whole)
    assert single.margins(to_rows(xs)).tobytes() == whole.margins(to_rows(xs)).tobytes()


def test_labels_grow_a_flat_taxonomy():
    model = RankingPerceptron(n_features=64)
    for _ in range(3):
        for word in ("racket", "ballot", "verdict"):
            model.learn_one({word: 1.0}, {word})
    assert [name for name, on in model.predict_one({"ballot": 1.0}).items() if on] == ["ballot"]
    same_state(RankingPerceptron.from_state(model.state()), model)


def test_online_epochs_are_passes_in_order():
    X = np.eye(4, N_FEATURES, dtype=np.float32)
    labels = [{"ab"}, {"aa"}, {"bbb"}, {"bb"}]
    model = RankingPerceptron(DAG, N_FEATURES).fit(X, labels, order="online", epochs=3)
    again = RankingPerceptron(DAG, N_FEATURES)
    for _ in range(3):
        again.learn_many(X, labels)
    same_state(model, again)
    assert model.n_learned == 12


def test_a_file_that_can_be_ranked_is_ranked_with_the_margin_wanted():
    X = np.eye(4, N_FEATURES, dtype=np.float32)
    labels = [{"ab"}, {"aa", "ab"}, {"bbb"}, {"bb"}]
    model = RankingPerceptron(DAG, N_FEATURES).fit(X, labels, epochs=100)
    F = model.margins(X)
    for row, some in enumerate(labels):
        ends = set(ends_of(DAG, some))
        others = set(np.flatnonzero(model._seen).tolist()) - ends
        assert min(F[row, end] for end in ends) - max(F[row, end] for end in others) > 1.0 - 1e-5
    assert losses.one_accuracy(DAG, F, labels).tolist() == [1.0] * 4


def test_an_inner_node_becomes_a_category_when_it_is_a_label_by_itself():
    model = RankingPerceptron(DAG, N_FEATURES)
    assert model._seen.tolist() == [node in DAG.leaves for node in range(len(DAG))]
    model.learn_one({0: 1.0}, {"bbb"})
    assert not model._seen[DAG.index("bb")]
    model.learn_one({1: 1.0}, {"bb"})
    assert model._seen[DAG.index("bb")]
    for _ in range(4):
        model.learn_one({0: 1.0}, {"bbb"})
        model.learn_one({1: 1.0}, {"bb"})
    assert DAG.most_specific({n for n, on in model.predict_one({1: 1.0}).items() if on}) == {"bb"}
    assert DAG.most_specific({n for n, on in model.predict_one({0: 1.0}).items() if on}) == {"bbb"}


def test_an_update_moves_what_the_two_do_not_share_by_their_distance():
    """ab against aa, one parent shared: made of {a, b, ab} and {a, aa}, so that Δ = 3 and t² = 1/3."""
    tax = Taxonomy([("a", None), ("b", None), ("ab", "a"), ("ab", "b"), ("aa", "a")])
    model = RankingPerceptron(tax, N_FEATURES)
    model.learn_one({0: 1.0}, {"ab"})  # against aa, the first of the wrong ones by number
    F = dict(zip(tax.nodes, model.margins(to_rows([{0: 1.0}]))[0].tolist(), strict=True))
    assert pytest.approx({"a": 0.0, "b": 1.0, "ab": 2.0, "aa": -1.0}) == F


def test_as_many_labels_as_documents_like_it_have():
    model = RankingPerceptron(Taxonomy.flat(["x", "y", "z"]), N_FEATURES)
    for _ in range(60):
        model.learn_one({0: 1.0}, {"x"})
        model.learn_one({1: 1.0}, {"x", "y", "z"})
        model.learn_one({2: 1.0}, {"y", "z"})
    found = [sum(model.predict_one({word: 1.0}).values()) for word in range(3)]
    assert found == [1, 3, 2]


@given(streams(), options)
def test_numbers_agree_with_predictions(stream, how):
    taxonomy, xs, ys = stream
    model = RankingPerceptron(taxonomy, N_FEATURES, **how)
    model.learn_many(to_rows(xs), ys)
    for x in xs:
        p = {name: pair[True] for name, pair in model.predict_proba_one(x).items()}
        on = {name for name, yes in model.predict_one(x).items() if yes}
        assert on >= {name for name, number in p.items() if number > 0.5 + 1e-9}
        assert all(p[name] >= 0.5 - 1e-9 for name in on)
        for name in taxonomy.nodes:
            for parent in taxonomy.parents(taxonomy.index(name)):
                assert p[taxonomy.nodes[parent]] >= p[name]


def test_a_hierarchy_helps_where_siblings_share_words():
    """Few documents for each leaf, but the words of a branch are met often: ancestors know them."""
    draw = np.random.default_rng(0)
    edges = [(f"r{k}", None) for k in range(6)] + [(f"r{k}.{i}", f"r{k}") for k in range(6) for i in range(8)]
    tax = Taxonomy(edges)
    rows, labels = np.zeros((700, 600), np.float32), []
    for row in rows:
        branch, leaf = draw.integers(0, 6), draw.integers(0, 8)
        row[branch * 40 + draw.integers(0, 40, 6)] = 1.0
        row[240 + (branch * 8 + leaf) * 7 + draw.integers(0, 7, 2)] = 1.0
        row /= np.linalg.norm(row)
        labels.append({f"r{branch}.{leaf}"})
    results = {}
    for flat in (False, True):
        model = RankingPerceptron(tax, 600, flat=flat)
        model.learn_many(rows[:150], labels[:150])
        results[flat] = losses.maximal_loss(tax, model.margins(rows[350:]), labels[350:]).mean()
    assert results[False] < 0.9 * results[True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"flat": 1}, "flat must be True or False, not 1"),
        ({"margin": float("nan")}, "margin must be a finite number"),
        ({"chosen_by": "best"}, "unknown chosen_by 'best': choose one of size, positive"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        RankingPerceptron(DAG, **arguments)


def test_a_file_that_cannot_be_learned_changes_nothing():
    model = RankingPerceptron(DAG, N_FEATURES)
    model.learn_one({0: 1.0}, {"ab"})
    before = model.state()
    X = np.ones((2, N_FEATURES), np.float32)
    for bad in ({"order": "random"}, {"epochs": 0}, {"max_steps": -1}):
        with pytest.raises(ValueError, match=r"order|epochs|max_steps"):
            model.fit(X, [{"ab"}, {"aa"}], **bad)
    with pytest.raises(ValueError, match="2 documents, but labels for 1"):
        model.fit(X, [{"ab"}])
    with pytest.raises(ValueError, match="nan: features must be finite"):
        model.fit(X * np.nan, [{"ab"}, {"aa"}])
    same_state(RankingPerceptron.from_state(before), model)


@pytest.mark.parametrize(
    "damage",
    [
        {"seen": np.zeros(6, np.bool_)},
        {"seen": np.ones(5, np.bool_)},
        {"label_counts": np.array([1.0, np.nan])},
        {"label_counts": np.array([-1.0, 2.0])},
        {"label_counts": np.zeros(3)},
    ],
)
def test_damaged_states_are_refused(damage):
    model = RankingPerceptron(DAG, N_FEATURES)
    model.learn_one({0: 1.0}, {"ab"})
    with pytest.raises(ValueError, match=r"seen must|label_counts must"):
        RankingPerceptron.from_state(model.state() | damage)


def test_it_grows_room_in_the_middle_of_a_file(monkeypatch):
    monkeypatch.setattr("stream_hc.learners.sparse.FIRST_PLACES", 8)
    draw = np.random.default_rng(3)
    X = draw.random((40, N_FEATURES)).astype(np.float32)
    labels = [{DAG.nodes[k]} for k in draw.integers(0, len(DAG), 40)]
    small = RankingPerceptron(DAG, N_FEATURES).fit(X, labels, max_steps=200)
    monkeypatch.setattr("stream_hc.learners.sparse.FIRST_PLACES", 2**12)
    large = RankingPerceptron(DAG, N_FEATURES).fit(X, labels, max_steps=200)
    same_state(small, large)
    assert (small._table.model.bits == sparse.DENSE).any()
    assert small.strongest("bb", 3) == large.strongest(DAG.index("bb"), 3)
    assert small.nbytes > 0
