"""The lines behind `Calibrated`: equal to their twin, whatever the scale, and finite."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc import Taxonomy
from stream_hc.kernels import calibration as kernels
from stream_hc.learners.platt import PlattLines
from tests import naive_decoding as naive
from tests.strategies import dags, examples, forests, label_sets

margins_drawn = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 40.0]), st.floats(-5, 5))


def parent_lists(taxonomy):
    return [taxonomy.parents(node).tolist() for node in range(len(taxonomy))]


@st.composite
def margin_streams(draw):
    taxonomy = draw(st.one_of(forests(max_nodes=5), dags(max_nodes=5)))
    n = len(taxonomy)
    rows = draw(st.lists(st.lists(margins_drawn, min_size=n, max_size=n), max_size=8))
    return taxonomy, rows, [taxonomy.columns(draw(label_sets(taxonomy))) for _ in rows]


@settings(max_examples=examples(50))
@given(stream=margin_streams(), memory=st.sampled_from([2, 5, 500]))
def test_they_equal_their_twin(stream, memory):
    taxonomy, rows, labels = stream
    lines, twin = (
        PlattLines(len(taxonomy), memory),
        naive.Calibration(parent_lists(taxonomy), 1 - 1 / memory),
    )
    for margins, nodes in zip(rows, labels, strict=True):
        odds = lines.log_odds(np.array([margins]))
        assert odds == pytest.approx(np.array(naive.log_odds_rows(twin, [margins])), rel=1e-6, abs=1e-6)
        lines.learn(np.array(margins), np.array(nodes, np.int32), taxonomy)
        naive.learn_margins(twin, margins, set(nodes))
    assert lines.shared[:2] == pytest.approx(twin.mean, rel=1e-6, abs=1e-6)
    for node, line in enumerate(lines.own):
        assert line[:2] == pytest.approx(twin.own_mean[node], rel=1e-5, abs=1e-6)
        precision = twin.own_precision[node][[0, 0, 1], [0, 1, 1]]
        assert line[2:5] == pytest.approx(precision, rel=1e-5, abs=1e-6)


@given(stream=margin_streams())
def test_the_scale_of_the_margins_does_not_matter(stream):
    taxonomy, rows, labels = stream
    # Before the first margin other than 0 nothing is known about their scale.
    rows, labels = [[1.0] * len(taxonomy), *rows], [[], *labels]
    one, other = (PlattLines(len(taxonomy), 100) for _ in range(2))
    for lines, scale in ((one, 1.0), (other, 2.0**20)):
        lines.shared[kernels.SQUARES], lines.shared[kernels.COUNT] = scale**2, 1.0
        for margins, nodes in zip(rows, labels, strict=True):
            lines.learn(scale * np.array(margins), np.array(nodes, np.int32), taxonomy)
    n = kernels.SQUARES
    assert one.shared[:n].tolist() == other.shared[:n].tolist()
    assert one.own[:, :n].tolist() == other.own[:, :n].tolist()


@given(data=st.data())
def test_marginals_equal_their_twin(data):
    taxonomy = data.draw(st.one_of(forests(), dags()))
    n = len(taxonomy)
    rows = data.draw(st.lists(st.lists(st.floats(0, 1), min_size=n, max_size=n), min_size=1, max_size=3))
    p = np.array(rows)
    kernels.marginal_rows(p, taxonomy.parent_ptr, taxonomy.parent_idx)
    assert p == pytest.approx(np.array(naive.marginal_rows(rows, parent_lists(taxonomy))))


def test_the_step_solves_its_equation():
    for start in (-400.0, -30.0, -1.0, 0.0, 2.0, 30.0, 400.0):
        for gain in (1e-9, 0.1, 1.0, 65.0, 1e6):
            for y in (0.0, 1.0):
                u = kernels.settled(start, gain, y)
                p = kernels.sigmoid(u)
                assert u == pytest.approx(start + gain * (y - p), rel=1e-9, abs=1e-7)


def test_wild_margins_stay_finite():
    lines = PlattLines(1, 50)
    root = Taxonomy.flat(["a"])
    draw = np.random.default_rng(0)
    for row in range(2000):
        margin = np.array([draw.choice([1e38, -1e38, 1e-40, 0.0, 3.0])])
        lines.learn(margin, np.array([0] if row % 3 else [], np.int32), root)
    assert np.isfinite(lines.own).all()
    assert np.isfinite(lines.shared).all()
    assert np.abs(lines.log_odds(np.array([[1e38], [-1e38], [0.0]]))).max() <= kernels.LARGEST_LOG_ODDS
