"""What publishing takes from a trainer: the seconds of its threads, and what the stream loses meanwhile."""

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import msgspec

from bench import scale_processes as processes
from bench.scale_measure import Sizes
from bench.scale_model import Batch, pace
from bench.scale_world import World, job, write_taxonomy
from consumers.models.manifest import ShardKey
from consumers.models.publishing import Offer, Published, Publisher
from consumers.models.writing import MOST
from consumers.settings import client_settings
from deploy.kafka.broker import Broker
from stream_hc.snapshot import save

__all__ = ["Beside", "Version", "beside_the_stream", "one_version"]


IDLE = 5.0  # seconds without a batch
PATIENCE = 60.0  # seconds for a version


class Version(NamedTuple):
    """One version that was published: its bytes, seconds on the clock, and processor seconds by thread."""

    size: int
    seconds: float
    publisher: float
    sender: float
    extract: float  # of the clock, inside `seconds`

    @property
    def cpu(self) -> float:
        """Processor seconds of both threads."""
        return self.publisher + self.sender


class Offered(NamedTuple):
    """A snapshot was taken: when, and whether its model is published."""

    at: float
    is_published: bool


class Beside(NamedTuple):
    """A stream with snapshots, of which every second one is published."""

    with_: list[float]  # documents a second between two snapshots
    without: list[float]
    interval: float
    versions: list[Version]
    resident: int
    peak: int

    @property
    def lost(self) -> float:
        """Seconds of the stream that one version costs."""
        return self.interval * (1.0 - mean(self.with_) / mean(self.without))

    @property
    def noise(self) -> float:
        """The standard error of `lost`."""
        parts = [stdev(each) / mean(each) / len(each) ** 0.5 for each in (self.with_, self.without)]
        return self.interval * (parts[0] ** 2 + parts[1] ** 2) ** 0.5


@contextmanager
def _timed(into: list[Version]) -> Iterator[type[Publisher]]:
    """Return a publisher that writes down what a version takes."""
    from consumers.models import publishing  # noqa: PLC0415

    extract, took = publishing.extract, [0.0]

    def timed(path: str) -> Any:
        began = time.perf_counter()
        found = extract(path)
        took[0] = time.perf_counter() - began
        return found

    class Timed(Publisher):
        def _publish(self, offer: Offer, before: Published) -> None:
            wall, own, sender = time.perf_counter(), time.thread_time(), self._sender()
            super()._publish(offer, before)
            size = Path(offer.path).stat().st_size
            spent = time.perf_counter() - wall, time.thread_time() - own, self._sender() - sender
            into.append(Version(size, *spent, took[0]))

        def _sender(self) -> float:
            """Return the processor seconds of the thread in which kafka-python talks to the brokers."""
            thread = getattr(getattr(self._writer, "_producer", None), "_sender", None)
            number = getattr(thread, "native_id", None)
            return 0.0 if number is None else processes.cpu_seconds(f"self/task/{number}")

    publishing.extract = timed
    try:
        yield Timed
    finally:
        publishing.extract = extract


def one_version(broker: Broker, world: World, n: int) -> list[Version]:
    """Publish the model of a world so often, with nothing beside it."""
    versions: list[Version] = []
    config = job(broker.bootstrap, "x", models="models-alone").kafka
    with tempfile.TemporaryDirectory(prefix="stream-hc-bench-") as folder, _timed(versions) as kind:
        path = str(Path(folder) / "snapshot.snap")
        save(path, world.processor.parts())
        publisher = kind(config, client_settings(config), ShardKey(0, 1), folder, 1, MOST, print)
        for number in range(n + 1):  # the first one connects
            # As another job each time: what has not changed is not published again.
            publisher.offer(number + 1, f"bench-{number}", path)
            end = time.monotonic() + PATIENCE
            while len(versions) == number:
                if time.monotonic() > end:
                    raise RuntimeError("a version is not published")
                time.sleep(0.02)
        publisher.close(5.0)
    return versions[1:]


