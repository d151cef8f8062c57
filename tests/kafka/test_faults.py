"""Whatever dies: one prediction for each document, one letter for each bad record, the same model."""

import random
import threading
import time

import pytest
from kafka import KafkaAdminClient

from tests.kafka.daemons import World

pytestmark = [pytest.mark.compiled, pytest.mark.kafka]

SMALL = {"n": 6_000, "kills": 5, "pause": 8.0}
LARGE = {"n": 100_000, "kills": 50, "pause": 30.0}


class Streaming:
    """A stream that is sent while the daemon runs, by another thread, at about so many records a second."""

    def __init__(self, here, n, rate, poison=100):
        self.here, self.n = here, n
        self.letters = len(range(0, n, poison))
        self.n_records = 2 * n + self.letters
        self._records = here.records(n, poison=poison)
        self._sent = 0
        self._rate, self._began = rate, time.monotonic()
        self._thread = threading.Thread(
            target=here.produce, args=(self._records,), kwargs={"pause": self._pace}
        )

    def _pace(self):
        self._sent += 1000
        time.sleep(max(0.0, self._sent / self._rate - (time.monotonic() - self._began)))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._thread.join()

    @property
    def going(self):
        return self._thread.is_alive()


def finish(here, streaming):
    """Let a last daemon do the rest, and compare everything with a calm run."""
    here.run("--limit", streaming.n_records, timeout=100 + streaming.n / 500)
    here.check(streaming.n, letters=streaming.letters)
    assert here.parts() == here.calm_parts()


def killed_again_and_again(here, n, kills, seed=7):
    draw = random.Random(seed)
    with Streaming(here, n, rate=2.2 * n / (4.0 * kills)) as streaming:
        for _ in range(kills):
            with here.daemon() as process:
                time.sleep(draw.uniform(1.0, 6.0))
                assert process.poll() is None, here.said()[-2000:]
                process.kill()
    finish(here, streaming)


def with_a_fault(here, n, fault):
    """Stream through one daemon while something happens to the brokers; it must not end."""
    with Streaming(here, n, rate=n / 5.0) as streaming, here.daemon() as process:
        here.await_predictions(n // 10, process)
        fault()
        here.await_predictions(n, process, seconds=180)
        assert here.stop(process) == 0, here.said()[-2000:]
    finish(here, streaming)


@pytest.fixture
def own(make_broker, tmp_path):
    """Return a function that makes a world on a broker of its own."""

    def make(**options):
        return World(make_broker(), tmp_path, **options)

    return make


def test_killed_at_random_moments(kafka, tmp_path):
    here = World(kafka, tmp_path, state="every = 2000", learners=("h-arow", "node-pa"))
    killed_again_and_again(here, SMALL["n"], SMALL["kills"])


def test_the_broker_is_restarted(own):
    here = own(state="every = 2000")
    with_a_fault(here, SMALL["n"], here.where.restart)


def test_the_broker_hangs(own):
    here = own(state="every = 2000")

    def hang():
        here.where.pause()
        time.sleep(SMALL["pause"])
        here.where.resume()

    with_a_fault(here, SMALL["n"], hang)


def test_the_leader_of_a_cluster_is_killed(cluster, tmp_path):
    here = World(cluster, tmp_path, state="every = 2000")

    def kill_the_leader():
        with KafkaAdminClient(**here.clients) as admin:
            leader = admin.describe_topics([here.topics["documents"]])[0]["partitions"][0]["leader_id"]
        cluster[leader].kill()

    try:
        with_a_fault(here, SMALL["n"], kill_the_leader)
    finally:
        cluster.start()


@pytest.mark.soak
def test_killed_fifty_times(kafka, tmp_path):
    here = World(kafka, tmp_path, state="every = 20000", learners=("h-arow",), batch=2000)
    killed_again_and_again(here, LARGE["n"], LARGE["kills"])


@pytest.mark.soak
def test_the_broker_hangs_for_half_a_minute(own):
    here = own(state="every = 2000")

    def hang():
        here.where.pause()
        time.sleep(LARGE["pause"])
        here.where.resume()

    with_a_fault(here, 20_000, hang)
