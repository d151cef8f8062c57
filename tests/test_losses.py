"""Losses against their slow twins, against facts from the papers, and against scikit-learn."""

import itertools
import timeit
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix

from stream_hc import Taxonomy, losses
from stream_hc.kernels import losses as kernels
from stream_hc.taxonomy.rows import to_csr
from tests import naive_losses as naive
from tests.strategies import examples

relaxed = settings(deadline=None)  # the first example may have to compile
brief = settings(deadline=None, max_examples=examples(30))  # for tests that run once for each of many names
positive = st.floats(0.01, 100.0)

RANKINGS = ["one_accuracy", "parent_one_accuracy", "average_precision", "ranking_loss", "maximal_loss"]


@st.composite
def taxonomies(draw: st.DrawFn, max_parents: int = 3, max_nodes: int = 9) -> Taxonomy:
    """Forests (`max_parents=1`) and DAGs: single nodes, chains, many roots and all between."""
    names = [f"n{i}" for i in range(draw(st.integers(1, max_nodes)))]
    edges: list[tuple[str, str | None]] = []
    for i, name in enumerate(names):
        above = draw(st.lists(st.sampled_from(names[:i]), max_size=max_parents, unique=True)) if i else []
        edges += [(name, parent) for parent in above] or [(name, None)]
    return Taxonomy(draw(st.permutations(edges)))


forests = taxonomies(max_parents=1)


def label_sets(taxonomy: Taxonomy) -> st.SearchStrategy[set[str]]:
    return st.sets(st.sampled_from(taxonomy.nodes))


@st.composite
def cases(
    draw: st.DrawFn, graphs: st.SearchStrategy[Taxonomy]
) -> tuple[Taxonomy, list[set[str]], list[set[str]]]:
    """A taxonomy with predicted and true label sets, respecting it or not; possibly no documents."""
    taxonomy = draw(graphs)
    pairs = draw(st.lists(st.tuples(label_sets(taxonomy), label_sets(taxonomy)), max_size=5))
    return taxonomy, [pred for pred, _ in pairs], [true for _, true in pairs]


def parents_of(taxonomy: Taxonomy) -> naive.Parents:
    return {name: [taxonomy.nodes[p] for p in taxonomy.parents(name)] for name in taxonomy.nodes}


def given_rows(taxonomy: Taxonomy, sets: Sequence[set[str]]) -> csr_array:
    return taxonomy.label_rows(sets, close=False)


@pytest.fixture
def news() -> Taxonomy:
    edges = [
        ("sport", None),
        ("tennis", "sport"),
        ("football", "sport"),
        ("cup", "football"),
        ("politics", None),
    ]
    return Taxonomy(edges)


# Losses on label sets


@relaxed
@given(cases(taxonomies()), st.data())
def test_losses_equal_their_twins_on_any_graph(case: Any, data: st.DataObject) -> None:
    taxonomy, preds, truths = case
    parents = parents_of(taxonomy)
    vector = data.draw(st.lists(positive, min_size=len(taxonomy), max_size=len(taxonomy)))
    costs = dict(zip(taxonomy.nodes, vector, strict=True))
    rows = list(zip(preds, truths, strict=True))
    for name in ("zero_one", "symmetric_difference"):
        expected = [getattr(naive, name)(parents, pred, true) for pred, true in rows]
        np.testing.assert_array_equal(getattr(losses, name)(taxonomy, preds, truths, vector), expected)
    expected = [naive.h_loss(parents, pred, true, costs) for pred, true in rows]
    np.testing.assert_allclose(losses.h_loss(taxonomy, preds, truths, vector), expected)
    charged = taxonomy.decode(losses.first_mistakes(taxonomy, preds, truths))
    assert charged == [naive.first_mistakes(parents, pred, true) for pred, true in rows]
    by_depth = losses.h_loss_by_depth(taxonomy, preds, truths, vector)
    for level, value in enumerate(by_depth):
        nodes = [node for row in charged for node in row if naive.depth(parents, node) == level]
        assert value == pytest.approx(sum(costs[node] for node in nodes) / max(len(rows), 1))
    assert len(by_depth) == 1 + max(naive.depth(parents, node) for node in parents)


