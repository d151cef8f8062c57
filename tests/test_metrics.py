"""Running metrics: equal to the mean of the losses, exact under revert, at home in river."""

import copy
import pickle
import timeit
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import base, compose, evaluate, linear_model, preprocessing, utils
from river import metrics as river_metrics

from stream_hc import Taxonomy, losses, metrics
from stream_hc.metrics.counts import Counts
from tests import naive_losses as naive
from tests.test_losses import brief, cases, forests, label_sets, parents_of, relaxed, taxonomies

NEWS = Taxonomy(
    [("sport", None), ("tennis", "sport"), ("football", "sport"), ("cup", "football"), ("politics", None)]
)
weights = st.sampled_from([1.0, 1, 3.0, 0.1, 1e-17, 1e17, 2.0**21, 0.0, 5e-324, 1e308, Fraction(1, 3)])

LOSSES = {
    "ZeroOneLoss": losses.zero_one,
    "SymmetricDifferenceLoss": losses.symmetric_difference,
    "HLoss": losses.h_loss,
    "HTildeLoss": losses.h_tilde_loss,
}
VALUES = ["Precision", "Recall", "F1"]
SCORES = [kind + value for kind in ("Micro", "Macro", "Hierarchical", "Level") for value in VALUES]


def make(name: str, taxonomy: Taxonomy, costs: Any = "uniform") -> metrics.HierarchicalMetric:
    cls = getattr(metrics, name)
    if name in ("HLoss", "HTildeLoss"):
        return cls(taxonomy, costs=costs)
    return cls(taxonomy, level=0) if name.startswith("Level") else cls(taxonomy)


def same(a: metrics.HierarchicalMetric, b: metrics.HierarchicalMetric) -> bool:
    """Whether two metrics are equal to the last bit, inside and outside."""
    ours, theirs = a.state(), b.state()
    return (
        a.get() == b.get()
        and ours.keys() == theirs.keys()
        and all(np.array_equal(ours[key], theirs[key]) for key in ours)
    )


# The value


@brief
@given(cases(forests), st.sampled_from(["uniform", "normalized", "sibling", "subtree"]))
@pytest.mark.parametrize("name", LOSSES)
def test_running_losses_are_the_mean_of_the_losses(name: str, case: Any, scheme: Any) -> None:
    taxonomy, preds, truths = case
    metric = make(name, taxonomy, scheme)
    for pred, true in zip(preds, truths, strict=True):
        metric.update(true, {node: node in pred for node in taxonomy})
    mean = LOSSES[name](taxonomy, preds, truths, scheme).mean() if preds else 0.0
    assert metric.get() == pytest.approx(mean, abs=1e-12)


@brief
@given(cases(taxonomies()), st.data())
@pytest.mark.parametrize("name", SCORES)
def test_running_scores_equal_their_twins(name: str, case: Any, data: st.DataObject) -> None:
    taxonomy, preds, given_truths = case
    parents = parents_of(taxonomy)
    truths = [naive.close(parents, true) for true in given_truths]
    sizes = data.draw(st.lists(weights, min_size=len(preds), max_size=len(preds)))
    metric = make(name, taxonomy)
    for row in zip(given_truths, preds, sizes, strict=True):
        metric.update(*row)
    exact = [Fraction(size) for size in sizes]
    nodes = set(taxonomy.nodes)
    if name.startswith("Hierarchical"):
        preds = [naive.close(parents, pred) for pred in preds]
    if name.startswith("Level"):
        nodes = {node for node in nodes if not parents[node]}
    if name.startswith("Macro"):
        rows = [pred | true for pred, true, size in zip(preds, truths, sizes, strict=True) if size]
        expected = naive.macro(preds, truths, set().union(*rows), exact)
    else:
        expected = naive.precision_recall_f1(preds, truths, nodes, exact)
    which = next(k for k, value in enumerate(VALUES) if name.endswith(value))
    assert metric.get() == pytest.approx(float(expected[which]), abs=1e-12)


