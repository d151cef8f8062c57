"""What shards tell each other: exact values for the dual variables, differences for the weights."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stream_hc.kernels import csga as kernels
from stream_hc.maxmargin.changes import Changes
from tests import naive_maxmargin as naive
from tests.strategies import N_FEATURES, documents, to_rows

N_VARIABLES = 4
numbers = st.sampled_from([0.0, 0.25, 0.5, 1.0, 0.1])


@st.composite
def moves(draw):
    """Documents, some of them in any order, and the dual variables of all before and afterwards."""
    xs = draw(st.lists(documents, min_size=1, max_size=6))
    some = draw(st.permutations(range(len(xs))))[: draw(st.integers(0, len(xs)))]
    before = draw(arrays(np.float64, (len(xs), N_VARIABLES), elements=numbers))
    after = before.copy()
    after[some] = draw(arrays(np.float64, (len(some), N_VARIABLES), elements=numbers))
    X = to_rows(xs)
    features = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
    return X, features, np.array(some, np.int32), before, after


@given(moves())
def test_differences_and_what_follows_them_are_those_of_the_twins(case):
    X, features, rows, before, after = case
    found = Changes.between(rows, before[rows], after[rows])
    ptr, variables, values, change = naive.differences(before[rows], after[rows])
    assert found.ptr.tolist() == ptr
    assert found.variables.tolist() == variables
    assert found.values.tolist() == values
    assert found.change.tolist() == change
    table = np.random.default_rng(0).random((N_FEATURES, N_VARIABLES))
    expected = naive.follow(table, X.toarray(), rows, before, after)
    found.move(features, table)
    np.testing.assert_allclose(table, expected, rtol=0, atol=1e-12)


@given(moves())
def test_whoever_hears_of_all_changes_has_the_same_bits(case):
    _, features, rows, before, after = case
    found = Changes.between(rows, before[rows], after[rows])
    heard = before.copy()
    found.put_into(heard)
    assert heard.tobytes() == after.tobytes()
    # Also after a journey, from which arrays may come back read-only.
    there = pickle.loads(pickle.dumps(found))
    for array in there:
        array.setflags(write=False)
    tables = np.zeros((3, N_FEATURES, N_VARIABLES))
    for changes, table in zip((found, there, there.to_follow()), tables, strict=True):
        changes.move(features, table)
    assert tables[0].tobytes() == tables[1].tobytes() == tables[2].tobytes()


def test_one_row_is_subtracted_as_the_twin_does():
    table, columns, values = np.ones((5, 3)), np.array([1, 4], np.int32), np.array([2.0, 0.5], np.float32)
    changed, change = np.array([0, 2], np.int32), np.array([1.0, -4.0])
    expected = naive.subtract(table, columns, values, changed, change)
    kernels.subtract(table, columns, values, changed, change)
    assert table.tolist() == expected.tolist()
    assert table[4].tolist() == [0.5, 1.0, 3.0]
