"""H-BAYES against all multilabels of small forests; reliability against its definition."""

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc import Taxonomy, h_bayes, losses
from stream_hc.decoding import reliability
from stream_hc.taxonomy import CostScheme
from tests import naive_decoding as naive
from tests.strategies import forests

NEWS = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
SCHEMES = get_args(CostScheme)
DIAMOND = Taxonomy([("a", None), ("b", "a"), ("c", "a"), ("d", "b"), ("d", "c")])
# Certainties and halves, where ties are, among others.
chances = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.floats(0, 1))


def chain(n):
    return Taxonomy([(f"n{k}", f"n{k - 1}" if k else None) for k in range(n)])


shapes = st.one_of(
    forests(max_nodes=8),
    st.integers(1, 8).map(chain),
    st.integers(1, 8).map(lambda n: Taxonomy.flat([f"n{k}" for k in range(n)])),
)


@st.composite
def problems(draw):
    """A forest, probabilities, costs by name or as numbers."""
    taxonomy = draw(shapes)
    n = len(taxonomy)
    p = draw(st.lists(chances, min_size=n, max_size=n))
    own = st.lists(st.floats(0.01, 100), min_size=n, max_size=n)
    return taxonomy, p, draw(st.one_of(st.sampled_from(SCHEMES), own))


def bits(Y, row=0):
    return tuple(Y.toarray()[row].astype(int).tolist())


@given(problems())
def test_no_multilabel_has_a_smaller_expected_h_loss(problem):
    taxonomy, p, costs = problem
    parent, c = taxonomy.parent.tolist(), taxonomy.costs(costs).tolist()
    answer = h_bayes(taxonomy, p, costs)
    assert bits(answer) in set(naive.multilabels(parent))
    assert naive.expected_h_loss(bits(answer), p, parent, c) == pytest.approx(
        naive.least_expected_h_loss(p, parent, c), rel=1e-12, abs=1e-12
    )


@given(st.data())
def test_the_kernel_equals_its_twin(data):
    taxonomy, first, costs = data.draw(problems())
    n = len(taxonomy)
    rest = data.draw(st.lists(st.lists(chances, min_size=n, max_size=n), max_size=4))
    P = [first, *rest]
    expected = naive.decode_rows(P, taxonomy.parent.tolist(), taxonomy.costs(costs).tolist())
    answer = h_bayes(taxonomy, np.array(P), costs)
    found = [answer.indices[answer.indptr[row] : answer.indptr[row + 1]].tolist() for row in range(len(P))]
    # A tie that rounding turns around is still optimal, as the test above shows.
    close = [k for k, row in enumerate(P) if found[k] != expected[k] and row]
    for k in close:
        parent, c = taxonomy.parent.tolist(), taxonomy.costs(costs).tolist()
        guess = [int(node in expected[k]) for node in range(n)]
        assert naive.expected_h_loss(bits(answer, k), P[k], parent, c) == pytest.approx(
            naive.expected_h_loss(guess, P[k], parent, c)
        )


@given(problems())
def test_the_expected_loss_of_the_twin_is_our_h_loss(problem):
    taxonomy, p, costs = problem
    parent, c = taxonomy.parent.tolist(), taxonomy.costs(costs)
    every = list(naive.multilabels(parent))
    answer = h_bayes(taxonomy, p, costs)
    guesses = np.repeat(answer.toarray(), len(every), axis=0)
    shares = np.array([naive.probability(y, p, parent) for y in every])
    assert shares.sum() == pytest.approx(1)
    expected = shares @ losses.h_loss(taxonomy, guesses, np.array(every, bool), c)
    assert expected == pytest.approx(naive.expected_h_loss(bits(answer), p, parent, c.tolist()), abs=1e-12)


