"""H-RLS does what the paper's formula says, with a budget too, and goes on from a snapshot."""

import copy
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stream_hc import HRLS, Taxonomy, snapshot
from stream_hc.kernels import rls as kernels
from stream_hc.learners import batches, rls, second_order
from tests import naive_rls
from tests.strategies import (
    N_FEATURES,
    dags,
    documents,
    examples,
    forests,
    label_sets,
    size,
    streams,
    to_rows,
)

EVICTIONS = ["oldest", "coefficient", "redundant", "influence"]
cold_starts = st.sampled_from(["negative", "paper"])
delays = st.sampled_from([0, 0, 1, 3])
long_streams = streams(max_documents=25)


def parent_lists(taxonomy):
    return [taxonomy.parents(node).tolist() for node in range(len(taxonomy))]


def twin_of(model):
    return naive_rls.StoredLearner(
        parent_lists(model.taxonomy),
        N_FEATURES,
        model.cold_start == "paper",
        model.budget,
        model.eviction,
        model.parents == "all",
    )


def both(stream, delay=0, drawn=True, **options):
    """The model and its twin after the stream, each with its predictions on the way."""
    taxonomy, xs, ys = stream
    model = HRLS(taxonomy, n_features=N_FEATURES, **options)
    twin = twin_of(model)
    answers = [taxonomy.columns(a) for a in taxonomy.decode(model.predict_then_learn(to_rows(xs), ys, delay))]
    columns = [set(taxonomy.columns(labels)) for labels in ys]
    expected = [sorted(row) for row in naive_rls.stream_nodes(twin, xs, columns, delay)]
    if drawn:
        assume(not twin.close_call)
    return model, answers, twin, expected


def stored_by(model):
    """The documents of each node as pairs (dense x, ±1)."""
    state = model.state()
    ptr, stored_ptr = state["document_ptr"], state["stored_ptr"]
    rows = np.zeros((ptr.size - 1, model.n_features))
    rows[np.repeat(np.arange(ptr.size - 1), np.diff(ptr)), state["features"]] = state["values"]
    return [
        [(rows[i], y) for i, y in zip(state["stored"][a:b], state["targets"][a:b].tolist(), strict=True)]
        for a, b in pairwise(stored_ptr)
    ]


def same_stores(model, twin):
    found = stored_by(model)
    assert model.n_updates.tolist() == twin.n_updates
    assert model.n_stored.tolist() == [len(node) for node in twin.stored]
    for one, other in zip(found, twin.stored, strict=True):
        assert [y for _, y in one] == [y for _, y in other]
        assert all((x == z).all() for (x, _), (z, _) in zip(one, other, strict=True))


