"""The broker of deploy/kafka does what tests of the daemon need of it, seen through kafka-python."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError, SaslAuthenticationFailedError
from kafka.structs import OffsetAndMetadata

from deploy.kafka import fetch
from deploy.kafka.broker import Broker, BrokerError, UnavailableError, main
from deploy.kafka.process import answers
from deploy.kafka.settings import free_port
from tests.kafka.certificates import LOOPBACK, self_signed

pytestmark = pytest.mark.once

SCRIPT = Path(fetch.__file__).with_name("broker.py")


def send(where, topic, *values, **options):
    with KafkaProducer(bootstrap_servers=where.bootstrap, **options) as producer:
        for future in [producer.send(topic, value) for value in values]:
            future.get(30)


def read(where, topic, n, **options):
    """Return the first values of a topic, n of them: fewer if no more come for 10 s."""
    settings = {"group_id": None, "enable_auto_commit": False, "isolation_level": "read_committed"}
    settings |= {"auto_offset_reset": "earliest", "bootstrap_servers": where.bootstrap, **options}
    values, end = [], time.monotonic() + 10
    consumer = KafkaConsumer(**settings)
    try:
        consumer.assign([TopicPartition(topic, 0)])
        while len(values) < n and time.monotonic() < end:
            values += [record.value for batch in consumer.poll(200).values() for record in batch]
    finally:
        consumer.close()
    return values


class TestShared:
    def test_a_group_reads_what_was_sent(self, kafka, topic):
        name = topic("documents")
        send(kafka, name, *(b"%d" % number for number in range(100)))
        consumer = KafkaConsumer(
            name, bootstrap_servers=kafka.bootstrap, group_id=uuid.uuid4().hex, auto_offset_reset="earliest"
        )
        values, begin = [], time.monotonic()
        while len(values) < 100 and time.monotonic() < begin + 20:
            values += [int(record.value) for batch in consumer.poll(200).values() for record in batch]
        consumer.close()
        assert values == list(range(100))
        assert time.monotonic() < begin + 5, "a group of one should not wait for others"

    def test_offsets_are_committed_with_what_was_produced_or_not_at_all(self, kafka, topic):
        source, sink = TopicPartition(topic("in"), 0), topic("out")
        group = uuid.uuid4().hex
        consumer = KafkaConsumer(
            bootstrap_servers=kafka.bootstrap,
            group_id=group,
            isolation_level="read_committed",  # or what was just committed may not be seen yet
            enable_auto_commit=False,
        )
        consumer.subscribe([source.topic])
        while source not in consumer.assignment():
            consumer.poll(100)
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=group)
        producer.init_transactions()
        for value, offset in [(b"aborted", 3), (b"committed", 5)]:
            producer.begin_transaction()
            producer.send(sink, value).get(10)
            producer.send_offsets_to_transaction(
                {source: OffsetAndMetadata(offset, "snapshot 7", -1)}, consumer.group_metadata()
            )
            producer.abort_transaction() if offset == 3 else producer.commit_transaction()
        assert consumer.committed(source, metadata=True) == OffsetAndMetadata(5, "snapshot 7", -1)
        consumer.close()
        producer.close()
        assert read(kafka, sink, 1) == [b"committed"]

    def test_who_takes_over_fences_the_one_before(self, kafka, topic):
        name, identity = topic(), uuid.uuid4().hex
        old, new = (KafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=identity) for _ in "ab")
        old.init_transactions()
        old.begin_transaction()
        old.send(name, b"of the old one").get(10)
        new.init_transactions()
        with pytest.raises(KafkaError, match="ProducerFenced"):
            old.commit_transaction()
        new.begin_transaction()
        new.send(name, b"of the new one").get(10)
        new.commit_transaction()
        old.close()
        new.close()
        assert read(kafka, name, 1) == [b"of the new one"]

    def test_a_topic_does_not_come_about_by_accident(self, kafka):
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, max_block_ms=500)
        with pytest.raises(KafkaTimeoutError):
            producer.send(f"typo-{uuid.uuid4().hex}", b"x")
        producer.close()

    def test_a_topic_has_the_settings_asked_for(self, kafka, topic):
        name = topic("labels", 3, retention_ms=1000)
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap) as admin:
            assert len(admin.describe_topics([name])[0]["partitions"]) == 3


def test_a_broker_ends_hangs_dies_and_comes_back_with_its_data(make_broker, topic):
    broker = make_broker()
    name = topic(at=broker)
    send(broker, name, b"1")
    broker.restart()
    send(broker, name, b"2")
    broker.kill()
    assert not broker.alive
    assert not answers(broker.node.port)
    broker.start()
    broker.pause()
    assert broker.alive
    assert not answers(broker.node.port, seconds=0.3)
    broker.resume()
    send(broker, name, b"3")
    assert read(broker, name, 3) == [b"1", b"2", b"3"]
    with pytest.raises(BrokerError, match="is running already"):
        broker.start()
    broker.close()
    assert not broker.data.exists()
    with pytest.raises(BrokerError, match="is not running"):
        broker.pause()


def test_a_cluster_loses_its_leader_and_nothing_else(cluster, topic):
    name = topic(at=cluster)
    patient = {"reconnect_backoff_max_ms": 500, "retry_backoff_ms": 100}
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        partition = admin.describe_topics([name])[0]["partitions"][0]
    assert sorted(partition["replica_nodes"]) == [1, 2, 3]
    send(cluster, name, b"before")
    leader = cluster[partition["leader_id"]]
    leader.kill()
    send(cluster, name, b"without", **patient)
    assert read(cluster, name, 2, **patient) == [b"before", b"without"]
    cluster.start()
    assert leader.alive
    assert [answers(node.node.port) for node in cluster] == [True] * 3


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Return the files of a certificate that signs itself, for 127.0.0.1."""
    made, key = self_signed(tmp_path_factory.mktemp("certificate"), "broker", LOOPBACK)
    return made, key, made


