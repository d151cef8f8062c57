"""`Calibrated` keeps the promises of every learner, and can be trusted."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import checks, datasets

from stream_hc import HAROW, Calibrated, HPerceptron, NodePA, Perceptron, Taxonomy, h_bayes, snapshot
from stream_hc.datasets import make_news
from stream_hc.decoding import reliability
from stream_hc.evaluate import vectorize_dataset
from stream_hc.kernels import calibration as kernels
from stream_hc.learners import calibrated as wrapper
from stream_hc.learners.base import OnlineLearner
from stream_hc.learners.platt import PlattLines
from stream_hc.runtime import Document, Filer
from tests.learners.test_contract import same_state
from tests.strategies import N_FEATURES, documents, examples, label_sets, streams, to_rows

NEWS = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
DIAMOND = Taxonomy([("a", None), ("b", "a"), ("c", "a"), ("d", "b"), ("d", "c")])
COSTS = [1.0, 2.0, 0.5, 4.0]

INNER = {
    "h-perceptron": HPerceptron,
    "perceptron": Perceptron,
    "h-arow": HAROW,
    "node-pa": NodePA,
}
every_learner = pytest.mark.parametrize("kind", INNER.values(), ids=INNER.keys())


def calibrated(kind, taxonomy, decode="top-down", **options):
    return Calibrated(kind(taxonomy, n_features=N_FEATURES), decode, **options)


def trained(model, stream):
    for x, y in zip(stream[1], stream[2], strict=True):
        model.learn_one(x, y)
    return model


@every_learner
@given(stream=streams(), memory=st.sampled_from([2, 500]))
@settings(max_examples=examples(40))
def test_one_by_one_and_batch_give_the_same_bits(kind, stream, memory):
    taxonomy, xs, ys = stream
    decode = "h-bayes" if taxonomy.is_tree else "top-down"
    one, batch, halves = (calibrated(kind, taxonomy, decode, memory=memory) for _ in range(3))
    answers, probabilities = [], []
    for x, y in zip(xs, ys, strict=True):
        answers.append({label for label, on in one.predict_one(x).items() if on})
        probabilities.append(one.predict_proba_one(x))
        one.learn_one(x, y)
    X, Y = to_rows(xs), taxonomy.encode(ys)
    scored = batch.predict_then_learn(X, Y, scores=True)
    scored.data = np.ones(scored.nnz, bool)
    assert taxonomy.decode(scored) == answers
    middle = len(xs) // 2
    halves.learn_many(X[:middle], Y[:middle])
    halves.learn_many(X[middle:], ys[middle:])
    same_state(one, batch)
    same_state(one, halves)
    assert one.n_learned == one.model.n_learned == len(xs)
    together = one.predict_proba_many(X)
    for row, x in enumerate(xs):
        assert [p[True] for p in one.predict_proba_one(x).values()] == together[row].tolist()
        assert one.margins(to_rows([x]))[0].tobytes() == one.margins(X)[row].tobytes()
        labels = {label for label, on in one.predict_one(x).items() if on}
        assert labels == taxonomy.decode(batch.predict_many(X))[row]


@every_learner
@given(stream=streams(), decode=st.sampled_from(["top-down", "h-bayes"]))
@settings(max_examples=examples(40))
def test_what_the_numbers_mean(kind, stream, decode):
    taxonomy, xs, _ = stream
    decode = decode if taxonomy.is_tree else "top-down"
    model = trained(calibrated(kind, taxonomy, decode, costs="uniform"), stream)
    before = copy.deepcopy(model)
    X = to_rows(xs)
    p, marginal = model.conditional_probabilities(X), model.predict_proba_many(X)
    assert ((p > 0) & (p < 1)).all()
    for node in range(len(taxonomy)):
        above = marginal[:, taxonomy.parents(node)].min(axis=1, initial=1.0)
        assert marginal[:, node].tolist() == (p[:, node] * above).tolist()
    assert model.margins(X) == pytest.approx(np.log(p / (1 - p)), rel=1e-4, abs=1e-5)
    predicted = model.predict_many(X)
    if decode == "h-bayes":
        assert (h_bayes(taxonomy, p, "uniform").toarray() == predicted.toarray()).all()
    else:
        wanted = [{taxonomy.nodes[node] for node in np.flatnonzero(row >= 0.5)} for row in p]
        assert [taxonomy.truncate(labels) for labels in wanted] == taxonomy.decode(predicted)
    assert all(taxonomy.respects(labels) for labels in taxonomy.decode(predicted))
    for x in xs:
        model.predict_one(x)
        model.predict_proba_one(x)
    same_state(model, before)


@every_learner
@given(stream=streams())
@settings(max_examples=examples(25))
def test_margins_are_those_of_before_the_document_was_learned(kind, stream):
    taxonomy, xs, ys = stream
    model, bare = calibrated(kind, taxonomy, memory=20), kind(taxonomy, n_features=N_FEATURES)
    lines = PlattLines(len(taxonomy), 20)
    for x, y in zip(xs, ys, strict=True):
        if x:
            margins = bare.margins(to_rows([x])).astype(float)
            lines.learn(margins[0], np.array(taxonomy.columns(y), np.int32), taxonomy)
        bare.learn_one(x, y)
        model.learn_one(x, y)
    same_state(model.model, bare)
    assert model.state()["lines"].tobytes() == lines.own.tobytes()
    assert model.state()["shared_line"].tobytes() == lines.shared.tobytes()


@every_learner
@given(data=st.data())
@settings(max_examples=examples(30))
def test_state_continues_identically(kind, data):
    stream = data.draw(streams())
    taxonomy = stream[0]
    model = trained(calibrated(kind, taxonomy, memory=7), stream)
    resumed = Calibrated.from_state(model.state())
    through_file = snapshot.load_bytes(snapshot.dump_bytes(model))
    same_state(model, resumed)
    same_state(model, through_file)
    assert type(through_file.model) is kind
    x, y = data.draw(documents), data.draw(label_sets(taxonomy))
    for continued in (model, resumed, through_file):
        continued.learn_one(x, y)
    same_state(model, resumed)
    same_state(model, through_file)
    assert snapshot.dump_bytes(model) == snapshot.dump_bytes(through_file)


@every_learner
def test_delay_waits_for_the_label(kind):
    xs = [{row % 4: 1.0, 4 + row % 3: 0.5} for row in range(12)]
    ys = [{"tennis"} if row % 4 < 2 else {"politics"} for row in range(12)]
    X, Y = to_rows(xs), NEWS.encode(ys)
    delayed, queue, chunked = (calibrated(kind, NEWS) for _ in range(3))
    expected = []
    for row, x in enumerate(xs):
        expected.append({label for label, on in queue.predict_one(x).items() if on})
        if row >= 3:
            queue.learn_one(xs[row - 3], ys[row - 3])
    assert NEWS.decode(delayed.predict_then_learn(X, Y, delay=3)) == expected
    same_state(delayed, queue)
    parts = chunked.predict_then_learn(X[:5], Y[:5], delay=3)
    rest = chunked.predict_then_learn(X[2:], Y[2:], delay=3, start=3)
    assert NEWS.decode(parts) + NEWS.decode(rest) == expected
    same_state(chunked, queue)


@pytest.mark.parametrize("decode", ["top-down", "h-bayes"])
def test_batches_longer_than_a_chunk(decode, monkeypatch):
    monkeypatch.setattr(wrapper, "CHUNK", 16)
    news = make_news(60, seed=2)
    X, Y = vectorize_dataset(news, 2**12), news.taxonomy.encode(news.labels)
    whole, pieces = (Calibrated(HAROW(news.taxonomy, 2**12), decode) for _ in range(2))
    answers = whole.predict_then_learn(X, Y, delay=1)
    first = pieces.predict_then_learn(X[:31], Y[:31], delay=1)
    rest = pieces.predict_then_learn(X[30:], Y[30:], delay=1, start=1)
    assert (answers.toarray() == np.concatenate([first.toarray(), rest.toarray()])).all()
    same_state(whole, pieces)
    p = whole.conditional_probabilities(X)
    assert (p[50:] == whole.conditional_probabilities(X[50:])).all()
    assert whole.predict_many(X).shape == Y.shape
    assert whole.predict_many(X[:0]).shape == (0, Y.shape[1])


@given(data=st.data())
@settings(max_examples=examples(30))
def test_reordering_siblings_permutes_the_answer(data):
    taxonomy, xs, ys = data.draw(streams())
    other = Taxonomy(data.draw(st.permutations(taxonomy.edges)))
    one, two = (trained(calibrated(NodePA, tax), (tax, xs, ys)) for tax in (taxonomy, other))
    for x in xs:
        p, q = one.predict_proba_one(x), two.predict_proba_one(x)
        # Sums over the nodes of a document are taken in another order.
        assert {name: p[name][True] for name in p} == pytest.approx(
            {name: q[name][True] for name in p}, rel=1e-6
        )


def test_errors_change_nothing():
    model = calibrated(HAROW, NEWS)
    model.learn_one({"a": 1.0}, {"tennis"})
    before = copy.deepcopy(model)
    nan = to_rows([{0: 1.0}, {1: 1.0}]).astype(np.float64)
    nan.data[1] = np.nan
    good = to_rows([{0: 1.0}, {1: 1.0}])
    for call, message in [
        (lambda: model.learn_one({"a": float("nan")}, {"sport"}), "'a' is nan"),
        (lambda: model.learn_one({"a": 1.0}, {"golf"}), "unknown label 'golf'"),
        (lambda: model.predict_one([1.0]), "must be a dict"),
        (lambda: model.learn_many(nan, [{"sport"}] * 2), "row 1, column 1 is nan"),
        (lambda: model.learn_many(good, [{"sport"}, {"golf"}]), "row 1: unknown label 'golf'"),
        (lambda: model.predict_then_learn(good, [{"sport"}] * 3), "2 documents, but labels for 3"),
        (lambda: model.predict_proba_many(nan), "row 1, column 1 is nan"),
        (lambda: model.conditional_probabilities(good[:, :3]), "3 columns"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    same_state(model, before)


def test_a_document_without_features_counts_and_trains_nothing():
    model, fresh = calibrated(HAROW, NEWS), calibrated(HAROW, NEWS)
    model.learn_one({}, {"tennis"})
    model.learn_many(to_rows([{}, {}]), [{"tennis"}, set()])
    assert model.n_learned == 3
    assert model.state()["lines"].tobytes() == fresh.state()["lines"].tobytes()
    assert not any(fresh.predict_one({0: 1.0}).values())


def test_nothing_is_certain_after_a_few_documents():
    model = calibrated(HAROW, NEWS)
    for _ in range(3):
        model.learn_one({0: 1.0}, {"tennis"})
    p = model.conditional_probabilities(to_rows([{0: 1.0}, {0: -1.0}, {5: 1.0}]))
    assert p.min() > 0.001
    assert p.max() < 0.99


def test_a_trained_model_is_calibrated_from_now_on():
    bare = HAROW(NEWS, n_features=N_FEATURES)
    for _ in range(5):
        bare.learn_one({0: 1.0}, {"tennis"})
    model = Calibrated(bare)
    assert model.n_learned == 5
    model.learn_one({0: 1.0}, {"tennis"})
    assert model.n_learned == bare.n_learned == 6
    clone = model.clone()
    assert clone.n_learned == clone.model.n_learned == 0
    assert clone.taxonomy == NEWS
    assert model.n_features == N_FEATURES


def test_labels_grow_a_flat_taxonomy():
    for decode in ("top-down", "h-bayes"):
        model = Calibrated(HAROW(n_features=N_FEATURES), decode)
        assert model.predict_one({0: 1.0}) == {}
        for i in range(30):
            model.learn_one({i % 3: 1.0}, [f"label {i % 3}"])
        assert model.nodes == model.model.nodes == ("label 0", "label 1", "label 2")
        assert model.predict_one({1: 1.0}) == {"label 0": False, "label 1": True, "label 2": False}
        again = Calibrated.from_state(model.state())
        again.learn_one({0: 1.0}, ["one more"])
        assert again.nodes[-1] == "one more"
        grown = Calibrated(model.model, decode)
        assert grown.nodes == model.nodes
    with pytest.raises(ValueError, match="own costs need a taxonomy"):
        Calibrated(HAROW(), "h-bayes", [1.0])


def test_own_costs_and_dags():
    model = calibrated(HAROW, NEWS, "h-bayes", costs=COSTS)
    model.learn_one({0: 1.0}, {"tennis"})
    again = snapshot.load_bytes(snapshot.dump_bytes(model))
    same_state(model, again)
    assert again.state()["costs"].tolist() == COSTS
    calibrated(HAROW, DIAMOND).learn_one({0: 1.0}, {"d"})
    with pytest.raises(ValueError, match="not defined on a DAG"):
        calibrated(HAROW, DIAMOND, "h-bayes")


def test_bad_arguments():
    for bad, message in [
        ({"decode": "best"}, "unknown decode 'best': choose one of top-down, h-bayes"),
        ({"memory": 1}, "memory must be a whole number"),
        ({"memory": 2.5}, "memory must be a whole number"),
        ({"decode": "h-bayes", "costs": "cheap"}, "unknown costs 'cheap'"),
        ({"decode": "h-bayes", "costs": [1.0]}, "do not fit 4 nodes"),
    ]:
        with pytest.raises(ValueError, match=message):
            calibrated(HAROW, NEWS, **bad)
    for model in (NEWS, None, HAROW, calibrated(HAROW, NEWS)):
        with pytest.raises(ValueError, match="must be a learner of this package"):
            Calibrated(model)


def test_damaged_states_are_refused():
    model = calibrated(HAROW, NEWS)
    model.learn_one({0: 1.0, 1: 1.0}, {"tennis"})
    good = model.state()
    lines = good["lines"]
    unlikely, negative, unseen = lines.copy(), lines.copy(), lines.copy()
    unlikely[0, kernels.SLOPE_OFFSET] = 1e9
    negative[0, kernels.COUNT] = -1.0
    unseen[0, [kernels.SQUARES, kernels.COUNT]] = 1.0, 0.0
    for change in [
        {"lines": lines[:2]},
        {"lines": lines.astype(np.float32)},
        {"lines": np.full_like(lines, np.nan)},
        {"lines": np.zeros_like(lines)},
        {"lines": unlikely},
        {"lines": negative},
        {"lines": unseen},
        {"lines": "none"},
        {"shared_line": good["shared_line"][:3]},
        {"kind": "Calibrated"},
        {"kind": "Nonsense"},
        {"kind": "LinearLearner"},
        {"kind": 3},
        {"decode": "best"},
        {"memory": 0},
        {"surprise": 1},
        {"model.surprise": 1},
        {"model.t": -1},
    ]:
        with pytest.raises(ValueError, match=r"."):
            Calibrated.from_state({**good, **change})


@pytest.mark.compiled
def test_river_checks(monkeypatch):
    yeast = list(datasets.Yeast().take(100))
    monkeypatch.setattr(checks, "_yield_datasets", lambda model, scale=1: [yeast[: 50 * scale]])
    flat = Taxonomy([(f"Class{number}", None) for number in range(1, 15)])
    model = Calibrated(HAROW(flat))
    names = []
    for check in checks.yield_checks(model):
        check(model.clone())
        names.append(check.__name__)
    assert len(names) > 15


def test_it_files_documents():
    filer = Filer(NEWS, Calibrated(HAROW(NEWS, n_features=64), "h-bayes"))
    for number in range(20):
        filer.file(
            [
                Document(str(number), "a racket", labels=["tennis"]),
                Document("x", "a vote", labels=["politics"]),
            ]
        )
    again = Filer.from_parts(snapshot.load_bytes(snapshot.dump_bytes(filer.parts())))
    for served in (filer, again):
        (outcome,) = served.file([Document("new", "a racket")]).outcomes
        assert outcome.path_labels == ["sport", "tennis"]
        assert outcome.scores["sport"] > 0  # log-odds


def test_every_learner_of_the_package_can_be_calibrated():
    for kind in INNER.values():
        assert issubclass(kind, OnlineLearner)
        assert Calibrated.from_state(calibrated(kind, NEWS).state()).model.taxonomy == NEWS


def progressive(model, X, Y):
    """Conditional probabilities and bare margins of each document, of before it was learned."""
    p, margins = np.empty(Y.shape), np.empty(Y.shape)
    for row in range(X.shape[0]):
        x = X[row : row + 1]
        p[row], margins[row] = model.conditional_probabilities(x)[0], model.model.margins(x)[0]
        model.learn_many(x, Y[row : row + 1])
    return p, margins


@pytest.mark.compiled
@every_learner
def test_it_can_be_trusted_on_news(kind):
    news = make_news(2000)
    X, Y = vectorize_dataset(news), news.taxonomy.encode(news.labels)
    p, margins = progressive(Calibrated(kind(news.taxonomy)), X, Y)
    y = Y.toarray()
    eligible = np.ones(y.shape, bool)
    below = news.taxonomy.parent >= 0
    eligible[:, below] = y[:, news.taxonomy.parent[below]]
    eligible[:500] = False
    found = reliability(p[eligible], y[eligible])
    bare = reliability(1 / (1 + np.exp(-margins[eligible])), y[eligible])
    assert found.ece < 0.025
    assert found.ece < 0.12 * bare.ece
    assert found.log_loss < 0.6 * bare.log_loss


@pytest.mark.compiled
def test_it_recovers_true_probabilities():
    """Labels drawn from known conditional probabilities that depend on one feature."""
    draw = np.random.default_rng(5)
    tax = Taxonomy([("root", None), ("left", "root"), ("right", "root"), ("deep", "left")])
    n = 6000
    strength = draw.normal(size=n)
    slope, offset = np.array([3.0, 2.0, -2.0, 1.0]), np.array([1.0, 0.0, -1.0, 0.5])
    true = 1 / (1 + np.exp(-(strength[:, None] * slope + offset)))
    y = draw.random((n, 4)) < true
    for node in range(4):
        if tax.parent[node] >= 0:
            y[:, node] &= y[:, tax.parent[node]]
    X = np.zeros((n, 3), np.float32)
    X[:, 0], X[:, 1] = strength, 1.0
    model = Calibrated(HAROW(tax, n_features=3, r=1.0), memory=2000)
    model.learn_many(X[:5000], y[:5000])
    error = np.abs(model.conditional_probabilities(X[5000:]) - true[5000:])
    assert error.mean() < 0.04
