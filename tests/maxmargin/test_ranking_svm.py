"""The max-margin ranking: its optimum against a generic QP over all pairs, its certificate, its labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from stream_hc import Taxonomy
from stream_hc.kernels import ranking_svm as kernels
from stream_hc.maxmargin import RankingSVM
from stream_hc.maxmargin.ranking_svm import SIZE_DAMPING, _checked_window, _Window
from stream_hc.taxonomy import TaxonomyError
from stream_hc.vectorize import feature_rows
from tests import naive_ranking_svm as naive
from tests.strategies import N_FEATURES, dags, examples, forests, streams, to_rows


@st.composite
def problems(draw, max_nodes=6, max_documents=4):
    """A stream with at least one document, and C."""
    taxonomies = dags(max_nodes) if draw(st.booleans()) else forests(max_nodes)
    taxonomy, xs, ys = draw(streams(taxonomies, max_documents).filter(lambda stream: stream[1]))
    return taxonomy, xs, ys, draw(st.sampled_from([0.05, 0.5, 4.0]))


def twin_of(case):
    taxonomy, xs, ys, C = case
    parents = [taxonomy.parents(node).tolist() for node in range(len(taxonomy))]
    labels = [{taxonomy.index(name) for name in names} for names in ys]
    return naive.RankingProblem(parents, to_rows(xs).toarray(), labels, C)


def fitted(case, **params):
    taxonomy, xs, ys, C = case
    return RankingSVM(taxonomy, C=C, n_features=N_FEATURES, **params).fit(to_rows(xs), ys)


def window_of(case, twin=None, seed=None):
    """A window at the beginning; with a seed, at dual variables drawn at random, and these for the twin."""
    taxonomy, xs, ys, C = case
    window, _ = _checked_window(taxonomy, C, feature_rows(to_rows(xs), N_FEATURES), ys)
    if seed is None:
        return window
    rng, alphas = np.random.default_rng(seed), {}
    for row in range(len(xs)):
        own = [pair for pair in twin.pairs_of(row) if rng.random() < 0.7]
        shares = C * rng.dirichlet(np.ones(len(own) + 1))[: len(own)]  # the last is what is left
        window.begin[row], window.size[row], window.room[row] = window.share.size, len(own), len(own)
        window.right = np.append(window.right, np.array([pair[1] for pair in own], np.int32))
        window.wrong = np.append(window.wrong, np.array([pair[2] for pair in own], np.int32))
        window.share = np.append(window.share, shares)
        alphas |= {pair: twin.delta(pair) * share for pair, share in zip(own, shares, strict=True)}
    window.used[0] = window.share.size
    return window, alphas


def alphas_of(window, twin):
    found = {}
    for row in range(window.size.size):
        for k in range(window.begin[row], window.begin[row] + window.size[row]):
            pair = (row, int(window.right[k]), int(window.wrong[k]))
            assert pair not in found
            found[pair] = twin.delta(pair) * window.share[k]
    return found


def dense_table(window, case, twin):
    """The weights as the twin has them: parts × all columns."""
    used = np.unique([column for x in case[1] for column in x]).astype(int)
    table = np.zeros((len(twin.parts), N_FEATURES))
    table[:, used] = window.table.T
    return table.ravel()


# Training


@settings(max_examples=examples(60))
@given(problems())
def test_the_optimum_is_that_of_a_generic_qp_over_all_pairs(case):
    twin = twin_of(case)
    model = fitted(case, tol=1e-8, max_epochs=5000)
    best = naive.optimum(twin)
    assert model.stopped_ == "gap"
    assert model.dual_objective_ == pytest.approx(best, rel=1e-5, abs=1e-6)
    assert model.duality_gap_ <= max(1e-8 * model.dual_objective_, 1e-10)
    # The gap is never less than what is missing, at any epoch; the objective never goes down.
    for entry in model.history_:
        assert best - entry["dual_objective"] <= entry["duality_gap"] + 1e-6 * max(1.0, best)
    objectives = [entry["dual_objective"] for entry in model.history_]
    assert (np.diff(objectives) >= -1e-12 * max(1.0, best)).all()


@settings(max_examples=examples(20))
@given(problems(max_nodes=4, max_documents=2))
def test_it_solves_the_printed_primal(case):
    model = fitted(case, tol=1e-8, max_epochs=5000)
    assert model.dual_objective_ == pytest.approx(naive.least_primal(twin_of(case)), rel=1e-5, abs=1e-6)


@given(problems(), st.integers(0, 10**6))
def test_weights_objective_and_gaps_are_those_of_the_formulas(case, seed):
    twin = twin_of(case)
    window, alphas = window_of(case, twin, seed)
    objective, gap = window.look()
    w, square = naive.table_of(twin, alphas)
    np.testing.assert_allclose(dense_table(window, case, twin), w, rtol=0, atol=1e-9)
    gaps, slacks, total = naive.gaps_of(twin, w, alphas)
    np.testing.assert_allclose(window.gaps, gaps, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(window.slacks, slacks, rtol=1e-9, atol=1e-9)
    assert objective == pytest.approx(total - square / 2, rel=1e-9, abs=1e-9)
    assert gap == pytest.approx(naive.primal(twin, w) - naive.dual(twin, alphas), rel=1e-9, abs=1e-8)


@settings(max_examples=examples(60))
@given(problems(), st.integers(0, 10**6))
def test_a_visit_gains_what_it_says_and_at_last_all_there_is(case, seed):
    twin = twin_of(case)
    window, alphas = window_of(case, twin, seed)
    before, _ = window.look()
    row = seed % len(case[1])
    rows = np.array([row], np.int32)
    missing = window.gaps.copy()
    least, most = naive.visit(twin, alphas, row)
    gain = window.visit(rows)
    tolerance = 1e-6 * max(1.0, case[3])
    assert least - tolerance <= gain <= most + tolerance
    assert most <= missing[row] + tolerance
    np.testing.assert_allclose(window.gaps, missing, rtol=1e-9, atol=1e-9)  # what was missing before
    moved = alphas_of(window, twin)
    # The weights have followed, and the gain is what the objective has gained.
    np.testing.assert_allclose(dense_table(window, case, twin), naive.table_of(twin, moved)[0], atol=1e-9)
    assert naive.dual(twin, moved) - before == pytest.approx(gain, rel=1e-7, abs=1e-9)
    # Other documents keep their pairs; no share is negative, none in vain, and all are at most C.
    assert {p: a for p, a in moved.items() if p[0] != row} == pytest.approx(
        {p: a for p, a in alphas.items() if p[0] != row}
    )
    for other in range(len(case[1])):
        shares = window.share[window.begin[other] : window.begin[other] + window.size[other]]
        assert (shares > 0.0).all() or other != row
        assert shares.sum() <= case[3] * (1 + 1e-12)
    for _ in range(200):
        gain += window.visit(rows)
    assert gain == pytest.approx(most, rel=1e-5, abs=tolerance)


@given(problems(max_nodes=9, max_documents=12), st.integers(0, 3))
def test_the_same_seed_gives_the_same_bits(case, seed):
    one, other = (fitted(case, seed=seed, max_epochs=3) for _ in range(2))
    taken, again = one.state(), other.state()
    assert taken.keys() == again.keys()
    for name, value in taken.items():
        np.testing.assert_array_equal(value, again[name])
    assert one.stopped_ == other.stopped_


def test_every_exported_kernel_has_a_twin():
    assert set(kernels.__all__) <= set(dir(naive))


# What it makes of documents


@given(problems(max_nodes=8, max_documents=6))
def test_margins_and_predictions_are_those_of_the_formulas(case):
    taxonomy, xs, _, _ = case
    twin, model = twin_of(case), fitted(case, max_epochs=20)
    used = np.unique([column for x in xs for column in x]).astype(int)
    w = np.zeros((len(twin.parts), N_FEATURES))
    w[:, used] = model.state()["weights"].T
    new = [{}, {0: 1.0, 5: -2.0}, {7: 0.5}, *xs]
    dense, margins = to_rows(new).toarray().astype(float), model.margins(to_rows(new))
    assert margins.dtype == np.float32
    expected = [[w.ravel() @ twin.phi(x, end) for end in range(len(taxonomy))] for x in dense]
    size = max(1.0, np.abs(w).max())
    np.testing.assert_allclose(margins, expected, rtol=1e-5, atol=1e-5 * size)
    predicted, sizes = model.predict_many(to_rows(new)), naive.expected_sizes(twin, SIZE_DAMPING, dense)
    scored = model.predict_many(to_rows(new), scores=True)
    assert predicted.dtype == np.bool_
    assert scored.dtype == np.float32
    for row, x in enumerate(dense):
        if abs(sizes[row] % 1 - 0.5) < 1e-3:
            continue  # hangs on rounding
        n_labels = int(np.floor(max(0.0, sizes[row]) + 0.5)) if x[used].any() else 0
        chosen = set(np.flatnonzero(predicted.toarray()[row]))
        assert chosen == naive.best_ends(twin, margins[row], n_labels)
        assert set(scored[[row]].indices) == chosen
        np.testing.assert_array_equal(scored[[row]].data, margins[row, scored[[row]].indices])


def test_worked_by_hand():
    # Two leaves, one word, t = 1 and Δ = 2: the weights are ± α, and the dual α − ½ · 2 α² is highest at
    # α = ½, where it is ¼; α / 2 ≤ C lets α be at most 2 C.
    taxonomy = Taxonomy([("a", None), ("b", None)])
    x = np.array([[1.0, 0.0]])
    model = RankingSVM(taxonomy, C=1.0, tol=1e-9, n_features=2).fit(x, [{"a"}])
    assert model.dual_objective_ == pytest.approx(0.25)
    np.testing.assert_allclose(model.margins(x), [[0.5, -0.5]])
    model = RankingSVM(taxonomy, C=0.1, tol=1e-9, n_features=2).fit(x, [{"a"}])
    assert model.dual_objective_ == pytest.approx(0.2 - 0.04)
    np.testing.assert_allclose(model.margins(x), [[0.2, -0.2]])


def test_an_inner_node_that_is_a_label_has_a_category_of_its_own():
    taxonomy = Taxonomy([("sport", None), ("golf", "sport"), ("news", None)])
    X = np.eye(3)
    labels = [{"sport"}, {"golf"}, {"news"}]
    model = RankingSVM(taxonomy, n_features=3, tol=1e-6).fit(X, labels)
    assert taxonomy.decode(model.predict_many(X)) == [{"sport"}, {"sport", "golf"}, {"news"}]
    state = model.state()
    assert state["weights"].shape == (3, 4)
    # t = 1 / √2: no category has more than two attributes, sport and golf, or sport and its terminal.
    sport, terminal = state["weights"][0, 0], state["weights"][0, 3]
    assert model.margins(X)[0, 0] == pytest.approx((sport + terminal) / np.sqrt(2))
    # Without a document filed there, it is none, and never predicted by itself.
    model.fit(X[1:], labels[1:])
    assert model.state()["weights"].shape == (2, 3)
    assert taxonomy.decode(model.predict_many(X)) == [set(), {"sport", "golf"}, {"news"}]


def test_documents_without_labels_or_features():
    taxonomy = Taxonomy([("a", None), ("b", None), ("c", "b")])
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    model = RankingSVM(taxonomy, n_features=2, tol=1e-6).fit(X, [{"c"}, set(), set(), {"a"}])
    # Nothing can be learned from the first, and it costs the largest Δ there is.
    alone = RankingSVM(taxonomy, n_features=2, tol=1e-6).fit(X[3:], [{"a"}])
    assert model.dual_objective_ == pytest.approx(3.0 + alone.dual_objective_, rel=1e-5)
    assert model.stopped_ == "gap"
    assert model.predict_many(X)[[0, 2]].nnz == 0
    for labels in ([set()] * 4, [{"a", "c"}] * 4):  # no pairs at all
        model.fit(X, labels)
        assert (model.dual_objective_, model.duality_gap_, model.stopped_) == (0.0, 0.0, "gap")
    window, _ = _checked_window(taxonomy, 1.0, feature_rows(X, 2), [set()] * 4)
    assert window.visit(np.arange(4, dtype=np.int32)) == 0.0
    nothing = model.fit(X[:1], [{"c"}])
    assert nothing.margins(X).shape == (4, 3)
    assert not nothing.predict_many(X).nnz
    assert nothing.predict_many(X[:0]).shape == (0, 3)
    assert nothing.margins(X[:0]).shape == (0, 3)


def test_many_pairs_of_one_document():
    """Its working set outgrows its room, more than once."""
    taxonomy = Taxonomy([(f"n{k}", None if k < 4 else f"n{k % 4}") for k in range(30)])
    rng = np.random.default_rng(0)
    X = rng.random((2, 3))
    labels = [{f"n{k}" for k in rng.choice(30, 5, replace=False)} for _ in X]
    window, _ = _checked_window(taxonomy, 10.0, feature_rows(X, 3), labels)
    for _ in range(60):
        window.visit(np.arange(2, dtype=np.int32))
    objective, gap = window.look()
    assert window.size.max() > 8
    assert gap <= 0.05 * objective
    assert (window.size <= window.room).all()
    assert window.used[0] <= window.share.size


# Settings, state, errors


def small_model(**params):
    taxonomy = Taxonomy([("a", None), ("b", "a"), ("c", "a"), ("d", None)])
    X = csr_array(np.array([[1.0, 0, 0, 0.5], [0, 1.0, 0, 0], [0, 0, 1.0, 0.5]]))
    return RankingSVM(taxonomy, n_features=4, **params), X, [{"b"}, {"c", "d"}, {"a"}]


def test_history_progress_and_limits():
    model, X, Y = small_model(tol=1e-9)
    told = []
    model.fit(X, Y, progress=told.append)
    assert told == model.history_
    assert [entry["epoch"] for entry in told] == list(range(len(told)))
    assert list(told[0]) == ["epoch", "seconds", "dual_objective", "duality_gap"]
    assert model.dual_objective_ == told[-1]["dual_objective"]
    assert model.duality_gap_ == told[-1]["duality_gap"]
    none, X, Y = small_model(max_epochs=0)
    assert none.fit(X, Y).stopped_ == "epochs"
    assert not none.margins(X).any()
    hurried, X, Y = small_model(tol=1e-9, max_seconds=1e-9)
    assert hurried.fit(X, Y).stopped_ == "seconds"
    assert len(hurried.history_) == 1


def test_ctrl_c_leaves_the_model_as_far_as_it_has_come(monkeypatch):
    model, X, Y = small_model(tol=1e-9)
    improve = _Window.improve

    def interrupted(window, seed):
        improve(window, seed)
        raise KeyboardInterrupt

    monkeypatch.setattr(_Window, "improve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.stopped_ == "interrupted"
    assert len(model.history_) == 2
    assert model.dual_objective_ > 0.0
    assert model.margins(X).any()


def test_state_round_trip():
    model, X, Y = small_model(C=2.0, seed=3, max_seconds=5.0)
    state = model.fit(X, Y).state()
    again = RankingSVM.from_state(state)
    np.testing.assert_array_equal(again.margins(X), model.margins(X))
    for scores in (False, True):
        one, other = model.predict_many(X, scores), again.predict_many(X, scores)
        np.testing.assert_array_equal(one.toarray(), other.toarray())
    assert (again.C, again.seed, again.max_seconds) == (2.0, 3, 5.0)
    assert again.dual_objective_ == model.dual_objective_
    taken = again.state()
    assert taken.keys() == state.keys()
    for name, value in state.items():
        np.testing.assert_array_equal(taken[name], value)
    state["weights"][:] = 0.0  # a copy
    assert model.margins(X).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": np.array([1, 0, 2, 3], np.int32)}, "columns must be ascending"),
        ({"columns": np.array([0, 1, 2, 4], np.int32)}, "columns must lie below n_features=4"),
        ({"columns": np.arange(4)}, "columns must be ascending"),
        ({"is_end": np.array([True, False, True, True])}, "is_end must say"),
        ({"is_end": np.ones(3, np.bool_)}, "is_end must say"),
        ({"is_end": np.array([False, True, True, True])}, r"weights must be float32 of shape \(4, 4\)"),
        ({"weights": np.zeros((4, 5))}, "weights must be float32"),
        ({"weights": np.full((4, 5), np.nan, np.float32)}, "weights must be finite"),
        ({"size_weights": np.zeros(3, np.float32)}, "size_weights must be float32"),
        ({"mean_size": -1.0}, "mean_size must be"),
        ({"mean_size": float("nan")}, "mean_size must be"),
        ({"C": 0.0}, "C must be positive"),
        ({"extra": 1}, r"unknown entries: \['extra'\]"),
    ],
)
def test_a_damaged_state_is_refused(change, message):
    model, X, Y = small_model()
    state = model.fit(X, Y).state() | change
    with pytest.raises(ValueError, match=message):
        RankingSVM.from_state(state)


def test_errors_name_the_culprit_and_change_nothing():
    model, X, Y = small_model()
    for call in (lambda: model.margins(X), lambda: model.predict_many(X)):
        with pytest.raises(ValueError, match="call fit first"):
            call()
    with pytest.raises(ValueError, match="nothing to save"):
        model.state()
    model.fit(X, Y)
    before = model.margins(X)
    with pytest.raises(ValueError, match="the window is empty"):
        model.fit(X[:0], [])
    with pytest.raises(ValueError, match="3 documents, but labels for 2"):
        model.fit(X, Y[:2])
    with pytest.raises(ValueError, match="columns"):
        model.fit(X[:, :2], Y)
    with pytest.raises(TaxonomyError, match="unheard"):
        model.fit(X, [{"unheard"}, set(), set()])
    np.testing.assert_array_equal(model.margins(X), before)
    with pytest.raises(ValueError, match="the taxonomy is empty"):
        RankingSVM(Taxonomy([]), n_features=4).fit(X, [set()] * 3)
    with pytest.raises(ValueError, match="must be a Taxonomy"):
        RankingSVM([("a", None)])
    for name, value in {
        "C": 0.0,
        "tol": -1.0,
        "max_epochs": -1,
        "max_seconds": 0,
        "seed": -1,
        "n_features": 0,
    }.items():
        with pytest.raises(ValueError, match=name):
            RankingSVM(model.taxonomy, **{name: value})
