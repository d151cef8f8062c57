"""`HM3` as people use it: limits, warm starts, kernels, held-out loss, interruptions, states, errors."""

import math
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context

import numpy as np
import pytest
from scipy.sparse import csr_array

from stream_hc import HM3, HPerceptron, Taxonomy, losses, snapshot
from stream_hc.datasets import make_news
from stream_hc.evaluate import vectorize_dataset
from stream_hc.maxmargin import passes, solver
from stream_hc.maxmargin.passes import Point, joined_step, local_passes
from stream_hc.maxmargin.solver import Limits, ascend
from stream_hc.maxmargin.window import row_problem
from tests.strategies import size
from tests.test_interrupts import numba_was_interrupted

N_FEATURES = 1024
LOSSES = [{}, {"costs": "sibling"}, {"costs": "subtree"}, {"loss": "symmetric_difference"}]
DAG = Taxonomy([("a", None), ("b", None), ("ab", "a"), ("ab", "b"), ("aa", "a"), ("bb", "b")])


def news(n, seed=0):
    data = make_news(n, seed=seed)
    return data.taxonomy, vectorize_dataset(data, N_FEATURES), data.taxonomy.encode(data.labels)


def relative_gap(model):
    return model.duality_gap_ / model.dual_objective_


@pytest.mark.compiled
@pytest.mark.parametrize("how", LOSSES)
def test_every_training_loss_comes_within_a_per_cent_of_the_optimum(how):
    taxonomy, X, Y = news(200)
    model = HM3(taxonomy, n_features=N_FEATURES, **how).fit(X, Y)
    assert model.stopped_ == "gap"
    assert relative_gap(model) <= 0.01
    exact = HM3(taxonomy, n_features=N_FEATURES, tol=1e-6, **how).fit(X, Y)
    assert model.dual_objective_ <= exact.dual_objective_ + exact.duality_gap_
    assert exact.dual_objective_ - model.dual_objective_ <= model.duality_gap_
    objectives = [entry["dual_objective"] for entry in exact.history_]
    assert (np.diff(objectives) >= -1e-9).all()


@pytest.mark.compiled
def test_it_learns_more_than_one_pass_of_perceptrons():
    taxonomy, X, Y = news(600)
    model = HM3(taxonomy, costs="subtree", n_features=N_FEATURES).fit(X[:400], Y[:400])
    perceptrons = HPerceptron(taxonomy, N_FEATURES)
    perceptrons.learn_many(X[:400], Y[:400])
    predicted = model.predict_many(X[400:])
    assert predicted.dtype == np.bool_
    assert all(taxonomy.respects(labels) for labels in taxonomy.decode(predicted))
    for loss in (losses.zero_one, losses.h_loss):
        other = loss(taxonomy, perceptrons.predict_many(X[400:]), Y[400:]).mean()
        assert loss(taxonomy, predicted, Y[400:]).mean() < other


@pytest.mark.compiled
def test_the_same_seed_gives_the_same_bits_and_another_one_another_way_to_the_same_optimum():
    taxonomy, X, Y = news(120)
    a, b, c = (HM3(taxonomy, n_features=N_FEATURES, seed=seed).fit(X, Y) for seed in (3, 3, 4))
    assert (a.state()["weights"] == b.state()["weights"]).all()
    assert [e["dual_objective"] for e in a.history_] == [e["dual_objective"] for e in b.history_]
    assert (a.state()["weights"] != c.state()["weights"]).any()
    assert c.dual_objective_ == pytest.approx(a.dual_objective_, rel=0.011)


