"""From a snapshot to the topic and from there to a model, through a real broker, and what goes wrong."""

import os
import time

import msgspec
import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaConnectionError

from consumers.clients import reader
from consumers.errors import KafkaProblem
from consumers.models.manifest import ChunkKey, Manifest, ShardKey
from consumers.models.publishing import Publisher
from consumers.models.writing import ModelWriter
from consumers.predictor.following import Follower
from consumers.settings import client_settings
from deploy.kafka.settings import free_port
from stream_hc.runtime.config import KafkaConfig
from tests.kafka.models.snapshots import PLAN, WHOLE, records, saved

pytestmark = pytest.mark.kafka
SECONDS = 60.0


@pytest.fixture
def config(kafka, topic):
    """Return settings with a topic of models of their own."""
    name = topic("models", cleanup_policy="compact")
    return KafkaConfig(bootstrap=kafka.bootstrap, group=name, models=name, request_timeout=5.0)


@pytest.fixture
def opened():
    """Close what was opened, in the end."""
    made = []
    yield lambda each, *close: made.append((each, close)) or each
    for each, close in made:
        each.close(*close)


@pytest.fixture
def publisher(config, tmp_path, opened):
    def make(shard=WHOLE, notes=None, largest=3_000, **changes):
        own = msgspec.structs.replace(config, **changes)
        note = [].append if notes is None else notes.append
        made = Publisher(own, client_settings(own), shard, str(tmp_path), 1, largest, note)
        return opened(made, 0.0)

    return make


@pytest.fixture
def follower(config, opened):
    def make(notes=None, **changes):
        own = msgspec.structs.replace(config, **changes)
        return opened(Follower(own, client_settings(own), [].append if notes is None else notes.append))

    return make


def until(condition, what=""):
    end = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.02)
    return found


def written(config, n):
    """Return the records of the topic up to the n-th manifest: keys, records, and the manifests."""
    found = []

    def manifests():
        return [Manifest.of(each.value) for each in found if ShardKey.of(each.key.decode()) and each.value]

    with reader(config) as consumer:
        consumer.subscribe([config.models])
        until(
            lambda: found.extend(r for b in consumer.poll(100).values() for r in b) or len(manifests()) >= n
        )
    return [each.key.decode() for each in found], found, manifests()


def test_versions_are_published_in_turn_and_followed(config, publisher, follower, tmp_path):
    publishing, following = publisher(), follower()
    publishing.offer(1, "job", saved(tmp_path / "1.snap", 8))
    first = until(following.take)
    assert (first.learned, first.model) == (8, "h-arow")
    assert following.take() is None, "once"
    publishing.offer(2, "job", saved(tmp_path / "2.snap", 12))
    assert until(following.take).learned == 12
    publishing.offer(2, "job", str(tmp_path / "2.snap"))  # once more: nothing happens
    publishing.close(SECONDS)
    assert publishing.counts == {"published": 2}
    assert following.take() is None
    keys, found, manifests = written(config, 2)
    assert [(manifest.slot, manifest.snapshot, manifest.records) for manifest in manifests] == [
        (0, 1, 8),
        (1, 2, 12),
    ]
    assert all(len(record.value) <= 2_000 for record in found)
    assert manifests[0].chunks > 1
    slots = [key.slot for each in keys if (key := ChunkKey.of(each))]
    assert slots == [0] * manifests[0].chunks + [1] * manifests[1].chunks
    # After a restart the trainer goes on with the slot that is not complete.
    again = publisher()
    again.offer(3, "job", saved(tmp_path / "3.snap", 3))
    assert until(following.take).learned == 3
    again.close(SECONDS)
    _, _, manifests = written(config, 3)
    assert manifests[-1].slot == 0
    assert following.counts == {"ready": 3}


def test_a_snapshot_without_news_renews_the_manifest_alone(config, publisher, follower, tmp_path):
    publishing, following = publisher(), follower()
    publishing.offer(1, "job", saved(tmp_path / "1.snap", 8))
    served = until(following.take)
    os.utime(saved(tmp_path / "2.snap", 8), (2e9, 2e9))
    publishing.offer(2, "job", str(tmp_path / "2.snap"))
    until(lambda: served.saved == 2e9, "it is told that the model is younger")
    assert following.take() is None
    keys, _, manifests = written(config, 2)
    assert keys.count("0-of-1/0/000000") == 1
    assert [manifest.snapshot for manifest in manifests] == [1, 2]
    assert len({manifest.version for manifest in manifests}) == 1
    # Whoever starts now has to find the bytes before the first of the two.
    later = until(follower().take)
    assert (later.learned, later.saved) == (8, 2e9)
    # The same records, but another job: its model may be another one.
    publishing.offer(2, "other", str(tmp_path / "2.snap"))
    until(lambda: publishing.counts["published"] == 2)
    assert following.counts["refused"] == 0