class TestPrintedRecursion:
    """The paper's H_i has the sum over the children without the factor p_i ŷ_i."""

    def test_a_chain_where_it_fails(self):
        # The lowest node is a coin flip: 0.5 to expect there. Printed, the middle one hands these 0.5 on to
        # the top although it is a label itself, and the coin is flipped at all, in one case of ten only.
        parent, p, costs = [-1, 0, 1], [0.6, 0.1, 0.5], [1.0, 1.0, 1.0]
        taxonomy = chain(3)
        (printed,) = naive.decode_rows([p], parent, costs, printed=True)
        assert printed == []
        assert bits(h_bayes(taxonomy, p, "uniform")) == (1, 0, 0)
        assert naive.expected_h_loss((0, 0, 0), p, parent, costs) == pytest.approx(0.6)
        assert naive.expected_h_loss((1, 0, 0), p, parent, costs) == pytest.approx(0.4 + 0.6 * 0.1)

    def test_on_random_forests_it_is_often_not_optimal(self):
        draw = np.random.default_rng(4)
        wrong = {"corrected": 0, "printed": 0}
        for _ in range(150):
            parent = [-1, *(int(draw.integers(-1, node)) for node in range(1, 6))]
            p, costs = draw.random(6).tolist(), [1.0] * 6
            least = naive.least_expected_h_loss(p, parent, costs)
            for name in wrong:
                (on,) = naive.decode_rows([p], parent, costs, printed=name == "printed")
                guess = [int(node in on) for node in range(6)]
                wrong[name] += naive.expected_h_loss(guess, p, parent, costs) > least + 1e-9
        assert wrong["corrected"] == 0
        assert wrong["printed"] >= 10


def test_siblings_may_exclude_each_other():
    """The expected H-loss is a sum over nodes: only their own probabilities matter."""
    parent, costs = [-1, 0, 0, 0], [1.0, 2.0, 1.0, 1.0]
    taxonomy = Taxonomy([("top", None), *((name, "top") for name in "abc")])
    for top, shares in [(0.9, (0.6, 0.3, 0.1)), (0.7, (0.4, 0.3, 0.3)), (0.55, (0.9, 0.05, 0.05))]:
        # One child and no more, if the top is on.
        world = {(0, 0, 0, 0): 1 - top}
        world |= {(1, *(int(k == on) for k in range(3))): top * share for on, share in enumerate(shares)}

        def expected(guess, world=world):
            return sum(share * naive.h_loss(guess, y, parent, costs) for y, share in world.items())

        answer = bits(h_bayes(taxonomy, [top, *shares], costs))
        assert expected(answer) == pytest.approx(min(map(expected, naive.multilabels(parent))))


def test_ties_predict_the_label():
    single = Taxonomy.flat(["a"])
    assert bits(h_bayes(single, [0.5])) == (1,)
    assert bits(h_bayes(single, [math.nextafter(0.5, 0)])) == (0,)
    # p (2 − H / c) = 0.625 · (2 − 0.4) = 1 at the root: exactly as good either way
    assert bits(h_bayes(chain(2), [0.625, 0.375], [15 / 16, 1.0])) == (1, 0)


def test_it_never_names_more_than_the_top_down_rule():
    draw = np.random.default_rng(0)
    P = draw.random((50, 4))
    on = P >= 0.5
    on[:, [NEWS.index("tennis"), NEWS.index("football")]] &= on[:, [NEWS.index("sport")]]
    for scheme in SCHEMES:
        assert (h_bayes(NEWS, P, scheme).toarray() <= on).all()


