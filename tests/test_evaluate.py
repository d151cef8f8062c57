import json
import math
from collections import deque
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from river import linear_model, multioutput
from scipy.sparse import coo_array, csr_array, random_array, vstack

from stream_hc import HAROW, HPerceptron, NodePA, Taxonomy, TextVectorizer, evaluate, losses
from stream_hc.datasets import Dataset, make_news
from stream_hc.evaluate import (
    MEASURES,
    PROTOCOLS,
    Run,
    compare,
    holdout,
    progressive,
    score,
    vectorize_dataset,
)
from stream_hc.evaluate.means import running_mean, windowed_mean
from tests.strategies import examples

TREE = Taxonomy([("a", None), ("b", None), ("aa", "a"), ("ab", "a"), ("ba", "b"), ("aaa", "aa")])
DAG = Taxonomy([("a", None), ("b", None), ("ab", "a"), ("ab", "b"), ("x", "ab")])
LEARNERS = [HPerceptron, HAROW, NodePA]
N_FEATURES = 32


def stream(n: int, seed: int = 0, taxonomy: Taxonomy = TREE) -> tuple[csr_array, csr_array]:
    """Random documents whose labels have something to do with their features."""
    rng = np.random.default_rng(seed)
    X = random_array((n, N_FEATURES), density=0.2, format="csr", rng=rng, dtype=np.float32)
    strength = X[:, : len(taxonomy)].toarray() > 0.3
    return csr_array(X), taxonomy.label_rows(strength, close=True)


def dicts(X: csr_array) -> list[dict[int, float]]:
    return [dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in X]


def rows_of(X: csr_array) -> list[csr_array]:
    return [X[[row]] for row in range(X.shape[0])]


def naive_progressive(model: Any, X: csr_array, Y: csr_array, delay: int) -> csr_array:
    """Document by document, with the labels on the way in a queue."""
    predicted, on_the_way = [], deque[tuple[csr_array, csr_array]]()
    for x, y in zip(rows_of(X), rows_of(Y), strict=True):
        predicted.append(model.predict_many(x))
        on_the_way.append((x, y))
        if len(on_the_way) == delay + 1:
            model.learn_many(*on_the_way.popleft())
    return vstack(predicted, format="csr")


def assert_same_rows(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a.toarray(), b.toarray())


def assert_same_state(a: Any, b: Any) -> None:
    one, other = a.state(), b.state()
    assert one.keys() == other.keys()
    for key, value in one.items():
        np.testing.assert_array_equal(value, other[key])


# Progressive


@pytest.mark.parametrize("learner", LEARNERS)
@settings(max_examples=examples(10), deadline=None)
@given(n=st.integers(1, 30), delay=st.integers(0, 35), chunk=st.integers(1, 40), seed=st.integers(0, 99))
def test_delay_and_chunks_against_a_queue(learner: Any, n: int, delay: int, chunk: int, seed: int) -> None:
    X, Y = stream(n, seed)
    model, twin = learner(TREE, N_FEATURES), learner(TREE, N_FEATURES)
    run = progressive(model, X, Y, delay=delay, chunk=chunk)
    assert_same_rows(run.predictions, naive_progressive(twin, X, Y, delay))
    assert_same_state(model, twin)
    assert model.n_learned == max(0, n - delay)


@pytest.mark.parametrize("taxonomy", [TREE, DAG])
def test_without_delay_it_is_predict_then_learn(taxonomy: Taxonomy) -> None:
    X, Y = stream(60, taxonomy=taxonomy)
    expected = HAROW(taxonomy, N_FEATURES).predict_then_learn(X, Y)
    run = progressive(HAROW(taxonomy, N_FEATURES), X, Y, chunk=7)
    assert_same_rows(run.predictions, expected)
    for measure in ("zero_one", "h_loss", "symmetric_difference"):
        np.testing.assert_array_equal(run.values(measure), getattr(losses, measure)(taxonomy, expected, Y))
    np.testing.assert_array_equal(run.h_loss_by_depth, losses.h_loss_by_depth(taxonomy, expected, Y))
    assert run.micro_f1 == losses.precision_recall_f1(taxonomy, expected, Y).f1
    assert run.h_loss_by_depth.sum() == pytest.approx(run.mean("h_loss"))
    assert ("normalized_h_loss" in run.losses) == taxonomy.is_tree
    if taxonomy.is_tree:
        normalized = losses.h_loss(taxonomy, expected, Y, costs="normalized")
        np.testing.assert_array_equal(run.values("normalized_h_loss"), normalized)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("delay", [0, 3])