@pytest.mark.compiled
def test_history_and_progress_tell_of_every_epoch():
    taxonomy, X, Y = news(80)
    told = []
    model = HM3(taxonomy, n_features=N_FEATURES, tol=1e-4).fit(X, Y, progress=told.append)
    assert told == model.history_
    assert [entry["epoch"] for entry in told] == list(range(len(told)))
    assert set(told[0]) == {"epoch", "seconds", "dual_objective", "duality_gap"}
    assert told[-1]["duality_gap"] == model.duality_gap_ <= 1e-4 * model.dual_objective_
    assert told[-1]["dual_objective"] == model.dual_objective_
    assert (np.diff([entry["seconds"] for entry in told]) >= 0).all()
    assert told[0]["dual_objective"] == 0.0


@pytest.mark.compiled
def test_limits_stop_it_with_an_honest_gap():
    taxonomy, X, Y = news(200)
    few = HM3(taxonomy, n_features=N_FEATURES, tol=1e-9, max_epochs=2).fit(X, Y)
    assert (few.stopped_, len(few.history_)) == ("epochs", 3)
    assert relative_gap(few) > 1e-9
    none = HM3(taxonomy, n_features=N_FEATURES, max_epochs=0).fit(X, Y)
    assert none.dual_objective_ == 0.0
    # With no weights at all, the gap is what the worst multilabel of each document costs.
    assert none.duality_gap_ > 0.0
    assert none.predict_many(X).nnz == 0
    hurried = HM3(taxonomy, n_features=N_FEATURES, tol=1e-12, max_seconds=1e-9).fit(X, Y)
    assert hurried.stopped_ == "seconds"
    with pytest.raises(MemoryError, match=r"200 documents need about .* MiB, more than max_memory allows"):
        HM3(taxonomy, n_features=N_FEATURES, max_memory=1000).fit(X, Y)
    HM3(taxonomy, n_features=N_FEATURES, max_memory=2**30, n_jobs=2, max_epochs=1).fit(X, Y)


@pytest.mark.compiled
def test_the_clock_is_looked_at_between_visits(monkeypatch):
    taxonomy, X, Y = news(600)
    problem, _ = row_problem(X, Y, taxonomy, taxonomy.costs("uniform"), True, False, 1.0, N_FEATURES)
    real, sizes, seconds = passes.visit, [], count()

    def visit(problem, rows, *others):
        sizes.append(rows.size)
        return real(problem, rows, *others)

    monkeypatch.setattr(passes, "visit", visit)
    found = ascend(problem, problem.start(), Limits(1e-12, 100, 3.0), 0, clock=lambda: float(next(seconds)))
    # 0 at the beginning, 1 in the first epoch, 2 and 3 after some visits each, 4 in the last epoch.
    assert (found.stopped, [epoch.seconds for epoch in found.history]) == ("seconds", [1.0, 4.0])
    assert sizes == [256, 256]


@pytest.mark.compiled
def test_held_out_loss_stops_it_and_the_best_model_stays():
    taxonomy, X, Y = news(300)
    model = HM3(taxonomy, n_features=N_FEATURES, tol=1e-12)
    model.fit(X[:200], Y[:200], validation=(X[200:], Y[200:]), patience=2)
    losses_ = [entry["held_out_loss"] for entry in model.history_]
    best = len(losses_) - 1 - int(np.argmin(losses_[::-1]))
    assert model.stopped_ == "callback"
    assert len(losses_) - 1 - int(np.argmin(losses_)) == 2
    assert model.duality_gap_ == model.history_[best]["duality_gap"]
    measured = losses.h_tilde_loss(taxonomy, model.predict_many(X[200:]), Y[200:]).mean()
    assert measured == pytest.approx(min(losses_))
    with pytest.raises(ValueError, match="no held-out documents"):
        model.fit(X, Y, validation=(X[:0], Y[:0]))
    with pytest.raises(ValueError, match="100 held-out documents, but labels for 99"):
        model.fit(X, Y, validation=(X[200:], Y[201:]))


