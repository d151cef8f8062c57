"""Every kernel has a slow twin; the fast one gives the same answer."""

import importlib
import inspect
import itertools
import math
import pkgutil
import re

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import stream_hc.kernels
import tests
from stream_hc.kernels import labels as label_kernels
from stream_hc.kernels import linear, rows, tokens, weighting
from stream_hc.learners.linear import edge_array
from stream_hc.learners.table import WeightTable
from stream_hc.taxonomy import Taxonomy
from stream_hc.taxonomy.rows import to_csr
from stream_hc.vectorize import feature_rows
from tests import naive
from tests.strategies import N_FEATURES, dags, forests, streams, to_rows

IS_WORD = np.array([bool(re.match(r"\w", chr(code))) for code in range(0x1F700)])
RULES = {
    "path": linear.PERCEPTRON,
    "node": linear.NODE_PERCEPTRON,
    "flat": linear.FLAT_PERCEPTRON,
    "arow": linear.AROW,
    "pa": linear.PASSIVE_AGGRESSIVE,
}


def test_every_kernel_has_a_twin():
    files = [file.name for file in pkgutil.iter_modules(tests.__path__) if file.name.startswith("naive")]
    twins = {name for file in files for name in vars(importlib.import_module(f"tests.{file}"))}
    missing = []
    for module in pkgutil.iter_modules(stream_hc.kernels.__path__):
        kernels = importlib.import_module(f"stream_hc.kernels.{module.name}")
        missing += [
            f"{module.name}.{name}"
            for name in kernels.__all__
            if callable(kernel := getattr(kernels, name))
            and not inspect.isclass(kernel)
            and name not in twins
        ]
    assert missing == []


def parent_lists(taxonomy):
    return [taxonomy.parents(node).tolist() for node in range(len(taxonomy))]


def from_csr(indptr, indices):
    return [indices[first:last].tolist() for first, last in itertools.pairwise(indptr)]


@given(st.data())
def test_close_and_truncate_rows(data):
    taxonomy = data.draw(st.one_of(forests(), dags()))
    node = st.integers(0, len(taxonomy) - 1)
    label_rows = data.draw(st.lists(st.sets(node, max_size=5), max_size=6))
    graph = (taxonomy.parent_ptr, taxonomy.parent_idx)
    given_rows = to_csr([sorted(row) for row in label_rows])
    parents = parent_lists(taxonomy)
    closed = from_csr(*label_kernels.close_rows(*given_rows, *graph))
    assert closed == [sorted(row) for row in naive.close_rows(label_rows, parents)]
    specific = label_kernels.most_specific(*given_rows, *graph)
    assert specific.tolist() == naive.most_specific(label_rows, parents)
    cut = from_csr(*label_kernels.truncate_rows(*given_rows, *graph))
    assert cut == [sorted(row) for row in naive.truncate_rows(label_rows, parents)]


@given(st.lists(st.binary(max_size=12), max_size=6))
def test_hash_tokens(tokens):
    ends = np.cumsum([len(token) for token in tokens], dtype=np.int64)
    hashes = rows.hash_tokens(np.frombuffer(b"".join(tokens), np.uint8), ends)
    assert hashes.tolist() == naive.hash_tokens(tokens)


@given(st.lists(st.tuples(st.integers(-99, 99), st.floats(-9, 9, width=32)), max_size=8), st.integers(1, 9))
def test_sorted_row(features, n_features):
    hashes = np.array([h for h, _ in features], np.int64)
    numbers = np.array([number for _, number in features], np.float64)
    status, indptr, indices, values = rows.sorted_row(hashes, numbers, n_features, 1e12)
    expected = naive.sorted_row(hashes.tolist(), numbers.tolist(), n_features)
    assert status == rows.FINE
    assert indptr.tolist() == [0, indices.size]
    assert dict(zip(indices.tolist(), values.tolist(), strict=True)) == expected
    assert indices.tolist() == list(expected)


