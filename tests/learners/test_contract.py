"""Every learner keeps every promise."""

import copy
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, csr_matrix

from stream_hc import HAROW, HRLS, HPerceptron, NodePA, Perceptron, Taxonomy, snapshot
from stream_hc.datasets import make_news
from stream_hc.learners import LEARNERS, LinearLearner, PathLearner, RankingPerceptron
from stream_hc.vectorize import TextVectorizer
from tests.strategies import N_FEATURES, documents, label_sets, streams, to_rows

NEWS = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])

MAKERS = {
    "h-perceptron": lambda taxonomy, **kw: HPerceptron(taxonomy, n_features=N_FEATURES, **kw),
    "by node": lambda taxonomy, **kw: HPerceptron(taxonomy, n_features=N_FEATURES, judged_by="node", **kw),
    "perceptron": lambda taxonomy, **kw: Perceptron(taxonomy, n_features=N_FEATURES, **kw),
    "h-arow": lambda taxonomy, **kw: HAROW(taxonomy, n_features=N_FEATURES, **kw),
    "node-pa": lambda taxonomy, **kw: NodePA(taxonomy, n_features=N_FEATURES, C=0.5, **kw),
    "h-rls": lambda taxonomy, **kw: HRLS(taxonomy, n_features=N_FEATURES, **kw),
    "h-rls, budget": lambda taxonomy, **kw: HRLS(taxonomy, n_features=N_FEATURES, budget=3, **kw),
}

every_learner = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
# Those with a table of weights; what others keep is damaged in tests of their own.
every_linear_learner = pytest.mark.parametrize(
    "make", [make for name, make in MAKERS.items() if not name.startswith("h-rls")]
)
cold_starts = st.sampled_from(["negative", "paper"])


def same_state(one, other):
    a, b = one.state(), other.state()
    assert a.keys() == b.keys()
    for key in a:
        if isinstance(a[key], np.ndarray):
            assert a[key].dtype == b[key].dtype
            assert a[key].tobytes() == b[key].tobytes(), key
        else:
            assert a[key] == b[key], key


def trained(make, stream, **kw):
    taxonomy, xs, ys = stream
    model = make(taxonomy, **kw)
    for x, y in zip(xs, ys, strict=True):
        model.learn_one(x, y)
    return model


@every_learner
@given(stream=streams(), cold_start=cold_starts)
def test_one_by_one_and_batch_give_the_same_bits(make, stream, cold_start):
    taxonomy, xs, ys = stream
    one, batch, halves = (make(taxonomy, cold_start=cold_start) for _ in range(3))
    answers = []
    for x, y in zip(xs, ys, strict=True):
        answers.append({label for label, on in one.predict_one(x).items() if on})
        one.learn_one(x, y)
    X, Y = to_rows(xs), taxonomy.encode(ys)
    assert taxonomy.decode(batch.predict_then_learn(X, Y)) == answers
    middle = len(xs) // 2
    halves.learn_many(X[:middle], Y[:middle])
    halves.learn_many(X[middle:], ys[middle:])
    same_state(one, batch)
    same_state(one, halves)
    assert one.n_learned == len(xs)
    margins = batch.margins(X)
    assert margins.shape == (len(xs), len(taxonomy))
    for row, x in enumerate(xs):
        assert one.margins(to_rows([x]))[0].tobytes() == margins[row].tobytes()
        predicted = one.predict_one(x)
        assert list(predicted) == list(taxonomy.nodes)
        assert {label for label, on in predicted.items() if on} == taxonomy.decode(batch.predict_many(X))[row]


@every_learner
@given(stream=streams(), cold_start=cold_starts)
def test_predictions_respect_the_taxonomy_and_change_nothing(make, stream, cold_start):
    model = trained(make, stream, cold_start=cold_start)
    before = copy.deepcopy(model)
    for x in stream[1]:
        answer = model.predict_one(x)
        assert stream[0].respects(answer)
        model.predict_proba_one(x)
    model.margins(to_rows(stream[1]))
    model.predict_many(to_rows(stream[1]))
    same_state(model, before)


