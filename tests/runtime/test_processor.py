"""The processor against a slow twin that takes one record after the other, and itself in other batches."""

import json
from collections import Counter, OrderedDict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from stream_hc import HAROW, HM3, HPA, HRLS, HPerceptron, NodePA, TextVectorizer, losses, snapshot
from stream_hc.runtime import Line
from stream_hc.runtime.config import Config, JudgeConfig, LabelsConfig, ModelConfig, RefitConfig, StreamConfig
from stream_hc.runtime.events import Event
from stream_hc.runtime.outcome import FitRequest, Fitted
from stream_hc.runtime.processor import Processor
from stream_hc.runtime.records import Label, parse_record
from tests.runtime.streams import delayed, jumbled, lines_of, news, poison
from tests.strategies import examples, size

N_FEATURES = 2**12
DATA = news(120, seed=3)
TREE = DATA.taxonomy


def learners(*kinds):
    return {kind.__name__: kind(TREE, n_features=N_FEATURES) for kind in kinds}


def configured(kinds, **tables) -> Config:
    return Config(model=ModelConfig(learners=[kind.__name__ for kind in kinds]), **tables)


def answers_of(outcomes) -> list[dict]:
    lines = b"".join(part.json_lines() for outcome in outcomes for part in outcome.answers)
    return [json.loads(line) for line in lines.splitlines()]


class Twin:
    """One learner, one record at a time, from the words of the documentation."""

    def __init__(self, learner, config: LabelsConfig, remembered: int) -> None:
        self.learner, self.config, self.remembered = learner, config, remembered
        self.words = TextVectorizer(n_features=N_FEATURES)
        self.waiting, self.early, self.learned = OrderedDict(), OrderedDict(), OrderedDict()
        self.outcomes, self.losses, self.answers = Counter(), [], []

    def take(self, line: bytes) -> None:
        try:
            record = parse_record(line)
            TREE.encode([record.labels or []])
        except ValueError:
            return
        if isinstance(record, Label):
            self.label(record.id, TREE.close(record.labels))
        else:
            self.document(record.id, record.text, record.labels)

    def document(self, name, text, labels) -> None:
        x = self.words.learn_transform([text])
        predicted = TREE.decode(self.learner.predict_many(x))[0]
        self.answers.append((name, predicted, self.learner.n_learned))
        if labels is None and name in self.early:
            labels = self.early.pop(name)
            self.outcomes["joined"] += 1
        if labels is not None:
            return self.learn(name, x, predicted, TREE.close(labels))
        if name in self.waiting:
            self.outcomes["superseded"] += 1
            del self.waiting[name]
        self.waiting[name] = x, predicted
        if len(self.waiting) > self.config.documents:
            self.waiting.popitem(last=False)
            self.outcomes["expired"] += 1

    def label(self, name, labels) -> None:
        if name in self.waiting:
            self.outcomes["joined"] += 1
            return self.learn(name, *self.waiting.pop(name), labels)
        if name in self.learned:
            x, before = self.learned[name]
            self.outcomes["duplicate" if before == labels else "changed"] += 1
            if before != labels and self.config.changed == "learn":
                self.learner.learn_many(x, TREE.encode([labels]))
                self.learned[name] = x, labels
        elif name in self.early:
            self.outcomes["duplicate" if self.early[name] == labels else "changed"] += 1
            self.early[name] = labels
        else:
            self.early[name] = labels
            if len(self.early) > self.config.early:
                self.early.popitem(last=False)
                self.outcomes["orphan"] += 1

    def learn(self, name, x, predicted, labels) -> None:
        self.losses.append(float(losses.h_loss(TREE, [predicted], [labels])[0]))
        self.learner.learn_many(x, TREE.encode([labels]))
        self.learned.pop(name, None)
        self.learned[name] = x, labels
        if len(self.learned) > self.remembered:
            self.learned.popitem(last=False)


def in_batches(processor: Processor, lines: list[Line], cuts) -> list:
    ends = [0, *sorted(set(cuts)), len(lines)]
    return [processor.process(lines[a:b]) for a, b in pairwise(ends) if a < b]


