"""The daemon through its command, on a real broker: what goes in, what comes out, what it goes on from."""

import json
import signal
import time

import pytest
from kafka import KafkaConsumer, TopicPartition

from consumers.offsets import Named
from stream_hc.snapshot import inspect
from tests.kafka.daemons import POISON, World

pytestmark = [pytest.mark.compiled, pytest.mark.kafka]


@pytest.fixture
def world(kafka, tmp_path):
    def make(**options):
        return World(kafka, tmp_path, **options)

    return make


def test_documents_labels_and_rubbish_come_out_as_predictions_letters_and_events(world):
    here = world()
    here.produce(here.records(1000, poison=50))
    n_records = len(here.read("documents"))
    here.run("--limit", n_records)
    here.check(1000, letters=20)
    first = json.loads(here.read("predictions")[0].value)
    assert first.keys() == {"id", "labels", "path_labels", "scores", "model", "model_version"}
    assert here.read("predictions")[7].key == b"d7"
    letters = [dict(record.headers) for record in here.read("dead_letters")]
    reasons = [list(POISON)[number % len(POISON)] for number in range(20)]
    assert [letter["reason"].decode() for letter in letters] == reasons
    sent = {record.offset: record.value for record in here.read("documents")}
    for record, letter in zip(here.read("dead_letters"), letters, strict=True):
        assert record.value == sent[int(letter["offset"])]
        assert letter["topic"].decode() == here.topics["documents"]
        assert letter["detail"]
    lines = [json.loads(record.value) for record in here.read("events")]
    assert lines[-1]["line"] == "standing"
    assert here.parts() == here.calm_parts()
    assert "1000 documents, 1000 labelled, 20 rejected" in here.said("calm.log")


def test_after_sigterm_it_goes_on_where_it_was(world):
    here = world()
    stream = list(here.records(3000))
    here.produce(stream[:2000])
    with here.daemon() as process:
        here.await_predictions(1000, process)
        assert here.stop(process) == 0
    assert inspect(max((here.folder / "state").glob("*.snap"))).extra["place"]
    here.produce(stream[2000:])
    here.run("--limit", len(stream))
    here.check(3000)
    assert here.parts() == here.calm_parts()


def test_what_a_killed_one_has_published_is_learned_again_and_not_published_again(world):
    here = world(state="seconds = 3600.0")
    stream = list(here.records(3000))
    here.produce(stream[:3000])
    with here.daemon() as process:
        here.await_predictions(1400, process)
        process.kill()
    here.produce(stream[3000:])
    here.run("--limit", len(stream))
    here.check(3000)
    assert here.parts() == here.calm_parts()


def test_two_topics_with_partitions_lose_nothing_when_it_is_killed(world):
    here = world(together=False, partitions=3)
    stream = list(here.records(2000, poison=100))
    here.produce(stream, partitions=3)
    with here.daemon() as process:
        here.await_predictions(500, process)
        process.kill()
    here.run("--limit", len(stream))
    here.check(2000, letters=20)
    assert "2000 labelled" in here.said("calm.log")


def test_the_offsets_name_the_job_its_snapshot_and_its_journal(world):
    here = world()
    here.produce(here.records(300))
    here.run("--limit", 600)
    consumer = KafkaConsumer(**here.clients, group_id=here.group, enable_auto_commit=False)
    at = consumer.committed(TopicPartition(here.topics["documents"], 0), metadata=True)
    consumer.close()
    named = Named.of(at.metadata)
    assert at.offset == 600
    snapshots = sorted((here.folder / "state").glob("*.snap"))
    assert inspect(snapshots[0]).sha256 == named.digest
    assert json.loads(inspect(snapshots[-1]).extra["place"])["job"] == named.job


def test_a_second_one_stands_by_and_takes_over(world):
    here = world(instance="none")
    stream = list(here.records(2000))
    here.produce(stream[:1000])
    with here.daemon(log="first.log") as first:
        here.await_predictions(500)
        with here.daemon(log="second.log") as second:
            end = time.monotonic() + 30
            while "standing by" not in here.said("second.log") and time.monotonic() < end:
                time.sleep(0.1)
            assert "standing by" in here.said("second.log")
            assert first.poll() is None
            first.kill()
            here.produce(stream[1000:])
            here.await_predictions(2000, second)
            assert here.stop(second) == 0
    here.check(2000)
    assert here.parts() == here.calm_parts()


def test_one_with_the_same_identity_takes_its_place(world):
    here = world()
    stream = list(here.records(2000))
    here.produce(stream[:1000])
    with here.daemon(log="first.log") as first:
        here.await_predictions(500)
        with here.daemon(log="second.log") as second:
            assert first.wait(40) == 6, here.said("first.log")
            assert "must not be started again" in here.said("first.log")
            here.produce(stream[1000:])
            here.await_predictions(2000, second)
            assert here.stop(second) == 0
    here.check(2000)
    assert here.parts() == here.calm_parts()


def test_interrupted_it_says_so(world):
    here = world()
    here.produce(here.records(100))
    with here.daemon() as process:
        here.await_predictions(100, process)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert "100 documents" in here.said()