def test_a_shorter_version_takes_the_chunks_of_a_longer_one_away(config, publisher, tmp_path):
    publishing = publisher(largest=1_500)
    for number in (1, 2):
        publishing.offer(number, "job", saved(tmp_path / f"{number}.snap", 12 + number))
        until(lambda number=number: publishing.counts["published"] == number)
    publishing.close(0.0)
    few = publisher(largest=10**6)
    few.offer(3, "job", str(tmp_path / "1.snap"))
    until(lambda: few.counts["published"])
    keys, found, manifests = written(config, 3)
    n_chunks = manifests[0].chunks
    assert n_chunks > 1
    gone = [key for key, record in zip(keys, found, strict=True) if record.value is None]
    assert gone == [str(ChunkKey(WHOLE, 0, place)) for place in range(1, n_chunks)]


def test_whoever_starts_later_reads_the_newest_alone(publisher, follower, tmp_path):
    publishing = publisher()
    for number, n in enumerate((4, 8, 12), 1):
        publishing.offer(number, "job", saved(tmp_path / f"{number}.snap", n))
        until(lambda number=number: publishing.counts["published"] == number)
    following = follower()
    assert until(following.take).learned == 12
    assert following.counts == {"ready": 1}


def test_shards_are_joined_as_they_come(config, publisher, follower, tmp_path):
    following, made = follower(), []
    for number in range(2):
        folder = tmp_path / f"folder{number}"
        folder.mkdir()
        own = msgspec.structs.replace(config, group=f"{config.group}-{number}")
        made.append(Publisher(own, client_settings(own), ShardKey(number, 2), str(folder), 1, 3_000, print))
    for number, publishing in enumerate(made):
        assert following.take() is None
        publishing.offer(1, "job", saved(tmp_path / f"{number}.snap", 8, PLAN.shards[number]))
    assert until(following.take).name.count("+") == 1
    made[1].offer(2, "job", saved(tmp_path / "1b.snap", 11, PLAN.shards[1]))
    newer = until(following.take)
    assert (newer.learned, [each.learned for each in newer.manifests]) == (8, [8, 11])
    for publishing in made:
        publishing.close(SECONDS)


def test_a_folder_carries_what_the_topic_points_to(config, publisher, follower, tmp_path):
    notes = []
    publishing, following = publisher(model_store=str(tmp_path / "store")), follower(notes)
    for number in range(1, 6):
        publishing.offer(number, "job", saved(tmp_path / f"{number}.snap", number))
        assert until(following.take).learned == number
    publishing.close(SECONDS)
    assert len(os.listdir(next((tmp_path / "store").iterdir()))) == 3
    assert len(written(config, 5)[0]) == 5, "pointers, and nothing else"
    # Damaged there: the model before stays.
    newest = max((tmp_path / "store").glob("*/*"))
    data = bytearray(newest.read_bytes())
    data[-1] ^= 1
    newest.write_bytes(data)
    later = follower(notes)
    until(lambda: notes)
    assert "do not match the checksum of the manifest: refused, the model before stays" in notes[-1]
    assert later.counts == {"refused": 1}
    newest.unlink()
    follower(notes)
    until(lambda: "not there" in notes[-1])


def test_what_is_not_there_or_cannot_be_written_is_tried_again(publisher, tmp_path):
    notes = []
    publishing = publisher(notes=notes)
    publishing.offer(1, "job", str(tmp_path / "gone.snap"))  # removed meanwhile: a newer one will come
    (tmp_path / "odd.snap").write_bytes(b"no snapshot")
    until(lambda: not publishing._is_busy and publishing._offer is None)
    assert notes == []
    publishing.offer(2, "job", str(tmp_path / "odd.snap"))
    until(lambda: publishing.counts["failed"] >= 2)
    assert "the model was not published: " in notes[0]
    publishing.offer(3, "job", saved(tmp_path / "3.snap"))
    until(lambda: publishing.counts["published"])
    store = publisher(notes=notes, model_store=str(tmp_path / "odd.snap" / "store"))
    store.offer(4, "job", saved(tmp_path / "4.snap", 9))
    until(lambda: "cannot write" in notes[-1])