@settings(max_examples=examples(12), deadline=None)
@given(
    kind=st.sampled_from([HAROW, NodePA, HPerceptron, HRLS, HPA]),
    seed=st.integers(0, 1000),
    cuts=st.lists(st.integers(1, 250), max_size=6),
    limits=st.sampled_from(
        [LabelsConfig(), LabelsConfig(documents=7, early=2), LabelsConfig(changed="learn")]
    ),
    window=st.sampled_from([5, 1000]),
)
def test_it_answers_and_learns_as_one_record_after_the_other(kind, seed, cuts, limits, window):
    data = news(size(60, 20), seed)
    if kind is HPA:  # it learns one path of a document
        data = replace(data, labels=[frozenset(sorted(labels)[:1]) for labels in data.labels])
    lines = lines_of(jumbled(data, seed))
    refit = RefitConfig(window=window, least=1)
    processor = Processor(TREE, learners(kind), config=configured([kind], labels=limits, refit=refit))
    twin = Twin(kind(TREE, n_features=N_FEATURES), limits, window)
    outcomes = in_batches(processor, lines, cuts)
    for line in lines:
        twin.take(line.data)
    answers = answers_of(outcomes)
    assert [(a["id"], set(a["path_labels"]), a["model_version"]) for a in answers] == twin.answers
    assert dict(processor.room.outcomes) == dict(twin.outcomes)
    served = processor.contest.standing().served
    assert served.scored == len(twin.losses) == processor.progress.labelled
    assert served.mean == pytest.approx(np.mean(twin.losses) if twin.losses else 0.0)
    bytes_of_ours = snapshot.dump_bytes(processor.line_up.online[kind.__name__].learner)
    assert bytes_of_ours == snapshot.dump_bytes(twin.learner)
    assert processor.room.n_documents == len(twin.waiting)
    assert processor.room.n_labels == len(twin.early)


def fetched(request: FitRequest) -> Fitted:
    rows = request.window.arrays()
    X = csr_array((rows.values, rows.indices, rows.indptr), shape=(rows.numbers.size, N_FEATURES))
    on = np.ones(rows.label_nodes.size, np.bool_)
    Y = csr_array((on, rows.label_nodes, rows.label_ptr), shape=(rows.numbers.size, len(TREE)))
    return Fitted(request.number, HM3(TREE, n_features=N_FEATURES, tol=0.5, seed=request.number).fit(X, Y))


IN_STEP = {
    "refit": RefitConfig(enabled=True, window=80, least=40, every=60, in_step=True, lag=20),
    "judge": JudgeConfig(sample=60, least=20, every=10, margin=0.0, sureness=0.0),
    "stream": StreamConfig(requests="somewhere"),
    "labels": LabelsConfig(changed="learn"),
}


@settings(max_examples=5, deadline=None, phases=[Phase.generate])
@given(
    cuts=st.lists(st.integers(1, 400), min_size=1, max_size=9), stops=st.lists(st.integers(0, 9), max_size=3)
)
@pytest.mark.compiled
def test_batches_and_restarts_make_no_difference(cuts, stops):
    kinds = (HAROW, NodePA, HRLS)
    lines = lines_of(jumbled(news(250, seed=5), seed=5))
    config = configured(kinds, **IN_STEP)
    calm = Processor(TREE, learners(*kinds), config=config, fetch=fetched)
    expected = [calm.process(lines)]
    assert {"refit", "candidate"} <= {event.what for event in expected[0].events}
    other = Processor(TREE, learners(*kinds), config=config, fetch=fetched)
    outcomes = []
    ends = [0, *sorted({cut for cut in cuts if cut < len(lines)}), len(lines)]
    for number, (first, last) in enumerate(pairwise(ends)):
        outcomes.append(other.process(lines[first:last]))
        if number in stops:
            saved = snapshot.dump_bytes(other.parts())
            other = Processor.from_parts(snapshot.load_bytes(saved), config, fetched)
            assert snapshot.dump_bytes(other.parts()) == saved
    assert answers_of(outcomes) == answers_of(expected)
    assert [line for outcome in outcomes for line in outcome.log] == expected[0].log
    assert [each for outcome in outcomes for each in outcome.requests] == expected[0].requests
    assert snapshot.dump_bytes(other.parts()) == snapshot.dump_bytes(calm.parts())


