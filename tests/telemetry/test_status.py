"""What the page is told: the same numbers as those of the stream, as JSON that anybody can read."""

import itertools

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from stream_hc.runtime.events import Event, Score, Standing
from stream_hc.runtime.telemetry import Telemetry, node_detail, node_rows, series, status
from stream_hc.runtime.telemetry.history import MOST_EVENTS, MOST_POINTS, History
from stream_hc.runtime.telemetry.throughput import Throughput
from tests.telemetry.watched import LEARNERS, Watched


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    job = Watched(tmp_path_factory.mktemp("job"))
    job.run()
    return job


def plain(found):
    return msgspec.json.decode(msgspec.json.encode(found))


def test_before_anything_begins_there_is_little_to_tell():
    telemetry = Telemetry(CollectorRegistry())
    assert plain(status(telemetry))["ready"] is False
    assert plain(node_rows(telemetry))["nodes"] == []
    assert plain(series(telemetry))["points"]["labelled"] == []
    assert node_detail(telemetry, "sport") is None


def test_the_status_is_the_standing(watched):
    found = plain(status(watched.telemetry))
    standing = watched.job.processor.contest.standing()
    assert found["ready"]
    assert found["documents"] == standing.documents == 300
    assert found["served"] == plain(standing.served)
    assert found["champion"]["model"] == standing.champion
    assert set(found["models"]) == set(LEARNERS)
    for name, score in standing.scores.items():
        assert found["models"][name]["recent"] == score.recent
        assert found["models"][name]["kind"] == "online"
        assert found["models"][name]["bytes"] > 0
    assert found["pending"] == {"documents": 20, "labels": 0}
    assert found["window"] == 100
    assert sum(found["by_depth"]["served"]["all"]) == pytest.approx(standing.served.mean)
    assert found["snapshots"]["saved"] == 1
    assert found["snapshots"]["last_success"] >= found["started"]
    assert found["refit"]["enabled"] is False


def test_the_rows_of_the_nodes_hold_together(watched):
    found = plain(node_rows(watched.telemetry))
    assert [row["name"] for row in found["nodes"]] == list(watched.taxonomy.nodes)
    assert found["labelled"] == 280
    for row in found["nodes"]:
        for span in ("all", "recent"):
            numbers = row[span]
            there = numbers["support"] + numbers["predicted"] - numbers["hits"]
            assert numbers["hits"] <= min(numbers["support"], numbers["predicted"])
            if numbers["support"]:
                assert numbers["recall"] == pytest.approx(numbers["hits"] / numbers["support"])
            else:
                assert numbers["recall"] is None
            if there:
                assert numbers["error"] == pytest.approx(1 - numbers["hits"] / there)
        assert row["recent"]["support"] <= row["all"]["support"]


def test_a_node_has_its_row_and_its_mistakes(watched):
    rows = {row["name"]: row for row in plain(node_rows(watched.telemetry))["nodes"]}
    name = max(rows, key=lambda name: rows[name]["recent"]["charged"])
    found = plain(node_detail(watched.telemetry, name))
    assert found["node"] == rows[name]
    assert 0 < len(found["mistakes"]) <= 20
    assert node_detail(watched.telemetry, "no such node") is None


def test_the_series_ends_where_the_stream_is(watched):
    points = plain(series(watched.telemetry))["points"]
    assert points["labelled"] == sorted(points["labelled"])
    assert points["labelled"][-1] == 280
    assert len({len(points[name]) for name in ("labelled", "documents", "time", "champion")}) == 1
    last = watched.job.processor.contest.board.score("node-pa")
    assert points["models"]["node-pa"]["recent"][-1] == pytest.approx(last.recent, abs=1e-5)


def _standing(labelled, names=("a",)):
    score = Score(labelled, 0.5, 0.25)
    return Standing(labelled, labelled, "a", 0, score, dict.fromkeys(names, score), [0.5], 0, 0, {}, {})


def test_a_long_history_stays_short_and_even():
    history = History()
    for labelled in range(0, 1_000_000, 50):
        history.add(_standing(labelled), now=labelled / 10)
    taken = history.points()["labelled"]
    assert MOST_POINTS / 3 < len(taken) <= MOST_POINTS
    gaps = [later - earlier for earlier, later in itertools.pairwise(taken)]
    assert max(gaps) <= 4 * min(gaps)
    assert taken[-1] > 990_000


def test_a_model_that_comes_later_has_gaps_before():
    history = History()
    history.add(_standing(10), now=1.0)
    history.add(_standing(20, ("a", "hm3-1")), now=2.0)
    assert history.points()["models"]["hm3-1"]["recent"] == [None, 0.25]


def test_a_job_that_went_back_draws_over_what_was():
    history = History()
    for labelled in (10, 20, 30, 15, 25):
        history.add(_standing(labelled), now=labelled)
    assert history.points()["labelled"] == [10, 15, 25]


def test_only_the_last_events_are_kept():
    history = History()
    for number in range(MOST_EVENTS + 5):
        history.note(Event("drift", number, number), now=1.0)
    assert len(history.events) == MOST_EVENTS
    assert history.events[0]["documents"] == 5
    assert "has changed" in history.events[0]["sentence"]


def test_the_speed_is_that_of_the_last_seconds():
    speed = Throughput(now=0.0)
    for tenth in range(1, 301):
        speed.add(10, now=tenth / 10)
    assert speed.at(30.0) == pytest.approx(100, rel=0.05)
    speed.add(0, now=35.0)
    assert speed.at(35.0) == pytest.approx(50, rel=0.1)
    assert speed.at(60.0) == 0
