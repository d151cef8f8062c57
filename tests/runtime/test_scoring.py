"""Losses side by side: sums, rings and leads against their slow twins, however they come in batches."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc import snapshot
from stream_hc.kernels.scores import compare_losses, put_losses
from stream_hc.runtime.scoring import SERVED, Scoreboard
from tests import naive_losses

losses = st.lists(st.one_of(st.floats(0, 9), st.just(math.nan)), min_size=1, max_size=40)


@given(losses, st.integers(1, 12), st.integers(0, 30), st.floats(0, 100))
def test_the_ring_equals_its_twin(values, size, at, total):
    ours, theirs = np.full(size, np.nan), [math.nan] * size
    found = put_losses(ours, at, np.array(values), total)
    assert found == naive_losses.put_losses(theirs, at, values, total)
    assert np.array_equal(ours, theirs, equal_nan=True)


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.5, math.nan]), st.floats(0, 9)), min_size=2), st.data()
)
def test_pairs_equal_their_twin(pairs, data):
    ours, theirs = np.array(pairs).T.copy()
    first = data.draw(st.integers(0, len(pairs) - 1))
    n_last = data.draw(st.integers(0, len(pairs)))
    count, level, mean, error = compare_losses(ours, theirs, first, n_last)
    expected = naive_losses.compare_losses(ours.tolist(), theirs.tolist(), first, n_last)
    assert count == expected[0]
    if count > 1:
        assert (level, mean, error) == pytest.approx(expected[1:], rel=1e-9, abs=1e-9)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 15))
def test_batches_make_no_difference(lengths, size):
    n_rows = sum(lengths)
    draw = np.random.default_rng(n_rows)
    columns = {name: draw.random(n_rows) for name in ("a", "b", SERVED)}
    columns["b"][::3] = np.nan
    whole, parts = Scoreboard(size, 2), Scoreboard(size, 2)
    whole.add(columns, n_rows)
    first = 0
    for length in lengths:
        parts.add({name: column[first : first + length] for name, column in columns.items()}, length)
        first += length
    assert snapshot.dump_bytes(whole) == snapshot.dump_bytes(parts)
    assert whole.count("b") == np.count_nonzero(~np.isnan(columns["b"]))
    assert whole.score("a").mean == pytest.approx(columns["a"].mean())
    assert whole.score("a").recent == pytest.approx(columns["a"][-size:].mean())


def test_a_model_that_is_ahead_and_one_that_is_not_there():
    board = Scoreboard(10, 1)
    board.add({"good": np.zeros(6), "bad": np.ones(6)}, 6)
    lead = board.lead("good", over="bad")
    assert (lead.n_documents, lead.share, lead.sureness) == (6, 1.0, math.inf)
    assert board.lead("bad", over="good").share == -math.inf
    assert board.lead("good", over="bad", last=4).n_documents == 4
    assert board.lead("nobody", over="bad").n_documents == 0
    board.add({"good": np.zeros(2)}, 2)
    assert board.lead("good", over="bad").n_documents == 6
    board.forget("bad")
    assert board.lead("good", over="bad").n_documents == 0


def test_models_that_are_alike():
    board = Scoreboard(10, 1)
    board.add({"bad": np.ones(4), "as bad": np.ones(4)}, 4)
    assert board.lead("as bad", over="bad") == (4, 0.0, 0.0)