WHOLE = [
    0,
    1,
    -1,
    127,
    128,
    -32,
    -33,
    -128,
    -129,
    255,
    256,
    65535,
    65536,
    2**31,
    -(2**31) - 1,
    2**32,
    -(2**40),
]
NAMES = [
    "",
    "a",
    "é",
    "x" * 31,
    "x" * 32,
    "漢" * 90,
    "y" * 70_000,
    *WHOLE,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    2**63,
]
VALUES = [0.0, -0.5, 1e30, 5e-324, *WHOLE, True, False, None, "1", 2**63]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=40), st.sampled_from([1, 7, 64])
)
def test_packed_row(features, n_features):
    packed = msgspec.msgpack.encode(features)
    status, indptr, indices, values = rows.packed_row(np.frombuffer(packed, np.uint8), n_features, np.inf)
    expected = naive.packed_row(packed, n_features)
    assert status == (rows.UNKNOWN if expected is None else rows.FINE)
    if expected is not None:
        assert indptr.tolist() == [0, len(expected)]
        assert indices.tolist() == list(expected)
        assert values.tolist() == list(expected.values())


@pytest.mark.parametrize("count", [15, 16, 70_000])
def test_packed_row_of_any_length(count):
    features = {name: 1.0 for name in range(count)}
    packed = np.frombuffer(msgspec.msgpack.encode(features), np.uint8)
    status, _, indices, values = rows.packed_row(packed, 100_000, 5.0)
    assert (status, indices.tolist()) == (rows.FINE, list(features))
    assert set(values.tolist()) == {1.0}
    assert rows.packed_row(packed, 100_000, 0.5)[0] == rows.OUT_OF_RANGE


@given(
    st.lists(
        st.lists(st.tuples(st.integers(-1, 5), st.sampled_from([1.0, -2.0, 0.0, 9.0, math.nan])), max_size=3),
        max_size=3,
    )
)
def test_are_sound(given_rows):
    flat = [pair for row in given_rows for pair in row]
    indptr, indices = to_csr([[column for column, _ in row] for row in given_rows])
    values = np.array([value for _, value in flat], np.float32)
    assert rows.are_sound(indptr, indices, values, 5, 5.0) == naive.are_sound(given_rows, 5, 5.0)


@given(st.data())
def test_are_closed(data):
    taxonomy = data.draw(st.one_of(forests(), dags()))
    pair = st.tuples(st.integers(-1, len(taxonomy)), st.sampled_from([True, True, True, False]))
    given_rows = data.draw(st.lists(st.lists(pair, max_size=4), max_size=3))
    if data.draw(st.booleans()):  # rows that are sound, mostly closed
        sets = [{node for node, _ in row if 0 <= node < len(taxonomy)} for row in given_rows]
        if data.draw(st.booleans()):
            sets = naive.close_rows(sets, parent_lists(taxonomy))
        given_rows = [[(node, True) for node in sorted(row)] for row in sets]
    indptr, indices = to_csr([[node for node, _ in row] for row in given_rows])
    values = np.array([value for row in given_rows for _, value in row], np.bool_)
    closed = label_kernels.are_closed(indptr, indices, values, taxonomy.parent_ptr, taxonomy.parent_idx)
    assert closed == naive.are_closed(given_rows, parent_lists(taxonomy))


def test_damaged_pointers_are_not_sound():
    indices, values = np.array([0, 1], np.int32), np.ones(2, np.float32)
    for indptr in ([1, 2], [0, 3], [0, 2, 1], [0, 1]):
        damaged = np.array(indptr, np.int64)
        assert not rows.are_sound(damaged, indices, values, 5, 5.0)
        assert not label_kernels.are_closed(
            damaged, indices, values > 0, np.zeros(6, np.int64), np.zeros(0, np.int32)
        )


