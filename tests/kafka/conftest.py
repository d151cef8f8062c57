"""Brokers for the tests: Apache Kafka on loopback, or the one that STREAM_HC_KAFKA names.

Without a broker the tests are skipped and say why; where CI=true, that is a failure.
"""

import gc
import os
import sys
import uuid
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from deploy.kafka.broker import Broker, Cluster, UnavailableError

HERE = Path(__file__).parent


class Existing:
    """A broker that somebody else runs."""

    def __init__(self, bootstrap):
        self.bootstrap, self.kind = bootstrap, "the broker of STREAM_HC_KAFKA"


def unavailable(reason):
    """Skip, or fail where a skip would go unnoticed."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"no broker in CI: {reason}", pytrace=False)
    pytest.skip(reason)


@contextmanager
def running(kind, *args, **options):
    """Run a `Broker` or a `Cluster` of the real thing, or skip."""
    try:
        made = kind(*args, **options)
    except UnavailableError as error:
        unavailable(str(error))
    with made:
        yield made


def pytest_collection_modifyitems(items):
    """Let kafka-python forget sockets: those that could not connect are closed by the garbage collector."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))


@pytest.fixture(scope="module", autouse=True)
def _collected():
    """Collect them here, where they are forgiven, and not during the tests of others."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def kafka(request):
    """Return a broker that all tests share: topics and groups need names of their own."""
    if address := os.environ.get("STREAM_HC_KAFKA"):
        say(request, existing := Existing(address))
        yield existing
        return
    with running(Broker) as broker:
        if not broker.engine.real:
            unavailable(f"no transactions with {broker.kind}")
        say(request, broker)
        yield broker


@pytest.fixture(scope="module")
def cluster():
    """Return three brokers, of which one may be ended, paused and started again."""
    with running(Cluster) as made:
        yield made


@pytest.fixture
def make_broker():
    """Return a function that starts a broker of the test's own, with the arguments of `Broker`."""
    started = []

    def make(*args, **options):
        manager = running(Broker, *args, **options)
        broker = manager.__enter__()
        started.append(manager)
        return broker

    yield make
    for manager in reversed(started):
        manager.__exit__(None, None, None)


@pytest.fixture
def topic(request):
    """Return a function that makes a topic with a fresh name, at `kafka` unless told otherwise."""

    def make(name="topic", partitions=1, *, at=None, **configs):
        where = at or request.getfixturevalue("kafka")
        fresh = f"{name}-{uuid.uuid4().hex[:8]}"
        wanted = {key.replace("_", "."): str(value) for key, value in configs.items()}
        with KafkaAdminClient(bootstrap_servers=where.bootstrap) as admin:
            admin.create_topics(
                {fresh: {"num_partitions": partitions, "configs": wanted}}, wait_for_metadata=True
            )
        return fresh

    return make


def say(request, broker):
    """Tell which broker the tests run on, past pytest's capture."""
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        sys.stderr.write(f"\nKafka tests run on {broker.kind} at {broker.bootstrap}\n")