@every_learner
@given(stream=streams(), cold_start=cold_starts)
def test_scores_are_the_margins_at_the_time_of_the_prediction(make, stream, cold_start):
    taxonomy, xs, ys = stream
    one, batch = make(taxonomy, cold_start=cold_start), make(taxonomy, cold_start=cold_start)
    scored = batch.predict_then_learn(to_rows(xs), ys, scores=True)
    assert scored.dtype == np.float32
    for row, (x, y) in enumerate(zip(xs, ys, strict=True)):
        part = slice(scored.indptr[row], scored.indptr[row + 1])
        on = [node for node, yes in enumerate(one.predict_one(x).values()) if yes]
        assert scored.indices[part].tolist() == on
        assert scored.data[part].tolist() == one.margins(to_rows([x]))[0, on].tolist()
        one.learn_one(x, y)
    again = one.predict_many(to_rows(xs), scores=True)
    assert again.indices.tolist() == one.predict_many(to_rows(xs)).indices.tolist()
    rows = np.repeat(np.arange(len(xs)), np.diff(again.indptr))
    assert again.data.tolist() == one.margins(to_rows(xs))[rows, again.indices].tolist()


@every_learner
@given(stream=streams(), cold_start=cold_starts)
def test_scores_agree_with_predictions(make, stream, cold_start):
    model = trained(make, stream, cold_start=cold_start)
    for x in stream[1]:
        answer, scores = model.predict_one(x), model.predict_proba_one(x)
        assert list(scores) == list(answer)
        for label, score in scores.items():
            assert set(score) == {True, False}
            assert score[True] + score[False] == pytest.approx(1)
            assert answer[label] == (score[True] >= 0.5 if cold_start == "paper" else score[True] > 0.5)
            for parent in stream[0].parents(label):
                assert score[True] <= scores[stream[0].nodes[parent]][True]


@every_learner
@given(data=st.data())
def test_state_continues_identically(make, data):
    stream = data.draw(streams())
    taxonomy, _xs, _ys = stream
    model = trained(make, stream)
    resumed = type(model).from_state(model.state())
    through_file = snapshot.load_bytes(snapshot.dump_bytes(model))
    same_state(model, resumed)
    same_state(model, through_file)
    x, y = data.draw(documents), data.draw(label_sets(taxonomy))
    for continued in (model, resumed, through_file):
        continued.learn_one(x, y)
    same_state(model, resumed)
    same_state(model, through_file)
    assert snapshot.dump_bytes(model) == snapshot.dump_bytes(resumed)


@every_learner
def test_state_is_a_copy(make):
    model = make(NEWS)
    model.learn_one({1: 1.0}, {"tennis"})
    state = model.state()
    model.learn_one({1: 1.0}, {"politics"})
    again = type(model).from_state(state)
    again.learn_one({1: 1.0}, {"politics"})
    same_state(model, again)


@every_learner
@given(data=st.data())
def test_reordering_siblings_permutes_the_answer(make, data):
    taxonomy, xs, ys = data.draw(streams())
    other = Taxonomy(data.draw(st.permutations(taxonomy.edges)))
    one, two = trained(make, (taxonomy, xs, ys)), trained(make, (other, xs, ys))
    for x in xs:
        assert one.predict_one(x) == two.predict_one(x)


@given(stream=streams(), cold_start=cold_starts)
def test_on_a_flat_taxonomy_all_perceptrons_are_one(stream, cold_start):
    _, xs, ys = stream
    flat = Taxonomy([(name, None) for name in stream[0].nodes])
    models = [
        trained(MAKERS[name], (flat, xs, ys), cold_start=cold_start)
        for name in ("h-perceptron", "by node", "perceptron")
    ]
    weights = [model.state()["weights"].tobytes() for model in models]
    assert weights[0] == weights[1] == weights[2]


