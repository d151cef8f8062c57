"""What only the linear learners have: a threshold, the strongest features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc import HAROW, HPerceptron, NodePA, Perceptron, Taxonomy
from stream_hc.datasets import make_news
from stream_hc.vectorize import TextVectorizer, from_dict
from tests.strategies import N_FEATURES, streams, to_rows

NEWS = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
LINEAR = [HPerceptron, Perceptron, HAROW, NodePA]

every_linear = pytest.mark.parametrize("kind", LINEAR)


@every_linear
@given(stream=streams(), threshold=st.sampled_from([-1.5, -0.1, 0.3, 2.0]))
def test_a_node_is_on_above_the_threshold(kind, stream, threshold):
    taxonomy, xs, ys = stream
    model = kind(taxonomy, n_features=N_FEATURES, threshold=threshold)
    for x, y in zip(xs, ys, strict=True):
        model.learn_one(x, y)
    for x in xs:
        margins = model.margins(to_rows([x]))[0].tolist()
        own = {node for node, margin in zip(taxonomy, margins, strict=True) if margin > threshold and margin}
        answer, scores = model.predict_one(x), model.predict_proba_one(x)
        assert {node for node, on in answer.items() if on} == taxonomy.truncate(own)
        assert {node for node, score in scores.items() if score[True] > 0.5} == taxonomy.truncate(own)


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


@every_linear
def test_the_strongest_features_and_their_names(kind):
    news = make_news(300)
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