@relaxed
@given(cases(forests), st.sampled_from(["uniform", "normalized", "sibling", "subtree"]))
def test_h_tilde_equals_its_twin_on_forests(case: Any, scheme: Any) -> None:
    taxonomy, preds, truths = case
    costs = dict(zip(taxonomy.nodes, taxonomy.costs(scheme), strict=True))
    expected = [
        naive.h_tilde_loss(parents_of(taxonomy), pred, true, costs)
        for pred, true in zip(preds, truths, strict=True)
    ]
    np.testing.assert_allclose(losses.h_tilde_loss(taxonomy, preds, truths, scheme), expected)


@relaxed
@given(cases(forests))
def test_order_of_the_losses(case: Any) -> None:
    zero_one, h, h_tilde, delta = (
        f(*case) for f in (losses.zero_one, losses.h_loss, losses.h_tilde_loss, losses.symmetric_difference)
    )
    assert (zero_one <= h).all()
    assert (h <= h_tilde).all()
    assert (h_tilde <= delta).all()


@relaxed
@given(cases(taxonomies()))
def test_truncation_never_raises_the_h_loss(case: Any) -> None:
    taxonomy, preds, truths = case
    truncated = [taxonomy.truncate(pred) for pred in preds]
    assert (losses.h_loss(taxonomy, truncated, truths) <= losses.h_loss(taxonomy, preds, truths)).all()


@relaxed
@given(cases(forests))
def test_normalized_h_loss_is_at_most_one(case: Any) -> None:
    loss = losses.h_loss(*case, costs="normalized")
    assert (loss >= 0).all()
    assert (loss <= 1 + 1e-12).all()


@relaxed
@given(cases(forests))
def test_h_and_h_tilde_agree_on_predictions_that_respect_the_taxonomy(case: Any) -> None:
    taxonomy, preds, truths = case
    closed = taxonomy.encode(preds)
    np.testing.assert_array_equal(
        losses.h_loss(taxonomy, closed, truths), losses.h_tilde_loss(taxonomy, closed, truths)
    )


@relaxed
@given(cases(taxonomies()))
def test_all_forms_of_input_agree(case: Any) -> None:
    taxonomy, preds, truths = case
    expected = losses.h_loss(taxonomy, preds, truths)
    P, T = given_rows(taxonomy, preds), given_rows(taxonomy, truths)
    stored_zeros = csr_matrix((P.toarray().ravel(), np.indices(P.shape).reshape(2, -1)), shape=P.shape)
    for form in (
        P,
        P.toarray(),
        csr_matrix(P, dtype=np.float64),
        stored_zeros,
        [dict.fromkeys(s, True) for s in preds],
    ):
        np.testing.assert_array_equal(losses.h_loss(taxonomy, form, T), expected)
    for pred, true, loss in zip(preds, truths, expected, strict=True):
        assert losses.h_loss(taxonomy, pred, true).tolist() == [loss]


def test_the_first_mistake_by_hand(news: Taxonomy) -> None:
    # "cup" under a wrongly missing "football" is free, a wrong root next to it is not.
    assert losses.h_loss(news, {"sport", "politics"}, {"cup"}).tolist() == [2.0]
    # An ancestor further up differs although the parent agrees: only H̃ charges "cup" again.
    assert losses.h_loss(news, {"football"}, {"cup"}).tolist() == [1.0]
    assert losses.h_tilde_loss(news, {"football"}, {"cup"}).tolist() == [2.0]


def test_labels_that_do_not_fit_are_refused(news: Taxonomy) -> None:
    with pytest.raises(ValueError, match="2 predicted rows do not fit 1 true"):
        losses.h_loss(news, [{"sport"}, set()], [{"sport"}])
    with pytest.raises(ValueError, match="tenis"):
        losses.zero_one(news, {"tenis"}, {"tennis"})
    with pytest.raises(ValueError, match="costs"):
        losses.h_loss(news, {"sport"}, {"sport"}, costs=[1.0])
    dag = Taxonomy([("a", None), ("b", None), ("ab", "a"), ("ab", "b")])
    with pytest.raises(ValueError, match="not defined on a DAG"):
        losses.h_tilde_loss(dag, {"a"}, {"ab"})