@pytest.mark.compiled
def test_a_window_that_moved_on_starts_from_the_duals_that_stay():
    taxonomy, X, Y = news(440)
    old = HM3(taxonomy, n_features=N_FEATURES, tol=1e-3).fit(X[:400], Y[:400])
    ids = np.arange(400) - 40
    new = HM3(taxonomy, n_features=N_FEATURES, tol=1e-3)
    warm = new.fit(X[40:], Y[40:], warm_start=(old.duals_, ids)).history_
    cold = HM3(taxonomy, n_features=N_FEATURES, tol=1e-3).fit(X[40:], Y[40:])
    assert new.dual_objective_ == pytest.approx(cold.dual_objective_, rel=2e-3)
    assert relative_gap(new) <= 1e-3
    assert warm[0]["duality_gap"] < 0.5 * cold.history_[0]["duality_gap"]
    assert len(warm) < len(cold.history_)
    # Nothing has moved: there is nothing to do. Another C takes shares, not numbers.
    again = HM3(taxonomy, n_features=N_FEATURES, tol=1e-2).fit(
        X[:400], Y[:400], warm_start=(old.duals_, range(400))
    )
    assert len(again.history_) == 1
    assert again.dual_objective_ == pytest.approx(old.dual_objective_, rel=1e-9)
    other = HM3(taxonomy, n_features=N_FEATURES, C=0.5).fit(
        X[:400], Y[:400], warm_start=(old.duals_, range(400))
    )
    assert other.duals_.max() <= 1.0


@pytest.mark.parametrize(
    ("duals", "ids", "message"),
    [
        (np.zeros((2, 3)), [0, 1], "duals must have 5 columns"),
        (np.zeros((2, 5)), [0], "row_ids must be 2 whole numbers"),
        (np.zeros((2, 5)), [0.0, 1.0], "row_ids must be 2 whole numbers"),
        (np.zeros((2, 5)), [0, 0], "different rows below 3"),
        (np.zeros((2, 5)), [0, 3], "different rows below 3"),
        (np.full((1, 5), 1.5), [0], "shares between 0 and 1"),
        (np.full((1, 5), np.nan), [0], "shares between 0 and 1"),
        (np.eye(5)[4:], [0], "no child above its parent"),
    ],
)
def test_a_warm_start_that_cannot_be_is_refused(duals, ids, message):
    model = HM3(DAG, "symmetric_difference", n_features=4)
    with pytest.raises(ValueError, match=message):
        model.fit(
            csr_array(np.eye(3, 4, dtype=np.float32)), [{"ab"}, {"aa"}, {"bb"}], warm_start=(duals, ids)
        )


@pytest.mark.compiled
def test_a_warm_start_over_all_multilabels():
    taxonomy, X, Y = news(60)
    how = {"n_features": N_FEATURES, "label_set": "all", "tol": 1e-3}
    old = HM3(taxonomy, **how).fit(X, Y)
    again = HM3(taxonomy, **how).fit(X, Y, warm_start=(old.duals_, np.arange(60)))
    assert len(again.history_) == 1
    bad = old.duals_.copy()
    bad[0, len(taxonomy) :] = 1.0
    with pytest.raises(ValueError, match="duals must come from duals_"):
        HM3(taxonomy, **how).fit(X, Y, warm_start=(bad, np.arange(60)))