def test_one_by_one_equals_rows(learner: Any, delay: int) -> None:
    X, Y = stream(40)
    by_rows = progressive(learner(TREE, N_FEATURES), X, Y, delay=delay)
    one_by_one = progressive(learner(TREE, N_FEATURES), dicts(X), TREE.decode(Y), delay=delay)
    assert_same_rows(by_rows.predictions, one_by_one.predictions)
    assert by_rows.name == one_by_one.name == learner.__name__


@pytest.mark.parametrize("delay", [0, 4])
def test_pipeline_equals_rows(delay: int) -> None:
    news = make_news(40)
    # Without idf: in a pipeline a text is counted when it is learned, in a stream of rows when it is seen.
    vectorizer = TextVectorizer(256, idf=False)
    X, Y = vectorizer.transform(news.documents), news.taxonomy.encode(news.labels)
    by_rows = progressive(HAROW(news.taxonomy, 256), X, Y, delay=delay)
    pipeline = progressive(vectorizer | HAROW(news.taxonomy, 256), news.documents, news.labels, delay=delay)
    assert_same_rows(by_rows.predictions, pipeline.predictions)
    assert pipeline.name == "HAROW"


def test_any_river_classifier() -> None:
    X, Y = stream(30)
    documents, label_sets = dicts(X), TREE.decode(Y)

    def chain() -> Any:
        return multioutput.ClassifierChain(linear_model.LogisticRegression())

    run = progressive(chain(), documents, label_sets, taxonomy=TREE, delay=1)
    model, expected = chain(), []
    for t, x in enumerate(documents):
        expected.append({label for label, on in model.predict_one(x).items() if on})
        if t >= 1:
            model.learn_one(documents[t - 1], {node: node in label_sets[t - 1] for node in TREE})
    assert TREE.decode(run.predictions) == expected
    assert expected[0] == set()
    assert any(expected)


def test_a_learner_without_a_taxonomy_grows_one_by_one() -> None:
    X, Y = stream(30)
    run = progressive(HPerceptron(n_features=N_FEATURES), dicts(X), Y, taxonomy=TREE)
    assert 0 < run.mean("zero_one") <= 1
    with pytest.raises(ValueError, match="need a taxonomy"):
        progressive(HPerceptron(n_features=N_FEATURES), X, Y, taxonomy=TREE)


def test_rows_and_labels_in_any_form() -> None:
    X, Y = stream(25)
    expected = progressive(NodePA(TREE, N_FEATURES), X, Y).predictions
    for documents in (coo_array(X), X.toarray(), X.astype(np.float64), np.array(dicts(X)), iter(dicts(X))):
        run = progressive(NodePA(TREE, N_FEATURES), documents, TREE.decode(Y))
        assert_same_rows(run.predictions, expected)


def test_progress_reaches_the_total() -> None:
    X, Y = stream(10)
    calls: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        calls.append((done, total))

    progressive(NodePA(TREE, N_FEATURES), X, Y, chunk=4, progress=progress)
    assert calls == [(4, 10), (8, 10), (10, 10)]
    calls.clear()
    progressive(NodePA(TREE, N_FEATURES), dicts(X), Y, chunk=4, progress=progress)
    assert calls == [(4, 10), (8, 10), (10, 10)]
    for documents in (X, dicts(X)):
        calls.clear()
        holdout(NodePA(TREE, N_FEATURES), documents, Y, range(7), [8], chunk=5, progress=progress)
        assert calls == [(5, 7), (7, 7)]


