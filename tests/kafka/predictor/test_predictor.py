"""Predictors in this process, on a real broker: what they answer, from where they go on, what they say."""

import json
import threading
import time

import msgspec
import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.structs import OffsetAndMetadata

from consumers.clients import patiently
from consumers.daemon.transactions import Transactions
from consumers.errors import KafkaProblem
from consumers.models.writing import ModelWriter
from consumers.predicting import predictor_config
from consumers.predictor.predictor import Predictor
from consumers.predictor.watching import PredictWatcher
from consumers.settings import client_settings
from tests.kafka.daemon.running import SECONDS, SmallWorld
from tests.kafka.models.snapshots import lines, records, saved

pytestmark = pytest.mark.kafka


class Predicting:
    """Runs a predictor from here to the end of a block; an error of it is raised at the end."""

    def __init__(self, config, telemetry=None, least=0):
        self.requested, self.descriptor = False, None
        self.watcher = PredictWatcher(0.0, False, telemetry)
        self.notes = []
        self.watcher.note = self.notes.append
        self.error = None
        self.predictor = Predictor(config, self, self.watcher, least)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            self.predictor.run()
        except BaseException as error:
            self.error = error

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, kind, *_):
        self.requested = True
        self.wait()
        if kind is None and self.error is not None:
            raise self.error

    def wait(self):
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), f"it does not end: {self.notes}"

    def until(self, condition):
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, f"never: {self.notes}"
            assert self._thread.is_alive() or self.error is None, self.error
            time.sleep(0.05)


class Here(SmallWorld):
    """A world with a topic of models, in which a trainer is played by a function."""

    def __init__(self, where, folder, topic, **options):
        self.models = topic("models", cleanup_policy="compact")
        super().__init__(where, folder, models=self.models, **options)
        self.own = predictor_config(self.config, None)
        self._writer = ModelWriter(self.own.kafka, client_settings(self.own.kafka), self.models, 0)

    def publish(self, n=8, version="v1", **lies):
        self._writer.write(records(saved(self.folder / "model.snap", n), version=version, **lies))

    def feed(self, n, first=0):
        self.send([("documents", line.data) for line in lines(n, first)])

    def predicting(self, limit=None, telemetry=None, least=0, **kafka):
        own = msgspec.structs.replace(
            self.own,
            stream=msgspec.structs.replace(self.own.stream, limit=limit),
            kafka=msgspec.structs.replace(self.own.kafka, **kafka),
        )
        return Predicting(own, telemetry, least)

    def answers(self):
        return [json.loads(record.value) for record in self.read("predictions")]

    def close(self):
        self._writer.close()


@pytest.fixture
def world(kafka, tmp_path, topic):
    made = []

    def make(**options):
        made.append(Here(kafka, tmp_path, topic, **options))
        return made[-1]

    yield make
    for here in made:
        here.close()


def test_documents_are_answered_with_the_newest_model(world):
    here = world()
    here.publish(8)
    here.feed(30)
    here.send([("documents", b"{"), ("documents", b'{"id": "d1", "labels": ["a1"]}')])
    with here.predicting() as running:
        running.until(lambda: len(here.answers()) == 30)
        assert {answer["model_version"] for answer in here.answers()} == {8}
        assert {answer["model"] for answer in here.answers()} == {"h-arow"}
        here.publish(12, "v2")
        running.until(lambda: running.watcher.n_swaps == 2)
        here.feed(5, first=30)
        running.until(lambda: len(here.answers()) == 35)
    assert [answer["id"] for answer in here.answers()] == [f"d{k}" for k in range(35)]
    assert [answer["model_version"] for answer in here.answers()][30:] == [12] * 5
    [letter] = here.read("dead_letters")
    assert dict(letter.headers)["reason"] == b"not_json"
    summary = "35 documents predicted with 2 versions of the model, 1 records rejected"
    assert running.watcher.summary() == summary


def test_it_waits_for_a_model_and_can_be_stopped_before_there_is_one(world):
    here = world()
    here.feed(3)
    with here.predicting() as running:
        running.until(lambda: any("waiting for a model" in note for note in running.notes))
        time.sleep(0.5)
    assert "stopped before there was a model" in running.notes
    assert here.answers() == []
    with here.predicting(limit=3) as running:
        running.until(lambda: any("waiting for a model" in note for note in running.notes))
        here.publish()
        running.wait()
    assert len(here.answers()) == 3


def test_it_can_wait_for_a_model_that_knows_something(world):
    here = world()
    here.feed(3)
    here.publish(4)
    with here.predicting(limit=3, least=6) as running:
        running.until(lambda: any("that has learned from 6 documents" in note for note in running.notes))
        time.sleep(1.0)
        assert running.predictor.model is None
        here.publish(8, "v2")
        running.wait()
    assert {answer["model_version"] for answer in here.answers()} == {8}


