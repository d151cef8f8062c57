"""The best closed set: dynamic programming and minimum cuts against all sets enumerated."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stream_hc import Taxonomy
from stream_hc.kernels import closed_sets
from stream_hc.maxmargin.problem import graph_arrays
from tests import naive_maxmargin as naive
from tests.strategies import dags, forests

CHAIN = Taxonomy([("a", None), ("b", "a"), ("c", "b")])

numbers = st.integers(-8, 8).map(lambda eighths: eighths / 8)  # sums are exact, ties are common


@st.composite
def rows_of_numbers(draw, taxonomies):
    taxonomy = draw(taxonomies)
    n_rows = draw(st.integers(0, 3))
    rows = [[draw(numbers) for _ in taxonomy.nodes] for _ in range(n_rows)]
    return taxonomy, np.array(rows, np.float64).reshape(n_rows, len(taxonomy))


@given(rows_of_numbers(st.one_of(forests(7), dags(7))))
def test_the_best_set_is_the_best_of_all(case):
    taxonomy, rows = case
    ptr, nodes = closed_sets.best_rows(*graph_arrays(taxonomy), rows)
    found = [frozenset(part.tolist()) for part in np.split(nodes, ptr[1:-1])] if len(rows) else []
    assert found == naive.best_rows(taxonomy, rows)


@given(rows_of_numbers(st.one_of(forests(6), dags(6))))
def test_preferences_set_the_best_with_a_node_against_the_best_without(case):
    taxonomy, rows = case
    margins = np.empty_like(rows)
    closed_sets.preferences(*graph_arrays(taxonomy), rows, margins)
    expected = np.reshape(naive.preferences(taxonomy, rows), rows.shape)
    np.testing.assert_allclose(margins, expected, rtol=0, atol=1e-9)


@given(rows_of_numbers(forests(6)))
def test_chances_add_up_over_all_closed_sets(case):
    taxonomy, rows = case
    p = np.empty_like(rows)
    closed_sets.chances(*graph_arrays(taxonomy)[:2], rows, p)
    np.testing.assert_allclose(p, np.reshape(naive.chances(taxonomy, rows), rows.shape), rtol=1e-12)


def test_chances_do_not_overflow():
    taxonomy = graph_arrays(CHAIN)
    rows = np.array([[1e6, -1e6, 1e6], [-1e300, 1e300, 0.0]])
    p = np.empty_like(rows)
    with np.errstate(all="raise", under="ignore"):
        closed_sets.chances(*taxonomy[:2], rows, p)
    assert np.isfinite(p).all()
    assert p[0, 0] == 1.0
    assert ((p >= 0.0) & (p <= 1.0)).all()


def test_many_rows_with_many_labels_fit():
    taxonomy = CHAIN
    rows = np.ones((500, 3))
    ptr, nodes = closed_sets.best_rows(*graph_arrays(taxonomy), rows)
    assert ptr.tolist() == list(range(0, 1501, 3))
    assert nodes.tolist() == [0, 1, 2] * 500