@pytest.mark.compiled
def test_a_kernel_predicts_what_rows_predict():
    taxonomy, X, Y = news(150)
    K = (X @ X.T).toarray().astype(float)
    rows = HM3(taxonomy, n_features=N_FEATURES, tol=1e-5).fit(X[:100], Y[:100])
    kernel = HM3(taxonomy, tol=1e-5).fit_kernel(K[:100, :100], Y[:100])
    assert kernel.dual_objective_ == pytest.approx(rows.dual_objective_, rel=1e-4)
    assert (kernel.predict_kernel(K[100:, :100]) != rows.predict_many(X[100:])).nnz <= 2
    warm = HM3(taxonomy, tol=1e-4).fit_kernel(K[:100, :100], Y[:100], warm_start=(kernel.duals_, range(100)))
    assert len(warm.history_) == 1
    two = HM3(taxonomy, tol=1e-3, n_jobs=2).fit_kernel(K[:100, :100], Y[:100])
    assert relative_gap(two) <= 1e-3
    with pytest.raises(ValueError, match="call predict_kernel first"):
        kernel.predict_many(X)
    with pytest.raises(ValueError, match="call fit_kernel first"):
        rows.predict_kernel(K)
    with pytest.raises(ValueError, match="nothing to save"):
        kernel.state()
    with pytest.raises(ValueError, match="K must be m × 100"):
        kernel.predict_kernel(K)
    with pytest.raises(ValueError, match="K holds NaN"):
        kernel.predict_kernel(np.full((1, 100), np.nan))


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.zeros((2, 3)), "K must be n × n"),
        (np.array([[1.0, np.inf], [np.inf, 1.0]]), "K holds NaN or infinity"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "K must be symmetric"),
        (np.array([[-1.0, 0.0], [0.0, 1.0]]), "K is no kernel"),
    ],
)
def test_what_is_no_kernel_is_refused(K, message):
    with pytest.raises(ValueError, match=message):
        HM3(DAG, "symmetric_difference").fit_kernel(K, [{"a"}, {"b"}])


@pytest.mark.compiled
@pytest.mark.parametrize("how", [{}, {"costs": "sibling"}, {"label_set": "all"}])
def test_two_threads_give_a_certified_model(how):
    taxonomy, X, Y = news(200)
    two = HM3(taxonomy, n_features=N_FEATURES, n_jobs=2, **how).fit(X, Y)
    one = HM3(taxonomy, n_features=N_FEATURES, tol=1e-4, **how).fit(X, Y)
    assert relative_gap(two) <= 0.01
    assert one.dual_objective_ - two.dual_objective_ <= two.duality_gap_
    assert (np.diff([entry["dual_objective"] for entry in two.history_]) >= -1e-9).all()


@pytest.mark.compiled
def test_shards_may_be_worked_on_in_other_processes():
    taxonomy, X, Y = news(60)
    problem, _ = row_problem(X, Y, taxonomy, taxonomy.costs("uniform"), True, False, 1.0, N_FEATURES)
    marginals, gaps = problem.start(), np.zeros(60)
    table = problem.table(marginals)
    here = Point(marginals, table, problem.objective(table, marginals))
    problem.gaps(table, marginals, 0, 60, gaps)
    shards = [np.arange(first, 60, 2, dtype=np.int32) for first in (0, 1)]
    jobs = [(problem, rows, table, marginals[rows], gaps[rows], [rows[0]]) for rows in shards]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        there = list(pool.map(local_passes, *zip(*jobs, strict=True)))
    here_done = [local_passes(*job) for job in jobs]
    moved = marginals.copy()
    for rows, done, own in zip(shards, there, here_done, strict=True):
        assert (done.marginals == own.marginals).all()
        moved[rows] = done.marginals
    joined = joined_step(problem, here, moved)
    assert joined.objective > here.objective
    after = np.zeros(60)
    problem.gaps(joined.table, joined.marginals, 0, 60, after)
    assert after.sum() < gaps.sum()


