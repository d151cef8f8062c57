"""The cost model of the bench about scale: lines through points, rates of fleets, what larger ones need."""

import msgspec
import numpy as np
import pytest

from bench.scale_model import (
    MOST_MEMORY,
    USED,
    Aim,
    Batch,
    Costs,
    Line,
    breaks,
    copied_rate,
    error,
    fit,
    needed,
    pace,
    shared_rate,
)

COSTS = Costs(
    predictor=Line(30e-6, 1e-9),
    trainer=Line(20e-6, 2e-9),
    broker=5e-6,
    terms=70.0,
    document_bytes=500.0,
    answer_bytes=200.0,
    predictor_memory=Line(2e8, 3.0),
    trainer_memory=Line(2e8, 2.0),
    publishing=Line(0.1, 1e-8),
)


def aim(rate=10_000.0, nodes=1_000, features=2**13, labelled=1_000.0):
    return Aim(rate, nodes, features, labelled)


def test_a_line_goes_through_two_points_and_between_three():
    line = fit([(1.0, 3.0), (3.0, 7.0)])
    assert line(2.0) == pytest.approx(5.0)
    points = [(0.0, 1.0), (1.0, 2.2), (2.0, 3.0)]
    line = fit(points)
    assert all(abs(error(line(x), y)) < 0.1 for x, y in points)


def test_a_line_is_off_by_the_same_share_at_both_ends():
    rng = np.random.default_rng(0)
    x = np.linspace(1.0, 1_000.0, 200)
    noisy = (5.0 + 2.0 * x) * rng.normal(1.0, 0.02, x.size)
    line = fit(list(zip(x.tolist(), noisy.tolist(), strict=True)))
    assert line.fixed == pytest.approx(5.0, rel=0.1)
    assert line.slope == pytest.approx(2.0, rel=0.01)


def test_points_at_one_place_give_no_line():
    with pytest.raises(ValueError, match="measure something larger"):
        fit([(1.0, 2.0), (1.0, 3.0)])


def test_a_pace_is_counted_from_the_end_of_one_batch_to_the_end_of_another():
    batches = [Batch(at, 100, at / 2, 0.0) for at in (0.0, 1.0, 2.0, 3.0, 9.0)]
    assert pace(batches, 0.5, 5.0) == (100.0, 0.005)
    with pytest.raises(ValueError, match="take more time"):
        pace(batches, 0.5, 1.5)


def test_those_who_share_a_stream_are_faster_until_the_cores_are_used_up():
    found = [shared_rate(n, 10_000.0, 90e-6, 10e-6, 2.0) for n in (1, 2, 3)]
    assert found == [10_000.0, 20_000.0, pytest.approx(20_000.0)]


def test_those_who_all_read_it_are_as_fast_as_the_slowest():
    assert copied_rate([50e-6, 100e-6], 0.0, cores=8.0) == pytest.approx(10_000.0)
    assert copied_rate([100e-6] * 4, 25e-6, cores=2.0) == pytest.approx(4_000.0)


def test_twice_the_documents_take_twice_the_predictors_and_the_same_memory():
    one, two = needed(COSTS, aim(rate=100_000.0)), needed(COSTS, aim(rate=200_000.0))
    assert two.predictors == pytest.approx(2 * one.predictors, abs=1)
    assert two.broker_cores == pytest.approx(2 * one.broker_cores)
    assert one.predictor_memory == two.predictor_memory


def test_shards_make_trainers_faster_and_smaller_down_to_what_each_pays():
    few, many = needed(COSTS, aim(labelled=20_000.0)), needed(COSTS, aim(labelled=30_000.0))
    assert few.shards is not None
    assert many.shards is not None
    assert few.shards <= many.shards
    too_much = needed(COSTS, aim(labelled=USED / COSTS.trainer.fixed))
    assert too_much.shards is None
    assert breaks(too_much) == ["trainers: each shard parses every labelled document"]


def test_large_models_are_cut_until_a_trainer_holds_its_part_and_predictors_break_first():
    need = needed(COSTS, aim(nodes=100_000, features=2**18))
    assert need.shards is not None
    assert need.trainer_memory <= MOST_MEMORY
    assert breaks(need)[0].startswith("a predictor holds the whole model")
    assert breaks(needed(COSTS, aim())) == []


def test_what_takes_longer_to_publish_than_snapshots_are_apart_breaks():
    slow = COSTS._replace(publishing=Line(0.0, 1e-5), predictor_memory=Line(0.0, 1.0))
    assert any("to publish" in each for each in breaks(needed(slow, aim())))
    assert msgspec.json.encode(needed(slow, aim()))  # plain numbers