@every_learner
def test_labels_in_every_form(make):
    models = [make(NEWS) for _ in range(5)]
    forms = [
        {"tennis"},
        ["tennis", "sport"],
        ("tennis",),
        {"tennis": True, "politics": False},
        frozenset({"tennis"}),
    ]
    for model, y in zip(models, forms, strict=True):
        model.learn_one({"racket": 1.0}, y)
        same_state(model, models[0])


@every_learner
def test_rows_in_every_form(make):
    X, Y = to_rows([{0: 1.0, 3: 0.5}, {3: 1.0}]), NEWS.encode([{"tennis"}, {"politics"}])
    unsorted = csr_array((np.array([0.5, 1.0, 1.0], np.float32), [3, 0, 3], [0, 2, 3]), shape=X.shape)
    doubled = coo_array(([0.25, 0.25, 1.0, 1.0, 0.0], ([0, 0, 0, 1, 1], [3, 3, 0, 3, 5])), shape=X.shape)
    kept = doubled.copy()
    reference = make(NEWS)
    reference.learn_many(X, Y)
    for form in (X.toarray(), X.astype(np.float64), csr_matrix(X), unsorted, doubled, X.tocsc()):
        model = make(NEWS)
        model.learn_many(form, Y)
        same_state(model, reference)
    assert (doubled.toarray() == kept.toarray()).all()
    unclosed = csr_array(
        ([True, True], [NEWS.index("tennis"), NEWS.index("politics")], [0, 1, 2]), shape=Y.shape
    )
    for labels in (unclosed, Y.toarray(), [{"tennis"}, {"politics"}], Y.astype(np.int8)):
        model = make(NEWS)
        model.learn_many(X, labels)
        same_state(model, reference)


BAD_DICTS = [
    ({"a": 1.0, "rate": float("nan")}, "'rate' is nan"),
    ({"a": 1.0, "rate": float("inf")}, "'rate' is inf"),
    ({"a": 1.0, "rate": -1e300}, "'rate' is -1e"),
    ({"a": 1.0, "rate": 3e38}, r"at most 1e\+12"),
    ({"a": 1.0, "rate": 10**400}, "'rate' is 1000"),
    ({"complex": 1 + 2j}, "'complex'"),
    ({"complex": np.complex64(1 + 2j)}, "'complex'"),
    ({"time": np.timedelta64(5, "s")}, "'time'"),
    ({"a": 1.0, "word": "red"}, "'word' is 'red'"),
    ({"word": "1.5"}, "'word' is '1.5'"),
    ({"a": 1.0, "none": None}, "'none' is None"),
    ({"list": [1.0]}, "'list'"),
    ({"a": 1.0, "list": [1.0, 2.0]}, "'list'"),
    ({1.5: 1.0}, "name must be a str or an int"),
    ([1.0, 2.0], "must be a dict"),
    ("text", "must be a dict"),
]


