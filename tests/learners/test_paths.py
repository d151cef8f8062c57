"""PA, HPA and LHPA: their formulas, what an update achieves, what concepts are for."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc import HPA, LHPA, PA, Taxonomy, snapshot
from stream_hc.kernels import sparse as kernels
from stream_hc.taxonomy import TaxonomyError
from tests import naive_paths
from tests.learners.test_contract import same_state
from tests.strategies import N_FEATURES, forests, streams, to_rows

TREE = Taxonomy([("a", None), ("b", None), ("aa", "a"), ("ab", "a"), ("ba", "b"), ("aaa", "aa")])


def forest_streams():
    return streams(forests())


def twin_of(model):
    tax = model.taxonomy
    ends = list(range(len(tax))) if model.partial_paths else tax.leaves.tolist()
    return naive_paths.PathTwin(
        tax.parent.tolist(), ends, model.C, model._flat, model._concepts, model.averaged, model._seed
    )


def true_ends(model, labels):
    tax = model.taxonomy
    specific = [tax.index(name) for name in tax.most_specific(tax.close(labels))]
    return [node for node in specific if model.partial_paths or node in tax.leaves]


makers = st.one_of(
    st.builds(
        lambda **kw: lambda tax: PA(tax, N_FEATURES, **kw),
        C=st.sampled_from([0.1, 1.0, 100.0]),
        partial_paths=st.booleans(),
        averaged=st.booleans(),
    ),
    st.builds(
        lambda **kw: lambda tax: HPA(tax, N_FEATURES, **kw),
        C=st.sampled_from([0.1, 1.0, 100.0]),
        partial_paths=st.booleans(),
        averaged=st.booleans(),
    ),
    st.builds(
        lambda **kw: lambda tax: LHPA(tax, N_FEATURES, **kw),
        C=st.sampled_from([0.1, 1.0, 100.0]),
        partial_paths=st.booleans(),
        averaged=st.booleans(),
        concepts=st.integers(1, 3),
        seed=st.integers(0, 5),
    ),
)


def rows_of(matrix):
    return [matrix.indices[a:b].tolist() for a, b in pairwise(matrix.indptr)]


@given(forest_streams(), makers, st.sampled_from([0, 1, 3]))
def test_it_equals_the_formula(stream, make, delay):
    taxonomy, xs, ys = stream
    model = make(taxonomy)
    twin = twin_of(model)
    expected = naive_paths.stream_paths(twin, xs, [true_ends(model, labels) for labels in ys], delay)
    predicted = model.predict_then_learn(to_rows(xs), ys, delay=delay)
    assert model.n_updates == twin.n_updates
    weights = model.state()["weights"].tolist()
    assert sorted(w for w in weights if w) == sorted(
        w for owners in naive_paths.entries(twin).values() for w in owners.values() if w
    )
    scores = np.reshape(naive_paths.score_rows(twin, xs), (len(xs), len(taxonomy)))
    np.testing.assert_allclose(
        model.margins(to_rows(xs)), scores, rtol=1e-6, atol=1e-9 if not model.averaged else 1e-6
    )
    if not model.averaged:  # the mean is rounded in another order there, and near ties may fall otherwise
        assert rows_of(predicted) == expected


@pytest.mark.parametrize("make", [HPA, LHPA, PA])
@given(stream=forest_streams())
def test_after_an_unclipped_update_the_margin_is_the_distance(make, stream):
    taxonomy, xs, ys = stream
    model = make(taxonomy, N_FEATURES, C=1e9)
    twin = twin_of(model)
    for x, labels in zip(xs, ys, strict=True):
        ends = true_ends(model, labels)
        before = model.n_updates
        model.learn_one(x, labels)
        twin.learn(x, ends)
        if model.n_updates == before or len(ends) != 1 or make is LHPA:
            continue
        wrong = [end for end in twin.ends if end not in ends]
        totals = {end: twin.total(twin.w, x, end) for end in twin.ends}
        gaps = [
            totals[ends[0]]
            - totals[end]
            - (1 if make is PA else len(set(twin.path(ends[0])) ^ set(twin.path(end))))
            for end in wrong
        ]
        assert min(abs(gap) for gap in gaps) < 1e-4  # that of the path it was set against


@given(forest_streams(), st.booleans(), st.booleans())
def test_one_concept_is_hpa_bit_for_bit(stream, partial_paths, averaged):
    taxonomy, xs, ys = stream
    options = {"partial_paths": partial_paths, "averaged": averaged}
    one, plain = (
        LHPA(taxonomy, N_FEATURES, concepts=1, seed=7, **options),
        HPA(taxonomy, N_FEATURES, **options),
    )
    X = to_rows(xs)
    assert rows_of(one.predict_then_learn(X, ys)) == rows_of(plain.predict_then_learn(X, ys))
    ours, theirs = one._own_state(), plain._own_state()
    assert {name: array.tobytes() for name, array in ours.items()} == {
        name: array.tobytes() for name, array in theirs.items()
    }
    assert one.margins(X).tobytes() == plain.margins(X).tobytes()


def two_sided(n, seed):
    """Two classes with words of their own, each about two things: what has them all, and what lacks them all.

    Whatever w is, w·x and w·(−x) are not both positive: one vector cannot speak for both things.
    """
    draw = np.random.default_rng(seed)
    X = np.zeros((n, 16), np.float32)
    labels = []
    for row in range(n):
        which, sign = int(draw.integers(2)), draw.choice([-1.0, 1.0])
        X[row, 4 * which : 4 * which + 4] = sign * draw.gamma(4.0, 0.25, 4)
        X[row, 8 + draw.integers(8)] = 0.3 * draw.normal()
        labels.append({"ab"[which]})
    return X / np.linalg.norm(X, axis=1, keepdims=True), labels


def test_both_concepts_are_used_where_there_are_two_and_help():
    X, labels = two_sided(3000, 0)
    tree = Taxonomy.flat(["a", "b"])
    wrong = {}
    for name, model in {"hpa": HPA(tree, 16), "lhpa": LHPA(tree, 16, concepts=2)}.items():
        model.learn_many(X[:2000], labels[:2000])
        answers = tree.decode(model.predict_many(X[2000:]))
        wrong[name] = np.mean([answer != truth for answer, truth in zip(answers, labels[2000:], strict=True)])
    assert set(model.state()["owners"].tolist()) == {0, 1, 2, 3}
    assert wrong["lhpa"] < 0.1 < 0.3 < wrong["hpa"]


def test_seeds_change_who_speaks_first_and_nothing_is_left_to_chance_else():
    X, labels = two_sided(300, 1)
    tree = Taxonomy.flat(["a", "b"])
    states = []
    for seed in (0, 0, 1, 2, 3):
        model = LHPA(tree, 16, seed=seed)
        model.learn_many(X, labels)
        states.append(model._own_state()["weights"].tobytes())
    assert states[0] == states[1]
    assert len(set(states)) > 1


@given(forest_streams(), makers, st.integers(0, 12))
def test_snapshot_and_continue(stream, make, cut):
    taxonomy, xs, ys = stream
    whole, first = make(taxonomy), make(taxonomy)
    X, Y = to_rows(xs), taxonomy.encode(ys)
    whole.learn_many(X, Y)
    first.learn_many(X[:cut], Y[:cut])
    second = snapshot.load_bytes(snapshot.dump_bytes(first))
    second.learn_many(X[cut:], Y[cut:])
    same_state(whole, second)
    assert whole.margins(X).tobytes() == second.margins(X).tobytes()


@pytest.mark.compiled
def test_many_nodes_and_features_stay_sparse():
    """Blocks grow, move and are used again; the sum of the sizes stays near what was touched."""
    draw = np.random.default_rng(0)
    edges = [(f"r{k}", None) for k in range(50)] + [(f"l{k}", f"r{k % 50}") for k in range(5_000)]
    tax = Taxonomy(edges)
    X = np.zeros((3_000, 400), np.float32)
    for row in X:
        row[(400 * draw.random(20) ** 3).astype(int)] = draw.random(20)
    labels = [{f"l{k}"} for k in draw.integers(0, 5_000, 3_000)]
    model = HPA(tax, 400)
    model.learn_many(X, labels)
    state = model.state()
    assert state["owners"].size < 0.25 * 400 * 5_050
    weights = model._table.model
    n_dense = np.count_nonzero(weights.bits == kernels.DENSE)
    assert 3 < n_dense < 200
    used, in_dense = weights.used[kernels.PLACES], weights.used[kernels.IN_DENSE]
    assert in_dense == n_dense * len(tax)
    assert state["owners"].size <= used <= 4 * (state["owners"].size + 400 * 4) + in_dense
    resumed = HPA.from_state(state)
    assert resumed.margins(X[:50]).tobytes() == model.margins(X[:50]).tobytes()
    # the dense sum, from the state alone
    W = np.zeros((400, 5_050))
    W[np.repeat(state["features"], np.diff(state["owner_ptr"])), state["owners"]] = state["weights"]
    np.testing.assert_allclose(model.margins(X[:50]), X[:50].astype(float) @ W, atol=1e-5)


def test_dense_blocks_widen_when_labels_are_added():
    """A flat taxonomy that grows: blocks made for few labels take what the later ones need."""
    words, model = [f"w{k}" for k in range(60)], PA(n_features=256)
    for word in words:
        model.learn_one({"the": 0.5, word: 1.0}, {word})
    bits = model._table.model.bits
    assert (bits == kernels.DENSE).any()
    found = [name for word in words for name, on in model.predict_one({"the": 0.5, word: 1.0}).items() if on]
    assert len(set(found)) > 50
    again = PA.from_state(model.state())
    X = np.eye(60, 256, dtype=np.float32)
    assert again.margins(X).tobytes() == model.margins(X).tobytes()


def test_when_the_dense_blocks_are_full_the_others_stay_sparse():
    draw = np.random.default_rng(1)
    X, tax = draw.random((200, 6)).astype(np.float32), Taxonomy.flat([f"n{k}" for k in range(40)])
    labels = [{f"n{k}"} for k in draw.integers(0, 40, 200)]
    usual, full = HPA(tax, 6), HPA(tax, 6)
    usual.learn_many(X, labels)
    full._table.model.used[kernels.IN_DENSE] = kernels.MOST_DENSE
    full.learn_many(X, labels)
    assert (usual._table.model.bits == kernels.DENSE).all()
    assert (full._table.model.bits == 6).all()
    np.testing.assert_allclose(full.margins(X), usual.margins(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [PA, HPA, LHPA])
def test_what_cannot_be_learned_changes_nothing(make):
    model = make(TREE, N_FEATURES)
    model.learn_many(to_rows([{0: 1.0}, {}, {1: 1.0}]), [set(), {"aaa"}, {"a"}])
    assert (model.n_updates, model.n_learned) == (0, 3)
    assert not any(model.predict_one({0: 1.0}).values())
    partial = make(TREE, N_FEATURES, partial_paths=True)
    partial.learn_one({1: 1.0}, {"a"})
    assert partial.n_updates == 1
    assert {name for name, on in partial.predict_one({1: 1.0}).items() if on} == {"a"}
    assert not any(partial.predict_one({}).values())


@pytest.mark.parametrize("make", [PA, HPA, LHPA])
def test_a_dag_is_refused_with_the_reason(make):
    diamond = Taxonomy([("a", None), ("b", "a"), ("c", "a"), ("d", "b"), ("d", "c")])
    with pytest.raises(TaxonomyError, match="in a DAG there may be several: use RankingPerceptron"):
        make(diamond)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (HPA, {"C": 0.0}, "C must be"),
        (HPA, {"partial_paths": 1}, "partial_paths must be True or False"),
        (PA, {"averaged": "yes"}, "averaged must be True or False"),
        (LHPA, {"concepts": 0}, "concepts must"),
        (LHPA, {"seed": -1}, "seed must"),
    ],
)
def test_bad_arguments(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(TREE, **options)


def test_damaged_states_are_refused():
    model = HPA(TREE, N_FEATURES, averaged=True)
    model.learn_many(to_rows([{0: 1.0, 3: 0.5}, {1: 1.0, 3: 0.5}]), [{"aaa"}, {"ba"}])
    good = model.state()
    same_state(HPA.from_state(good), model)
    for change in [
        {"features": good["features"][::-1].copy()},
        {"features": good["features"] + N_FEATURES},
        {"owner_ptr": good["owner_ptr"][:-1]},
        {"owner_ptr": good["owner_ptr"] * 2},
        {"owners": good["owners"] + 100},
        {"owners": good["owners"] * 0},
        {"owners": good["owners"][::-1].copy()},
        {"owners": good["owners"].astype(np.int64)},
        {"dense": good["dense"][1:]},
        {"dense": ~good["dense"], "owner_ptr": good["owner_ptr"] * 0},
        {"weights": good["weights"][1:]},
        {"weights": good["weights"] * np.float32(np.nan)},
        {"sums": good["sums"][1:]},
        {"sums": np.full_like(good["sums"], np.inf)},
        {"used": good["used"] - 10},
        {"used": good["used"][:1]},
        {"averaged": False},
        {"t": -1},
        {"surprise": 1},
    ]:
        with pytest.raises(ValueError, match=r"."):
            HPA.from_state({**good, **change})


@given(forest_streams(), makers)
def test_probabilities_are_those_of_paths(stream, make):
    taxonomy, xs, ys = stream
    model = make(taxonomy)
    model.learn_many(to_rows(xs), ys)
    for x in xs:
        p = {name: answer[True] for name, answer in model.predict_proba_one(x).items()}
        assert sum(p[taxonomy.nodes[root]] for root in taxonomy.roots) == pytest.approx(1)
        for node, name in enumerate(taxonomy.nodes):
            for parent in taxonomy.parents(node):
                assert p[name] <= p[taxonomy.nodes[parent]] + 1e-12


@given(forest_streams(), st.integers(1, 3), st.integers(0, 3))
def test_fit_is_the_mean_of_epochs_from_nothing(stream, epochs, seed):
    taxonomy, xs, ys = stream
    order = np.random.default_rng(seed)
    model = HPA(taxonomy, N_FEATURES).fit(to_rows(xs), ys, epochs=epochs, seed=seed)
    total = {}
    for _ in range(epochs):
        shuffled = order.permutation(len(xs))
        once = HPA(taxonomy, N_FEATURES)
        once.learn_many(to_rows([xs[row] for row in shuffled]), [ys[row] for row in shuffled])
        state = once.state()
        features = np.repeat(state["features"], np.diff(state["owner_ptr"])).tolist()
        for pair, weight in zip(
            zip(features, state["owners"].tolist(), strict=True), state["weights"].tolist(), strict=True
        ):
            total[pair] = total.get(pair, 0.0) + weight
    state = model.state()
    features = np.repeat(state["features"], np.diff(state["owner_ptr"])).tolist()
    found = dict(
        zip(zip(features, state["owners"].tolist(), strict=True), state["weights"].tolist(), strict=True)
    )
    assert found == pytest.approx({pair: weight / epochs for pair, weight in total.items()}, abs=1e-6)
    assert model.n_learned == epochs * len(xs)
    again = HPA(taxonomy, N_FEATURES)
    again.learn_many(to_rows(xs), ys)
    same_state(again.fit(to_rows(xs), ys, epochs=epochs, seed=seed), model)


def test_fit_and_running_averages_do_not_go_together():
    with pytest.raises(ValueError, match="fit takes the mean over epochs"):
        HPA(TREE, N_FEATURES, averaged=True).fit(to_rows([{0: 1.0}]), [{"ba"}])


def test_the_strongest_features_of_a_node():
    model = HPA(TREE, N_FEATURES)
    model.learn_many(to_rows([{0: 1.0, 3: 0.5}, {1: 1.0, 3: 0.5}]), [{"aaa"}, {"ba"}])
    features = [feature for feature, _ in model.strongest("aaa")]
    assert features[0] in (0, 1)
    assert set(features) <= {0, 1, 3}
    weights = dict(model.strongest("aaa"))
    margins = model.margins(to_rows([{feature: 1.0} for feature in weights]))[:, TREE.index("aaa")]
    assert list(weights.values()) == pytest.approx(margins.tolist())
    assert len(model.strongest("aaa", 1)) == 1
    assert HPA(TREE, N_FEATURES).strongest("aaa") == []