def beside_the_stream(broker: Broker, world: World, topic: str, sizes: Sizes) -> Beside:
    """Let a trainer learn a topic, with a snapshot every few seconds."""
    with tempfile.TemporaryDirectory(prefix="stream-hc-bench-") as folder:
        config = job(
            broker.bootstrap, f"{folder}/state", documents=topic, models="models-beside", batch=1_000
        )
        state = msgspec.structs.replace(config.state, seconds=sizes.interval)
        config = msgspec.structs.replace(config, state=state)
        arguments = [(config, write_taxonomy(world, folder))]
        with processes.crew(_train, arguments) as (signals, [member]):
            processes.await_all([member], lambda held: min(held) == 1)
            signals.go.set()
            while sum(isinstance(each, Offered) for each in member.hear()) < 2 * sizes.published + 3:
                if not member.process.is_alive():
                    raise RuntimeError("the trainer has ended")
                if member.batches and time.monotonic() > member.batches[-1].at + IDLE:
                    break  # a fast machine has read all of it: what there was has to do
                time.sleep(0.2)
            memory = processes.resident(member.process.pid)
            said = member.hear()
    batches = [each for each in said if isinstance(each, Batch)]
    # The first snapshots are those of a stream that has just begun.
    offered = [each for each in said if isinstance(each, Offered) and each.at <= batches[-1].at][2:]
    rates: dict[bool, list[float]] = {True: [], False: []}
    for one, other in pairwise(offered):
        rates[one.is_published].append(pace(batches, one.at, other.at).rate)
    versions = [each for each in said if isinstance(each, Version)]
    if min(map(len, [*rates.values(), versions])) < 2:
        raise RuntimeError(
            f"{len(offered)} snapshots before the topic was read to its end: fill it with more"
        )
    spans = [other.at - one.at for one, other in pairwise(offered)]
    return Beside(rates[True], rates[False], mean(spans), versions[1:], *memory)


def _train(pipe: Connection, signals: Any, config: Any, tree: str) -> None:
    """Be a trainer of which every second snapshot is published."""
    from consumers.daemon import daemon  # noqa: PLC0415
    from consumers.daemon.job import KafkaJob  # noqa: PLC0415
    from consumers.trainer.settings import letters_about, trainer_config  # noqa: PLC0415
    from stream_hc.runtime.collector import spare_what_stays  # noqa: PLC0415
    from stream_hc.runtime.pipeline import Processed  # noqa: PLC0415
    from stream_hc.runtime.watcher import Watcher  # noqa: PLC0415
    from stream_hc.taxonomy import Taxonomy  # noqa: PLC0415

    lock = threading.Lock()  # two threads say something

    def say(what: Any) -> None:
        with lock:
            pipe.send(what)

    class Tally(Watcher[KafkaJob]):
        def live(self, job: KafkaJob) -> None:
            say(1)
            signals.go.wait()

        def processed(self, job: KafkaJob, done: Processed) -> None:
            n = len(getattr(done.tag, "records", ()))
            say(Batch(time.monotonic(), n, time.process_time(), done.took.apply))

    class Told(list[Version]):
        def append(self, version: Version) -> None:
            say(version)

    with _timed(Told()) as kind:

        class EverySecond(kind):  # type: ignore[misc, valid-type]
            offers = 0

            def offer(self, number: int, job: str, path: str) -> None:
                self.offers += 1
                say(Offered(time.monotonic(), self.offers % 2 == 0))
                if self.offers % 2 == 0:
                    super().offer(number, job, path)

        daemon.Publisher = EverySecond
        taxonomy = Taxonomy.read(Path(tree))
        own = trainer_config(config, ShardKey(0, 1))
        spare_what_stays()
        daemon.Daemon(own, taxonomy, signals, Tally(), letters_about=letters_about(own)).run()