def test_bad_arguments_say_what_would_be_good() -> None:
    X, Y = stream(5)
    model = HAROW(TREE, N_FEATURES)
    before = model.state()
    for arguments, message in [
        ({"delay": -1}, "delay must be a whole number of at least 0, not -1"),
        ({"delay": 1.5}, "delay must be a whole number"),
        ({"delay": True}, "delay must be a whole number"),
        ({"window": 0}, "window must be a whole number of at least 1"),
        ({"chunk": 0}, "chunk must be a whole number of at least 1"),
        ({"taxonomy": DAG}, "was made for Taxonomy"),
    ]:
        with pytest.raises(ValueError, match=message):
            progressive(model, X, Y, **arguments)  # type: ignore[arg-type]
    bad = X.toarray()
    bad[3, 4] = np.nan
    for documents, labels, message in [
        (X, Y[:4], "5 documents, but labels for 4"),
        (dicts(X), Y[:4], "5 documents, but labels for 4"),
        (X[:0], Y[:0], "no documents"),
        ([], [], "no documents"),
        ("a text", Y, "not str"),
        ({"a": 1.0}, Y, "not dict"),
        (7, Y, "not int"),
        (X[:, :8], Y, "n_features=32"),
        (X, [{"zebra"}] * 5, "zebra"),
        (bad, Y, "row 3, column 4"),
    ]:
        with pytest.raises(ValueError, match=message):
            progressive(model, documents, labels, chunk=1)
    for key, value in model.state().items():
        np.testing.assert_array_equal(value, before[key])
    chain = multioutput.ClassifierChain(linear_model.LogisticRegression())
    with pytest.raises(ValueError, match="taxonomy="):
        progressive(chain, dicts(X), Y)
    with pytest.raises(ValueError, match="no array path"):
        progressive(chain, X, Y, taxonomy=TREE)
    with pytest.raises(ValueError, match="LogisticRegression is not a multi-label classifier"):
        progressive(linear_model.LogisticRegression(), dicts(X), Y, taxonomy=TREE)


# Held out


class Remembers:
    """A batch model: knows what it was fitted on, and predicts the same for everything."""

    n_features = N_FEATURES

    def fit(self, X: csr_array, Y: csr_array) -> None:
        self.fitted = X, Y

    def predict_many(self, X: csr_array) -> csr_array:
        return TREE.label_rows([{"a"}] * X.shape[0])


def test_holdout_learns_once_and_then_stands_still() -> None:
    X, Y = stream(40)
    train, test = np.arange(5, 30), np.array([39, 0, 33])
    model, twin = NodePA(TREE, N_FEATURES), NodePA(TREE, N_FEATURES)
    twin.learn_many(X[train], Y[train])
    run = holdout(model, X, Y, train, test, chunk=4)
    assert_same_rows(run.predictions, twin.predict_many(X[test]))
    assert_same_state(model, twin)
    assert (len(run), run.n_processed) == (3, 28)
    one_by_one = holdout(NodePA(TREE, N_FEATURES), dicts(X), TREE.decode(Y), train, test)
    assert_same_rows(one_by_one.predictions, run.predictions)


