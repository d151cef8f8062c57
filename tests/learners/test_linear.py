"""What only the linear learners have: a threshold, the strongest features."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stream_hc import HAROW, HPerceptron, NodePA, Perceptron, Taxonomy
from stream_hc.datasets import make_news
from stream_hc.snapshot import dump_bytes
from stream_hc.vectorize import TextVectorizer, from_dict
from tests import naive
from tests.strategies import N_FEATURES, size, streams, to_rows

NEWS = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
LINEAR = [HPerceptron, Perceptron, HAROW, NodePA]

ADAPTIVE = [HAROW, NodePA]

every_linear = pytest.mark.parametrize("kind", LINEAR)


@every_linear
@given(
    stream=streams(),
    threshold=st.sampled_from([-1.5, -0.1, 0.3, 2.0, "learned"]),
    parents=st.sampled_from(["any", "all"]),
)
def test_a_node_is_on_above_the_threshold(kind, stream, threshold, parents):
    assume(threshold != "learned" or kind in ADAPTIVE)
    taxonomy, xs, ys = stream
    model = kind(taxonomy, n_features=N_FEATURES, threshold=threshold, parents=parents)
    for x, y in zip(xs, ys, strict=True):
        model.learn_one(x, y)
    for x in xs:
        margins = model.margins(to_rows([x]))[0]
        own = set(np.flatnonzero((margins > model.thresholds) & (margins != 0.0)).tolist())
        above = [taxonomy.parents(node).tolist() for node in range(len(taxonomy))]
        expected = {taxonomy.nodes[node] for node in naive.top_down(own, above, parents == "all")}
        answer, scores = model.predict_one(x), model.predict_proba_one(x)
        assert {node for node, on in answer.items() if on} == expected == taxonomy.close(expected)
        assert {node for node, score in scores.items() if score[True] > 0.5} == expected


@every_linear
@pytest.mark.parametrize("cold_start", ["negative", "paper"])
@pytest.mark.parametrize("threshold", [-5.0, 5.0])
def test_a_margin_of_zero_is_decided_by_the_cold_start(kind, cold_start, threshold):
    model = kind(NEWS, n_features=N_FEATURES, cold_start=cold_start, threshold=threshold)
    assert set(model.predict_one({3: 1.0}).values()) == {cold_start == "paper"}
    assert set(model.predict_one({}).values()) == {cold_start == "paper"}


@every_linear
@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), "0", None, True])
def test_a_threshold_that_is_no_number(kind, threshold):
    with pytest.raises(ValueError, match="threshold must be a finite number, not"):
        kind(NEWS, threshold=threshold)


@pytest.mark.parametrize("kind", [HPerceptron, Perceptron])
def test_perceptrons_have_no_scale_to_learn_a_threshold_on(kind):
    with pytest.raises(ValueError, match="threshold must be a finite number, not 'learned'"):
        kind(NEWS, threshold="learned")


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_learned_thresholds_go_on_after_a_restart(kind):
    news = make_news(size(600, 150))
    half = len(news) // 2
    X, Y = TextVectorizer(2**14).learn_transform(news.documents), news.taxonomy.encode(news.labels)
    whole, first = (kind(news.taxonomy, n_features=2**14, threshold="learned") for _ in range(2))
    whole.learn_many(X, Y)
    first.learn_many(X[:half], Y[:half])
    again = kind.from_state(first.state())
    again.learn_many(X[half:], Y[half:])
    assert again.thresholds.tolist() == whole.thresholds.tolist()
    assert np.unique(whole.thresholds).size > 5
    assert again.state()["cuts"].tobytes() == whole.state()["cuts"].tobytes()


@pytest.mark.parametrize(
    "damage", [lambda cuts: cuts[:, :5], lambda cuts: cuts + np.nan, lambda cuts: cuts - 3]
)
def test_damaged_thresholds_are_refused(damage):
    state = NodePA(NEWS, n_features=8, threshold="learned").state()
    with pytest.raises(ValueError, match="cuts must be"):
        NodePA.from_state(state | {"cuts": damage(state["cuts"])})


def test_a_growing_taxonomy_learns_thresholds():
    model = NodePA(n_features=64, threshold="learned")
    for word in ("racket", "ballot", "racket", "verdict"):
        model.learn_one({word: 1.0}, {word})
    assert model.thresholds.shape == (3,)
    assert [name for name, on in model.predict_one({"ballot": 1.0}).items() if on] == ["ballot"]


@every_linear
def test_the_strongest_features_and_their_names(kind):
    news = make_news(size(300, 60))
    vectorizer = TextVectorizer(2**14)
    X = vectorizer.learn_transform(news.documents)
    model = kind(news.taxonomy, n_features=2**14)
    model.learn_many(X, news.taxonomy.encode(news.labels))
    node = news.taxonomy.index("sport")
    state = model.state()
    weights = dict(zip(state["features"].tolist(), state["weights"][:, node].tolist(), strict=True))
    expected = sorted(weights.items(), key=lambda item: (-abs(item[1]), item[0]))[:5]
    assert model.strongest("sport", 5) == model.strongest(node, 5) == expected
    names = vectorizer.names_of([column for column, _ in expected])
    read = {term for text in news.documents for term in vectorizer.tokens(text)}
    assert None not in names
    assert read.issuperset(names)
    assert model.strongest("sport", 0) == []
    assert len(model.strongest("sport", 10**9)) == len(weights)
    with pytest.raises(ValueError, match="unknown label 'sports'"):
        model.strongest("sports")
    assert kind(news.taxonomy).strongest("sport") == []


@every_linear
def test_a_state_does_not_tell_which_feature_came_first(kind):
    one, other = kind(NEWS, n_features=32), kind(NEWS, n_features=32)
    for model, features in ((one, (9, 4, 30)), (other, (30, 9, 4))):
        for feature in features:  # no feature twice: nothing but the order of the rows can differ
            model.learn_one({feature: 1.0}, {"tennis"})
    assert one.state()["features"].tolist() == [4, 9, 30]
    assert dump_bytes(one) == dump_bytes(other) == dump_bytes(kind.from_state(other.state()))


@every_linear
def test_no_more_rows_than_columns(kind):
    model = kind(NEWS, n_features=200)
    full = 201 * 16 * 4 * (2 if kind is HAROW else 1)
    for start in range(0, 2000, 50):
        x = {feature % 200: 1.0 + feature for feature in range(start, start + 50)}
        model.learn_one(x, {"tennis"} if start % 100 else {"politics"})
        assert model.nbytes <= full + 64  # a learner without variances holds one row of them
    assert model.nbytes >= full
    model = kind(NEWS, n_features=3)
    model.learn_one({0: 1.0, 1: 1.0, 2: 1.0}, {"tennis"})
    assert model.state()["features"].size == 3


def test_a_dict_that_changes_between_predicting_and_learning():
    x = {"ace": 1.0, 3: 0.5}
    first = from_dict(x, 64)
    assert from_dict(x, 64).indices.tolist() == first.indices.tolist()
    x["ace"] = 2.0
    assert sorted(from_dict(x, 64).values.tolist()) == [0.5, 2.0]
    assert from_dict(x, 4).indices.max() < 4
    x["ace"] = np.array([1.0, 2.0])
    with pytest.raises(ValueError, match="feature 'ace'"):
        from_dict(x, 4)
