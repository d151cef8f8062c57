"""What a daemon asks before it begins, where a broker would have to be broken to show it."""

import pytest
from kafka.errors import LeaderNotAvailableError

from consumers.daemon import looking
from consumers.errors import KafkaProblem
from consumers.topics import Found
from stream_hc.cli.checking import Finding
from stream_hc.runtime.config import Config, StateConfig
from stream_hc.snapshot import SnapshotError

CONFIG = Config(state=StateConfig(folder="state"))
FOUND = {
    "documents": Found("documents", "documents", "there", partitions=3),
    "dead_letters": Found(
        "dead_letters", "dead-letters", "there", 1, settings={"max.message.bytes": "5000000"}
    ),
}


@pytest.fixture
def look(monkeypatch):
    """Return a function that looks first, at topics and findings that are given."""

    def look(found=FOUND, findings=(), kept=lambda folder: None):
        notes, ages = [], []

        def check_cluster(admin, kafka, topics, age, reading):
            ages.append(age)
            return iter(findings)

        monkeypatch.setattr(looking, "describe", lambda admin, kafka: found)
        monkeypatch.setattr(looking, "newest_kept", kept)
        monkeypatch.setattr(looking, "check_cluster", check_cluster)
        try:
            return looking.look_first(None, CONFIG, notes.append), notes, ages
        except KafkaProblem as problem:
            return problem, notes, ages

    return look


def test_partitions_without_a_leader_are_waited_for(look):
    found = {"documents": Found("documents", "documents", "there", 3, without_leader=(1,))}
    with pytest.raises(LeaderNotAvailableError):
        look(found)


def test_it_tells_partitions_and_how_large_records_may_be(look):
    topics, notes, _ = look()
    assert topics.partitions == {"documents": 3, "dead-letters": 1}
    assert topics.largest == {"documents": looking.USUAL_LARGEST, "dead-letters": 5_000_000}
    assert notes == []


def test_snapshots_that_cannot_be_read_are_not_its_concern(look):
    def damaged(folder):
        raise SnapshotError(folder)

    _, _, ages = look(kept=damaged)
    assert ages == [None]


def test_the_first_problem_ends_it_and_the_rest_is_noted(look):
    findings = [
        Finding(*each) for each in (("ok", "a"), ("problem", "b"), ("warning", "c"), ("problem", "d"))
    ]
    problem, notes, _ = look(findings=findings)
    assert str(problem) == "b"
    assert notes == ["warning: c", "problem: d"]