def test_deep_chains_need_no_recursion_and_linear_time() -> None:
    n = 20_000
    chain = Taxonomy([("0", None), *((str(i), str(i - 1)) for i in range(1, n))])
    evens = np.zeros((1, n), bool)
    evens[0, ::2] = True
    assert losses.symmetric_difference(chain, evens, {str(n - 1)}).tolist() == [n / 2]
    assert losses.h_loss(chain, evens, {str(n - 1)}).tolist() == [1.0]
    assert losses.h_tilde_loss(chain, evens, {str(n - 1)}).tolist() == [n / 2]
    # Here no ancestor of any prediction differs, so the search has to climb to the root.
    assert losses.h_loss(chain, {str(n - 1)}, {str(n - 2)}).tolist() == [1.0]
    assert losses.tree_induced_error(chain, "0", str(n - 1)) == n - 1
    assert losses.pair_loss(chain, "0", str(n - 1)) == n - 1


@pytest.mark.compiled
def test_a_million_decisions_take_no_time() -> None:
    taxonomy = Taxonomy([(str(i), str((i - 1) // 3) if i > 2 else None) for i in range(103)])
    rng = np.random.default_rng(0)
    Y = taxonomy.label_rows(rng.random((50_000, 103)) < 0.03, close=True)
    P = taxonomy.label_rows(rng.random((50_000, 103)) < 0.03)
    losses.h_loss(taxonomy, P[:1], Y[:1])
    # The best of three: the machine may be busy.
    assert min(timeit.repeat(lambda: losses.h_loss(taxonomy, P, Y), number=1, repeat=3)) < 0.5


# Distances between nodes


@relaxed
@given(taxonomies())
def test_distances_equal_their_twins(taxonomy: Taxonomy) -> None:
    parents = parents_of(taxonomy)
    a = [x for x in taxonomy.nodes for _ in taxonomy.nodes]
    b = list(taxonomy.nodes) * len(taxonomy)
    for name in ("tree_induced_error", "pair_loss"):
        expected = [getattr(naive, name)(parents, *pair) for pair in zip(a, b, strict=True)]
        assert getattr(losses, name)(taxonomy, a, b).tolist() == expected
        assert getattr(losses, name)(taxonomy, a[-1], b[0]) == expected[-len(taxonomy)]
        table = np.array(expected).reshape(len(taxonomy), -1)
        assert (table == table.T).all()
        assert ((table == 0) == np.eye(len(taxonomy), dtype=bool)).all()
        assert (table[:, None, :] <= table[:, :, None] + table[None, :, :]).all()  # the triangle inequality


@relaxed
@given(forests)
def test_in_a_forest_both_distances_agree(taxonomy: Taxonomy) -> None:
    pairs = list(taxonomy.nodes), list(taxonomy.nodes)[::-1]
    np.testing.assert_array_equal(
        losses.tree_induced_error(taxonomy, *pairs), losses.pair_loss(taxonomy, *pairs)
    )


def test_distances_of_names_that_do_not_pair(news: Taxonomy) -> None:
    assert losses.tree_induced_error(news, [], []).tolist() == []
    with pytest.raises(ValueError, match="1 names do not pair with 2"):
        losses.tree_induced_error(news, ["sport"], ["sport", "cup"])
    with pytest.raises(ValueError, match="two names, or two sequences"):
        losses.pair_loss(news, "sport", ["sport"])  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="golf"):
        losses.pair_loss(news, "sport", "golf")


# Rankings


@st.composite
def rankings(draw: st.DrawFn) -> tuple[Taxonomy, list[list[float]], list[set[str]]]:
    """Few different scores, so that ties are common."""
    taxonomy = draw(taxonomies())
    truths = draw(st.lists(label_sets(taxonomy), max_size=4))
    score = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0])
    rows = [draw(st.lists(score, min_size=len(taxonomy), max_size=len(taxonomy))) for _ in truths]
    return taxonomy, rows, truths


@brief
@given(rankings(), st.data())
@pytest.mark.parametrize("name", RANKINGS)
def test_rankings_equal_their_twins(name: str, case: Any, data: st.DataObject) -> None:
    taxonomy, rows, truths = case
    parents = parents_of(taxonomy)
    chosen = data.draw(st.none() | st.sets(st.sampled_from(taxonomy.nodes)))
    ranked = naive.default_candidates(parents, truths) if chosen is None else chosen
    expected = []
    for row, true in zip(rows, truths, strict=True):
        scores = dict(zip(taxonomy.nodes, row, strict=True))
        relevant = naive.most_specific(parents, true) & ranked
        expected.append(getattr(naive, name)(parents, scores, relevant, ranked))
    table = np.reshape(rows, (len(truths), len(taxonomy)))
    forms = [None] if chosen is None else [sorted(chosen), np.array([taxonomy.index(c) for c in chosen], int)]
    for candidates in forms:
        got = getattr(losses, name)(taxonomy, table, truths, candidates=candidates)
        np.testing.assert_allclose(got, expected)
        assert got.dtype == np.float64


@relaxed
@given(rankings())
def test_rankings_tell_one_story(case: Any) -> None:
    taxonomy, rows, truths = case
    table = np.reshape(rows, (len(truths), len(taxonomy)))
    value = {name: getattr(losses, name)(taxonomy, table, truths) for name in RANKINGS}
    assert ((value["maximal_loss"] == 0) == (value["ranking_loss"] == 0)).all()
    assert ((value["average_precision"] == 1) == (value["ranking_loss"] == 0)).all()
    assert (value["one_accuracy"] >= (value["ranking_loss"] == 0)).all()
    assert (value["parent_one_accuracy"] >= value["one_accuracy"]).all()


@relaxed
@given(rankings())
def test_rankings_equal_scikit_learn(case: Any) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    taxonomy, rows, truths = case
    parents = parents_of(taxonomy)
    ranked = sorted(map(taxonomy.index, naive.default_candidates(parents, truths)))
    table = np.nan_to_num(np.reshape(rows, (len(truths), len(taxonomy))), neginf=-9.0)
    precision = losses.average_precision(taxonomy, table, truths)
    loss = losses.ranking_loss(taxonomy, table, truths)
    if len(ranked) < 2:  # scikit-learn takes a single column for a binary problem
        return
    for row, true in enumerate(truths):
        relevant = naive.most_specific(parents, true)
        y = np.array([[taxonomy.nodes[column] in relevant for column in ranked]])
        assert precision[row] == pytest.approx(
            metrics.label_ranking_average_precision_score(y, table[[row]][:, ranked])
        )
        assert loss[row] == pytest.approx(metrics.label_ranking_loss(y, table[[row]][:, ranked]))


def test_scores_that_cannot_be_ranked(news: Taxonomy) -> None:
    with pytest.raises(ValueError, match=r"shape \(1, 4\) do not fit"):
        losses.one_accuracy(news, [[1, 2, 3, 4]], {"cup"})
    with pytest.raises(ValueError, match="row 1 contain NaN"):
        losses.ranking_loss(news, [[0.0] * 5, [np.nan] * 5], [{"cup"}, {"cup"}])
    with pytest.raises(ValueError, match="from 0 to 4"):
        losses.maximal_loss(news, [[0.0] * 5], {"cup"}, candidates=np.array([7]))


# Precision, recall, F1


@relaxed
@given(cases(taxonomies()))
def test_precision_recall_f1_equal_their_twins(case: Any) -> None:
    taxonomy, preds, given_truths = case
    parents = parents_of(taxonomy)
    truths = [naive.close(parents, true) for true in given_truths]
    nodes, ones = set(taxonomy.nodes), [1.0] * len(truths)
    seen = set().union(*preds, *truths)

    def check(expected: Any, *args: Any, **kwargs: Any) -> None:
        got = losses.precision_recall_f1(taxonomy, preds, given_truths, *args, **kwargs)
        np.testing.assert_allclose(np.array(got), np.array(expected))

    check(naive.precision_recall_f1(preds, truths, nodes, ones))
    check(naive.macro(preds, truths, seen, ones), average="macro")
    check(naive.macro(preds, truths, nodes, ones), average="macro", over="all")
    closed = [naive.close(parents, pred) for pred in preds]
    check(naive.precision_recall_f1(closed, truths, nodes, ones), average="hierarchical")
    levels = [
        {node for node in nodes if naive.depth(parents, node) == level}
        for level in range(int(taxonomy.depth.max()) + 1)
    ]
    check(np.transpose([naive.precision_recall_f1(preds, truths, level, ones) for level in levels]), "level")


@relaxed
@given(cases(taxonomies()), st.sampled_from(["micro", "macro"]))
def test_precision_recall_f1_equal_scikit_learn(case: Any, average: Any) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    taxonomy, preds, truths = case
    if not preds or len(taxonomy) < 2:
        return
    got = losses.precision_recall_f1(taxonomy, preds, truths, average, over="all")
    P, Y = given_rows(taxonomy, preds).toarray(), taxonomy.encode(truths).toarray()
    expected = metrics.precision_recall_fscore_support(Y, P, average=average, zero_division=0)
    assert got == pytest.approx(expected[:3])


def test_unknown_averages_are_refused(news: Taxonomy) -> None:
    with pytest.raises(ValueError, match="weighted"):
        losses.precision_recall_f1(news, {"cup"}, {"cup"}, average="weighted")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="some"):
        losses.precision_recall_f1(news, {"cup"}, {"cup"}, average="macro", over="some")  # type: ignore[call-overload]


