"""Predictors and trainers of shards on a real broker: nothing twice, nothing lost, the bits of one."""

import json
import time
import urllib.request
from statistics import median

import pytest
from kafka import KafkaProducer

from consumers.models.chunks import Record
from stream_hc.snapshot import dump_bytes
from tests.kafka.clusters import Fleet
from tests.kafka.models.test_chunks import records_of

pytestmark = [pytest.mark.compiled, pytest.mark.kafka]


@pytest.fixture
def fleet(kafka, tmp_path):
    made = []

    def make(**options):
        fleet = Fleet(kafka, tmp_path, **options)
        manager = fleet.alive()
        manager.__enter__()
        made.append(manager)
        return fleet

    yield make
    for manager in made:
        manager.__exit__(None, None, None)


def survive(fleet, n, seconds, seed):
    """Stream documents while processes are killed at random; check all that was promised."""
    for shard in range(2):
        for instance in "ab":
            fleet.trainer(shard, instance)
    for number in range(4):
        fleet.predictor(number)
    partitions = 1 if fleet.topics["labels"] == "none" else 4
    stream = list(fleet.records(n, poison=100))
    half = len(stream) // 2
    fleet.produce(stream[:half], partitions)
    killed = fleet.chaos(seconds / 2, seed)
    fleet.produce(stream[half:], partitions)
    killed += fleet.chaos(seconds / 2, seed + 1)
    fleet.await_no_lag()
    fleet.check(n, letters=n // 100)
    fleet.stop_all()
    return killed


def check_model(fleet):
    """Compare what the topic of models holds with what one processor for all nodes makes of the records."""
    manifests, content = fleet.published()
    learner, vectorizer = fleet.calm_model()
    assert [manifest.learned for manifest in manifests] == [learner.n_learned] * fleet.n_shards
    assert dump_bytes(content.model) == dump_bytes(learner)
    assert dump_bytes(content.vectorizer) == dump_bytes(vectorizer)


def test_random_kills_leave_one_prediction_a_document_and_the_model_of_one_trainer(fleet):
    here = fleet()
    assert survive(here, 6_000, 24, seed=1) >= 4
    check_model(here)


@pytest.mark.soak
def test_random_kills_for_two_minutes(fleet):
    here = fleet()
    assert survive(here, 60_000, 120, seed=3) >= 20
    check_model(here)


@pytest.mark.soak
def test_random_kills_for_two_minutes_with_four_partitions(fleet):
    here = fleet(together=False, partitions=4)
    assert survive(here, 60_000, 120, seed=5) >= 20
    manifests, content = here.published()
    assert [manifest.learned for manifest in manifests] == [60_000] * 2
    assert content.model.taxonomy == here.news.taxonomy


def test_versions_swap_under_load_without_a_gap(fleet):
    here = fleet(n_shards=1, state="every = 1000")
    here.trainer(0)
    here.predictor("a")
    here.predictor("b")
    here.await_words("predictor a", "h-arow answers, 0 documents")
    here.produce(here.records(12_000), pause=lambda: time.sleep(0.3))
    here.await_no_lag()
    here.check(12_000)
    here.stop_all()
    predictions = [json.loads(record.value) for record in here.read("predictions")]
    versions = [prediction["model_version"] for prediction in predictions]
    assert len(set(versions)) >= 4
    assert versions == sorted(versions), "in one partition versions never go back"
    # Whoever waits for predictions does not notice a swap: those behind one come as soon as any others.
    sent = {json.loads(record.value)["id"]: record.timestamp for record in here.read("documents")}
    waits = [record.timestamp - sent[record.key.decode()] for record in here.read("predictions")]
    swaps = [n for n in range(1, len(versions)) if versions[n] != versions[n - 1]]
    assert median(waits[n] for n in swaps) <= 2 * median(waits) + 200
    good = [prediction for prediction in predictions if prediction["model_version"] > 1000]
    assert any(prediction["labels"] for prediction in good)


def test_a_damaged_version_is_refused_and_the_old_model_stays(fleet):
    here = fleet(n_shards=1)
    here.trainer(0)
    here.predictor("a", "--http", "127.0.0.1:0")
    here.produce(here.records(1000))
    here.await_no_lag()
    here.stop(here.processes["trainer 0 a"])
    [manifest], _ = here.published()
    broken = records_of(b"not a model", chunk=4, version="evil")
    damaged = [broken[0]._replace(value=b"xxxx"), *broken[1:]]
    lost = records_of(b"not a model", chunk=4, version="lost")
    del lost[1]
    producer = KafkaProducer(**here.clients)
    attempts = [
        (damaged, "checksum"),
        (lost, "is missing"),
        (records_of(b"not a model", chunk=4, version="odd"), "version odd"),
        ([Record("0-of-1", b"{")], "cannot be read"),
    ]
    for number, (records, words) in enumerate(attempts, 1):
        for key, value, headers in records:
            producer.send(here.config.kafka.models, value, key.encode(), list(headers), 0)
        producer.flush()
        here.await_words("predictor a", words)
        assert here.says("predictor a").count("refused, the model before stays") == number
    producer.close()
    here.produce([("documents", b'{"id": "after", "text": "a goal in the last minute"}')])
    here.await_predictions(1001)
    found = json.loads(here.read("predictions")[-1].value)
    assert (found["id"], found["model_version"]) == ("after", manifest.learned)
    url = here.says("predictor a").split("live page: ")[1].split()[0]
    told = urllib.request.urlopen(f"{url}metrics", timeout=5).read().decode()
    assert 'streamhc_model_versions_total{outcome="refused"} 4.0' in told
    assert f'streamhc_model_info{{model="h-arow",version="{manifest.learned}"}} 1.0' in told
    assert "streamhc_predictions_total" in told
    age = float(told.split('streamhc_model_age_seconds{model="h-arow"} ')[1].split()[0])
    assert 0 < age < 120
    # A sound version takes over again.
    here.trainer(0)
    here.produce(here.records(300, seed=9))
    here.await_words("trainer 0 a", "reading")
    here.await_no_lag()
    here.stop_all()


def test_a_standby_takes_over_from_the_snapshot(fleet):
    here = fleet()
    stream = list(here.records(3000))
    for shard in range(2):
        here.trainer(shard)
    here.await_words("trainer 0 a", "reading")
    here.trainer(0, "b")
    here.await_words("trainer 0 b", "standing by")
    here.produce(stream[:2500])
    time.sleep(2)
    here.kill("trainer 0 a")
    here.await_words("trainer 0 b", "reading")
    here.produce(stream[2500:])
    here.predictor("a")
    here.await_no_lag()
    here.check(3000)
    here.stop_all()
    check_model(here)


def test_all_shards_under_one_command_end_together(fleet):
    here = fleet(learners=("h-rls",))
    here.produce(here.records(800))
    together = here.trainer(None, None)
    here.predictor("a")
    here.await_no_lag()
    here.check(800)
    here.processes["predictor a"].terminate()
    assert here.stop(together) == 0
    check_model(here)
    assert "shard  own nodes  ancestors  work" in here.says("trainer None None")
    # Killed, it leaves nobody behind: another one can have the folders at once.
    together = here.trainer(None, None)
    here.await_words("trainer None None", "reading", 60)
    here.kill("trainer None None")
    again = here.start("again", "train", "--shards", "2")
    here.await_words("again", "after 1600 records", 90)
    assert here.stop(again) == 0


def test_a_trainer_that_fails_ends_the_others(fleet):
    here = fleet()
    (here.folder / "state").mkdir()
    (here.folder / "state" / "1-of-2").write_text("a file where its folder should be")
    process = here.trainer(None, None)
    assert process.wait(90) == 8
    said = here.says("trainer None None")
    assert "the trainer of shard 1 has ended: the others save and end, too" in said
    assert "error: the trainer of shard 1 ended with exit code" in said
    assert "Traceback" not in said


def test_resharding_goes_on_with_the_same_bits(fleet):
    """Two shards, stopped apart; then three; then one: the model is that of one trainer all the time."""
    here = fleet()
    stream = list(here.records(3000))
    here.produce(stream[:2000])
    for shard in range(2):
        here.trainer(shard)
    here.predictor("a")
    here.await_no_lag()
    # Shard 0 is stopped earlier than shard 1.
    assert here.stop(here.processes["trainer 0 a"]) == 0
    here.produce(stream[2000:3500])
    here.await_words("trainer 1 a", "reading")
    end = time.monotonic() + 60
    while here.lags()[here.groups()[2]] and time.monotonic() < end:
        time.sleep(0.2)
    refused = here.python("reshard", "--shards", 3, "--yes")
    assert refused.returncode == 3
    assert "has 1 members" in refused.stderr
    assert here.stop(here.processes["trainer 1 a"]) == 0
    done = here.python("reshard", "--shards", 3, "--yes")
    assert done.returncode == 0, done.stderr
    assert "1,500 records behind the others" in done.stderr
    assert "3 shards go on where 2 were" in done.stderr
    assert sorted(each.name for each in (here.folder / "state").iterdir()) == [
        "0-of-2.before-1", "0-of-3", "1-of-2.before-1", "1-of-3", "2-of-3",
    ]  # fmt: skip
    here.n_shards = 3
    for shard in range(3):
        here.trainer(shard, "three")
    here.produce(stream[3500:5000])
    here.await_no_lag()
    for shard in range(3):
        assert here.stop(here.processes[f"trainer {shard} three"]) == 0
    check_model(here)
    done = here.python("reshard", "--shards", 1, "--yes")
    assert done.returncode == 0, done.stderr
    here.n_shards = 1
    here.trainer(0, "one")
    here.produce(stream[5000:])
    here.await_no_lag()
    here.check(3000)
    here.stop(here.processes["trainer 0 one"])
    here.stop(here.processes["predictor a"])
    check_model(here)


def test_large_models_go_through_a_folder(fleet, tmp_path):
    here = fleet(model_store=str(tmp_path / "store"))
    here.produce(here.records(500))
    for shard in range(2):
        here.trainer(shard)
    here.predictor("a")
    here.await_no_lag()
    here.check(500)
    here.stop_all()
    check_model(here)
    manifests, _ = here.published()
    assert all(manifest.store is not None and manifest.chunks == 0 for manifest in manifests)
    assert all(len(record.value) < 1000 for record in here._read(here.config.kafka.models))
    stored = {path.parent.name for path in (here.folder / "store").glob("*/*.snap")}
    assert stored == {f"{here.group}-train-{number}-of-2" for number in range(2)}