def test_rows_in_every_form():
    P = np.random.default_rng(1).random((30, 4))
    Y = h_bayes(NEWS, P)
    assert Y.dtype == np.bool_
    assert Y.shape == (30, 4)
    assert Y.has_canonical_format
    assert {frozenset(labels) for labels in NEWS.decode(Y)} > {frozenset()}
    assert (h_bayes(P, NEWS).toarray() == Y.toarray()).all()
    assert (h_bayes(P.tolist(), NEWS, "normalized").toarray() == Y.toarray()).all()
    assert (h_bayes(NEWS, np.asfortranarray(P)).toarray() == Y.toarray()).all()
    assert (h_bayes(NEWS, P[::2]).toarray() == Y.toarray()[::2]).all()
    for row in range(30):
        assert (h_bayes(NEWS, P[row]).toarray() == Y.toarray()[row]).all()
    assert h_bayes(NEWS, np.ones((1, 4), bool)).nnz == 4
    assert h_bayes(NEWS, np.zeros((0, 4))).shape == (0, 4)
    assert h_bayes(Taxonomy([]), np.zeros((3, 0))).shape == (3, 0)
    many = np.ones((500, 4))
    assert h_bayes(NEWS, many).nnz == 2000


def test_probabilities_are_not_touched():
    P = np.random.default_rng(2).random((3, 4))
    kept = P.copy()
    h_bayes(NEWS, P)
    assert (kept == P).all()


@pytest.mark.parametrize("bad", [math.nan, -0.01, 1.5, math.inf])
def test_bad_probabilities_are_named(bad):
    P = np.full((3, 4), 0.5)
    P[2, NEWS.index("football")] = bad
    with pytest.raises(ValueError, match=rf"row 2, node 'football' is {bad}"):
        h_bayes(NEWS, P)


@pytest.mark.parametrize("P", [np.zeros((2, 3)), np.zeros(5), np.float64(0.5), np.zeros((1, 1, 4))])
def test_wrong_shapes_are_refused(P):
    with pytest.raises(ValueError, match="do not fit 4 nodes"):
        h_bayes(NEWS, P)


def test_other_things_are_refused():
    for P in ([["a"] * 4], None, np.zeros((1, 4), complex)):
        with pytest.raises(ValueError, match="must be an array of numbers"):
            h_bayes(NEWS, P)
    with pytest.raises(TypeError, match="takes a Taxonomy"):
        h_bayes([0.5], [0.5])
    with pytest.raises(ValueError, match="not defined on a DAG"):
        h_bayes(DIAMOND, np.zeros(4), "uniform")
    for costs in ("cheap", [1.0, 2.0], [1.0, 1.0, 1.0, 0.0]):
        with pytest.raises(ValueError, match="cost"):
            h_bayes(NEWS, np.zeros(4), costs)


def test_costs_far_apart_stay_optimal():
    for low, high in ((1e-300, 1.0), (1.0, 1e300)):
        assert bits(h_bayes(chain(2), [0.9, 0.4], [low, high])) == (0, 0)
        assert bits(h_bayes(chain(2), [0.9, 0.4], [high, low])) == (1, 0)


class TestReliability:
    @given(
        st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40),
        st.integers(1, 20),
    )
    def test_it_equals_its_definition(self, pairs, n_bins):
        p, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        found = reliability(p, y, n_bins)
        assert found.ece == pytest.approx(naive.expected_calibration_error(p, y, n_bins))
        assert found.counts.sum() == len(pairs)
        given = [max(a if b else 1 - a, 1e-12) for a, b in pairs]
        assert found.log_loss == pytest.approx(-sum(map(math.log, given)) / len(pairs))

    def test_forecasts_that_are_right_on_average_have_no_error(self):
        found = reliability([0.25] * 8 + [1.0] * 4, [1, 0, 0, 0] * 2 + [1] * 4, 10)
        assert found.ece == 0
        assert found.counts.tolist() == [0, 0, 8, 0, 0, 0, 0, 0, 0, 4]
        assert found.forecast[2] == found.observed[2] == 0.25
        assert np.isnan(found.observed[0])

    def test_nothing_at_all(self):
        assert reliability([], []).ece == 0

    def test_bad_arguments(self):
        for p, y in [([0.5], [1, 0]), ([[0.5]], [[1]]), ([1.5], [1]), ([math.nan], [0])]:
            with pytest.raises(ValueError, match="probabilities"):
                reliability(p, y)
        with pytest.raises(ValueError, match="n_bins"):
            reliability([0.5], [1], 0)
