"""APPROX-H-BAYES: the stores of H-RLS, decided by the least expected H-loss, short-cuts or not."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stream_hc import HRLS, ApproxHBayes, Taxonomy, h_bayes, snapshot
from stream_hc.learners import hbayes, second_order
from stream_hc.vectorize import feature_rows
from tests import naive_rls
from tests.strategies import N_FEATURES, documents, examples, forests, label_sets, streams, to_rows

SCHEMES = st.sampled_from(["normalized", "uniform", "sibling", "subtree"])
cold_starts = st.sampled_from(["negative", "paper"])
forest_streams = streams(forests(), max_documents=20)


def learned(stream, delay=0, **options):
    model = ApproxHBayes(stream[0], n_features=N_FEATURES, **options)
    scored = model.predict_then_learn(to_rows(stream[1]), stream[2], delay, scores=True)
    return model, scored


@settings(max_examples=examples(200))
@given(stream=forest_streams, costs=SCHEMES, cold_start=cold_starts, delay=st.sampled_from([0, 0, 2]))
def test_it_equals_the_formula(stream, costs, cold_start, delay):
    taxonomy, xs, ys = stream
    model, scored = learned(stream, delay, costs=costs, cold_start=cold_start)
    parents = [taxonomy.parents(node).tolist() for node in range(len(taxonomy))]
    twin = naive_rls.BayesLearner(
        parents, N_FEATURES, taxonomy.costs(costs), zero_is_on=cold_start == "paper"
    )
    columns = [set(taxonomy.columns(labels)) for labels in ys]
    expected = naive_rls.stream_bayes(twin, xs, columns, delay)
    again = naive_rls.predict_rows(twin, xs)
    assume(not twin.close_call)
    rows = [scored.indices[a:b].tolist() for a, b in zip(scored.indptr[:-1], scored.indptr[1:], strict=True)]
    assert rows == [sorted(row) for row in expected]
    assert model.n_updates.tolist() == twin.n_updates
    assert taxonomy.decode(model.predict_many(to_rows(xs))) == [
        {taxonomy.nodes[node] for node in row} for row in again
    ]


@given(stream=forest_streams, costs=SCHEMES, cold_start=cold_starts, x=documents)
def test_it_is_h_bayes_of_its_own_estimates(stream, costs, cold_start, x):
    taxonomy = stream[0]
    model, _ = learned(stream, costs=costs, cold_start=cold_start)
    X = to_rows([*stream[1], x])
    m = model._exact_margins(feature_rows(X, N_FEATURES))
    P = np.clip((1 + m) / 2, 0, 1)
    if cold_start == "negative":
        P[m == 0] = 0.0
    expected = h_bayes(taxonomy, P, costs)
    found = model.predict_many(X)
    assert found.indptr.tolist() == expected.indptr.tolist()
    assert found.indices.tolist() == expected.indices.tolist()
    for row, sample in enumerate([*stream[1], x]):
        assert {name for name, on in model.predict_one(sample).items() if on} == taxonomy.decode(found)[row]


@given(stream=forest_streams, budget=st.sampled_from([None, 3]))
def test_it_stores_what_h_rls_stores(stream, budget):
    model, _ = learned(stream, budget=budget)
    other = HRLS(stream[0], n_features=N_FEATURES, budget=budget)
    for x, y in zip(*stream[1:], strict=True):
        other.learn_one(x, y)
    one, two = model.state(), other.state()
    for key in two:
        if isinstance(two[key], np.ndarray):
            assert one[key].tobytes() == two[key].tobytes(), key
    margins = model.margins(to_rows(stream[1]))
    assert margins.tobytes() == other.margins(to_rows(stream[1])).tobytes()


@given(data=st.data())
def test_one_by_one_batches_and_snapshots_give_the_same_bits(data):
    stream = data.draw(forest_streams)
    batch, scored = learned(stream, budget=4)
    one = ApproxHBayes(stream[0], n_features=N_FEATURES, budget=4)
    for row, (x, y) in enumerate(zip(*stream[1:], strict=True)):
        part = slice(scored.indptr[row], scored.indptr[row + 1])
        on = [node for node, yes in enumerate(one.predict_one(x).values()) if yes]
        assert scored.indices[part].tolist() == on
        assert scored.data[part].tolist() == one.margins(to_rows([x]))[0, on].tolist()
        assert stream[0].respects(one.predict_one(x))
        one.learn_one(x, y)
    resumed = snapshot.load_bytes(snapshot.dump_bytes(one))
    x, y = data.draw(documents), data.draw(label_sets(stream[0]))
    for model in (batch, one, resumed):
        model.learn_one(x, y)
    assert snapshot.dump_bytes(batch) == snapshot.dump_bytes(one) == snapshot.dump_bytes(resumed)


def test_stops_for_room_change_nothing(monkeypatch):
    draw = np.random.default_rng(3)
    taxonomy = Taxonomy([("a", None), ("b", "a"), ("c", "a"), ("d", None)])
    xs = [dict(zip(draw.integers(0, 12, 4).tolist(), draw.normal(size=4), strict=True)) for _ in range(60)]
    stream = (taxonomy, xs, [{"abcd"[k]} for k in draw.integers(0, 4, 60)])
    expected, answers = learned(stream)
    for module in (hbayes, second_order):
        monkeypatch.setattr(module, "AT_A_TIME", 1)
    found, again = learned(stream)
    assert again.indices.tolist() == answers.indices.tolist()
    assert again.data.tobytes() == answers.data.tobytes()
    assert snapshot.dump_bytes(found) == snapshot.dump_bytes(expected)


def test_a_dag_and_unknown_costs_are_refused():
    diamond = Taxonomy([("a", None), ("b", "a"), ("c", "a"), ("d", "b"), ("d", "c")])
    with pytest.raises(ValueError, match="not defined on a DAG"):
        ApproxHBayes(diamond)
    with pytest.raises(ValueError, match="unknown costs 'free': choose one of uniform"):
        ApproxHBayes(costs="free")


def test_costs_follow_a_growing_taxonomy():
    model = ApproxHBayes(n_features=N_FEATURES)
    for row in range(12):
        model.learn_one({row % 4: 1.0}, {f"label {row % 4}"})
    assert model.predict_one({2: 1.0}) == {f"label {k}": k == 2 for k in range(4)}
    again = ApproxHBayes.from_state(model.state())
    assert again.predict_one({2: 1.0}) == model.predict_one({2: 1.0})


def test_query_asks_under_predicted_parents():
    model = ApproxHBayes(Taxonomy([("sport", None), ("tennis", "sport")]), n_features=64)
    assert model.query_one({"racket": 1.0}) == {"sport": 0.0}
    model.learn_one({"racket": 1.0}, {"tennis"})
    assert set(model.query_one({"racket": 1.0})) == {"sport", "tennis"}
