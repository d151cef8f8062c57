"""The bench itself: streams of the stated shape, contestants that run, verdicts that can fail."""

import dataclasses
import json

import numpy as np
import pytest
from rich.console import Console
from river import linear_model

from bench import guard, ours
from bench.accuracy import Score, judge
from bench.chart import draw
from bench.contest import Contestant
from bench.endless import Endless, run_endless
from bench.labels import closed, rows_of_labels, truncated
from bench.limit import GATHER, limit
from bench.material import Material, split
from bench.page import page
from bench.peers import river_nodes, scikit
from bench.report import as_json, print_report
from bench.required import LEAST, Verdict, accuracy_verdict, endless_verdicts, speed_verdicts
from bench.rounds import Timing, measure, ratio
from bench.run import Results, Sizes
from bench.streams import news_like, single_path
from stream_hc import HPerceptron, Taxonomy, TextVectorizer
from tests.conftest import ROOT
from tests.strategies import size


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    return Material(news_like(size(60, 20), seed=3), tmp_path_factory.mktemp("bench"))


# Streams


def test_a_stream_is_the_same_every_time():
    assert news_like(50, seed=5) == news_like(50, seed=5)
    assert news_like(50, seed=5).texts != news_like(50, seed=6).texts


def test_the_news_have_the_shape_of_rcv1():
    stream = news_like(2_000)
    assert len(stream.taxonomy) == 103
    assert stream.taxonomy.roots.size == 4
    terms = [len(set(TextVectorizer().tokens(text))) for text in stream.texts]
    assert 69 < np.mean(terms) < 75
    labels = stream.taxonomy.encode(stream.labels)
    assert 2 < labels.nnz / 2_000 < 6
    inner = set(stream.taxonomy.nodes) - {stream.taxonomy.nodes[leaf] for leaf in stream.taxonomy.leaves}
    assert any(stream.taxonomy.most_specific(given) & inner for given in stream.labels)  # partial paths


def test_noise_changes_labels_and_nothing_else():
    clean, noisy = news_like(2_000, noise=0.0), news_like(2_000, noise=0.1)
    assert clean.texts == noisy.texts
    changed = np.mean([a != b for a, b in zip(clean.labels, noisy.labels, strict=True)])
    assert 0.07 < changed < 0.12


def test_a_single_path_ends_in_one_leaf():
    stream = single_path(200)
    assert stream.taxonomy.leaves.size == 5_000
    assert all(len(given) == 1 for given in stream.labels)
    assert np.diff(stream.taxonomy.encode(stream.labels).indptr).tolist() == [3] * 200


def test_dictionaries_hold_the_same_numbers_as_the_rows(material):
    foreign = 0
    for row, features in enumerate(material.dicts):
        expected = material.X.data[material.X.indptr[row] : material.X.indptr[row + 1]]
        assert sorted(features.values()) == sorted(expected.tolist())
        foreign += len(features.keys() - set(TextVectorizer().tokens(material.stream.texts[row])))
    assert foreign < 0.03 * material.X.nnz  # where two words share a column, one stands for both


# Contestants


def test_all_of_ours_run(material):
    contestants = [limit(material), *ours.from_rows(material), ours.from_texts(material)]
    contestants += [ours.from_json(material), ours.from_dicts(material.first(5))]
    timings = measure(contestants, rounds=1)
    assert all(timing.median > 0 for timing in timings.values())


def test_json_lines_are_predicted_as_rows_are(material):
    contestant = ours.from_json(material)
    answers = [
        json.loads(line) for part in contestant.run(contestant.prepare()) for line in part.splitlines()
    ]
    rows = HPerceptron(material.stream.taxonomy).predict_then_learn(material.X, material.Y)
    assert [set(answer["path_labels"]) for answer in answers] == material.stream.taxonomy.decode(rows)


def test_the_limit_adds_up_rows(material):
    contestant = limit(material)
    assert contestant.run(contestant.prepare()) == pytest.approx(contestant.run(None))
    assert contestant.documents == size(60, 20)


class _Node:
    """River's interface to a perceptron without intercept, in plain Python."""

    def __init__(self):
        self.weights = {}

    def predict_one(self, x):
        return sum(value * self.weights.get(name, 0.0) for name, value in x.items()) > 0

    def learn_one(self, x, y):
        if self.predict_one(x) != y:
            for name, value in x.items():
                self.weights[name] = self.weights.get(name, 0.0) + (value if y else -value)


