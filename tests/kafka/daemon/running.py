"""A daemon in a thread of this process, on a real broker, with a stream of a few documents."""

import threading
import time

from kafka import KafkaProducer

from consumers.daemon import Daemon
from stream_hc.runtime.watcher import Watcher
from tests.kafka.daemons import World

SECONDS = 60.0  # that anything may take on a busy machine


class Killed(BaseException):
    """Ends a daemon where it stands, as a kill would: nothing is saved, nothing is said."""


class Noting(Watcher):
    """Remembers what it was told; `at` holds what is called when something happens, by the name of that."""

    def __init__(self, **at):
        self.notes, self.jobs, self.happened = [], [], []
        self._at = at

    def _tell(self, what, job=None):
        self.happened.append(what)
        if what in self._at:
            self._at[what](job)

    def begin(self, job):
        self.jobs.append(job)
        self._tell("begin", job)

    def live(self, job):
        self._tell("live", job)

    def processed(self, job, done):
        self._tell("processed", job)

    def looked(self, job):
        self._tell("looked", job)

    def saved(self, job):
        self._tell("saved", job)

    def note(self, text):
        self.notes.append(text)


class Running:
    """Runs a daemon from here to the end of a block; an error of it is raised at the end."""

    def __init__(self, config, taxonomy, standing_by=lambda: None, **at):
        self.requested, self.descriptor = False, None
        self.watcher = Noting(**at)
        self.error = None
        self._daemon = Daemon(config, taxonomy, self, self.watcher, standing_by)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            self._daemon.run()
        except BaseException as error:
            self.error = error

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, kind, *_):
        self.requested = True
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "it does not end"
        if kind is None and self.error is not None:
            raise self.error

    @property
    def notes(self):
        return self.watcher.notes

    @property
    def said(self):
        """What was noted beside what the topics of these tests are like."""
        return [note for note in self.notes if not note.startswith("warning: topic dead_letters")]

    @property
    def job(self):
        return self.watcher.jobs[-1]

    def wait(self):
        """Wait until it ends by itself."""
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), f"it does not end: {self.notes}"

    def until(self, condition):
        """Wait until something holds."""
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, f"never: {self.notes}"
            assert self._thread.is_alive() or self.error is None, self.error
            time.sleep(0.05)

    def until_noted(self, text):
        self.until(lambda: any(text in note for note in self.notes))


class SmallWorld(World):
    """A world whose daemons are threads; all times are those that the stream is given, a second apart."""

    def __init__(self, where, folder, **options):
        super().__init__(where, folder, **{"request_timeout": 3.0, "batch": 20} | options)
        self.sent = 0

    def send(self, records, partition=0, seconds=1):
        """Send records, each so many seconds after the one before."""
        producer = KafkaProducer(bootstrap_servers=self.where.bootstrap)
        for kind, value in records:
            topic = self.topics[kind] if self.topics[kind] != "none" else self.topics["documents"]
            stamp = 1_000_000 + 1000 * seconds * self.sent
            producer.send(topic, value, partition=partition, timestamp_ms=stamp)
            self.sent += 1
        producer.flush()
        producer.close()

    def running(self, config=None, standing_by=lambda: None, **at):
        return Running(config or self.config, self.news.taxonomy, standing_by, **at)
