"""A swap is guarded: models that know the answers, models that know nothing, fits that fail."""

from itertools import repeat

import numpy as np
import pytest
from scipy.sparse import csr_array

from stream_hc import HAROW, HPerceptron, TextVectorizer
from stream_hc.runtime.config import Config, JudgeConfig, ModelConfig, RefitConfig
from stream_hc.runtime.events import Event
from stream_hc.runtime.outcome import FitRequest, Fitted
from stream_hc.runtime.processor import Processor
from tests.runtime.streams import delayed, lines_of, news

N_FEATURES = 2**12
DATA = news(700, seed=11)
TREE = DATA.taxonomy
TEXTS = [str(document) for document in DATA.documents]
PLACES = {
    tuple(row.indices.tolist()): place
    for place, row in enumerate(TextVectorizer(n_features=N_FEATURES).transform(TEXTS))
}


class Knowing:
    """Knows the labels of every `step`-th document, and predicts nothing of the others.

    From document `until` on it predicts exactly the labels that are wrong.
    """

    n_features = N_FEATURES

    def __init__(self, step: int = 1, until: int = len(DATA)) -> None:
        self.step, self.until = step, until

    def predict_many(self, X: csr_array, scores: bool) -> csr_array:
        places = [PLACES[tuple(row.indices.tolist())] for row in X]
        known = TREE.encode([DATA.labels[k] if k % self.step == 0 else () for k in places]).toarray()
        is_wrong = np.array([k >= self.until for k in places], np.bool_)
        return csr_array(known ^ is_wrong[:, None], dtype=np.float32)


def run(models, delay: int = 20, every: int | None = None, **judge) -> list[Event]:
    """Run the stream; the fits give these models one after the other, None fails. Return the events."""
    given = {"sample": 100, "least": 30, "every": 10, "margin": 0.05, "sureness": 1.0} | judge
    config = Config(
        model=ModelConfig(learners=["h-perceptron"]),
        judge=JudgeConfig(**given),
        refit=RefitConfig(enabled=True, window=50, least=50, every=every, lag=10, in_step=True, drift=False),
    )
    left = iter(models)

    def fetch(request: FitRequest) -> Fitted:
        model = next(left)
        return Fitted(request.number, model, "" if model is not None else "crashed: out of luck")

    learner = HPerceptron(TREE, n_features=N_FEATURES)
    processor = Processor(TREE, {"h-perceptron": learner}, config=config, fetch=fetch)
    return processor.process(lines_of(delayed(DATA, delay))).events


def of(events: list[Event], *kinds: str) -> list[tuple[str, str]]:
    return [(event.what, event.model) for event in events if event.what in kinds]


@pytest.mark.compiled
@pytest.mark.parametrize("least", [30, 70])
def test_a_better_model_is_swapped_in_after_enough_documents(least):
    events = run([Knowing()], least=least)
    assert of(events, "candidate", "swap", "rollback", "dropped") == [
        ("candidate", "hm3-1"),
        ("swap", "hm3-1"),
    ]
    candidate, swap = (event for event in events if event.what in ("candidate", "swap"))
    # Its first prediction is that of the next document, whose labels come 20 later.
    assert swap.labelled - candidate.labelled == pytest.approx(least + 20, abs=10)
    assert swap.detail == f"H-loss 100.0 % lower on {swap.labelled - candidate.labelled - 20} documents"


@pytest.mark.compiled
@pytest.mark.parametrize(("margin", "swapped"), [(0.0, True), (0.95, False)])
def test_a_model_that_is_not_ahead_by_the_margin_is_dropped(margin, swapped):
    events = run([Knowing(step=2)], margin=margin)
    assert ("swap", "hm3-1") in of(events, "swap") if swapped else not of(events, "swap")
    assert swapped or of(events, "dropped") == [("dropped", "hm3-1")]


@pytest.mark.compiled
def test_a_worse_model_never_answers():
    events = run(repeat(Knowing(until=0)), every=50)
    assert not of(events, "swap", "rollback")
    assert of(events, "dropped")[:2] == [("dropped", "hm3-1"), ("dropped", "hm3-2")]


@pytest.mark.compiled
def test_a_model_that_turns_bad_is_rolled_back_and_dropped():
    events = run([Knowing(until=350)])
    assert of(events, "swap", "rollback", "dropped") == [
        ("swap", "hm3-1"),
        ("rollback", "h-perceptron"),
        ("dropped", "hm3-1"),
    ]
    rollback = next(event for event in events if event.what == "rollback")
    assert 350 < rollback.labelled < 600
    assert rollback.before == "hm3-1"


@pytest.mark.compiled
def test_a_judge_that_is_off_swaps_nothing():
    assert not of(run([Knowing()], enabled=False), "swap")


@pytest.mark.compiled
def test_a_fit_that_fails_is_tried_again_later_and_later():
    events = run([None, None, None, None, Knowing()], every=40)
    failed = [event for event in events if event.what == "refit_failed"]
    assert [event.detail for event in failed] == ["crashed: out of luck"] * 4
    asked = [event.labelled for event in events if event.what == "refit"]
    assert asked[0] == 50
    assert np.diff(asked)[:4].tolist() == [40, 80, 160, 320][: len(asked) - 1]


def test_a_result_that_is_out_of_date_is_ignored():
    config = Config(
        model=ModelConfig(learners=["h-perceptron"]),
        refit=RefitConfig(enabled=True, window=50, least=50, drift=False),
    )
    learner = HPerceptron(TREE, n_features=N_FEATURES)
    processor = Processor(TREE, {"h-perceptron": learner}, config=config)
    outcome = processor.process(lines_of(delayed(DATA, 0))[:300])
    assert outcome.fit is not None
    assert outcome.fit.number == 1
    for late in (Fitted(7, Knowing()), Fitted(0, None, "crashed")):  # type: ignore[arg-type]
        assert processor.finish_fit(late).events == []
    assert processor.progress.outstanding is not None
    assert [event.what for event in processor.finish_fit(Fitted(1, Knowing())).events] == ["candidate"]  # type: ignore[arg-type]
    assert processor.finish_fit(Fitted(1, None, "crashed")).events == []


@pytest.mark.compiled
def test_what_somebody_asked_for_is_left_alone_for_a_sample():
    config = Config(
        model=ModelConfig(learners=["h-arow", "h-perceptron"]),
        judge=JudgeConfig(sample=100, least=20, every=10, margin=0.0, sureness=0.0),
    )
    learners = {
        "h-arow": HAROW(TREE, n_features=N_FEATURES),
        "h-perceptron": HPerceptron(TREE, n_features=N_FEATURES),
    }
    processor = Processor(TREE, learners, config=config)
    lines = lines_of(delayed(DATA, 0))
    processor.process(lines[:800])
    assert processor.line_up.champion == "h-arow"
    asked = processor.progress.labelled
    assert [event.what for event in processor.promote("h-perceptron").events] == ["promoted"]
    swaps = [event for event in processor.process(lines[800:]).events if event.what in ("swap", "rollback")]
    assert swaps[0].labelled == asked + 100
    with pytest.raises(ValueError, match="there is no model svm: choose one of"):
        processor.promote("svm")