def test_river_top_down_is_the_perceptron_judged_by_node(material):
    taxonomy = material.stream.taxonomy
    theirs = river_nodes.RiverTopDown(taxonomy, _Node)
    mine = HPerceptron(taxonomy, judged_by="node")
    for x, labels in zip(material.dicts, material.stream.labels, strict=True):
        on = mine.predict_one(x)
        assert {taxonomy.nodes[node] for node in theirs.predict_one(x)} == {name for name in on if on[name]}
        mine.learn_one(x, labels)
        theirs.learn_one(x, frozenset(map(taxonomy.index, taxonomy.close(labels))))


def test_river_top_down_asks_and_trains_as_a_slow_twin_does(material):
    taxonomy = material.stream.taxonomy
    fast, models = river_nodes.RiverTopDown(taxonomy), [linear_model.Perceptron() for _ in taxonomy]
    for x, labels in zip(material.dicts[:20], material.stream.labels, strict=False):
        on: set[int] = set()
        for node, model in enumerate(models):
            if on.issuperset(taxonomy.parents(node).tolist()) and model.predict_one(x):
                on.add(node)
        assert fast.predict_one(x) == on
        true = frozenset(map(taxonomy.index, taxonomy.close(labels)))
        for node, model in enumerate(models):
            if true.issuperset(taxonomy.parents(node).tolist()):
                model.learn_one(x, node in true)
        fast.learn_one(x, true)


@pytest.mark.compiled
def test_the_peers_at_hand_run(material):
    contestants = [*scikit.contestants(material), *river_nodes.contestants(material.first(5))]
    contestants.append(river_nodes.from_texts(material))
    assert len(measure(contestants, rounds=1)) == 6


# Accuracy

TREE = Taxonomy([("a", None), ("b", "a"), ("c", "b"), ("d", None)])


def test_labels_are_mended_in_two_ways():
    Y = rows_of_labels([[2], [0, 2], [0, 1, 2], []], TREE)
    names = [TREE.nodes[node] for node in range(4)]
    assert names == ["a", "d", "b", "c"]
    assert TREE.decode(closed(Y, TREE)) == [{"a", "b"}, {"a", "b"}, {"a", "b", "d"}, set()]
    assert TREE.decode(truncated(Y, TREE)) == [set(), {"a", "b"}, {"a", "b", "d"}, set()]


@pytest.mark.compiled
def test_everyone_is_judged_on_the_other_documents(tmp_path):
    halves = split(news_like(300), 200, tmp_path)
    scores = judge([*ours.entrants(), *scikit.entrants()], halves)
    assert len(halves.test.stream.texts) == 100
    assert {score.name for score in scores if score.ours} == {one.name for one in ours.entrants()}
    assert all(0 < score.zero_one <= 1 and 0 <= score.micro_f1 < 1 for score in scores)


# Verdicts

GOOD = Score("ours", True, "", 0.3, 0.5, 0.04, 0.9)
PEER = Score("peer", False, "cut", 0.4, 0.6, 0.05, 0.8)


def test_one_of_ours_has_to_be_ahead_on_every_measure():
    assert accuracy_verdict([GOOD, PEER]).met
    for worse in ({"zero_one": 0.4}, {"h_uniform": 0.6}, {"h_normalized": 0.06}, {"micro_f1": 0.8}):
        assert not accuracy_verdict([dataclasses.replace(GOOD, **worse), PEER]).met
    # Two that share the work do not count.
    shared = [dataclasses.replace(GOOD, name="1", zero_one=0.5), dataclasses.replace(GOOD, micro_f1=0.7)]
    assert not accuracy_verdict([*shared, PEER]).met


def test_speed_is_judged_by_the_ratios_measured():
    pair, least = next(iter(LEAST.items()))
    assert [verdict.met for verdict in speed_verdicts({pair: least})] == [True]
    assert [verdict.met for verdict in speed_verdicts({pair: 0.99 * least})] == [False]
    assert "MISSED" in str(speed_verdicts({pair: 0.0})[0])


