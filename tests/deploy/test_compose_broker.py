"""The broker and the job of the compose file, for real: its settings, its topics, its daemon."""

import os
import signal
import subprocess
import sys
import time

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from consumers.doctor import examine_kafka
from deploy.kafka.fetch import UnavailableError, find_kafka
from deploy.kafka.settings import free_port
from stream_hc.runtime.config import load_config
from tests.deploy.support import DEPLOY, compose, lay_out
from tests.kafka.conftest import _collected, make_broker, unavailable  # noqa: F401 (fixtures)

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.kafka,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

# Where it listens and stores is the business of whoever runs it here.
PLACE = ("listener", "advertised", "controller", "inter.broker", "log.dirs", "node.id", "process.roles")
TOOL = """#!{python}
import sys
from kafka import KafkaAdminClient
words = iter(sys.argv[1:])
given, settings = {{}}, {{}}
for word in words:
    if word == "--config":
        settings.update([next(words).split("=")])
    else:
        given[word] = None if word in ("--create", "--if-not-exists") else next(words)
wanted = {{"num_partitions": int(given["--partitions"]), "configs": settings}}
wanted["replication_factor"] = int(given["--replication-factor"])
with KafkaAdminClient(bootstrap_servers=given["--bootstrap-server"]) as admin:
    admin.create_topics({{given["--topic"]: wanted}}, wait_for_metadata=True)
"""


@pytest.fixture
def settings(tmp_path):
    """Return the properties that the image makes of the environment: its own program does it."""
    try:
        engine = find_kafka()
    except UnavailableError as error:
        unavailable(str(error))
    folders = {letter: tmp_path / letter for letter in "DMF"}
    for letter, folder in folders.items():
        folder.mkdir()
        for name in ("server.properties", "log4j2.yaml", "tools-log4j2.yaml") if letter == "D" else ():
            (folder / name).touch()
    told = compose()["services"]["kafka"]["environment"] | {"KAFKA_LOG_DIRS": str(tmp_path / "log")}
    options = [word for letter, folder in folders.items() for word in (f"-{letter}", str(folder))]
    command = [*engine.command, "kafka.docker.KafkaDockerWrapper", "setup", *options]
    done = subprocess.run(command, env={"PATH": os.environ["PATH"], **told}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert (tmp_path / "log" / "meta.properties").is_file(), "the storage is formatted"
    lines = (folders["F"] / "server.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_a_daemon_with_the_job_of_the_compose_file_runs_on_its_broker(settings, make_broker, tmp_path):  # noqa: F811
    broker = make_broker(settings={k: v for k, v in settings.items() if not k.startswith(PLACE)})
    tool = tmp_path / "kafka-topics.sh"
    tool.write_text(TOOL.format(python=sys.executable))
    tool.chmod(0o755)
    script = ["bash", DEPLOY / "compose" / "topics.sh"]
    told = {"BOOTSTRAP": broker.bootstrap, "KAFKA_BIN": str(tmp_path), "PATH": os.environ["PATH"]}
    subprocess.run(script, env=told, check=True)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        assert {"documents", "labels", "predictions", "dead-letters", "model-events"} <= set(
            admin.list_topics()
        )

    job = lay_out(tmp_path, DEPLOY / "compose" / "job.toml", DEPLOY / "config" / "taxonomy.tsv")
    (tmp_path / "token").write_text("tulips from Amsterdam")
    variables = {
        "STREAM_HC_KAFKA_BOOTSTRAP": broker.bootstrap,
        "STREAM_HC_STATE_FOLDER": str(tmp_path / "state"),
        "STREAM_HC_HTTP_HOST": "127.0.0.1",
        "STREAM_HC_HTTP_PORT": str(free_port()),
        "STREAM_HC_HTTP_TOKEN_FILE": str(tmp_path / "token"),
    }
    said = []
    assert examine_kafka(load_config(str(job), variables, {}).config, said.append) == 0, said
    stream_hc = [sys.executable, "-m", "stream_hc.cli", "kafka"]
    environment = {**os.environ, **variables}
    news = [*stream_hc, "produce", "news:300", "--delay", "20", "--config", str(job), "--quiet"]
    subprocess.run(news, env=environment, check=True)
    with (tmp_path / "daemon.log").open("wb") as log:
        daemon = subprocess.Popen([*stream_hc, "consume", "--config", str(job)], env=environment, stderr=log)
    try:
        await_predictions(broker, 300, daemon, tmp_path / "daemon.log")
        health = [sys.executable, DEPLOY / "container" / "health.py", "/readyz", job]
        subprocess.run(health, env=environment, check=True)
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(60) == 0, (tmp_path / "daemon.log").read_text()
    finally:
        daemon.kill()
        daemon.wait()
    assert list((tmp_path / "state").glob("snapshot-*.snap"))


def await_predictions(broker, n, daemon, log):
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, isolation_level="read_committed")
    try:
        consumer.assign([TopicPartition("predictions", 0)])
        consumer.seek_to_beginning()
        found, end = 0, time.monotonic() + 120
        while found < n:
            assert time.monotonic() < end, f"{found} of {n}: {log.read_text()}"
            assert daemon.poll() is None, log.read_text()
            found += sum(map(len, consumer.poll(200).values()))
    finally:
        consumer.close()
