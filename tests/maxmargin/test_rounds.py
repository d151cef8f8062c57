"""Shards that exchange what they found: the objective never falls, the gap is that of the joined model."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc import HM3, Taxonomy
from stream_hc.maxmargin import rounds
from stream_hc.maxmargin.crew import Here, nothing
from stream_hc.maxmargin.memory import bytes_needed
from stream_hc.maxmargin.passes import MOST_PASSES
from stream_hc.maxmargin.rounds import ascend_together
from stream_hc.maxmargin.shards import Shard
from stream_hc.maxmargin.solver import Limits, ascend, least_gap
from stream_hc.maxmargin.window import row_problem
from tests.maxmargin.test_csga import check_consistent, parts_of, problems
from tests.maxmargin.test_hm3 import DAG, N_FEATURES, news
from tests.strategies import examples, size
from tests.test_interrupts import interrupt, numba_was_interrupted

TOL, FREE_TOL = 1e-5, 1e-3


class Counting(Here):
    """Counts the calls to work, by the epoch they are for."""

    def __init__(self, n_shards):
        super().__init__(n_shards)
        self.works = Counter()

    def call(self, calls, meanwhile=nothing):
        self.works.update([call.arguments[0] for call in calls.values() if call.name == "work"][:1])
        return super().call(calls, meanwhile)


def joined(problem, n_shards, tol=TOL, seed=0, max_epochs=1000, on_epoch=lambda epoch, point: False):
    return ascend_together(
        problem, problem.start(), Limits(tol, max_epochs, np.inf), seed, Here(n_shards), on_epoch
    )


def certificate(problem, duals):
    """Objective and gap of dual variables, worked out by one process from nothing."""
    table, gaps = problem.table(duals), np.zeros(problem.n_rows)
    problem.gaps(table, duals, 0, problem.n_rows, gaps)
    return problem.objective(table, duals), gaps.sum()


@settings(max_examples=examples(60))
@given(problems(max_nodes=5, max_documents=6), st.integers(1, 8), st.integers(0, 10**6))
def test_the_gap_bounds_the_distance_to_the_optimum_and_the_objective_never_falls(case, n_shards, seed):
    """All losses, forests and DAGs, all multilabels or consistent ones, more shards than documents."""
    taxonomy, is_free = case[0], case[5]
    problem, (_, _, _, _, C, _) = parts_of(case)
    # Over all multilabels one process takes its time, too: see the next test.
    tol = FREE_TOL if is_free else TOL
    alone = ascend(problem, problem.start(), Limits(tol / 10, 5000, np.inf), seed)
    best = alone.history[-1].dual_objective + alone.history[-1].duality_gap
    seen = []

    def on_epoch(epoch, point_of):
        point = point_of()
        seen.append(certificate(problem, point.marginals))
        np.testing.assert_allclose(point.table, problem.table(point.marginals), rtol=0, atol=1e-9 * C)
        check_consistent(taxonomy, np.clip(point.marginals, 0.0, C), C, is_free)
        return False

    found = joined(problem, n_shards, tol, seed, on_epoch=on_epoch)
    noise = 1e-9 * max(1.0, best)
    told = [(epoch.dual_objective, epoch.duality_gap) for epoch in found.history]
    np.testing.assert_allclose(told, seen, rtol=1e-7, atol=noise)
    assert (np.diff([objective for objective, _ in told]) >= -noise).all()
    assert all(alone.history[-1].dual_objective - objective <= gap + noise for objective, gap in told)
    assert all(objective <= best + noise for objective, _ in told)
    assert found.stopped == "gap"
    assert told[-1][1] <= max(tol * told[-1][0], least_gap(problem))


@settings(max_examples=examples(60))
@given(problems(max_nodes=5, max_documents=6), st.integers(0, 99))
def test_one_shard_comes_as_far_as_one_process_in_as_many_epochs(case, seed):
    """Also over all multilabels, where either may need thousands of epochs for a gap of 1e-5."""
    problem, _ = parts_of(case)
    limits = Limits(1e-7, 40, np.inf)
    alone = ascend(problem, problem.start(), limits, seed).history
    found = joined(problem, 1, limits.tol, seed, limits.max_epochs).history
    least, expected = (min(epoch.duality_gap for epoch in history) for history in (found, alone))
    assert least <= max(3.0 * expected, limits.tol * found[-1].dual_objective, least_gap(problem))


@given(problems(max_nodes=5, max_documents=5), st.integers(0, 99))
def test_one_shard_goes_the_way_of_one_process(case, seed):
    """Bit for bit, until its weights are worked out anew."""
    problem, _ = parts_of(case)
    limits = Limits(1e-9, rounds.RENEWED - 1, np.inf)
    alone = ascend(problem, problem.start(), limits, seed)
    found = joined(problem, 1, tol=limits.tol, seed=seed, max_epochs=limits.max_epochs)
    assert found.point.marginals.tobytes() == alone.point.marginals.tobytes()
    assert [epoch.duality_gap for epoch in found.history] == [epoch.duality_gap for epoch in alone.history]


def fitted(n, how, **more):
    taxonomy, X, Y = news(n)
    return HM3(taxonomy, n_features=N_FEATURES, **how).fit(X, Y, **more)


@pytest.mark.compiled
@pytest.mark.parametrize(
    "how", [{}, {"costs": "subtree"}, {"loss": "symmetric_difference", "C": 8.0}, {"label_set": "all"}]
)
def test_a_model_of_shards_is_within_the_tolerance_of_one_process(how):
    n, tol = (60, 1e-2) if "label_set" in how else (300, 1e-3)  # over all multilabels it takes its time
    alone = fitted(n, {"tol": tol / 10, **how})
    for n_shards in (2, 3):
        model = fitted(n, {"tol": tol, **how}, workers=Here(n_shards))
        assert model.stopped_ == "gap"
        assert model.duality_gap_ <= tol * model.dual_objective_
        assert alone.dual_objective_ - model.dual_objective_ <= model.duality_gap_
        taxonomy, X, Y = news(n)
        warm = HM3(taxonomy, n_features=N_FEATURES, max_epochs=0, **how)
        warm.fit(X, Y, warm_start=(model.duals_, np.arange(n)))
        assert warm.duality_gap_ == pytest.approx(model.duality_gap_, rel=1e-6)
        assert warm.dual_objective_ == pytest.approx(model.dual_objective_, rel=1e-9)


def test_a_dag_is_fitted_by_shards():
    X = np.eye(6, N_FEATURES, dtype=np.float32)
    Y = [{"ab"}, {"aa"}, {"bb"}, {"a"}, set(), {"aa", "bb"}]
    models = [
        HM3(DAG, "symmetric_difference", tol=1e-6, n_features=N_FEATURES).fit(X, Y, workers=workers)
        for workers in (None, Here(4))
    ]
    assert models[1].dual_objective_ == pytest.approx(models[0].dual_objective_, rel=1e-5)
    assert (models[1].predict_many(X) != models[0].predict_many(X)).nnz == 0


def test_what_all_did_wrong_together_is_taken_back(monkeypatch):
    """The same document many times: every shard alone corrects it in full, and together that is too much."""
    monkeypatch.setattr(rounds, "CHUNKS", 1)
    steps = []
    real = rounds.joined_step
    monkeypatch.setattr(rounds, "joined_step", lambda *args: steps.append(1) or real(*args))
    taxonomy = Taxonomy([("a", None), ("b", None)])
    X, Y = np.ones((8, 2), np.float32), [{"a"}] * 8
    model = HM3(taxonomy, C=1.0, tol=1e-6, n_features=2).fit(X, Y, workers=Here(8))
    assert steps
    objectives = [entry["dual_objective"] for entry in model.history_]
    assert (np.diff(objectives) >= -1e-12).all()
    alone = HM3(taxonomy, C=1.0, tol=1e-6, n_features=2).fit(X, Y)
    assert model.stopped_ == "gap"
    assert model.dual_objective_ == pytest.approx(alone.dual_objective_, rel=1e-5)


@pytest.mark.parametrize("n_shards", [2, 3, 8])
def test_where_more_exchanges_lead_nowhere_it_gets_there_all_the_same(n_shards):
    """All shards have the same document: they correct it at once, and take that back at once, for ever."""
    taxonomy = Taxonomy([("a", None), ("b", "a"), ("c", None)])
    X, Y = np.full((n_shards, 2), 2.0, np.float32), [{"b"}] * n_shards
    for loss, C in [("symmetric_difference", 8.0), ("h_tilde", 0.25), ("h_tilde", 8.0)]:
        how = {"loss": loss, "C": C, "tol": TOL, "n_features": 2, "max_epochs": 50}
        model = HM3(taxonomy, **how).fit(X, Y, workers=Here(n_shards))
        assert model.stopped_ == "gap"
        alone = HM3(taxonomy, **how).fit(X, Y)
        assert model.dual_objective_ == pytest.approx(alone.dual_objective_, rel=10 * TOL)


@settings(max_examples=examples(40))
@given(problems(max_nodes=4, max_documents=6), st.integers(1, 8), st.sampled_from([1, 4, 24]))
def test_every_epoch_ends_and_so_does_the_ascent(case, n_shards, n_chunks):
    """Also if it always begins with as many exchanges again, and if nothing is good enough."""
    problem, _ = parts_of(case)
    workers, n_epochs = Counting(n_shards), 6
    ascent = rounds._Ascent(problem, problem.start(), Limits(-1.0, n_epochs, np.inf), 0, workers, lambda: 0.0)

    def on_epoch(epoch, point_of):
        ascent._n_chunks, ascent._is_careful = n_chunks, False
        return False

    found = ascent.run(on_epoch)
    objectives = [epoch.dual_objective for epoch in found.history]
    assert (np.diff(objectives) >= -least_gap(problem)).all()
    if found.stopped == "epochs":
        assert len(found.history) == n_epochs + 1
    else:
        assert found.history[-1].duality_gap <= least_gap(problem)  # nothing is left to gain
    assert all(n_works <= MOST_PASSES * (n_chunks + 1) for n_works in workers.works.values())


@pytest.mark.parametrize("n_shards", [1, 2, 3])
def test_time_that_is_up_ends_an_epoch_between_two_exchanges(n_shards, monkeypatch):
    """The clock moves with each question: so many are asked, whatever is still to do."""
    monkeypatch.setattr(rounds, "ALONE", 1)
    taxonomy, X, Y = news(12)
    problem, _ = row_problem(X, Y, taxonomy, taxonomy.costs("uniform"), True, False, 1.0, N_FEATURES)
    for seconds in (2.0, 5.0, 9.0):
        workers = Counting(n_shards)
        found = ascend_together(
            problem,
            problem.start(),
            Limits(1e-12, 10**6, seconds),
            0,
            workers,
            clock=map(float, range(10**6)).__next__,
        )
        assert found.stopped == "seconds"
        assert seconds <= found.history[-1].seconds <= seconds + 1
        assert sum(workers.works.values()) <= seconds
        objective, gap = certificate(problem, found.point.marginals)
        assert found.history[-1].duality_gap == pytest.approx(gap, rel=1e-6)
        assert found.history[-1].dual_objective == pytest.approx(objective, rel=1e-9, abs=1e-12)


def test_shards_on_this_machine_count_for_the_memory():
    taxonomy, X, Y = news(20)
    problem, columns = row_problem(X, Y, taxonomy, taxonomy.costs("uniform"), True, False, 1.0, N_FEATURES)
    n_edges = len(taxonomy)
    alone = bytes_needed(problem, n_edges, 1)
    table = 8 * columns.size * len(taxonomy)
    assert bytes_needed(problem, n_edges, 1, 2) >= alone + 2 * (table + X.nnz * 8)
    assert bytes_needed(problem, n_edges, 1, 3) - bytes_needed(problem, n_edges, 1, 2) >= table
    model = HM3(taxonomy, n_features=N_FEATURES, max_memory=2 * alone, max_epochs=1)
    with pytest.raises(MemoryError, match=r"take fewer documents or features, or fewer workers$"):
        model.fit(X, Y, workers=Here(20))
    far = Here(20)
    far.n_here = 0  # somewhere else
    model.fit(X, Y, workers=far)


def test_limits_progress_and_warm_starts_are_those_of_one_process():
    n = size(120, 12)
    told = []
    few = fitted(n, {"tol": 1e-9, "max_epochs": 2}, workers=Here(2), progress=told.append)
    assert (few.stopped_, len(few.history_), told) == ("epochs", 3, few.history_)
    assert told[0]["dual_objective"] == 0.0
    hurried = fitted(n, {"tol": 1e-12, "max_seconds": 1e-9}, workers=Here(2))
    assert (hurried.stopped_, len(hurried.history_)) == ("seconds", 1)
    ids = np.arange(n)
    again = fitted(n, {"tol": 1e-9, "max_epochs": 0}, workers=Here(3), warm_start=(few.duals_, ids))
    assert again.dual_objective_ == pytest.approx(few.dual_objective_, rel=1e-9)
    assert again.duality_gap_ == pytest.approx(few.duality_gap_, rel=1e-6)


@pytest.mark.compiled
def test_held_out_documents_stop_it_and_the_best_epoch_is_kept():
    taxonomy, X, Y = news(300)
    model = HM3(taxonomy, n_features=N_FEATURES, tol=1e-9)
    model.fit(X[:200], Y[:200], validation=(X[200:], Y[200:]), patience=2, workers=Here(2))
    losses = [entry["held_out_loss"] for entry in model.history_]
    assert model.stopped_ == "callback"
    best = max(k for k, loss in enumerate(losses) if loss == min(losses))
    assert model.dual_objective_ == model.history_[best]["dual_objective"]


@pytest.mark.parametrize(
    ("moment", "interrupted"),
    [(1, interrupt), (3, numba_was_interrupted), (9, interrupt), (12, numba_was_interrupted)],
)
def test_ctrl_c_leaves_a_certified_model(moment, interrupted, monkeypatch):
    """At the first look, while shards work, and after some epochs."""
    calls, real = [0], Shard.do

    def do(shard, *call):
        calls[0] += 1
        if calls[0] == moment:
            interrupted()
        return real(shard, *call)

    monkeypatch.setattr(Shard, "do", do)
    taxonomy, X, Y = news(20)
    model = HM3(taxonomy, n_features=N_FEATURES, tol=1e-9)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, workers=Here(2))
    assert model.stopped_ == "interrupted"
    check = HM3(taxonomy, n_features=N_FEATURES, max_epochs=0)
    check.fit(X, Y, warm_start=(model.duals_, np.arange(20)))
    assert model.duality_gap_ == pytest.approx(check.duality_gap_, rel=1e-9)
    assert model.dual_objective_ == pytest.approx(check.dual_objective_, rel=1e-9, abs=1e-12)