@pytest.mark.parametrize("remembered", [30, 1000])
def test_labels_at_once_and_then_others_for_the_same_documents(remembered):
    """Documents that have their labels take a shorter way; whoever labels them again must not notice."""
    data = news(size(150, 50), seed=7)
    at_once = [
        {"id": name, "text": str(text), "labels": sorted(labels)}
        for name, text, labels in zip(data.ids, data.documents, data.labels, strict=True)
    ]
    again = [{"id": name, "labels": ["sport"]} for name in data.ids[::5]]
    lines = lines_of([*at_once, *again, *at_once[:3], *again])
    kinds = (HAROW, NodePA)
    config = configured(
        kinds,
        labels=LabelsConfig(changed="learn"),
        refit=RefitConfig(window=remembered, least=1),
        judge=JudgeConfig(sample=40, least=10, every=10, margin=0.0, sureness=0.0),
    )
    whole, parts, ones = (Processor(TREE, learners(*kinds), config=config) for _ in range(3))
    expected = [whole.process(lines)]
    outcomes = in_batches(parts, lines, [14, 40, len(data) - 1, len(data) + 1, len(data) + 8])
    singles = in_batches(ones, lines, range(1, len(lines)))
    assert whole.room.outcomes["changed"] > 5
    assert expected[0].log == [line for outcome in singles for line in outcome.log]
    assert answers_of(singles) == answers_of(outcomes) == answers_of(expected)
    states = [snapshot.dump_bytes(each.parts()) for each in (whole, parts, ones)]
    assert states[0] == states[1] == states[2]


@pytest.mark.compiled
def test_a_drift_is_noticed_at_the_same_document_in_any_batches():
    data = news(3000, seed=1, drift="sudden")
    lines = lines_of(delayed(data, 50))
    refit = RefitConfig(enabled=True, window=200, least=100, every=None, in_step=True, lag=50)
    config = configured((NodePA,), refit=refit)

    def fail(request: FitRequest) -> Fitted:
        return Fitted(request.number, None, "not today")

    whole, parts = (Processor(TREE, learners(NodePA), config=config, fetch=fail) for _ in range(2))
    log = whole.process(lines).log
    outcomes = in_batches(parts, lines, range(7, len(lines), 333))
    assert [line for outcome in outcomes for line in outcome.log] == log
    assert snapshot.dump_bytes(whole.parts()) == snapshot.dump_bytes(parts.parts())
    drifts = [line.labelled for line in log if isinstance(line, Event) and line.what == "drift"]
    assert [labelled for labelled in drifts if labelled > 300] == [pytest.approx(1700, abs=150)]


@pytest.mark.compiled
def test_a_model_that_comes_and_goes_between_batches_is_forgotten_at_the_same_document():
    data = news(300, seed=9)
    lines, kinds = lines_of(delayed(data, 30)), (NodePA, HAROW)
    config = configured(
        kinds,
        refit=RefitConfig(enabled=True, window=60, least=60, every=None, drift=False),
        judge=JudgeConfig(sample=40, least=20, every=10, margin=0.9),
    )
    first = Processor(TREE, learners(*kinds), config=config).process(lines[:200]).fit
    model = fetched(first)
    found = []
    for cuts in ([200], [200, 213, 377, 400], range(1, len(lines))):
        processor = Processor(TREE, learners(*kinds), config=config)
        outcomes = in_batches(processor, lines[:200], [cut for cut in cuts if cut < 200])
        outcomes.append(processor.finish_fit(model))
        outcomes += in_batches(processor, lines[200:], [cut - 200 for cut in cuts if cut > 200])
        log = [line for outcome in outcomes for line in outcome.log]
        found.append((answers_of(outcomes), log, snapshot.dump_bytes(processor.parts())))
    assert "dropped" in {line.what for line in found[0][1] if isinstance(line, Event)}
    assert found[0] == found[1] == found[2]


def spoiled_rooms():
    huge, negative = np.array([2**30], np.int32), np.array([-1], np.int32)
    yield "indices", huge
    yield "indices", negative
    yield "predicted", huge
    yield "early_nodes", huge
    yield "learned_nodes", negative
    yield "values", np.array([np.nan], np.float32)