def test_the_required_pairs_are_names_of_contestants(material):
    known = {GATHER, ours.TEXTS, ours.JSON_LINES, ours.DICTS, *ours.LEARNERS}
    known |= {scikit.HASHING, scikit.NODES, scikit.PA_NODES, river_nodes.NODES}
    known |= {"VW multilabel_oaa", "VW multilabel_oaa, answers written"}
    assert {name for pair in LEAST for name in pair} <= known


def test_an_endless_stream_may_neither_slow_down_nor_grow():
    calm = Endless(1_000, [1.0] * 10, [100] * 10, bound=100, slowdown=1.0)
    assert all(verdict.met for verdict in endless_verdicts(calm))
    for change in ({"slowdown": 1.3}, {"held": [*[100] * 9, 101]}, {"bound": 99}):
        assert not all(verdict.met for verdict in endless_verdicts(dataclasses.replace(calm, **change)))


def test_the_guard_complains_when_a_ratio_halves():
    assert guard.fallen({"a ÷ b": 1.01}, {"a ÷ b": 2.0}) == []
    (complaint,) = guard.fallen({"a ÷ b": 0.99}, {"a ÷ b": 2.0})
    assert complaint == "a ÷ b is 0.99, less than half of its baseline 2"


def test_the_guard_complains_about_a_ratio_it_does_not_know():
    assert len(guard.fallen({"new": 1.0}, {"old": 1.0})) == 2


def test_the_baseline_has_every_ratio_and_no_times():
    baseline = json.loads(guard.BASELINE.read_text())
    assert baseline.keys() == {f"{fast} ÷ {slow}" for fast, slow in guard.RATIOS}
    assert all(0 < value < 1_000 for value in baseline.values())


@pytest.mark.parametrize(("rate", "code"), [(1.1, 0), (0.4, 1)])
def test_the_guard_says_so_by_its_exit_code(monkeypatch, capsys, rate, code):
    baseline = json.loads(guard.BASELINE.read_text())
    monkeypatch.setattr(guard, "measured", lambda: {name: rate * value for name, value in baseline.items()})
    assert guard.main([]) == code
    assert ("less than half" in capsys.readouterr().err) == bool(code)


# Rounds and report


def test_rounds_are_interleaved_and_the_first_does_not_count():
    seen = []
    contestants = [Contestant(name, "g", 1, seen.append, lambda name=name: name) for name in "ab"]
    timings = measure(contestants, rounds=2)
    assert seen == ["a", "b"] * 3
    assert len(timings["a"].rates) == 2


def test_a_ratio_is_the_median_of_the_ratios():
    timings = {
        name: Timing(Contestant(name, "g", 1, print), rates)
        for name, rates in {"a": [2, 9, 6], "b": [1, 1, 2]}.items()
    }
    assert ratio(timings, "a", "b") == 3


@pytest.mark.compiled
def test_a_short_endless_stream():
    endless = run_endless(100)
    assert endless.documents == 100
    assert len(endless.rates) == len(endless.held) == 10


def test_the_report_has_what_was_measured(tmp_path, capsys):
    contestant = Contestant("H-PERC", "rows", 10, print, ours=True)
    timings = {
        "H-PERC": Timing(contestant, [4_000.0]),
        GATHER: Timing(dataclasses.replace(contestant, name=GATHER), [8_000.0]),
    }
    endless = Endless(1_000, [5.0] * 10, [2_000_000] * 10, bound=3_000_000, slowdown=1.0)
    results = Results(Sizes(), {"RCV1-like": timings}, {"RCV1-like": [GOOD, PEER]}, endless=endless)
    verdicts = [Verdict("this", 1.0, 2.0)]
    print_report(results, verdicts, Console(width=150))
    printed = capsys.readouterr().out
    assert "4,000" in printed
    assert "MISSED: this" in printed
    content = json.loads(as_json(results, verdicts))
    assert content["documents_per_second"]["RCV1-like"]["H-PERC"] == [4_000.0]
    text = page(results, endless, verdicts, "chart.png")
    assert "| rows | H-PERC | 10 | 4,000 | 0.50 |" in text
    assert "| **ours** | respects it | 0.3000 |" in text
    assert str(ROOT) not in text
    draw(timings, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").stat().st_size > 1_000