def factor_is_exact(model):
    """The coefficients, the diagonal and the factor of every node, against a direct solve."""
    state = model.state()
    at = 0
    for node, kept in enumerate(stored_by(model)):
        n = len(kept)
        part = slice(state["stored_ptr"][node], state["stored_ptr"][node + 1])
        S = np.array([x for x, _ in kept]).reshape(n, model.n_features).T
        y = np.array([y for _, y in kept], float)
        inverse = np.linalg.inv(np.eye(n) + S.T @ S)
        M = np.zeros((n, n))
        for row in range(n):
            width = (row // 8 + 1) * 8
            M[row, : row + 1] = state["factors"][at : at + row + 1]
            assert not state["factors"][at + row + 1 : at + width].any()
            at += width
        at += (-n % 8) * ((n + 7) // 8 * 8)
        assert np.abs(M.T @ M - inverse).max(initial=0.0) < 1e-9
        assert state["coefficients"][part] == pytest.approx(inverse @ y, abs=1e-9)
        assert state["spreads"][part] == pytest.approx(np.diag(inverse), abs=1e-9)


@settings(max_examples=examples(300))
@given(
    stream=long_streams, cold_start=cold_starts, delay=delays, parents=st.sampled_from(["any", "any", "all"])
)
def test_it_equals_the_formula(stream, cold_start, delay, parents):
    model, answers, twin, expected = both(stream, delay, cold_start=cold_start, parents=parents)
    assert answers == expected
    same_stores(model, twin)
    xs = stream[1]
    margins = model.margins(to_rows(xs))
    assert margins == pytest.approx(naive_rls.margin_nodes(twin, xs).reshape(margins.shape), abs=1e-6)
    predicted = stream[0].decode(model.predict_many(to_rows(xs)))
    assert [stream[0].columns(a) for a in predicted] == [sorted(a) for a in naive_rls.predict_rows(twin, xs)]
    factor_is_exact(model)


@pytest.mark.parametrize("eviction", EVICTIONS)
@given(stream=long_streams, budget=st.sampled_from([1, 2, 5, 9]))
def test_a_budget_equals_learning_what_was_kept(eviction, stream, budget):
    model, answers, twin, expected = both(stream, budget=budget, eviction=eviction)
    assert model.n_stored.max(initial=0) <= budget
    assert answers == expected
    same_stores(model, twin)
    factor_is_exact(model)


@given(stream=streams(), x=documents, parents=st.sampled_from(["any", "all"]))
def test_query(stream, x, parents):
    model, _, twin, _ = both(stream, parents=parents)
    xs = [*stream[1], x]
    expected = naive_rls.ask_nodes(twin, xs)
    assume(not twin.close_call)
    answers = model.query_many(to_rows(xs))
    assert answers.shape == (len(xs), len(stream[0]))
    for row, asked in enumerate(expected):
        found = model.query_one(xs[row])
        assert found == pytest.approx({stream[0].nodes[node]: m for node, m in asked.items()}, abs=1e-6)
        part = slice(answers.indptr[row], answers.indptr[row + 1])
        assert answers.indices[part].tolist() == sorted(asked)
        assert answers.data[part].tolist() == [found[stream[0].nodes[node]] for node in sorted(asked)]


def test_a_label_is_worth_asking_for_only_inside_the_band():
    model = HRLS(Taxonomy([("sport", None), ("tennis", "sport")]), n_features=64)
    assert model.query_one({"racket": 1.0}) == {"sport": 0.0}
    assert model.query_one({}) == {}
    for _ in range(500):
        model.learn_one({"racket": 1.0}, {"tennis"})
    assert model.n_stored.max() < 50
    assert model.query_one({"racket": 1.0}) == {}
    assert set(model.query_one({"racket": 1.0, "ball": 30.0})) == {"sport", "tennis"}


SHAPES = {
    "single node": Taxonomy([("a", None)]),
    "chain": Taxonomy([("a", None), ("b", "a"), ("c", "b"), ("d", "c")]),
    "many roots": Taxonomy([(name, None) for name in "abcdef"]),
    "diamond": Taxonomy([("a", None), ("b", "a"), ("c", "a"), ("d", "b"), ("d", "c")]),
    "nothing": Taxonomy([]),
}


@pytest.mark.parametrize("taxonomy", SHAPES.values(), ids=SHAPES.keys())
def test_every_shape(taxonomy):
    draw = np.random.default_rng(0)
    xs = [
        dict(zip(draw.integers(0, 12, 3).tolist(), draw.integers(1, 9, 3) / 8, strict=True))
        for _ in range(60)
    ]
    ys = [set(draw.choice(taxonomy.nodes, 1)) if len(taxonomy) and row % 3 else set() for row in range(60)]
    xs[10], xs[11] = {}, {}
    model, answers, twin, expected = both((taxonomy, xs, ys), drawn=False)
    assert answers == expected
    same_stores(model, twin)
    assert model.n_learned == 60


def test_documents_without_features_count_and_store_nothing():
    one, other = (HRLS(SHAPES["chain"], n_features=N_FEATURES) for _ in range(2))
    one.learn_many(to_rows([{}] * 5), [{"d"}] * 5)
    assert one.n_learned == 5
    assert not one.n_stored.any()
    for model in (one, other):
        model.learn_many(to_rows([{0: 1.0, 1: 0.25}, {0: 0.5}, {0: 1.0}]), [{"d"}, set(), {"b"}])
    assert one.n_stored.tolist() == [3, 2, 2, 1]  # ln t has grown: the band is wider
    assert other.n_stored.tolist() == [3, 2, 2, 1]


def test_short_cuts_and_threads_change_nothing(monkeypatch):
    """Small batches, all work in threads, and stops for room after each few documents: the same bits."""
    draw, n = np.random.default_rng(1), size(150, 40)
    taxonomy = SHAPES["chain"]
    xs = [dict(zip(draw.integers(0, 12, 5).tolist(), draw.normal(size=5), strict=True)) for _ in range(n)]
    ys = [{"abcd"[draw.integers(0, 4)]} for _ in xs]
    X = to_rows(xs)
    reference = HRLS(taxonomy, n_features=N_FEATURES)
    expected = reference.predict_then_learn(X, ys, scores=True)
    for rows, worth in ((256, 0), (7, 0), (7, 2**60), (1, 2**60)):
        monkeypatch.setattr(batches, "BATCH_ROWS", rows)
        monkeypatch.setattr(batches, "WORTH_A_THREAD", worth)
        monkeypatch.setattr(rls, "WORTH_A_THREAD", worth)
        monkeypatch.setattr(rls, "FEW_ROWS", 0)
        for module in (rls, second_order):
            monkeypatch.setattr(module, "AT_A_TIME", 1)
        model = HRLS(taxonomy, n_features=N_FEATURES)
        found = model.predict_then_learn(X, ys, scores=True)
        assert found.indices.tolist() == expected.indices.tolist()
        assert found.data.tobytes() == expected.data.tobytes()
        a, b = model.state(), reference.state()
        assert all(np.array_equal(a[key], b[key]) for key in b)


@given(data=st.data())
def test_snapshot_and_continue_with_a_budget(data):
    stream = data.draw(long_streams)
    budget = data.draw(st.sampled_from([None, 1, 4]))
    model = HRLS(stream[0], n_features=N_FEATURES, budget=budget, eviction="influence")
    for x, y in zip(*stream[1:], strict=True):
        model.learn_one(x, y)
    resumed = snapshot.load_bytes(snapshot.dump_bytes(model))
    for _ in range(4):
        x, y = data.draw(documents), data.draw(label_sets(stream[0]))
        assert model.predict_one(x) == resumed.predict_one(x)
        model.learn_one(x, y)
        resumed.learn_one(x, y)
    assert snapshot.dump_bytes(model) == snapshot.dump_bytes(resumed)


@given(st.one_of(forests(), dags()))
def test_weights_are_those_of_the_formula(taxonomy):
    draw = np.random.default_rng(len(taxonomy))
    xs = [
        dict(zip(draw.integers(0, 12, 4).tolist(), draw.integers(1, 9, 4) / 8, strict=True))
        for _ in range(30)
    ]
    model, _, twin, _ = both((taxonomy, xs, [{taxonomy.nodes[row % len(taxonomy)]} for row in range(30)]))
    expected = naive_rls.refresh_tables(twin)
    for node, name in enumerate(taxonomy.nodes):
        found = np.zeros(N_FEATURES)
        for column, weight in model.strongest(name, N_FEATURES):
            found[column] = weight
        assert found == pytest.approx(expected[node], abs=1e-9)
    assert model.strongest(taxonomy.nodes[0], 2) == model.strongest(0, N_FEATURES)[:2]


def test_a_margin_of_0_up_to_rounding_is_0_by_products_and_by_weights():
    model = HRLS(SHAPES["single node"], n_features=N_FEATURES)
    model.learn_many(to_rows([{0: 1.0, 3: 0.3}, {1: 0.7, 3: 0.1}]), [{"a"}, set()])
    docs, nodes = model._stored.arrays()
    x = kernels.Row(np.array([0, 2, 3], np.int32), np.array([0.6, 0.5, 0.9], np.float32), 1.42)
    vx = kernels.by_weights(docs, nodes, 0, x)
    weights = dict(model.strongest(0))
    assert vx == float(np.float32(0.6)) * weights[0] + float(np.float32(0.9)) * weights[3]
    for factor, answer in ((0.4, vx), (0.9, vx), (1.1, 0.0), (2.1, 0.0)):
        noise = kernels.ROUNDING * (2 + 3) * np.sqrt(x.square)
        unsure = nodes._replace(reach=np.array([factor * abs(vx) / noise]))
        assert kernels.settled(docs, unsure, 0, x, vx) == answer
    # Twice the same document, for and against: what is left are rounding errors.
    model.learn_many(to_rows([{5: 0.7, 6: 0.1}] * 2), [{"a"}, set()])
    assert model.n_stored[0] == 4
    x = {5: 0.3, 6: 0.9}
    assert not model.margins(to_rows([{5: 0.7, 6: 0.1}]))[0, 0] < -0.5
    assert model.predict_one(x) == {"a": bool(model.margins(to_rows([x]))[0, 0] > 0)}


@pytest.mark.compiled
def test_memory_is_bounded_by_the_budget():
    draw = np.random.default_rng(0)
    model = HRLS(SHAPES["many roots"], n_features=N_FEATURES, budget=16)
    sizes = []
    for _ in range(6):
        X = to_rows(
            [
                dict(zip(draw.integers(0, 12, 5).tolist(), draw.normal(size=5), strict=True))
                for _ in range(400)
            ]
        )
        model.predict_then_learn(X, [{"abcdef"[k]} for k in draw.integers(0, 6, 400)])
        model.predict_one({0: 1.0})
        sizes.append(model.nbytes)
        assert model.n_stored.tolist() == [16] * 6
        assert (model.node_nbytes < 8 * 16 * 24 + 60 * 16 + 12 * 64).all()
    assert sizes[-1] <= 1.1 * max(sizes[:3])
    assert model.nbytes >= model.node_nbytes.sum()
    assert model.n_updates.min() > 200


def test_bad_arguments():
    for bad in (0, -1, 1.5, "9", True):
        with pytest.raises(ValueError, match="budget must be a whole number"):
            HRLS(budget=bad)
    with pytest.raises(ValueError, match="unknown eviction 'newest': choose one of oldest"):
        HRLS(eviction="newest")


def test_damaged_states_are_refused():
    model = HRLS(SHAPES["chain"], n_features=N_FEATURES, budget=9)
    model.learn_many(to_rows([{0: 1.0, 3: 0.5}, {1: 1.0}, {0: 0.5}]), [{"c"}, {"a"}, set()])
    good = model.state()
    HRLS.from_state(good)

    def changed(name, at, value):
        array = good[name].copy()
        array[at] = value
        return {name: array}

    cases = {
        "must be a list of": [
            {name: array.astype(np.uint8)} for name, array in good.items() if isinstance(array, np.ndarray)
        ],
        "those of the documents": [{"values": good["values"][:-1]}],
        "ascending features": [changed("features", 0, 3), changed("features", 1, N_FEATURES),
                               changed("values", 0, np.nan), changed("document_ptr", 1, 9)],
        "stamps must ascend": [changed("stamps", 0, 0), changed("stamps", 1, 1),
                               {"stamps": good["stamps"][1:]}],
        "what each of 4 nodes": [{"stored_ptr": good["stored_ptr"][:-1]}, changed("stored_ptr", -1, 1)],
        "must ascend, by no more than the budget": [changed("stored_ptr", 1, 100), {"budget": 2}],
        "stored must name each document": [changed("stored", 0, 7), changed("stored", 0, -1)],
        "stored must ascend": [changed("stored", slice(0, 2), 1)],
        "a number for each stored document": [{"coefficients": np.ones(1)}, {"targets": good["targets"][1:]}],
        "targets must be 1 or -1": [changed("targets", 0, 0), changed("targets", 0, -128)],
        "a row for each stored document": [{"factors": good["factors"][1:]}],
        "not all finite": [changed("factors", 0, np.inf), changed("coefficients", 0, np.nan)],
        "not all positive": [changed("spreads", 0, 0.0)],
        "n_updates must be a count": [changed("n_updates", 0, 0), {"n_updates": good["n_updates"][1:]}],
    }  # fmt: skip
    for message, changes in cases.items():
        for change in changes:
            with pytest.raises(ValueError, match=message):
                HRLS.from_state({**good, **change})


def test_documents_say_when_they_were_learned_and_states_from_before_that_still_load():
    model = HRLS(SHAPES["chain"], n_features=N_FEATURES, budget=2)
    rows, labels = (
        to_rows([{0: 1.0}, {}, {1: 1.0}, {2: 1.0}, {0: 1.0, 3: 1.0}]),
        [{"c"}, {"a"}, {"a"}, set(), {"c"}],
    )
    model.learn_many(rows[:3], labels[:3])
    model.predict_then_learn(rows, labels, delay=2, start=2)
    model.learn_one({5: 1.0}, {"c"})
    state = model.state()
    # Rows 0 to 2 were the first three documents learned, then once more, with a delay, numbers 4 to 6.
    assert model.n_learned == 7
    assert state["stamps"][-1] == 7
    assert (np.diff(state["stamps"]) > 0).all()
    whole = HRLS(SHAPES["chain"], n_features=N_FEATURES)
    whole.learn_many(rows, labels)
    assert whole.state()["stamps"].tolist() == [1, 3, 4, 5]
    old = {name: value for name, value in state.items() if name != "stamps"}
    again = HRLS.from_state(old)
    n_documents = state["stamps"].size
    assert again.state()["stamps"].tolist() == list(range(7 - n_documents + 1, 8))
    for learner in (model, again):
        learner.learn_many(rows, labels)
    same = {name: value for name, value in model.state().items() if name != "stamps"}
    for name, value in same.items():
        np.testing.assert_array_equal(again.state()[name], value)


def test_a_growing_taxonomy_keeps_its_budget():
    model = HRLS(n_features=N_FEATURES, budget=3)
    for row in range(30):
        model.learn_one({row % 12: 1.0, 5: 0.5}, {f"label {row % 7}"})
    assert model.n_stored.max() == 3
    again = HRLS.from_state(copy.deepcopy(model).state())
    assert again.predict_one({5: 1.0}) == model.predict_one({5: 1.0})


def noise(n, n_features=2000, seed=0):
    """Documents with labels that mean nothing, so that margins stay within the band and most are stored."""
    draw = np.random.default_rng(seed)
    X = np.zeros((n, n_features), np.float32)
    for row in X:
        # Common words among rare ones, so that documents resemble each other as texts do.
        row[(n_features * draw.random(40) ** 3).astype(int)] = draw.gamma(1.0, size=40)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, draw.random((n, 1)) < 0.5


def assert_solved(model, X):
    """Compare coefficients and margins with a direct solve of K α = y over what the one node holds."""
    [kept] = stored_by(model)
    S, y = np.array([x for x, _ in kept]).T, np.array([y for _, y in kept], float)
    K = np.eye(y.size) + S.T @ S
    assert model.state()["coefficients"] == pytest.approx(np.linalg.solve(K, y), abs=1e-11)
    probe = X[-50:].astype(np.float64)
    r = 1.0 - np.einsum("ij,ji->i", probe @ S, np.linalg.solve(K, S.T @ probe.T))
    expected = probe @ S @ np.linalg.solve(K, y) / (1 + r)
    assert model.margins(X[-50:])[:, 0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.compiled
@pytest.mark.parametrize(("budget", "n", "n_stores"), [(None, 4000, 2000), (200, 15_000, 10_000)])
def test_stable_after_thousands_of_stores(budget, n, n_stores):
    """One node stores all documents within the band, one forgets most of them again."""
    X, Y = noise(n)
    model = HRLS(SHAPES["single node"], n_features=2000, budget=budget, eviction="influence")
    model.learn_many(X, Y)
    assert model.n_updates[0] > n_stores
    assert_solved(model, X)


@pytest.mark.soak
@pytest.mark.compiled
def test_stable_after_ten_thousand_stores_that_are_all_kept():
    model = HRLS(SHAPES["single node"], n_features=6000)
    for seed in range(50):
        X, Y = noise(2000, n_features=6000, seed=seed)
        model.learn_many(X, Y)
        if model.n_stored[0] > 10_000:
            break
    assert model.n_stored[0] > 10_000
    assert_solved(model, X)