@pytest.mark.parametrize(("name", "bad"), list(spoiled_rooms()))
def test_a_hostile_waiting_room_is_refused(name, bad):
    processor = Processor(TREE, learners(HAROW), config=configured((HAROW,)))
    records = [{"id": "w", "text": "rates"}, {"id": "e", "labels": ["sport"]}]
    lesson = {"id": "l", "text": "rates rates", "labels": ["sport"]}
    processor.process(lines_of([lesson, *records, {"id": "v", "text": "rates goal"}]))
    parts = processor.parts()
    Processor.from_parts(snapshot.load_bytes(snapshot.dump_bytes(parts)), configured((HAROW,)))
    state = parts["waiting"].state()
    state[name][: bad.size] = bad
    parts["waiting"] = type(parts["waiting"]).from_state(state)
    with pytest.raises(snapshot.SnapshotError, match="do not fit together"):
        Processor.from_parts(parts, configured((HAROW,)))


def test_parts_of_another_moment_or_kind_are_refused():
    processor = Processor(TREE, learners(HAROW), config=configured((HAROW,)))
    parts = processor.parts()
    for name, other in (("window", parts["drift"]), ("vectorizer", parts["progress"]), ("waiting", None)):
        with pytest.raises(snapshot.SnapshotError, match="do not fit together"):
            Processor.from_parts({**parts, name: other}, configured((HAROW,)))
    processor.progress.labelled += 1
    with pytest.raises(snapshot.SnapshotError, match="not of the same moment"):
        Processor.from_parts(parts, configured((HAROW,)))
    processor.progress.labelled -= 1
    processor.progress.champion = "svm"
    with pytest.raises(snapshot.SnapshotError, match="lacks the model that answers"):
        Processor.from_parts(parts, configured((HAROW,)))


def test_a_poisoned_record_of_every_kind_changes_nothing():
    kinds = (HAROW,)
    clean = lines_of(delayed(news(30), 5))
    bad = [Line(0, data) for data in poison()] + [Line(0, b"{" * 9, too_long=True)]
    poisoned = [line for k, good in enumerate(clean) for line in (*bad[k % 19 : k % 19 + 1], good)]
    one, other = (Processor(TREE, learners(*kinds), config=configured(kinds)) for _ in range(2))
    expected, outcome = one.process(clean), other.process(poisoned)
    assert answers_of([outcome]) == answers_of([expected])
    assert len({error.reason for _, error in outcome.rejects}) >= 12
    assert sum(other.room.rejected.values()) == len(poisoned) - len(clean)
    one.progress.records, one.room.rejected = other.progress.records, other.room.rejected
    assert snapshot.dump_bytes(one.parts()) == snapshot.dump_bytes(other.parts())


def test_time_passes_and_never_goes_back():
    config = configured((HAROW,), labels=LabelsConfig(seconds=10))
    processor = Processor(TREE, learners(HAROW), config=config)
    a, b = ({"id": name, "text": "rates"} for name in "ab")
    processor.tick(100.0)
    processor.process(lines_of([a, {"id": "early", "labels": []}]))
    processor.tick(50.0)  # somebody set the clock back
    processor.process(lines_of([b]))
    processor.tick(109.0)
    assert (processor.room.n_documents, processor.room.n_labels) == (2, 1)
    assert processor.room.due(110.0)
    processor.tick(110.0)
    assert (processor.room.n_documents, processor.room.n_labels) == (0, 0)
    assert dict(processor.room.outcomes) == {"expired": 2, "orphan": 1}


def test_a_state_that_does_not_fit_is_refused():
    processor = Processor(TREE, learners(HAROW), config=configured((HAROW,)))
    parts = snapshot.load_bytes(snapshot.dump_bytes(processor.parts()))
    with pytest.raises(
        ValueError, match="the snapshot has the learners HAROW, the configuration HAROW, NodePA"
    ):
        Processor.from_parts(parts, configured((HAROW, NodePA)))
    with pytest.raises(ValueError, match=r"refit\.window = 5000, not 9"):
        Processor.from_parts(parts, configured((HAROW,), refit=RefitConfig(window=9, least=1)))
    with pytest.raises(ValueError, match="not the snapshot of a stream"):
        Processor.from_parts({"progress": 1}, configured((HAROW,)))
    with pytest.raises(ValueError, match="made for another taxonomy"):
        Processor(news(1).taxonomy, {"x": HAROW(type(TREE)([("a", None)]), n_features=8)})