def test_brokers_that_are_away_do_not_stop_it(publisher, follower, tmp_path):
    notes = []
    away = f"127.0.0.1:{free_port()}"
    publishing = publisher(notes=notes, bootstrap=away, request_timeout=1.0)
    publishing.offer(1, "job", saved(tmp_path / "1.snap"))
    follower(notes, bootstrap=away, request_timeout=1.0)
    until(lambda: any("models are not followed" in note for note in notes))
    until(lambda: any("the model was not published" in note for note in notes))
    assert publishing.counts["failed"]


def test_another_trainer_of_the_shard_shuts_it_out_for_good(config, publisher, follower, tmp_path):
    notes, following = [], follower()
    one = publisher(notes=notes)
    one.offer(1, "job", saved(tmp_path / "1.snap", 4))
    until(lambda: one.counts["published"])
    other = publisher()
    other.offer(2, "job", saved(tmp_path / "2.snap", 12))
    until(lambda: other.counts["published"])
    one.offer(3, "job", saved(tmp_path / "3.snap", 8))
    until(lambda: notes)
    assert "another process publishes the model of" in notes[0]
    one._thread.join(SECONDS)
    began = time.monotonic()
    one.close(SECONDS)
    assert time.monotonic() < began + 5, "nobody waits for one that has ended"
    other.offer(4, "job", saved(tmp_path / "4.snap", 16))
    until(lambda: other.counts["published"] == 2)
    until(lambda: (newer := following.take()) is not None and newer.learned == 16)


def test_threads_survive_errors_of_any_kind(publisher, follower, tmp_path, monkeypatch):
    notes = []

    def odd(*_):
        raise RuntimeError("something nobody has thought of")

    with monkeypatch.context() as patch:
        patch.setattr("consumers.models.publishing.extract", odd)
        patch.setattr("consumers.predictor.following.ServedModel", odd)
        publishing, following = publisher(notes=notes), follower(notes)
        publishing.offer(1, "job", saved(tmp_path / "1.snap"))
        until(lambda: any("something nobody has thought of: trying again" in note for note in notes))
        patch.undo()
        patch.setattr("consumers.predictor.following.ServedModel", odd)
        until(lambda: any("models are not followed: RuntimeError" in note for note in notes))
    assert until(following.take).learned == 8


def test_a_topic_that_was_made_anew_is_filled_by_the_next_start(config, publisher, follower, tmp_path):
    publishing = publisher()
    publishing.offer(1, "job", saved(tmp_path / "1.snap"))
    until(lambda: publishing.counts["published"])
    publishing.close(SECONDS)
    again = publisher()
    again.offer(1, "job", str(tmp_path / "1.snap"))
    until(lambda: again.counts["published"])
    assert len({manifest.version for manifest in written(config, 2)[2]}) == 2


def test_without_transactions(config, publisher, follower, tmp_path):
    publishing = publisher(transactions=False)
    publishing.offer(1, "job", saved(tmp_path / "1.snap"))
    assert until(follower().take).learned == 8
    writer = ModelWriter(config, client_settings(config), config.models, 7)
    with pytest.raises((KafkaConnectionError, Exception)):
        writer.write(records(str(tmp_path / "1.snap")))
    writer.close()


def test_a_topic_needs_a_name(config, tmp_path):
    nameless = msgspec.structs.replace(config, models=None)
    with pytest.raises(KafkaProblem, match=r"kafka\.models is none"):
        Publisher(nameless, {}, WHOLE, str(tmp_path), 1, 1000, print)
    with pytest.raises(KafkaProblem, match=r"kafka\.models is none"):
        Follower(nameless, {}, print)


def test_a_version_that_makes_no_model_is_refused(config, follower, tmp_path):
    notes = []
    following = follower(notes)
    producer = KafkaProducer(bootstrap_servers=config.bootstrap)
    for key, value, headers in [
        *records(saved(tmp_path / "0.snap", 8, PLAN.shards[0]), ShardKey(0, 2)),
        *records(saved(tmp_path / "1.snap", 8, PLAN.shards[1], "node-pa"), ShardKey(1, 2)),
    ]:
        producer.send(config.models, value, key.encode(), list(headers), 0)
    producer.close()
    until(lambda: notes)
    assert "the models of 2 shards do not go together" in notes[0]
    assert following.take() is None