# Kernels


def to_sets(ptr: Any, idx: Any) -> list[set[int]]:
    assert all(np.all(np.diff(idx[a:b]) > 0) for a, b in itertools.pairwise(ptr))  # ascending, each once
    return [set(idx[a:b].tolist()) for a, b in itertools.pairwise(ptr)]


@relaxed
@given(taxonomies(), st.data())
def test_kernels_equal_their_twins(taxonomy: Taxonomy, data: st.DataObject) -> None:
    nodes = range(len(taxonomy))
    parents = {node: taxonomy.parents(node).tolist() for node in nodes}
    n_rows = data.draw(st.integers(0, 4))
    rows = st.lists(st.sets(st.sampled_from(nodes)), min_size=n_rows, max_size=n_rows)
    a, b = data.draw(rows), data.draw(rows)
    rows_a, rows_b = (to_csr([sorted(row) for row in sets]) for sets in (a, b))
    for common in (True, False):
        assert to_sets(*kernels.compare_rows(*rows_a, *rows_b, common)) == naive.compare_rows(a, b, common)
    kept = kernels.topmost(*rows_a, taxonomy.parent_ptr, taxonomy.parent_idx)
    assert to_sets(*kept) == naive.topmost(a, parents)
    costs = data.draw(st.lists(positive, min_size=len(taxonomy), max_size=len(taxonomy)))
    assert kernels.row_sums(*rows_a, np.array(costs)).tolist() == naive.row_sums(a, costs)
    if taxonomy.is_tree:
        kept = kernels.under_right_parent(*rows_a, taxonomy.parent)
        assert to_sets(*kept) == naive.under_right_parent(a, parents)
        there, back = np.array(nodes, np.int32), np.array(nodes, np.int32)[::-1].copy()
        edges = kernels.tree_distances(there, back, taxonomy.parent)
        assert edges.tolist() == naive.tree_distances(there.tolist(), back.tolist(), parents)


@relaxed
@given(rankings(), st.data())
def test_ranking_kernels_equal_their_twins(case: Any, data: st.DataObject) -> None:
    taxonomy, scores, _ = case
    nodes = range(len(taxonomy))
    parents = {node: taxonomy.parents(node).tolist() for node in nodes}
    relevant = [data.draw(st.sets(st.sampled_from(nodes))) for _ in scores]
    pairs = sorted(((row, y) for row, good in enumerate(relevant) for y in good), key=lambda pair: pair[1])
    table = np.reshape(scores, (len(scores), len(taxonomy)))
    mask = np.reshape([[node in good for node in nodes] for good in relevant], table.shape).astype(bool)
    rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    counted = kernels.ranks(table, mask, rows, columns)
    assert list(zip(*(c.tolist() for c in counted), strict=True)) == naive.ranks(scores, relevant, pairs)
    above = to_csr([sorted({node, *taxonomy.ancestors(node).tolist()}) for node in nodes])
    worst = kernels.worst_pairs(table, mask, rows, columns, *above)
    assert worst.tolist() == naive.worst_pairs(scores, relevant, parents)
