"""The ascent: its optimum against a generic QP over all multilabels, its certificate, every step of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc import HM3
from stream_hc.maxmargin.edges import edge_weights, node_weights, summed_weights
from stream_hc.maxmargin.passes import Point, joined_step, local_passes, visit
from stream_hc.maxmargin.window import kernel_problem, row_problem
from tests import naive_maxmargin as naive
from tests.strategies import N_FEATURES, dags, examples, forests, streams, to_rows

LOSSES = [
    ("h_tilde", "uniform"),
    ("h_tilde", "sibling"),
    ("h_tilde", "subtree"),
    ("symmetric_difference", "uniform"),
]


@st.composite
def problems(draw, max_nodes=4, max_documents=3):
    """A stream with at least one document, and how to train on it."""
    on_dag = draw(st.booleans())
    taxonomies = dags(max_nodes) if on_dag else forests(max_nodes)
    taxonomy, xs, ys = draw(streams(taxonomies, max_documents).filter(lambda stream: stream[1]))
    loss, costs = draw(st.sampled_from(LOSSES)) if taxonomy.is_tree else LOSSES[-1]
    is_free = draw(st.booleans()) and taxonomy.is_tree
    return taxonomy, xs, ys, loss, costs, is_free, draw(st.sampled_from([0.25, 1.0, 8.0]))


def parts_of(case):
    """The problem as the solver has it, and as the twin has it."""
    taxonomy, xs, ys, loss, costs, is_free, C = case
    vector = taxonomy.costs(costs)
    problem, _ = row_problem(to_rows(xs), ys, taxonomy, vector, loss == "h_tilde", is_free, C, N_FEATURES)
    dense = to_rows(xs).toarray().astype(float)
    trues = [frozenset(map(taxonomy.index, taxonomy.close(labels))) for labels in ys]
    sets = naive.all_sets(taxonomy) if is_free else naive.closed_sets(taxonomy)
    return problem, (dense, trues, loss, vector, C, sets)


def mixed(seed, C, sets, n):
    """Dual variables α at random, as the twin has them."""
    rng = np.random.default_rng(seed)
    return [dict(zip(sets, C * rng.dirichlet(np.ones(len(sets))), strict=True)) for _ in range(n)]


def marginals_of(taxonomy, alphas, is_free):
    return np.array([naive.node_marginals(taxonomy, alpha, is_free) for alpha in alphas], np.float64)


@settings(max_examples=examples(60))
@given(problems())
def test_the_optimum_is_that_of_a_generic_qp_over_all_multilabels(case):
    taxonomy, xs, ys, loss, costs, is_free, C = case
    _, (dense, trues, kind, vector, _, sets) = parts_of(case)
    label_set = "all" if is_free else "consistent"
    model = HM3(
        taxonomy, loss, costs, C, tol=1e-7, label_set=label_set, n_features=N_FEATURES, max_epochs=5000
    )
    model.fit(to_rows(xs), ys)
    best = naive.optimum(taxonomy, dense, trues, kind, vector, C, sets)
    assert model.stopped_ == "gap"
    assert model.dual_objective_ == pytest.approx(best, rel=1e-5, abs=1e-6)
    # The gap is never less than what is missing, at any epoch; the objective never goes down.
    for entry in model.history_:
        assert best - entry["dual_objective"] <= entry["duality_gap"] + 1e-6 * max(1.0, best)
    objectives = [entry["dual_objective"] for entry in model.history_]
    assert (np.diff(objectives) >= -1e-12 * max(1.0, best)).all()


@given(problems(), st.integers(0, 10**6))
def test_objective_and_gaps_are_those_of_the_formulas(case, seed):
    taxonomy, is_free = case[0], case[5]
    problem, (dense, trues, kind, vector, C, sets) = parts_of(case)
    alphas = mixed(seed, C, sets, len(trues))
    marginals = marginals_of(taxonomy, alphas, is_free)
    table, gaps = problem.table(marginals), np.zeros(len(trues))
    problem.gaps(table, marginals, 0, len(trues), gaps)
    w = naive.weights_of(taxonomy, dense, trues, alphas, sets)
    expected = naive.gaps_of(taxonomy, w, dense, trues, alphas, kind, vector, C, sets)
    np.testing.assert_allclose(gaps, expected, rtol=1e-9, atol=1e-9)
    linear = naive.linear_part(taxonomy, trues, alphas, kind, vector)
    assert problem.objective(table, marginals) == pytest.approx(
        linear - naive.quadratic_part(w) / 2, rel=1e-9, abs=1e-9
    )
    primal = naive.primal(taxonomy, w, dense, trues, kind, vector, C, sets)
    assert gaps.sum() == pytest.approx(primal - linear + naive.quadratic_part(w) / 2, rel=1e-9, abs=1e-8)


@given(problems(), st.integers(0, 10**6))
def test_one_visit_gains_at_least_what_the_printed_step_gains(case, seed):
    taxonomy, is_free = case[0], case[5]
    problem, (dense, trues, kind, vector, C, sets) = parts_of(case)
    alphas = mixed(seed, C, sets, len(trues))
    marginals = marginals_of(taxonomy, alphas, is_free)
    table, gaps = problem.table(marginals), np.zeros(len(trues))
    before = problem.objective(table, marginals)
    row = seed % len(trues)
    w = naive.weights_of(taxonomy, dense, trues, alphas, sets)
    _, _, least = naive.visit(taxonomy, w, dense[row], trues[row], alphas[row], kind, vector, C, sets)
    gain = visit(problem, np.array([row], np.int32), table, marginals, gaps)
    assert gain >= least - 1e-9
    # The table has followed, and the gain is what the objective has gained.
    np.testing.assert_allclose(table, problem.table(marginals), rtol=0, atol=1e-9)
    assert problem.objective(table, marginals) - before == pytest.approx(gain, rel=1e-7, abs=1e-9)
    check_consistent(taxonomy, marginals, C, is_free)


def check_consistent(taxonomy, marginals, C, is_free):
    """Every edge has marginals of its labellings, and neighbouring edges agree about their node."""
    n = len(taxonomy)
    a = marginals[:, :n]
    assert (a >= 0.0).all()
    assert (a <= C).all()
    for node in range(n):
        for above in taxonomy.parents(node):
            if is_free:
                both = marginals[:, n + node]
                for share in (
                    both,
                    a[:, above] - both,
                    a[:, node] - both,
                    C - a[:, above] - a[:, node] + both,
                ):
                    assert (share >= -1e-12 * C).all()
            else:
                assert (a[:, node] <= a[:, above]).all()


@given(problems(max_nodes=6, max_documents=8), st.integers(1, 4), st.integers(0, 10**6))
def test_shards_joined_are_a_certified_model(case, n_shards, seed):
    taxonomy, is_free = case[0], case[5]
    problem, (_, trues, _, _, C, _) = parts_of(case)
    marginals, gaps = problem.start(), np.zeros(len(trues))
    table = problem.table(marginals)
    here = Point(marginals, table, problem.objective(table, marginals))
    rows = np.random.default_rng(seed).permutation(len(trues)).astype(np.int32)
    for _ in range(3):
        problem.gaps(here.table, here.marginals, 0, len(trues), gaps)
        moved = here.marginals.copy()
        for some in (rows[k::n_shards] for k in range(min(n_shards, rows.size))):
            done = local_passes(problem, some, here.table, here.marginals[some], gaps[some], [seed])
            moved[some] = done.marginals
        there = joined_step(problem, here, moved)
        assert there.objective >= here.objective - 1e-12
        here = there
    assert problem.objective(here.table, here.marginals) == pytest.approx(here.objective, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(here.table, problem.table(here.marginals), rtol=0, atol=1e-9)
    check_consistent(taxonomy, here.marginals, C, is_free)


@given(problems(max_nodes=5, max_documents=5))
def test_a_kernel_gives_what_its_rows_give(case):
    taxonomy, xs, ys, loss, costs, is_free, C = case
    problem, _ = parts_of(case)
    X = to_rows(xs).toarray().astype(float)
    vector = taxonomy.costs(costs)
    by_kernel = kernel_problem(X @ X.T, ys, taxonomy, vector, loss == "h_tilde", is_free, C, N_FEATURES)
    found = []
    for each in (problem, by_kernel):
        marginals, gaps = each.start(), np.zeros(each.n_rows)
        table = each.table(marginals)
        gain = visit(each, np.arange(each.n_rows, dtype=np.int32), table, marginals, gaps)
        there = joined_step(each, Point(each.start(), each.table(each.start()), 0.0), marginals)
        assert there.objective >= gain - 1e-9
        found.append((gain, each.objective(table, marginals)))
        np.testing.assert_allclose(table, each.table(marginals), rtol=0, atol=1e-9)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found[0], found[0][0], rtol=1e-6, atol=1e-7)


@given(problems(max_nodes=5))
def test_any_direction_that_rises_is_enough(case):
    """As the paper says for inexact inference: a multilabel need not be the best one to lead uphill."""
    taxonomy = case[0]
    _, (dense, trues, kind, vector, C, sets) = parts_of(case)
    alphas = [{true: C} for true in trues]
    w = naive.weights_of(taxonomy, dense, trues, alphas, sets)
    before = naive.linear_part(taxonomy, trues, alphas, kind, vector) - w @ w / 2
    value = {
        y: naive.loss(taxonomy, kind, vector, trues[0], y) + w @ naive.phi(taxonomy, dense[0], y)
        for y in sets
    }
    for y in sets:
        if value[y] > value[trues[0]]:
            _, alpha, gain = naive.visit(
                taxonomy, w, dense[0], trues[0], alphas[0], kind, vector, C, [trues[0], y]
            )
            assert gain > 0.0
            changed = [alpha, *alphas[1:]]
            w2 = naive.weights_of(taxonomy, dense, trues, changed, sets)
            after = naive.linear_part(taxonomy, trues, changed, kind, vector) - w2 @ w2 / 2
            assert after - before == pytest.approx(gain, rel=1e-9, abs=1e-12)


@given(problems(max_nodes=5), st.integers(0, 10**6))
def test_the_numbers_of_the_nodes_add_up_to_the_score_of_a_multilabel(case, seed):
    taxonomy, is_free = case[0], case[5]
    problem, (dense, trues, _, _, C, sets) = parts_of(case)
    alphas = mixed(seed, C, sets, len(trues))
    table = problem.table(marginals_of(taxonomy, alphas, is_free))
    w = naive.weights_of(taxonomy, dense, trues, alphas, sets)
    used = np.flatnonzero((dense != 0.0).any(axis=0))
    by_edges = summed_weights(taxonomy, edge_weights(taxonomy, table, is_free))
    np.testing.assert_allclose(by_edges, node_weights(taxonomy, table), rtol=1e-4, atol=1e-4 * C)
    for x in dense:
        numbers = x[used] @ node_weights(taxonomy, table)
        for y, score in naive.node_rows(taxonomy, w, x).items():
            assert sum(numbers[list(y)]) == pytest.approx(score, rel=1e-4, abs=1e-4 * C)
