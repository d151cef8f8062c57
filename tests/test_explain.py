"""Why a document got its labels: contributions that are those of the formula, and add up to the margin."""

import math

import numpy as np
import pytest

from stream_hc import (
    HAROW,
    HM3,
    HPA,
    HRLS,
    LHPA,
    PA,
    ApproxHBayes,
    Calibrated,
    HPerceptron,
    NodePA,
    Perceptron,
    RankingPerceptron,
    RankingSVM,
    Taxonomy,
    TextVectorizer,
)
from stream_hc.datasets import make_news
from stream_hc.explain import NotLinearError, explain, strongest, view_of
from stream_hc.learners import LEARNERS
from stream_hc.vectorize import feature_rows, from_dict
from tests import naive_explain as naive

N_FEATURES = 160
NEWS = make_news(80, seed=3)
SIZE = {"n_features": N_FEATURES}
MAKERS = {
    "h-perceptron": (lambda tax: HPerceptron(tax, **SIZE), naive.linear),
    "perceptron": (lambda tax: Perceptron(tax, **SIZE), naive.linear),
    "h-arow": (lambda tax: HAROW(tax, **SIZE), naive.linear),
    "h-arow, learned thresholds": (lambda tax: HAROW(tax, threshold="learned", **SIZE), naive.linear),
    "node-pa": (lambda tax: NodePA(tax, threshold=-0.1, **SIZE), naive.linear),
    "h-rls": (lambda tax: HRLS(tax, **SIZE), naive.second_order),
    "approx-h-bayes": (lambda tax: ApproxHBayes(tax, **SIZE), naive.second_order),
    "pa": (lambda tax: PA(tax, **SIZE), naive.path),
    "hpa": (lambda tax: HPA(tax, partial_paths=True, **SIZE), naive.path),
    "hpa, averaged": (lambda tax: HPA(tax, averaged=True, **SIZE), naive.path),
    "lhpa": (lambda tax: LHPA(tax, concepts=3, **SIZE), naive.path),
    "ranking": (lambda tax: RankingPerceptron(tax, **SIZE), naive.ranking),
    "ranking, positive": (lambda tax: RankingPerceptron(tax, chosen_by="positive", **SIZE), naive.ranking),
    "hm3": (lambda tax: HM3(tax, tol=0.2, max_epochs=5, **SIZE), naive.hm3),
    "ranking-svm": (lambda tax: RankingSVM(tax, tol=0.2, max_epochs=5, **SIZE), naive.ranking_svm),
}
ON_DAGS = ["h-arow", "h-rls", "ranking"]
ROUNDING = 2e-5  # of single precision, in margins of a few units


@pytest.fixture(scope="module")
def rows():
    return TextVectorizer(n_features=N_FEATURES).learn_transform([str(text) for text in NEWS.documents])


TRAINED = {}


def trained(name, rows):
    """Train a model once for all tests: explaining changes nothing."""
    if name not in TRAINED:
        model = TRAINED[name] = MAKERS[name][0](NEWS.taxonomy)
        learn = model.fit if isinstance(model, HM3 | RankingSVM) else model.learn_many
        learn(rows, NEWS.taxonomy.encode(NEWS.labels))
    return TRAINED[name]


def added_up(step):
    return math.fsum([step.bias, *(share.contribution for share in step.shares), step.rest])


def check_sums(model, row, rounding=ROUNDING):
    """At a node what is shown adds up to the total, which is the model's; the rest is what is not."""
    x = feature_rows(row, N_FEATURES)
    margins, predicted = model.margins(row)[0], {*model.predict_many(row).indices.tolist()}
    taxonomy = model.taxonomy
    for node in {*predicted, *range(0, len(taxonomy), 12)}:
        name = taxonomy.nodes[node]
        some, everything = (explain(model, x, node=name, top=top).steps for top in (3, 10_000))
        step, whole = (next(s for s in steps if s.node == name) for steps in (some, everything))
        assert np.float32(added_up(step)) == np.float32(step.total) == np.float32(whole.total)
        assert added_up(step) == pytest.approx(step.total, rel=1e-14, abs=1e-15)
        assert abs(whole.rest) <= rounding * max(1.0, abs(whole.total))
        assert len(step.shares) <= 3
        assert step.n_rest + len(step.shares) == row.nnz
        assert np.float32(step.margin) == np.float32(margins[node])
        assert step.is_on == (node in predicted)
        if not isinstance(model, HM3):
            assert step.total == pytest.approx(step.margin, rel=1e-6, abs=1e-7)
        if step.through:
            assert math.fsum(t.contribution for t in step.through) == pytest.approx(step.total, abs=rounding)
        sizes = [abs(share.contribution) for share in whole.shares]
        assert sizes == sorted(sizes, reverse=True)
        for share in whole.shares:
            assert share.weight * share.value == pytest.approx(share.contribution, rel=1e-12)


