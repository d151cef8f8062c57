"""Counts by node: as if counted by hand, however the stream is cut; mistakes that really happened."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc import HPerceptron, NodePA, losses, snapshot
from stream_hc.kernels import node_counts as kernels
from stream_hc.learners.base import LabelRows
from stream_hc.runtime import Processor
from stream_hc.runtime.config import Config, JudgeConfig, ModelConfig
from stream_hc.runtime.node_counts import NodeCounts
from stream_hc.runtime.telemetry.mistakes import KEPT, Mistakes
from tests import naive
from tests.runtime.streams import delayed, lines_of, news
from tests.telemetry.watched import Watched

NODES = 6
ROWS = st.lists(st.sets(st.integers(0, NODES - 1)), min_size=1, max_size=30)


def rows_of(sets):
    indptr = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return LabelRows(indptr, np.array([node for row in sets for node in sorted(row)], np.int32))


@given(ROWS, st.data())
def test_counts_equal_those_by_hand(true, data):
    same = st.lists(st.sets(st.integers(0, NODES - 1)), min_size=len(true), max_size=len(true))
    predicted, charged = data.draw(same), data.draw(same)
    counts = np.zeros((NODES, 4), np.int64)
    kernels.count_nodes(counts, 0, len(true), *rows_of(predicted), *rows_of(true), *rows_of(charged))
    assert counts.tolist() == naive.count_nodes(NODES, predicted, true, charged)


@given(ROWS, st.integers(1, 12), st.lists(st.integers(1, 10)))
def test_cuts_do_not_matter(rows, size, cuts):
    labels, nothing = rows_of(rows), rows_of([set()] * len(rows))
    table = NodeCounts(NODES, size)
    ends = [min(len(rows), end) for end in itertools.accumulate(cuts)]
    for first, last in itertools.pairwise([0, *ends, len(rows)]):
        table.add(nothing, labels, nothing, first, last)
    recent_rows = rows[max(0, len(rows) // size - 1) * size :]
    assert table.all().counts[:, kernels.SUPPORT].tolist() == [
        sum(node in row for row in rows) for node in range(NODES)
    ]
    n_recent, counts = table.recent()
    assert n_recent == len(recent_rows)
    assert counts[:, kernels.SUPPORT].tolist() == [
        sum(node in row for row in recent_rows) for node in range(NODES)
    ]
    again = NodeCounts.from_state(table.state())
    assert (again.recent().counts == counts).all()
    assert again.n_counted == table.n_counted


@pytest.mark.parametrize(
    "change",
    [
        {"counts": np.zeros((3, 2, 5), np.int64)},
        {"counts": np.full((3, 2, 4), -1)},
        {"counts": np.zeros((3, 2, 4))},
        {"n_counted": -1},
        {"size": 0},
    ],
)
def test_a_state_that_cannot_be_is_refused(change):
    with pytest.raises(ValueError, match=r"counts|n_counted|size"):
        NodeCounts.from_state(NodeCounts(2, 10).state() | change)


def _processor(data):
    learners = {
        "h-perceptron": HPerceptron(data.taxonomy, n_features=512),
        "node-pa": NodePA(data.taxonomy, n_features=512),
    }
    judge = JudgeConfig(sample=50, least=10, every=10, sureness=0.0, margin=0.0)
    config = Config(model=ModelConfig(learners=list(learners), n_features=512), judge=judge)
    return Processor(data.taxonomy, learners, config=config)


def test_the_table_is_that_of_what_was_served_even_where_models_swap():
    data = news(300, drift="sudden")
    processor = _processor(data)
    answers, lines = {}, lines_of(delayed(data, 7))
    for first in range(0, len(lines), 37):
        for part in processor.process(lines[first : first + 37]).answers:
            answers |= {answer.id: set(answer.path_labels) for answer in part.predictions()}
    assert processor.progress.happened.get("swap"), "no swap: nothing to see"
    n = len(data) - 7
    tax = data.taxonomy
    predicted = [{tax.index(name) for name in answers[each]} for each in data.ids[:n]]
    true = [{tax.index(name) for name in tax.close(labels)} for labels in data.labels[:n]]
    first = losses.first_mistakes(tax, [answers[each] for each in data.ids[:n]], data.labels[:n])
    charged = [{tax.index(name) for name in row} for row in tax.decode(first)]
    assert processor.nodes.all().counts.tolist() == naive.count_nodes(len(tax), predicted, true, charged)
    parts = snapshot.load_bytes(snapshot.dump_bytes(processor.parts()))
    again = Processor.from_parts(parts, processor.config)
    assert (again.nodes.all().counts == processor.nodes.all().counts).all()


def test_a_snapshot_from_before_goes_on_without_counts():
    data = news(60)
    processor = _processor(data)
    processor.process(lines_of(delayed(data, 3)))
    parts = dict(processor.parts())
    del parts["nodes"]
    assert Processor.from_parts(parts, processor.config).nodes.n_counted == 0
    parts["nodes"] = NodeCounts(3, 50)
    with pytest.raises(snapshot.SnapshotError, match="other nodes"):
        Processor.from_parts(parts, processor.config)


def test_watching_changes_nothing():
    data = news(200, drift="sudden")
    outcomes = []
    for is_watched in (False, True):
        processor = _processor(data)
        processor.is_watched = is_watched
        outcome = processor.process(lines_of(delayed(data, 5)))
        outcomes.append(
            (b"".join(part.json_lines() for part in outcome.answers), snapshot.dump_bytes(processor.parts()))
        )
        assert bool(outcome.lessons) == is_watched == (outcome.told is not None)
    assert outcomes[0] == outcomes[1]


def test_mistakes_are_those_of_the_answers(tmp_path):
    job = Watched(tmp_path, 300, 20)
    telemetry = job.run()
    answers, tax = job.answers, job.taxonomy
    true = {name: tax.close(labels) for name, labels in zip(job.data.ids, job.data.labels, strict=True)}
    labelled = job.data.ids[:-20]
    for name in tax.nodes:
        wrong = [each for each in reversed(labelled) if (name in answers[each]) != (name in true[each])]
        found = telemetry.mistakes.at_node(tax.index(name), most=1000)
        assert [mistake.id for mistake in found] == wrong
        for mistake in found:
            assert (mistake.kind == "missed") == (name in true[mistake.id])
            assert set(mistake.predicted) == tax.most_specific(answers[mistake.id])
            assert set(mistake.true) == tax.most_specific(true[mistake.id])
            assert labelled[mistake.labelled - 1] == mistake.id


def test_old_mistakes_are_forgotten():
    data = news(50)
    processor = _processor(data)
    processor.is_watched = True
    (lessons,) = processor.process(lines_of(delayed(data, 0))).lessons
    mistakes = Mistakes(data.taxonomy)
    for _ in range(3 * KEPT // 50):
        mistakes.add(lessons)
    kept = sum(len(each.served) for _, each in mistakes._kept)
    assert KEPT <= kept < KEPT + 50