@relaxed
@given(cases(taxonomies()), st.data())
def test_h_loss_is_shared_out_exactly(case: Any, data: st.DataObject) -> None:
    taxonomy, preds, truths = case
    costs = data.draw(st.lists(st.floats(0.01, 9), min_size=len(taxonomy), max_size=len(taxonomy)))
    metric = metrics.HLoss(taxonomy, costs=costs)
    metric.update_many(truths, preds)
    assert metric.get() == pytest.approx(
        losses.h_loss(taxonomy, preds, truths, costs).mean() if preds else 0.0
    )
    assert sum(metric.by_node().values()) == pytest.approx(metric.get())
    np.testing.assert_allclose(metric.by_depth(), losses.h_loss_by_depth(taxonomy, preds, truths, costs))


@brief
@given(cases(taxonomies()), weights)
@pytest.mark.parametrize("name", [*LOSSES, *SCORES])
def test_many_at_once_is_the_same_as_one_by_one(name: str, case: Any, w: Any) -> None:
    taxonomy, preds, truths = case
    if name == "HTildeLoss" and not taxonomy.is_tree:
        return
    one_by_one, at_once = make(name, taxonomy), make(name, taxonomy)
    for pred, true in zip(preds, truths, strict=True):
        one_by_one.update(true, pred, w)
    rows = taxonomy.label_rows(truths), taxonomy.label_rows(preds)
    at_once.update_many(*rows, w)
    assert same(one_by_one, at_once)
    at_once.revert_many(*rows, w)
    assert same(at_once, make(name, taxonomy))


# Exact revert


@brief
@given(forests, st.data())
@pytest.mark.parametrize("name", ["ZeroOneLoss", "HLoss", "HTildeLoss", "MacroF1", "HierarchicalF1"])
def test_revert_is_the_exact_inverse(name: str, taxonomy: Taxonomy, data: st.DataObject) -> None:
    row = st.tuples(label_sets(taxonomy), label_sets(taxonomy), weights)
    kept, passing = data.draw(st.lists(row, max_size=4)), data.draw(st.lists(row, max_size=4))
    steps = [("update", r) for r in kept] + [(step, r) for r in passing for step in ("update", "revert")]
    calm, disturbed = make(name, taxonomy), make(name, taxonomy)
    for row_ in kept:
        calm.update(*row_)
    for step, row_ in data.draw(st.permutations(steps)):
        getattr(disturbed, step)(*row_)
    assert same(calm, disturbed)


def test_small_weights_survive_large_ones() -> None:
    metric = metrics.HLoss(NEWS)
    metric.update({"cup"}, {"politics"}, 1e-17)
    metric.update({"politics"}, {"politics"}, 1e17)
    assert metric.get() == pytest.approx(2e-34, rel=1e-12, abs=0)
    metric.revert({"politics"}, {"politics"}, 1e17)
    assert metric.get() == 2.0
    metric.revert({"cup"}, {"politics"}, 1e-17)
    assert metric.get() == 0.0
    assert same(metric, metrics.HLoss(NEWS))


@pytest.mark.parametrize("w", [-1.0, float("nan"), float("inf")])
def test_weights_that_mean_nothing_change_nothing(w: float) -> None:
    metric = metrics.HLoss(NEWS)
    with pytest.raises(ValueError, match="weight"):
        metric.update({"cup"}, {"politics"}, w)
    with pytest.raises(ValueError, match="golf"):
        metric.update({"cup"}, {"golf"})
    assert same(metric, metrics.HLoss(NEWS))


# River


class Parrot(base.MultiLabelClassifier):  # type: ignore[misc]
    """Predict what was learned last."""

    def __init__(self) -> None:
        self.last = dict.fromkeys(NEWS, False)

    def learn_one(self, x: Any, y: Any) -> None:
        self.last = {name: name in NEWS.close(y) for name in NEWS}

    def predict_one(self, x: Any) -> dict[str, bool]:
        return self.last


STREAM = [({"x": 1.0}, {"cup": True}), ({"x": 2.0}, {"cup": True}), ({"x": 3.0}, {"politics": True})]