def test_only_those_who_prove_who_they_are_come_through_the_second_listener(make_broker, certificate, topic):
    word = 'a "quoted" \\ word'
    broker = make_broker(
        tls=certificate, scram={"anna": "her secret"}, plain={"paul": word}, oauth=True, authorizer=True
    )
    name = topic(at=broker)
    common = {
        "bootstrap_servers": broker.secure,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": certificate[2],
    }
    as_anna = {"sasl_plain_username": "anna", "sasl_plain_password": "her secret"}
    as_paul = {"sasl_plain_username": "paul", "sasl_plain_password": word}
    for mechanism, who in [("SCRAM-SHA-256", as_anna), ("SCRAM-SHA-512", as_anna), ("PLAIN", as_paul)]:
        with KafkaProducer(**common, sasl_mechanism=mechanism, **who) as producer:
            producer.send(name, mechanism.encode()).get(10)
    wrong = {**as_anna, "sasl_plain_password": "guessed"}
    with pytest.raises((SaslAuthenticationFailedError, KafkaTimeoutError)):
        KafkaProducer(**common, sasl_mechanism="SCRAM-SHA-256", **wrong, bootstrap_timeout_ms=1500)
    assert read(broker, name, 3) == [b"SCRAM-SHA-256", b"SCRAM-SHA-512", b"PLAIN"]


def test_settings_that_are_wrong_are_named(make_broker):
    with pytest.raises(
        BrokerError, match=r"^Apache Kafka .* refuses its settings: .*num\.io\.threads"
    ) as error:
        make_broker(settings={"num.io.threads": "many"})
    assert len(str(error.value).splitlines()) > 1, "the end of the log is shown"


def test_a_port_that_is_taken_is_named(make_broker, kafka):
    taken = int(kafka.bootstrap.rpartition(":")[2])
    with pytest.raises(BrokerError, match=f"^Apache Kafka .* cannot start: port {taken} is taken$"):
        make_broker(port=taken)


def test_java_and_maven_that_are_missing_are_named(monkeypatch, tmp_path):
    fetch.find_kafka.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java = fetch._java()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        UnavailableError, match="Java 17 or newer and no Java is found: install openjdk-17-jre"
    ):
        fetch.find_kafka()
    monkeypatch.setattr(fetch, "_java", lambda: java)
    with pytest.raises(UnavailableError, match="fetched with mvn, which is missing: install maven"):
        fetch.find_kafka()
    assert not list((tmp_path / "stream-hc").glob("kafka-*"))


def test_a_download_that_breaks_off_leaves_nothing(monkeypatch, tmp_path):
    folder = tmp_path / "kafka"

    def half(command, failure):
        Path(command[-1].partition("=")[2], "half.jar").touch()
        raise UnavailableError(failure)

    monkeypatch.setattr(fetch, "_run", half)
    monkeypatch.setattr(fetch.shutil, "which", lambda name, **_: name)
    with pytest.raises(UnavailableError, match="mvn could not fetch"):
        fetch._resolve(folder)
    assert not list(tmp_path.iterdir())


def test_the_command_runs_until_it_is_told_to_end_and_takes_its_broker_with_it(kafka, tmp_path):
    port = free_port()
    command = [sys.executable, str(SCRIPT), "run", "--port", str(port), "--data", str(tmp_path)]
    for ending in (signal.SIGTERM, signal.SIGKILL):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            said = process.stdout.readline()
            assert said.startswith(f"Apache Kafka {fetch.VERSION} at 127.0.0.1:{port} (data in {tmp_path};")
            assert answers(port)
            process.send_signal(ending)
        assert process.returncode == (0 if ending == signal.SIGTERM else -signal.SIGKILL)
        end = time.monotonic() + 5
        while answers(port) and time.monotonic() < end:
            time.sleep(0.05)
        assert not answers(port), "the broker outlives the one who started it"


def test_the_folder_of_the_downloads_is_told(capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", os.sep + "somewhere")
    assert main(["path"]) == 0
    assert capsys.readouterr().out == "/somewhere/stream-hc\n"


def test_the_stand_in_refuses_what_it_cannot_do(tmp_path):
    engine = fetch.Engine("a stand-in", ("tansu",), real=False)
    with pytest.raises(UnavailableError, match="needs Apache Kafka, and there is only a stand-in"):
        Broker(tmp_path, engine=engine)