@pytest.mark.parametrize("name", MAKERS)
def test_contributions_add_up_to_the_margin(name, rows):
    model = trained(name, rows)
    check_sums(model, rows[[41]])


@pytest.mark.parametrize("name", MAKERS)
def test_contributions_are_those_of_the_formula(name, rows):
    model = trained(name, rows)
    state = model.state()
    x = rows[[70]].toarray().astype(np.float64).ravel()
    view = view_of(model, feature_rows(rows[[70]], N_FEATURES))
    for node in range(0, len(NEWS.taxonomy), 6):
        wanted = MAKERS[name][1](state, x, node)
        found = np.zeros(N_FEATURES)
        found[view.row.indices] = view.products(node)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        assert np.abs(wanted).sum() > 0 or view.total(node) == 0.0


def test_every_learner_of_the_command_line_is_tried():
    assert set(LEARNERS) <= set(MAKERS)


@pytest.mark.parametrize("name", ["h-arow", "h-rls", "hpa"])
@pytest.mark.parametrize("decode", ["top-down", "h-bayes"])
def test_a_calibrated_learner_has_the_words_of_its_margin_and_a_bias(name, decode, rows):
    model = Calibrated(MAKERS[name][0](NEWS.taxonomy), decode=decode)
    model.learn_many(rows, NEWS.taxonomy.encode(NEWS.labels))
    check_sums(model, rows[[5]], rounding=1e-4)
    step = explain(model, feature_rows(rows[[5]], N_FEATURES), node=NEWS.taxonomy.nodes[0]).steps[0]
    assert step.bias != 0.0
    assert "p = " in step.reason


@pytest.mark.parametrize("name", [*ON_DAGS, "hm3"])
def test_nodes_with_several_parents_are_explained_once(name, rows):
    taxonomy = Taxonomy([("sport", None), ("health", None), ("yoga", "sport"), ("yoga", "health")])
    labels = [{"yoga"} if row % 3 else {"sport"} if row % 2 else set() for row in range(len(NEWS))]
    dag_only = {"hm3": lambda tax: HM3(tax, loss="symmetric_difference", max_epochs=3, **SIZE)}
    model = dag_only.get(name, MAKERS[name][0])(taxonomy)
    (model.fit if name == "hm3" else model.learn_many)(rows, taxonomy.encode(labels))
    check_sums(model, rows[[1]])
    found = explain(model, feature_rows(rows[[1]], N_FEATURES), node="yoga")
    assert [step.node for step in found.steps] == ["sport", "yoga", "health"]
    assert found.nodes == "asked"


def test_the_predicted_labels_are_read_as_a_tree(rows):
    model = trained("h-arow", rows)
    found = explain(model, feature_rows(rows[[2]], N_FEATURES))
    assert found.nodes == "predicted"
    assert sorted(step.node for step in found.steps) == sorted(found.labels)
    for before, step in zip([None, *found.steps], found.steps, strict=False):
        assert step.is_on
        assert "exceeds the threshold" in step.reason
        assert step.depth == 0 or (before is not None and step.depth <= before.depth + 1)


