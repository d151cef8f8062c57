"""River's own checks on a bundled multi-label set, the real versions of those that are vacuous, pipelines."""

import copy
import random

import pytest
from river import checks, compose, datasets, evaluate, feature_extraction, preprocessing, utils

from stream_hc import Taxonomy, TextVectorizer, losses, metrics
from stream_hc.datasets import make_news
from stream_hc.learners import LEARNERS
from tests.strategies import size

every_learner = pytest.mark.parametrize("kind", LEARNERS.values(), ids=LEARNERS.keys())


YEAST = list(datasets.Yeast().take(500))  # comes with river; its checks would download another one
FEW = size(60, 15)
CATEGORIES = [f"Class{number}" for number in range(1, 15)]


def flat():
    return Taxonomy([(name, None) for name in CATEGORIES])


@every_learner
@pytest.mark.compiled  # thousands of documents, too many for what is uncompiled
@pytest.mark.parametrize("with_taxonomy", [True, False])
def test_river_checks(kind, with_taxonomy, monkeypatch):
    monkeypatch.setattr(checks, "_yield_datasets", lambda model, scale=1: [YEAST[: 50 * scale]])
    model = kind(flat()) if with_taxonomy else kind()
    names = []
    for check in checks.yield_checks(model):
        check(model.clone())
        names.append(check.__name__)
    assert {
        "check_learn_one",
        "check_pickling",
        "check_shuffle_features_no_impact",
        "check_bounded_memory_growth",
    } <= set(names)
    assert len(names) > 20


@every_learner
class TestRealVersions:
    """River's checks look at `Classifier`: a multi-label model passes some without being looked at."""

    def trained(self, kind, n=FEW):
        model = kind(flat(), n_features=1024)
        for x, y in YEAST[:n]:
            model.learn_one(x, y)
        return model

    def test_shuffled_features_give_the_same_bits(self, kind):
        one, two = self.trained(kind, 0), self.trained(kind, 0)
        draw = random.Random(1)
        for x, y in YEAST[:FEW]:
            items = list(x.items())
            draw.shuffle(items)
            assert one.predict_proba_one(x) == two.predict_proba_one(dict(items))
            one.learn_one(x, y)
            two.learn_one(dict(items), y)

    def test_emerging_and_disappearing_features(self, kind):
        model = self.trained(kind)
        assert model.predict_one({}) == dict.fromkeys(flat().nodes, False)
        assert set(model.predict_one({"never seen": 1.0, "Att1": 0.3})) == set(flat().nodes)
        model.learn_one({"new": 2.0}, {"Class3": True})

    def test_inputs_are_not_touched_or_kept(self, kind):
        model = self.trained(kind, 0)
        x, y = {"a": 1.0}, {"Class1": True}
        model.learn_one(x, y)
        model.predict_one(x)
        assert (x, y) == ({"a": 1.0}, {"Class1": True})
        before = model.predict_proba_one({"a": 1.0})
        x["a"], y["Class2"] = 99.0, True
        assert model.predict_proba_one({"a": 1.0}) == before

    def test_clone_is_untrained_and_deepcopy_is_independent(self, kind):
        model = self.trained(kind)
        clone = model.clone()
        assert clone.n_learned == 0
        assert clone.taxonomy == model.taxonomy
        assert repr(clone) == repr(model)
        twin = copy.deepcopy(model)
        x = YEAST[0][0]
        before = model.predict_proba_one(x)
        for sample, y in YEAST[: size(30, 10)]:
            twin.learn_one(sample, {label: not on for label, on in y.items()})
        assert model.predict_proba_one(x) == before
        assert twin.predict_proba_one(x) != before


@every_learner
@pytest.mark.compiled
def test_it_learns(kind):
    news = make_news(2000)
    X, Y = TextVectorizer().learn_transform(news.documents), news.taxonomy.encode(news.labels)
    loss = losses.h_loss(news.taxonomy, kind(news.taxonomy).predict_then_learn(X, Y), Y)
    assert loss[-500:].mean() < 0.7 * loss[:500].mean()


@every_learner
def test_progressive_val_score_equals_our_own_count(kind):
    news = make_news(size(120, 20), seed=3)
    metric = metrics.HLoss(news.taxonomy)
    evaluate.progressive_val_score(news, TextVectorizer() | kind(news.taxonomy), metric)
    vectorizer, model, mine = TextVectorizer(), kind(news.taxonomy), metrics.HLoss(news.taxonomy)
    for text, labels in news:
        # River lets a transformer learn in learn_one, after the prediction.
        mine.update(labels, model.predict_one(vectorizer.transform_one(text)))
        vectorizer.learn_one(text)
        model.learn_one(vectorizer.transform_one(text), labels)
    assert metric.get() == mine.get()
    assert 0 < metric.get() < 6


def test_pipelines_of_river_parts():
    news = make_news(size(80, 30), seed=1)
    model = compose.Pipeline(
        feature_extraction.BagOfWords(ngram_range=(1, 2)),
        preprocessing.Normalizer(),
        LEARNERS["h-arow"](news.taxonomy),
    )
    rolling = utils.Rolling(metrics.HLoss, window_size=20, taxonomy=news.taxonomy)
    for text, labels in news:
        rolling.update(labels, model.predict_one(text))
        model.learn_one(text, labels)
    assert 0 < rolling.get() < 6
    assert set(model.predict_one("anything")) == set(news.taxonomy.nodes)