@every_learner
@pytest.mark.parametrize(("x", "message"), BAD_DICTS)
def test_bad_features_are_named_and_change_nothing(make, x, message):
    model = make(NEWS)
    model.learn_one({"a": 1.0}, {"tennis"})
    before = copy.deepcopy(model)
    for call in (
        lambda: model.learn_one(x, {"sport"}),
        lambda: model.predict_one(x),
        lambda: model.predict_proba_one(x),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    same_state(model, before)


def bad_rows():
    good = to_rows([{0: 1.0}, {1: 1.0}, {2: 1.0}])
    nan, inf, huge = (good.astype(np.float64).copy() for _ in range(3))
    nan.data[1], inf.data[2], huge.data[0] = np.nan, -np.inf, 1e200
    damaged = good.copy()
    damaged.indices = damaged.indices.copy()
    damaged.indices[1] = 10_000
    yield nan, "row 1, column 1 is nan"
    yield inf, "row 2, column 2 is -inf"
    yield huge, "row 0, column 0"
    twice = csr_array((np.array([6e11, 6e11], np.float32), [0, 0], [0, 2, 2, 2]), shape=good.shape)
    yield twice, "row 0, column 0 is 1"
    yield good[:, :-1], f"11 columns, the learner has n_features={N_FEATURES}"
    yield damaged, "damaged"
    yield np.zeros(N_FEATURES), "must be a sparse array"
    yield [[1.0] * N_FEATURES], "must be a sparse array"
    yield np.full((3, N_FEATURES), "a"), "not numbers"


@every_learner
@pytest.mark.parametrize(("X", "message"), list(bad_rows()))
def test_bad_rows_are_named_and_none_is_learned(make, X, message):
    model = make(NEWS)
    before = copy.deepcopy(model)
    Y = NEWS.encode([{"tennis"}] * 3)
    for call in (model.learn_many, model.predict_then_learn):
        with pytest.raises(ValueError, match=message):
            call(X, Y)
    for call in (model.predict_many, model.margins):
        with pytest.raises(ValueError, match=message):
            call(X)
    same_state(model, before)


@every_learner
def test_bad_labels_are_named_and_change_nothing(make):
    model = make(NEWS)
    before = copy.deepcopy(model)
    X = to_rows([{0: 1.0}, {1: 1.0}])
    with pytest.raises(ValueError, match="unknown label 'golf'"):
        model.learn_one({0: 1.0}, {"tennis", "golf"})
    with pytest.raises(ValueError, match="must be a set, a list or a dict"):
        model.learn_one({0: 1.0}, "tennis")
    with pytest.raises(ValueError, match="row 1: unknown label 'golf'"):
        model.learn_many(X, [{"tennis"}, {"golf"}])
    with pytest.raises(ValueError, match="do not fit 4 nodes"):
        model.learn_many(X, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="2 documents, but labels for 3"):
        model.learn_many(X, NEWS.encode([set()] * 3))
    for arguments in ({"delay": -1}, {"delay": 1.5}, {"delay": "1"}, {"start": 3}, {"start": -1}):
        with pytest.raises(ValueError, match=r"(delay|start) must be a whole number"):
            model.predict_then_learn(X, NEWS.encode([set()] * 2), **arguments)
    same_state(model, before)


@pytest.mark.parametrize("kind", LEARNERS.values())
def test_bad_arguments(kind):
    for bad, message in [
        ({"n_features": 0}, "n_features"),
        ({"n_features": 2**31}, "n_features"),
        ({"n_features": 64.0}, "n_features must be a whole number"),
        ({"n_features": "8"}, "n_features must be a whole number"),
        ({"n_features": True}, "n_features must be a whole number"),
        ({"cold_start": "warm"}, "unknown cold_start 'warm': choose one of negative, paper"),
        ({"taxonomy": [("a", None)]}, "taxonomy must be a Taxonomy"),
    ]:
        with pytest.raises(ValueError, match=message):
            kind(**bad)


def test_bad_strengths():
    for bad in (0, -1.0, float("inf"), float("nan"), "x", None, True):
        with pytest.raises(ValueError, match="r must be positive"):
            HAROW(NEWS, r=bad)
        with pytest.raises(ValueError, match="C must be positive"):
            NodePA(NEWS, C=bad)
    with pytest.raises(ValueError, match="unknown judged_by 'all'"):
        HPerceptron(NEWS, judged_by="all")


@every_learner
def test_a_document_without_features_counts_and_trains_nothing(make):
    for cold_start, answer in (("negative", set()), ("paper", set(NEWS.nodes))):
        model = make(NEWS, cold_start=cold_start)
        for empty in ({}, {0: 0.0}, {"a": 1e-60}):
            assert {label for label, on in model.predict_one(empty).items() if on} == answer
            model.learn_one(empty, {"tennis"})
        model.learn_many(csr_array((2, N_FEATURES), dtype=np.float32), [{"tennis"}, set()])
        assert model.n_learned == 5
        assert not model.n_updates.any()
        assert model.state()["features"].size == 0


@every_learner
def test_the_largest_features_keep_everything_finite(make):
    model = make(NEWS)
    for row in range(60):
        x = {0: 1e12 if row % 2 else -1e12, 1: 1e12, 2: 1e-30}
        model.learn_one(x, ["football"] if row % 3 else ["politics"])
    arrays = [value for value in model.state().values() if isinstance(value, np.ndarray)]
    assert all(np.isfinite(array).all() for array in arrays)
    assert np.isfinite(model.margins(to_rows([{0: 1e12, 1: -1e12}]))).all()
    same_state(model, snapshot.load_bytes(snapshot.dump_bytes(model)))


@every_learner
def test_cold_start(make):
    x = {0: 1.0}
    assert not any(make(NEWS).predict_one(x).values())
    assert all(make(NEWS, cold_start="paper").predict_one(x).values())
    model = make(NEWS)
    model.learn_one(x, {"sport"})
    assert model.margins(to_rows([x]))[0, NEWS.index("sport")] > 0
    untouched = [node for node in range(4) if model.n_updates[node] == 0]
    assert not model.margins(to_rows([x]))[0, untouched].any()


@every_learner
def test_labels_grow_a_flat_taxonomy(make):
    model, fixed = make(None), make(Taxonomy([(f"label {i}", None) for i in range(40)]))
    assert model.predict_one({0: 1.0}) == {}
    for i in range(40):
        x, y = (
            {i % 5: 1.0, 5 + i % 7: 0.5},
            {f"label {j}" for j in range(i + 1) if (i + j) % 3 == 0} | {f"label {i}"},
        )
        y = {f"label {j}": f"label {j}" in y for j in range(i + 1)}
        model.learn_one(x, y)
        assert model.nodes == tuple(f"label {j}" for j in range(i + 1))
        assert set(model.predict_one(x)) == set(model.nodes)
        fixed.learn_one(x, {label for label, on in y.items() if on})
    assert model.taxonomy is None
    resumed = type(model).from_state(model.state())
    same_state(model, resumed)
    resumed.learn_one({0: 1.0}, ["one more"])
    assert resumed.nodes[-1] == "one more"
    with pytest.raises(ValueError, match="rows of labels need a taxonomy"):
        model.learn_many(to_rows([{0: 1.0}]), np.ones((1, 40)))
    assert model.predict_many(to_rows([{0: 1.0}])).shape == (1, 40)
    before = copy.deepcopy(model)
    one_shot = type(model)(n_features=N_FEATURES)
    one_shot.learn_one({0: 1.0}, (label for label in ["x", "y"]))
    assert one_shot.predict_one({0: 1.0}) == {"x": True, "y": True}
    for bad in ("sport", [3], [""], [["sport"]]):
        with pytest.raises(ValueError, match=r"label|name"):
            model.learn_one({0: 1.0}, bad)
    same_state(model, before)


@every_learner
def test_string_features_are_hashed_and_integers_are_columns(make):
    by_name, by_column = make(NEWS), make(NEWS)
    column = int(TextVectorizer(n_features=N_FEATURES).transform(["racket"]).indices[0])
    by_name.learn_one({"racket": 1.0}, {"tennis"})
    by_column.learn_one({column: 1.0}, {"tennis"})
    same_state(by_name, by_column)
    one, wrapped = make(NEWS), make(NEWS)
    one.learn_one({2: 1.0, np.int64(3): np.float32(0.5), ("hot", "spot"): True}, {"tennis"})
    wrapped.learn_one({2 + N_FEATURES: 1, 3 - N_FEATURES: 0.5, "hot spot": 1.0}, {"tennis"})
    same_state(one, wrapped)


@every_linear_learner
def test_damaged_states_are_refused(make):
    model = make(NEWS)
    model.learn_one({0: 1.0, 1: 1.0}, {"tennis"})
    good = model.state()
    weights = good["weights"]
    for change in [
        {"weights": weights[:1]},
        {"weights": weights.astype(np.float64)},
        {"weights": np.full_like(weights, np.nan)},
        {"features": np.array([0, 0], np.int32)},
        {"features": np.array([0, 5000], np.int32)},
        {"features": np.array([-1, 0], np.int32)},
        {"features": good["features"].astype(np.int64)},
        {"n_updates": good["n_updates"][:2]},
        {"n_updates": -1 - good["n_updates"]},
        {"t": -1},
        {"t": 1.5},
        {"t": 10**300},
        {"grows": "yes"},
        {"surprise": 1},
        {"taxonomy": "[]"},
        {"n_features": 0},
        {"cold_start": "warm"},
    ]:
        with pytest.raises(ValueError, match=r"."):
            type(model).from_state({**good, **change})
    for variance in (0.0, -1.0, np.inf) if "variances" in good else ():
        with pytest.raises(ValueError, match="variances are not all positive and finite"):
            type(model).from_state({**good, "variances": np.full_like(weights, variance)})


@pytest.mark.parametrize("kind", LEARNERS.values())
def test_tables_grow_in_the_middle_of_a_batch_and_at_its_first_row(kind):
    xs = [{100 * row + j: 1.0 for j in range(90 if row % 2 else 3)} for row in (1, 2, 3, 4, 5)]
    ys = [{"tennis"}, {"politics"}, set(), {"football"}, {"sport"}]
    one, batch = kind(NEWS, n_features=1000), kind(NEWS, n_features=1000)
    answers = []
    for x, y in zip(xs, ys, strict=True):
        answers.append({label for label, on in one.predict_one(x).items() if on})
        one.learn_one(x, y)
    predicted = batch.predict_then_learn(to_rows(xs, 1000), NEWS.encode(ys))
    assert predicted.shape == (5, 4)
    assert NEWS.decode(predicted) == answers
    same_state(one, batch)
    # Learners of paths learn nothing from an empty set, nor from a label at an inner node.
    assert one.state()["features"].size > (90 if issubclass(kind, PathLearner) else 180)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", LEARNERS.values())
def test_memory_follows_what_was_seen(kind):
    taxonomy = make_news(1).taxonomy
    label = taxonomy.nodes[taxonomy.leaves[-1]] if issubclass(kind, PathLearner) else "football"
    kind(taxonomy).learn_one({0: 1.0}, {label})  # compiles
    tracemalloc.start()
    model = kind(taxonomy, n_features=2**24)
    for feature in range(100):
        model.learn_one({feature * 1000: 1.0}, {label})
    current, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.state()["features"].size == 100
    # A factor of 100 rows at every eligible node takes more than weights do.
    n_tables, most = (1, 400_000) if issubclass(kind, LinearLearner) else (2, 1_200_000)
    if issubclass(kind, PathLearner | RankingPerceptron):
        n_tables, most = 3.25, 400_000
    assert model.nbytes < most
    # numpy reports tables with a place for each feature as allocated although untouched pages take no memory.
    assert current - n_tables * 4 * 2**24 < 1.25 * most


@every_learner
def test_delay_waits_for_the_label(make):
    xs = [{row % 4: 1.0, 4 + row % 3: 0.5} for row in range(12)]
    ys = [{"tennis"} if row % 4 < 2 else {"politics"} for row in range(12)]
    X, Y = to_rows(xs), NEWS.encode(ys)
    delayed, queue = make(NEWS), make(NEWS)
    expected = []
    for row, x in enumerate(xs):
        expected.append({label for label, on in queue.predict_one(x).items() if on})
        if row >= 3:
            queue.learn_one(xs[row - 3], ys[row - 3])
    assert NEWS.decode(delayed.predict_then_learn(X, Y, delay=3)) == expected
    same_state(delayed, queue)
    chunked = make(NEWS)
    parts = chunked.predict_then_learn(X[:5], Y[:5], delay=3)
    rest = chunked.predict_then_learn(X[2:], Y[2:], delay=3, start=3)
    assert NEWS.decode(parts) + NEWS.decode(rest) == expected
    same_state(chunked, queue)