def test_holdout_of_a_batch_model() -> None:
    X, Y = stream(10)
    model = Remembers()
    calls: list[tuple[int, int]] = []
    run = holdout(model, X, Y, [2, 1], [5], taxonomy=TREE, chunk=1, progress=lambda *args: calls.append(args))
    assert_same_rows(model.fitted[0], X[[2, 1]])
    assert TREE.decode(run.predictions) == [{"a"}]
    assert calls == [(2, 2)]
    with pytest.raises(ValueError, match="does not learn row by row"):
        progressive(model, X, Y, taxonomy=TREE)


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ([0, 1, 2], [2, 3], "1 rows are in train and in test, row 2"),
        ([], [2], "train must be a list of row numbers"),
        ([0], [0.5], "test must be a list of row numbers"),
        ([0], [[1]], "test must be a list of row numbers"),
        ([0], [1, 9], "test has row 9: rows run from 0 to 4"),
        ([-1], [1], "train has row -1"),
    ],
)
def test_holdout_refuses_bad_rows(train: Any, test: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        holdout(NodePA(TREE, N_FEATURES), *stream(5), train, test)


# Runs


def test_means_by_hand() -> None:
    values = np.array([3.0, 1.0, 0.0, 2.0, 2.0])
    assert running_mean(values).tolist() == [3, 2, 4 / 3, 1.5, 1.6]
    assert windowed_mean(values, 1).tolist() == values.tolist()
    assert windowed_mean(values, 3).tolist() == [3, 2, 4 / 3, 1, 4 / 3]
    assert windowed_mean(values, 99).tolist() == running_mean(values).tolist()
    assert windowed_mean(values[:0], 3).size == 0


@given(
    values=st.lists(st.floats(0, 1e6), min_size=1, max_size=60),
    window=st.integers(1, 70),
)
def test_windowed_mean_is_as_good_as_exact(values: list[float], window: int) -> None:
    for t, mean in enumerate(windowed_mean(np.array(values), window)):
        last = [Fraction(value) for value in values[max(0, t + 1 - window) : t + 1]]
        assert mean == pytest.approx(float(sum(last) / len(last)), rel=1e-13)


@given(values=st.lists(st.integers(0, 200), min_size=1, max_size=60), window=st.integers(1, 70))
def test_windowed_mean_of_whole_numbers_is_exact(values: list[int], window: int) -> None:
    expected = [
        sum(last) / len(last) for last in (values[max(0, t + 1 - window) : t + 1] for t in range(len(values)))
    ]
    assert windowed_mean(np.array(values, np.float64), window).tolist() == expected


def test_a_large_loss_leaves_no_trace_in_later_windows() -> None:
    values = np.concatenate([[1e17], np.full(99, 0.1)])
    assert np.abs(windowed_mean(values, 10)[10:] - 0.1).max() < 1e-15


@pytest.fixture
def run() -> Run:
    X, Y = stream(50)
    return progressive(HAROW(TREE, N_FEATURES), X, Y, delay=2, window=20, name="H-AROW")


def test_run(run: Run) -> None:
    assert len(run) == 50
    assert repr(run) == f"Run('H-AROW', 50 documents, H-loss {run.mean():.4f})"
    assert run.running("zero_one")[-1] == pytest.approx(run.mean("zero_one"))
    assert run.windowed("h_loss")[-1] == run.values("h_loss")[-20:].mean()
    np.testing.assert_array_equal(run.windowed("h_loss", 50), run.running("h_loss"))
    assert run.seconds > 0
    assert run.documents_per_second == 50 / run.seconds
    assert tuple(run.losses) == MEASURES
    with pytest.raises(ValueError, match="read-only"):
        run.values("h_loss")[0] = 0
    with pytest.raises(TypeError):
        run.losses["h_loss"] = np.zeros(3)  # type: ignore[index]
    with pytest.raises(ValueError, match=f"unknown measure 'h': choose one of {', '.join(MEASURES)}"):
        run.mean("h")  # type: ignore[arg-type]
    for window in (0, -3, 2.5):
        with pytest.raises(ValueError, match="window must be a whole number of at least 1"):
            run.windowed("h_loss", window)  # type: ignore[arg-type]


def test_run_as_json(run: Run) -> None:
    data = json.loads(run.to_json())
    assert data == run.summary()
    assert data["name"] == "H-AROW"
    assert (data["documents"], data["delay"], data["window"]) == (50, 2, 20)
    for measure in MEASURES:
        assert data[measure] == run.losses[measure].mean()
    assert data["h_loss_by_depth"] == run.h_loss_by_depth.tolist()
    assert math.isclose(sum(data["h_loss_by_depth"]), data["h_loss"])
    assert data["h_loss_last_window"] == run.windowed("h_loss")[-1]


def test_a_dag_has_no_normalized_h_loss() -> None:
    X, Y = stream(10, taxonomy=DAG)
    run = progressive(NodePA(DAG, N_FEATURES), X, Y, keep_predictions=False)
    assert run.predictions is None
    assert run.summary()["normalized_h_loss"] is None
    with pytest.raises(ValueError, match="choose one of zero_one, h_loss, symmetric_difference"):
        run.mean("normalized_h_loss")


def test_score_without_time() -> None:
    run = score("x", TREE, [{"a"}], [{"aa"}])
    assert run.documents_per_second == 0
    assert run.values("h_loss").tolist() == [1]


# Features of a data set


def test_texts_as_rows() -> None:
    news = make_news(30)
    X = vectorize_dataset(news, 512)
    assert_same_rows(X, TextVectorizer(512).learn_transform(news.documents))
    assert_same_rows(X[:10], vectorize_dataset(news.take(10), 512))  # no look ahead
    train = np.array([3, 1, 20])
    vectorizer = TextVectorizer(512)
    vectorizer.learn([news.documents[row] for row in train])
    assert_same_rows(vectorize_dataset(news, 512, train), vectorizer.transform(news.documents))


def test_feature_dicts_as_unit_rows() -> None:
    documents = [{"a": 3.0, "b": -4.0}, {}, {"c": 1e12, "d": 1e-36}, {"0": 0.0}]
    data = Dataset("four", TREE, list("1234"), documents, [frozenset()] * 4)
    X = vectorize_dataset(data, 1024)
    assert X.dtype == np.float32
    assert sorted(X[[0]].data.tolist()) == pytest.approx([-0.8, 0.6])
    assert np.diff(X.indptr).tolist() == [2, 0, 1, 0]
    np.testing.assert_allclose(X.power(2).sum(axis=1), [1, 0, 1, 0], rtol=1e-6)
    assert_same_rows(X, vectorize_dataset(data, 1024, train=[0]))


# Comparing


@pytest.fixture(scope="module")
def news() -> Dataset:
    news = make_news(60)
    splits = ["train"] * 30 + ["other"] * 10 + ["valid"] * 5 + ["test"] * 15
    return Dataset("news", news.taxonomy, news.ids, news.documents, news.labels, splits)


def some_models(taxonomy: Taxonomy) -> dict[str, Any]:
    return {
        "H-PERC": HPerceptron(taxonomy, 256),
        "H-AROW": HAROW(taxonomy, 128),
        "river": TextVectorizer(256, idf=False) | NodePA(taxonomy, 256),
    }


def test_compare_leaves_the_models_alone(news: Dataset) -> None:
    models = some_models(news.taxonomy)
    models["H-PERC"].learn_one({1: 1.0}, {news.taxonomy.nodes[0]})
    before = models["H-PERC"].state()
    comparison = compare(models, news)
    after = models["H-PERC"].state()
    for key, value in before.items():
        np.testing.assert_array_equal(value, after[key])
    assert models["H-AROW"].n_learned == 0
    assert list(models["river"].steps.values())[-1].n_learned == 0
    # And what they knew before plays no part.
    assert [run.mean() for run in compare(some_models(news.taxonomy), news).runs] == [
        run.mean() for run in comparison.runs
    ]


def test_compare_is_progressive_on_the_same_stream(news: Dataset) -> None:
    calls: list[tuple[str, int, int]] = []
    models = some_models(news.taxonomy)
    comparison = compare(models, news, delay=5, window=9, progress=lambda *args: calls.append(args))
    assert calls == [(name, 60, 60) for name in models]
    Y = news.taxonomy.encode(news.labels)
    for run, (name, model) in zip(comparison.runs, models.items(), strict=True):
        X = news.documents if name == "river" else vectorize_dataset(news, model.n_features)
        expected = progressive(model.clone(), X, Y, delay=5)
        np.testing.assert_array_equal(run.values("h_loss"), expected.values("h_loss"))
        assert (run.name, run.delay, run.window) == (name, 5, 9)
    assert comparison.title == "news: progressive, 60 documents scored, labels 5 documents later"


@pytest.mark.parametrize(
    ("protocol", "train", "test"),
    [
        ("two-thirds", range(40), range(40, 60)),
        ("own", [*range(30), *range(40, 45)], range(45, 60)),
        ("train-rest", [*range(30), *range(40, 45)], [*range(30, 40), *range(45, 60)]),
    ],
)
def test_compare_on_held_out_rows(news: Dataset, protocol: Any, train: Any, test: Any) -> None:
    model = HAROW(news.taxonomy, 256)
    comparison = compare({"x": model}, news, protocol=protocol)
    X, Y = vectorize_dataset(news, 256, train), news.taxonomy.encode(news.labels)
    expected = holdout(model, X, Y, list(train), list(test))
    np.testing.assert_array_equal(comparison.runs[0].values("h_loss"), expected.values("h_loss"))
    assert comparison.title == f"news: {protocol}, {len(test)} of 60 documents scored"


def test_compare_fits_batch_models_too() -> None:
    data = Dataset("d", TREE, list("123"), [{"a": 1.0}, {"b": 1.0}, {"c": 1.0}], [frozenset({"a"})] * 3)
    model = Remembers()
    assert compare({"batch": model}, data, protocol="two-thirds").runs[0].mean() == 0
    assert not hasattr(model, "fitted")


def test_compare_refuses(news: Dataset) -> None:
    models = some_models(news.taxonomy)
    with pytest.raises(ValueError, match=f"unknown protocol 'x': choose one of {', '.join(PROTOCOLS)}"):
        compare(models, news, protocol="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no models"):
        compare({}, news)
    with pytest.raises(ValueError, match="delay must be"):
        compare(models, news, delay=-1)
    with pytest.raises(ValueError, match="a delay needs the protocol 'progressive', not 'own'"):
        compare(models, news, protocol="own", delay=3)
    with pytest.raises(ValueError, match="was made for"):
        compare({"x": HAROW(TREE, 64)}, news)
    with pytest.raises(ValueError, match="no split of its own"):
        compare(models, make_news(9), protocol="own")


def summary_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def test_tables(news: Dataset) -> None:
    comparison = compare(some_models(news.taxonomy), news)
    header, ruler, *body = summary_of(comparison.to_markdown())
    columns = ["learner", "zero-one", "H-loss", "normalized H", "Δ-loss", "micro-F1", "documents/s"]
    assert header == columns
    assert ruler == ["---", *["---:"] * 6]
    assert [len(row) for row in body] == [7, 7, 7]
    assert [row[0] for row in body] == [run.name for run in comparison.ranking]
    for column, best in enumerate([min, min, min, min, max, max], start=1):
        values = [float(row[column].strip("*").replace(",", "")) for row in body]
        bold = [value for row, value in zip(body, values, strict=True) if row[column].startswith("**")]
        assert bold
        assert set(bold) == {best(values)}
    console = Console(width=120)
    with console.capture() as capture:
        console.print(comparison.table())
    shown = capture.get()
    for word in [*columns, "H-PERC", "H-AROW", "river", "news: progressive, 60 documents scored"]:
        assert word in shown
    for row in body:
        assert all(cell.strip("*") in shown for cell in row)


def test_table_cells_are_taken_literally_and_one_alone_is_not_bold() -> None:
    X, Y = stream(10, taxonomy=DAG)
    alone = progressive(NodePA(DAG, N_FEATURES), X, Y, name="[red]a|b")
    comparison = evaluate.Comparison("x", "progressive", 10, (alone,))
    assert "**" not in comparison.to_markdown()
    assert "[red]a\\|b" in comparison.to_markdown()
    assert " – " in comparison.to_markdown()
    console = Console(width=120)
    with console.capture() as capture:
        console.print(comparison.table())
    assert "[red]a|b" in capture.get()


def test_comparison_as_json(news: Dataset) -> None:
    comparison = compare(some_models(news.taxonomy), news)
    data = json.loads(comparison.to_json())
    assert data == comparison.to_dict()
    assert (data["dataset"], data["protocol"], data["documents"]) == ("news", "progressive", 60)
    assert [run["h_loss"] for run in data["runs"]] == sorted(run.mean() for run in comparison.runs)
    by_name = {run.name: run for run in comparison.runs}
    for entry in data["runs"]:
        for measure in MEASURES:
            assert entry[measure] == by_name[entry["name"]].losses[measure].mean()


@pytest.mark.compiled
def test_drift_is_seen_and_learned_away() -> None:
    news = make_news(6000, drift="sudden")
    runs = compare({"H-AROW": HAROW(news.taxonomy), "node PA": NodePA(news.taxonomy)}, news, window=500).runs
    for run in runs:
        line = run.windowed("h_loss")
        assert line[2999] < 0.6
        assert line[3499] > 1.5 * line[2999]
        assert line[-1] < 0.75 * line[3499]


def test_everything_public_is_there() -> None:
    assert sorted(evaluate.__all__) == sorted(set(evaluate.__all__))
    for name in evaluate.__all__:
        assert hasattr(evaluate, name)