def test_progressive_validation_of_a_model_and_of_a_pipeline() -> None:
    for model in (Parrot(), compose.Pipeline(preprocessing.StandardScaler(), Parrot())):
        metric = metrics.HLoss(NEWS)
        assert metric.works_with(model)
        evaluate.progressive_val_score(STREAM, model, metric)
        assert metric.get() == pytest.approx((1 + 0 + 2) / 3)
        rolling = utils.Rolling(metrics.HLoss, window_size=2, taxonomy=NEWS, costs="normalized")
        evaluate.progressive_val_score(STREAM, model.clone(), rolling)
        assert rolling.get() == pytest.approx((0 + 1) / 2)
    other = compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())
    assert not metrics.HLoss(NEWS).works_with(other)


def test_metrics_add_up() -> None:
    several = metrics.HLoss(NEWS) + metrics.MicroF1(NEWS) + metrics.ZeroOneLoss(NEWS)
    evaluate.progressive_val_score(STREAM, Parrot(), several)
    assert several.get() == pytest.approx([1.0, 6 / 13, 2 / 3])
    exact_match = river_metrics.multioutput.ExactMatch()
    assert list(exact_match + several[0]) == [exact_match, several[0]]
    assert list(several[0] + several[1] + exact_match) == [several[0], several[1], exact_match]
    with pytest.raises(ValueError, match="not compatible"):
        metrics.HLoss(NEWS) + river_metrics.MAE()


@pytest.mark.parametrize("name", [*LOSSES, *SCORES])
def test_copies_and_what_river_asks(name: str) -> None:
    metric = make(name, NEWS, costs=np.arange(1.0, 6.0))
    metric.update({"cup"}, ["sport", "tennis"], 0.1)
    metric.update({"tennis"}, {"sport": True, "politics": True})
    for twin in (
        copy.deepcopy(metric),
        pickle.loads(pickle.dumps(metric)),
        type(metric).from_state(metric.state()),
    ):
        assert same(metric, twin)
        twin.update({"cup"}, {"politics"})
        assert not np.array_equal(metric.state()["whole"], twin.state()["whole"])
    assert same(metric.clone(), make(name, NEWS, costs=np.arange(1.0, 6.0)))
    assert metric.clone().get() == 0.0
    assert metric.bigger_is_better == (name in SCORES)
    assert metric.requires_labels
    assert metric.works_with_weights
    assert repr(metric).startswith(name + ": ")
    if hasattr(metric, "by_node"):
        assert list(metric.by_node()) == list(NEWS)


def test_arguments_that_make_no_sense() -> None:
    dag = Taxonomy([("a", None), ("b", None), ("ab", "a"), ("ab", "b")])
    with pytest.raises(ValueError, match="DAG"):
        metrics.HTildeLoss(dag)
    with pytest.raises(ValueError, match="needs a Taxonomy"):
        metrics.HLoss(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no level 3"):
        metrics.LevelF1(NEWS, level=3)
    with pytest.raises(ValueError, match="some"):
        metrics.MacroF1(NEWS, over="some")  # type: ignore[arg-type]
    state = metrics.HLoss(NEWS).state()
    with pytest.raises(ValueError, match="do not fit 6 slots"):
        metrics.HLoss.from_state({**state, "whole": np.zeros(3, np.int64)})
    with pytest.raises(ValueError, match="outside"):
        Counts.from_state({**state, "rest": "6:1/2"}, 6)


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["HLoss", "HierarchicalF1"])
def test_many_rows_a_second(name: str) -> None:
    taxonomy = Taxonomy([(str(i), str((i - 1) // 3) if i > 2 else None) for i in range(103)])
    rng = np.random.default_rng(0)
    Y = taxonomy.label_rows(rng.random((100_000, 103)) < 0.02, close=True)
    P = taxonomy.label_rows(rng.random((100_000, 103)) < 0.02, close=True)
    metric = make(name, taxonomy)
    metric.update_many(Y[:1], P[:1])
    # The best of three: the machine may be busy.
    assert min(timeit.repeat(lambda: metric.update_many(Y, P), number=1, repeat=3)) < 100_000 / 200_000