def test_what_was_not_committed_is_done_again_and_only_that(world, monkeypatch):
    """A commit that fails, at once or with its answer lost, leaves one prediction a document all the same."""
    here = world(batch=5)
    here.publish()
    here.feed(40)
    real, attempts = Transactions._write, []

    def failing(self, messages, commits, identity):
        attempts.append(len(messages))
        if len(attempts) == 2:
            raise KafkaTimeoutError("the answer is lost before anything is written")
        real(self, messages, commits, identity)
        if len(attempts) == 4:
            raise KafkaError("the answer is lost, but it was committed")

    monkeypatch.setattr(Transactions, "_write", failing)
    with here.predicting() as running:
        running.until(lambda: len(here.answers()) >= 40)
        time.sleep(0.5)
    assert sorted(answer["id"] for answer in here.answers()) == sorted(f"d{k}" for k in range(40))
    assert sum("going on from what is committed" in note for note in running.notes) == 2


def test_several_share_the_partitions(world):
    here = world(partitions=3, session_timeout=6.0)
    here.publish()
    for partition in range(3):
        here.send([("documents", line.data) for line in lines(10, 10 * partition)], partition)
    with here.predicting() as one:
        one.until(lambda: len(here.answers()) == 30)
        with here.predicting() as other:
            reading = other.predictor
            other.until(lambda: reading.model is not None)
            # Until it has a part of them, everything is the first one's.
            n = 30
            while other.watcher.n_answered == 0:
                for partition in range(3):
                    here.send([("documents", line.data) for line in lines(1, n + partition)], partition)
                n += 3
                assert n < 600
                time.sleep(0.3)
        one.until(lambda: len(here.answers()) >= n)
    assert sorted(answer["id"] for answer in here.answers()) == sorted(f"d{k}" for k in range(n))


def test_records_that_are_gone_are_not_passed_over(world):
    here = world()
    here.publish()
    here.feed(20)
    partition = TopicPartition(here.topics["documents"], 0)
    with KafkaAdminClient(**here.clients) as admin:
        moved = {partition: OffsetAndMetadata(3, "", -1)}
        patiently(lambda: admin.alter_group_offsets(here.own.kafka.group, moved), 30)
        admin.delete_records({partition: 10})
    with here.predicting() as running:
        running.wait()
        error, running.error = running.error, None
    assert isinstance(error, KafkaProblem)
    assert f"records 3 to 9 of {partition.topic}:0 are gone before they were predicted" in str(error)


def test_a_topic_that_was_made_anew_is_noticed(world):
    here = world()
    here.publish()
    here.feed(5)
    partition = TopicPartition(here.topics["documents"], 0)
    with KafkaAdminClient(**here.clients) as admin:
        moved = {partition: OffsetAndMetadata(100, "", -1)}
        patiently(lambda: admin.alter_group_offsets(here.own.kafka.group, moved), 30)
    with here.predicting() as running:
        running.wait()
        error, running.error = running.error, None
    assert isinstance(error, KafkaProblem)
    assert "ends at 5, the group" in str(error)
    assert "was the topic made anew?" in str(error)


def test_who_begins_at_the_end_skips_nothing_that_comes_later(world, monkeypatch):
    """The first transaction fails: what it was about is done again, not passed over."""
    here = world(start="latest", batch=5)
    here.publish()
    here.feed(5)
    real, attempts = Transactions._write, []

    def failing(self, messages, commits, identity):
        attempts.append(len(messages))
        if messages and sum(map(bool, attempts)) == 1:
            raise KafkaTimeoutError("the answer is lost before anything is written")
        real(self, messages, commits, identity)

    monkeypatch.setattr(Transactions, "_write", failing)
    with here.predicting() as running:
        running.until(lambda: attempts == [0])
        here.feed(9, first=5)
        running.until(lambda: len(here.answers()) >= 9)
    assert sorted(answer["id"] for answer in here.answers()) == sorted(f"d{k}" for k in range(5, 14))


def test_partitions_that_are_added_are_read_from_their_beginning(world):
    here = world(start="latest")
    here.publish()
    own = {"instance": "one"}
    with here.predicting(**own) as running:
        running.until(lambda: running.predictor.model is not None)
        time.sleep(2.0)
        here.feed(3)
        running.until(lambda: len(here.answers()) == 3)
    with KafkaAdminClient(**here.clients) as admin:
        admin.create_partitions({here.topics["documents"]: 3})
    time.sleep(1.0)
    for partition in (1, 2):
        here.send([("documents", line.data) for line in lines(4, 10 * partition)], partition)
    with here.predicting(**own) as running:
        running.until(lambda: len(here.answers()) == 11)


def test_what_is_new_begins_where_it_is_told(world):
    here = world(start="latest")
    here.publish()
    here.feed(5)
    with here.predicting() as running:
        running.until(lambda: running.predictor.model is not None)
        time.sleep(2.0)
        here.feed(5, first=5)
        running.until(lambda: len(here.answers()) >= 1)
    assert {answer["id"] for answer in here.answers()} <= {f"d{k}" for k in range(5, 10)}