def test_where_nothing_is_predicted_the_nearest_roots_are_shown():
    taxonomy = Taxonomy.flat(["a", "b", "c", "d"])
    model = HPerceptron(taxonomy, n_features=64)
    for name in "aab":
        model.learn_one({name: 1.0}, {name})
    x = from_dict({"a": -1.0, "b": -0.5, "c": 1.0}, 64)
    found = explain(model, x)
    assert (found.labels, found.nodes) == ([], "nearest")
    assert [step.node for step in found.steps] == ["c", "d", "b"]
    assert found.steps[0].reason == "nothing is known about this document, which counts as no"
    assert "does not exceed the threshold +0.000" in found.steps[2].reason


def test_a_node_under_a_parent_that_is_off_is_not_reached():
    model = Perceptron(Taxonomy([("sport", None), ("tennis", "sport")]), n_features=64)
    model.learn_one({"racket": 1.0}, {"tennis"})
    model.learn_one({"racket": 2.0, "court": 1.0}, set())
    model.learn_one({"court": 1.0}, {"tennis"})
    found = explain(model, from_dict({"court": 3.0, "racket": 4.0}, 64), node="tennis")
    states = [(step.is_on, step.margin) for step in found.steps]
    assert states[0][0] is False
    assert all(on is False for on, _ in states)


def test_paths_are_set_against_each_other(rows):
    model = trained("hpa", rows)
    found = explain(model, feature_rows(rows[[2]], N_FEATURES))
    assert "the best path through it ends at" in found.steps[0].reason
    assert "the best other one ends at" in found.steps[0].reason
    lhpa = explain(trained("lhpa", rows), feature_rows(rows[[2]], N_FEATURES))
    assert "of 3 speaks for it" in lhpa.steps[0].reason


def test_the_rank_decides_and_shared_ancestors_are_named(rows):
    found = explain(trained("ranking", rows), feature_rows(rows[[2]], N_FEATURES))
    deepest = max(found.steps, key=lambda step: step.depth)
    assert "number 1 of" in deepest.reason or "number 2 of" in deepest.reason
    assert "labels expected" in deepest.reason
    assert deepest.threshold is not None
    assert deepest.margin > deepest.threshold
    assert {step.node for step in found.steps} >= {each.node for each in deepest.through}


def test_words_have_names_and_columns_without_one_their_number():
    model = HPerceptron(Taxonomy([("sport", None)]), n_features=64)
    model.learn_one({"racket": 1.0, "the": 1.0}, {"sport"})
    x = from_dict({"racket": 1.0, "the": 0.5}, 64)
    names = {int(x.indices[0]): "first"}
    (step,) = explain(model, x, names).steps
    assert {share.feature for share in step.shares} == {"first", f"#{x.indices[1]}"}


def test_an_empty_document_has_no_shares(rows):
    for name in MAKERS:
        model = trained(name, rows) if name in ("h-arow", "ranking", "hm3", "hpa") else None
        if model is not None:
            empty = feature_rows(rows[[0]] * 0, N_FEATURES)
            found = explain(model, empty)
            assert all(step.shares == [] and step.total == step.rest == 0.0 for step in found.steps), name


@pytest.mark.parametrize("name", MAKERS)
def test_the_strongest_words_of_a_node(name, rows):
    model = trained(name, rows)
    node = NEWS.taxonomy.nodes[0]
    found = strongest(model, node, 5)
    assert 0 < len(found) <= 5 or name == "pa"  # only ends of paths have weights there
    weights = [abs(weight) for _, weight in found]
    assert weights == sorted(weights, reverse=True)
    assert strongest(model, node, 0) == []


def test_models_without_weights_are_refused():
    class Foreign:
        n_features = 4

    with pytest.raises(NotLinearError, match="Foreign has no linear weights"):
        view_of(Foreign(), from_dict({"a": 1.0}, 4))
    with pytest.raises(NotLinearError, match="Foreign has no linear weights"):
        strongest(Foreign(), "a")
    kernel = HM3(Taxonomy.flat(["a"])).fit_kernel(np.eye(2), [{"a"}, set()])
    with pytest.raises(NotLinearError, match="fitted on a kernel"):
        view_of(kernel, from_dict({"a": 1.0}, 2**18))
    with pytest.raises(NotLinearError, match="no weights for features"):
        strongest(kernel, "a")
    calibrated = Calibrated(HAROW(Taxonomy.flat(["a"]), n_features=8))
    assert strongest(calibrated, "a") == []