@pytest.mark.compiled
def test_an_interrupted_fit_leaves_what_it_has_with_its_gap(monkeypatch):
    taxonomy, X, Y = news(100)
    model = HM3(taxonomy, n_features=N_FEATURES, tol=1e-12)
    real, calls = passes.visit, []

    def interrupted(*arguments):
        calls.append(1)
        gain = real(*arguments)
        if len(calls) == 5:
            numba_was_interrupted()
        return gain

    monkeypatch.setattr(passes, "visit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.stopped_ == "interrupted"
    monkeypatch.undo()
    # The objective told and the gap are those of the dual variables it has.
    check = HM3(taxonomy, n_features=N_FEATURES, max_epochs=0)
    check.fit(X, Y, warm_start=(model.duals_, range(100)))
    assert check.dual_objective_ == pytest.approx(model.dual_objective_, rel=1e-9)
    assert check.duality_gap_ == pytest.approx(model.duality_gap_, rel=1e-6)
    assert (check.predict_many(X) != model.predict_many(X)).nnz == 0


def test_interrupted_while_it_works_out_the_gap_it_does_so_once_more(monkeypatch):
    taxonomy, X, Y = news(20)
    real, calls = solver._all_gaps, []

    def interrupted(problem, here, gaps, *others):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(problem, here, gaps, *others)

    monkeypatch.setattr(solver, "_all_gaps", interrupted)
    model = HM3(taxonomy, n_features=N_FEATURES, tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert (model.stopped_, len(calls)) == ("interrupted", 3)
    assert 0 < model.duality_gap_ < math.inf


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    taxonomy, X, Y = news(20)
    model = HM3(taxonomy, n_features=N_FEATURES).fit(X, Y)
    before = model.state()
    bad = X.copy()
    bad.data[7] = np.nan

    def stop(entry):
        raise RuntimeError("enough")

    with pytest.raises(ValueError, match="row"):
        model.fit(bad, Y)
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(X, Y, progress=stop)
    with pytest.raises(ValueError, match="20 documents, but labels for 19"):
        model.fit(X, Y[1:])
    with pytest.raises(ValueError, match="the window is empty"):
        model.fit(X[:0], Y[:0])
    after = model.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_odd_windows():
    taxonomy = Taxonomy([("a", None), ("b", "a")])
    row = csr_array(np.array([[1.0, 0.0]], np.float32))
    alone = HM3(taxonomy, n_features=2, C=10.0).fit(row, [{"b"}])
    assert taxonomy.decode(alone.predict_many(row)) == [{"a", "b"}]
    empty = csr_array((3, 2), dtype=np.float32)
    without = HM3(taxonomy, n_features=2).fit(empty, [{"b"}, {"a"}, set()])
    assert without.predict_many(empty).nnz == 0
    # Nothing can be learned from them: each costs as much as the worst multilabel does.
    assert without.dual_objective_ == pytest.approx(3.0)
    constant = HM3(taxonomy, n_features=2).fit(csr_array(np.ones((4, 2), np.float32)), [{"a"}] * 4)
    assert taxonomy.decode(constant.predict_many(row)) == [{"a"}]
    twice = HM3(taxonomy, n_features=2, tol=1e-9).fit(csr_array(np.ones((2, 2), np.float32)), [{"a"}, {"b"}])
    assert relative_gap(twice) <= 1e-9
    single = HM3(Taxonomy([("only", None)]), n_features=2, C=10.0).fit(row, [{"only"}])
    assert single.predict_many(row).nnz == 1
    assert single.predict_many(row[:0]).shape == (0, 1)
    with pytest.raises(ValueError, match="the taxonomy is empty"):
        HM3(Taxonomy([]), n_features=2).fit(row, [set()])


@pytest.mark.parametrize("taxonomy", [make_news(5).taxonomy, DAG])
def test_margins_and_chances_agree_with_predictions(taxonomy):
    rng, n = np.random.default_rng(0), size(40, 15)
    X = csr_array((rng.random((n, 16)) * (rng.random((n, 16)) < 0.3)).astype(np.float32))
    Y = [set(rng.choice(taxonomy.nodes, 2)) for _ in range(n)]
    model = HM3(taxonomy, "symmetric_difference", n_features=16).fit(X, Y)
    margins, predicted = model.margins(X), model.predict_many(X).toarray()
    assert margins.dtype == np.float32
    clear = np.abs(margins) > 1e-4
    assert ((margins > 0) == predicted)[clear].all()
    p = model.predict_proba(X)
    assert ((p >= 0.0) & (p <= 1.0)).all()
    for node in range(len(taxonomy)):
        for above in taxonomy.parents(node):
            assert (p[:, node] <= p[:, above] + 1e-15).all()
    scores = model.predict_many(X, scores=True)
    assert (scores.toarray() == np.where(predicted, margins, 0.0)).all()


@pytest.mark.parametrize("how", [{}, {"label_set": "all"}, {"costs": [1.0, 2.0, 3.0, 4.0, 5.0]}])
def test_a_model_that_was_saved_and_loaded_is_the_same(how, tmp_path):
    taxonomy = DAG if "costs" in how else make_news(5).taxonomy
    loss = "symmetric_difference" if taxonomy is DAG else "h_tilde"
    rng, n = np.random.default_rng(1), size(30, 8)
    X = csr_array((rng.random((n, 16)) * (rng.random((n, 16)) < 0.3)).astype(np.float32))
    model = HM3(taxonomy, loss, n_features=16, **how).fit(X, [{rng.choice(taxonomy.nodes)} for _ in range(n)])
    snapshot.save(tmp_path / "m.snap", model)
    loaded = snapshot.load(tmp_path / "m.snap")
    before, after = model.state(), loaded.state()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert (model.margins(X) == loaded.margins(X)).all()
    assert (loaded.dual_objective_, loaded.duality_gap_) == (model.dual_objective_, model.duality_gap_)
    columns, weights = before["columns"], before["weights"]
    if taxonomy.is_tree:
        assert weights.shape == (len(taxonomy), 3, columns.size)


def broken(state, name, value):
    return {**state, name: value}


def test_states_that_cannot_be_are_refused():
    taxonomy, X, Y = news(20)
    state = HM3(taxonomy, n_features=N_FEATURES).fit(X, Y).state()
    columns, weights = state["columns"], state["weights"]
    infinite = weights.copy()
    infinite[0, 0, 0] = math.inf
    cases = [
        ("columns", columns[::-1].copy(), "ascending"),
        ("columns", columns.astype(np.int64), "ascending"),
        ("columns", columns + np.int32(N_FEATURES), "below n_features"),
        ("weights", weights[:, :2], "weights must be float32 of shape"),
        ("weights", weights.astype(np.float64), "weights must be float32 of shape"),
        ("weights", infinite, "weights must be finite"),
        ("weights", weights + np.arange(3, dtype=np.float32)[:, None] ** 2, "must follow from weights"),
        ("node_weights", state["node_weights"][:-1], "node_weights must be float32"),
        ("C", -1.0, "C must be positive"),
        ("surprise", 1, "unknown entries"),
    ]
    for name, value, message in cases:
        with pytest.raises(ValueError, match=message):
            HM3.from_state(broken(state, name, value))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"taxonomy": None}, "taxonomy must be a Taxonomy"),
        ({"loss": "hinge"}, "unknown loss 'hinge'"),
        ({"label_set": "some"}, "unknown label_set"),
        ({"C": 0.0}, "C must be positive"),
        ({"tol": math.nan}, "tol must be positive"),
        ({"max_epochs": -1}, "max_epochs must be"),
        ({"max_seconds": 0}, "max_seconds must be positive"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"max_memory": 0}, "max_memory must be"),
        ({"costs": "sibling", "taxonomy": DAG, "loss": "symmetric_difference"}, "defined on forests only"),
        ({"taxonomy": DAG}, "in a DAG HM3 trains with"),
        ({"taxonomy": DAG, "loss": "symmetric_difference", "label_set": "all"}, "in a DAG HM3 trains with"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        HM3(**{"taxonomy": make_news(5).taxonomy, **arguments})


def test_it_has_to_be_trained_first():
    taxonomy, X, _ = news(5)
    with pytest.raises(ValueError, match="call fit first"):
        HM3(taxonomy, n_features=N_FEATURES).predict_many(X)
    with pytest.raises(ValueError, match="nothing to save: call fit first"):
        HM3(taxonomy).state()