@given(
    st.lists(st.text(st.sampled_from("ab_é漢🙂 -\u0301"), max_size=12), max_size=4),
    st.sampled_from([7, 1024]),
    st.sampled_from([(1, 1), (1, 2), (2, 2), (2, 4)]),
)
def test_token_columns(texts, n_features, ngrams):
    encoded = [text.encode() for text in texts]
    buffer = np.frombuffer(b"".join(encoded), np.uint8)
    ends = np.cumsum([len(data) for data in encoded], dtype=np.int64)
    ptr, columns = tokens.token_columns(buffer, ends, IS_WORD, n_features, *ngrams)
    expected = naive.token_columns(texts, n_features, *ngrams)
    assert [sorted(row) for row in from_csr(ptr, columns)] == [sorted(row) for row in expected]


@given(
    st.lists(st.lists(st.integers(0, 7), max_size=10), max_size=5),
    st.sampled_from(["raw", "log", "binary"]),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_weigh_rows(token_lists, tf, flags):
    learn, idf, norm = flags
    seen_in, n_documents = np.array([3, 0, 5, 5, 1, 0, 0, 2], np.int32), np.array([5], np.int64)
    twin = naive.weigh_rows(token_lists, learn, tf, idf, norm, dict(enumerate(seen_in.tolist())), 5)
    ptr, columns = to_csr(token_lists)
    indptr, indices, values = weighting.weigh_rows(
        ptr, columns, seen_in, n_documents, ["raw", "log", "binary"].index(tf), flags
    )
    for row, expected in enumerate(twin):
        part = slice(indptr[row], indptr[row + 1])
        assert indices[part].tolist() == sorted(expected)
        assert values[part].tolist() == pytest.approx([expected[c] for c in sorted(expected)], rel=1e-6)
        if norm and expected:
            assert math.hypot(*values[part].tolist()) == pytest.approx(1, rel=1e-5)
    assert n_documents[0] == 5 + learn * len(token_lists)


@pytest.mark.parametrize("size", [0, 1, 24, 25, 300, 1024, 1025, 3000])
@pytest.mark.parametrize("n_features", [1, 200, 2**18, 10**6 + 3])
@pytest.mark.parametrize("spread", [1.0, 0.001])
def test_documents_of_any_length_are_sorted(size, n_features, spread):
    drawn = np.random.default_rng(size).random(size) * spread
    columns = (drawn * n_features).astype(np.int32)
    flags = (True, False, False)
    seen_in, n_documents = np.zeros(n_features, np.int32), np.zeros(1, np.int64)
    _, indices, values = weighting.weigh_rows(
        np.array([0, size]), columns.copy(), seen_in, n_documents, 0, flags
    )
    found, counts = np.unique(columns, return_counts=True)
    assert indices.tolist() == found.tolist() == np.flatnonzero(seen_in).tolist()
    assert values.tolist() == counts.tolist()


def test_counting_stops_before_it_overflows():
    seen_in, n_documents = np.array([2**31 - 2], np.int32), np.array([2**32], np.int64)
    for expected in (2**31 - 1, 2**31 - 1):
        weighting.weigh_rows(
            np.array([0, 1]), np.zeros(1, np.int32), seen_in, n_documents, 1, (True, True, True)
        )
        assert seen_in[0] == expected


def cuts_of(taxonomy, threshold):
    """Thresholds that stay, or those that are learned, before anything is known."""
    if threshold == "learned":
        return np.zeros((len(taxonomy), 2 + linear.BINS))
    return np.full((len(taxonomy), 1), threshold)


def run_kernel(taxonomy, xs, ys, rule, delay, parents="any"):
    """Stream through the kernel with a table that must grow on the way."""
    table = WeightTable(N_FEATURES, len(taxonomy), with_variances=rule.kind == linear.AROW)
    table.model = table.model._replace(table=table.model.table[:1].copy())
    X = feature_rows(to_rows(xs), N_FEATURES)
    Y = to_csr([taxonomy.columns(labels) for labels in ys])
    edges = edge_array(taxonomy, parents)
    predictions, row = [], 0
    while True:
        reached, ptr, nodes, scores = linear.stream_rows(
            *table.model, edges, *rule, *X, *Y, row, len(xs), delay
        )
        predictions += from_csr(ptr, nodes)
        assert scores.size == nodes.size
        row = reached
        if row == len(xs):
            break
        table.reserve(5)
    margins = np.empty((len(xs), table.model.table.shape[2]), np.float32)
    linear.margin_rows(table.model.slots, table.model.table, *X, margins)
    return predictions, margins[:, : len(taxonomy)], table


def run_one_by_one(taxonomy, xs, ys, rule):
    """Predict and learn document by document, from a table that must grow on the way."""
    table = WeightTable(N_FEATURES, len(taxonomy), with_variances=rule.kind == linear.AROW)
    table.model = table.model._replace(table=table.model.table[:1].copy())
    edges = edge_array(taxonomy)
    predictions = []
    for x, labels in zip(xs, ys, strict=True):
        _, features, values = feature_rows(to_rows([x]), N_FEATURES)
        y = np.array(taxonomy.columns(labels), np.int32)
        slots, _, weights = table.model
        decision = (rule.cuts, rule.zero_is_on)
        margins = np.empty(weights.shape[2], np.float32)
        found = linear.predict_row(slots, weights, edges, *decision, features, values, margins)
        predictions.append(found.tolist())
        if len(predictions) % 2:
            margins[:] = np.nan  # not known: worked out again
        known = len(predictions) % 2 == 0
        while not linear.learn_row(*table.model, edges, *rule, features, values, y, margins, known):
            table.reserve(features.size)
    return predictions, table


@pytest.mark.parametrize("rule", RULES)
@given(stream=streams(), zero_is_on=st.booleans(), threshold=st.sampled_from([0.0, "learned"]))
def test_one_by_one_is_what_a_batch_is(rule, stream, zero_is_on, threshold):
    how = linear.Rule(RULES[rule], 0.5, cuts_of(stream[0], threshold), zero_is_on)
    again = how._replace(cuts=how.cuts.copy())
    expected, _, batch = run_kernel(*stream, how, 0)
    predictions, table = run_one_by_one(*stream, again)
    assert predictions == expected
    assert again.cuts.tobytes() == how.cuts.tobytes()
    ours, theirs = table.state(), batch.state()
    assert {name: array.tobytes() for name, array in ours.items()} == {
        name: array.tobytes() for name, array in theirs.items()
    }


@pytest.mark.parametrize("rule", ["path", "node", "flat"])
@given(
    stream=streams(),
    threshold=st.sampled_from([0.0, -0.5, 1.0]),
    zero_is_on=st.booleans(),
    delay=st.sampled_from([-1, 0, 1, 3]),
    parents=st.sampled_from(["any", "all"]),
)
def test_perceptrons_equal_their_twin_exactly(rule, stream, threshold, zero_is_on, delay, parents):
    taxonomy, xs, ys = stream
    options = {"threshold": threshold, "zero_is_on": zero_is_on, "needs_all": parents == "all"}
    twin = naive.NodeLearner(parent_lists(taxonomy), rule, **options)
    columns = [set(taxonomy.columns(labels)) for labels in ys]
    expected = naive.stream_rows(twin, xs, columns, None if delay < 0 else delay)
    how = linear.Rule(RULES[rule], 0.0, cuts_of(taxonomy, threshold), zero_is_on)
    predictions, margins, table = run_kernel(taxonomy, xs, ys, how, delay, parents)
    assert predictions == [sorted(row) for row in expected]
    assert margins.tolist() == naive.margin_rows(twin, xs).reshape(margins.shape).tolist()
    assert table.n_updates.tolist() == twin.n_updates


class WatchedLearner(naive.NodeLearner):
    """Notes whether a trained node ever had to decide about a margin that rounding may turn around."""

    close_call = False

    def predict(self, x):
        for node, n_updates in enumerate(self.n_updates):
            margin = self.margin(node, x) if x and n_updates else math.inf
            self.close_call |= abs(margin - self.thresholds[node]) < 1e-4
            if self.learns_thresholds and margin != math.inf:  # the edges of the bins, too, decide
                self.close_call |= abs(16 * margin - round(16 * margin)) < 2e-3
        return super().predict(x)


@pytest.mark.parametrize(("rule", "strength"), [("arow", 0.1), ("arow", 1.0), ("pa", 1.0), ("pa", 0.05)])
@given(
    stream=streams(max_documents=20),
    threshold=st.sampled_from([0.0, -0.1, "learned"]),
    delay=st.sampled_from([-1, 0, 2]),
    parents=st.sampled_from(["any", "all"]),
)
def test_margin_learners_equal_their_twin(rule, strength, stream, threshold, delay, parents):
    taxonomy, xs, ys = stream
    twin = WatchedLearner(parent_lists(taxonomy), rule, strength, threshold, needs_all=parents == "all")
    columns = [set(taxonomy.columns(labels)) for labels in ys]
    expected = naive.stream_rows(twin, xs, columns, None if delay < 0 else delay)
    how = linear.Rule(RULES[rule], strength, cuts_of(taxonomy, threshold), False)
    predictions, margins, table = run_kernel(taxonomy, xs, ys, how, delay, parents)
    # Where y m is 1 up to rounding, float32 and float64 may rightly disagree about an update.
    assume(table.n_updates.tolist() == twin.n_updates)
    assert margins == pytest.approx(naive.margin_rows(twin, xs).reshape(margins.shape), abs=2e-4)
    if not twin.close_call:
        assert predictions == [sorted(row) for row in expected]
        assert how.cuts[:, 0].tolist() == twin.thresholds


@given(st.lists(st.tuples(st.floats(-3, 3), st.booleans()), max_size=150))
def test_thresholds_are_where_the_errors_are_fewest(told):
    """One node, whatever its margins are."""
    twin, rule = (
        naive.NodeLearner([[]], "pa", 1.0, "learned"),
        linear.Rule(linear.AROW, 1.0, np.zeros((1, 66)), False),
    )
    for margin, is_true in told:
        linear.move_cut(rule, 0, margin, is_true)
        twin._move_threshold(0, margin, is_true)
        assert rule.cuts[0, 0] == twin.thresholds[0]
    assert rule.cuts[0, 1] == len(twin.told[0])


def test_old_margins_fade():
    """After a long time of one kind, a few thousand of another move the threshold."""
    rule = linear.Rule(linear.AROW, 1.0, np.zeros((1, 2 + linear.BINS)), False)
    for k in range(2 * linear.MEMORY):
        linear.move_cut(rule, 0, 0.5 if k % 2 else 0.75, k % 2 == 0)
    assert rule.cuts[0, 0] == 0.5625
    assert linear.MEMORY / 2 <= rule.cuts[0, 1] < linear.MEMORY
    for k in range(2 * linear.MEMORY):
        linear.move_cut(rule, 0, -0.5 if k % 2 else -0.25, k % 2 == 0)
    assert -0.5 < rule.cuts[0, 0] <= -0.25


def test_arow_variances_equal_the_formula():
    learner = naive.NodeLearner([[]], "arow", 0.1)
    table = WeightTable(4, 1, with_variances=True)
    xs, ys = [{0: 1.0, 1: 0.5}, {1: 0.25, 2: 1.0}, {0: 0.5}], [{0}, set(), {0}]
    naive.stream_rows(learner, xs, ys, 0)
    edges = edge_array(Taxonomy.flat(["alone"]))
    X, Y = feature_rows(to_rows(xs, 4), 4), to_csr([[0], [], [0]])
    linear.stream_rows(
        *table.model, edges, *linear.Rule(linear.AROW, 0.1, np.zeros((1, 1)), False), *X, *Y, 0, 3, 0
    )
    for feature in range(3):
        row = table.model.slots[feature]
        assert row > 0
        assert table.variances[row, 0] == pytest.approx(learner.sigma[0][feature], rel=1e-6)
        assert table.weights[row, 0] == pytest.approx(learner.w[0][feature], rel=1e-5)
    assert table.model.slots[3] == 0
