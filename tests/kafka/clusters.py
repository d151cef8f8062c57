"""Trainers of shards, those who stand by for them, and predictors: started, killed and looked at."""

import os
import random
import signal
import subprocess
import time
from contextlib import contextmanager

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from consumers.clients import patiently
from consumers.models.chunks import Assembler, Record
from consumers.models.versions import Versions
from stream_hc.runtime.building import build_processor
from tests.kafka.daemons import COMMAND, World


class Fleet(World):
    """A world with trainers and predictors, each by a name of its own.

    Parameters
    ----------
    n_shards
        Of the taxonomy.
    """

    def __init__(self, where, folder, *, n_shards=2, **options):
        models = f"models-{os.urandom(4).hex()}"
        options = {"create_topics": True, "models": models, "state": "seconds = 1.0"} | options
        super().__init__(where, folder, **options)
        self.n_shards = n_shards
        self.processes = {}
        self.commands = {}
        self.begun = {}  # how long the log of each was when it was started last

    def trainer(self, shard, instance="a", *more):
        """Start a trainer of a shard; several of one shard need names of their own."""
        shards = ["--shards", str(self.n_shards), *([] if shard is None else ["--shard", str(shard)])]
        named = ["--set", f"kafka.instance={instance}"] if instance is not None else []
        return self.start(f"trainer {shard} {instance}", "train", *shards, *named, *more)

    def predictor(self, name, *more):
        """Start a predictor."""
        return self.start(f"predictor {name}", "predict", *more)

    def start(self, name, *arguments):
        """Start a process, or the one of that name again."""
        if arguments:
            self.commands[name] = [*COMMAND, *arguments, "--config", str(self.config_file)]
        with open(self.log(name), "ab") as output:
            self.begun[name] = output.tell()
            self.processes[name] = subprocess.Popen(
                self.commands[name],
                stderr=output,
                stdout=output,
                stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONFAULTHANDLER": "1"},
            )
        return self.processes[name]

    def log(self, name):
        return self.folder / f"{name.replace(' ', '-')}.log"

    def says(self, name):
        return self.log(name).read_text()

    def await_words(self, name, words, seconds=60):
        """Wait until a process has said something."""
        end = time.monotonic() + seconds
        while words not in self.says(name):
            assert time.monotonic() < end, f"{name} never said {words!r}: {self.says(name)[-2000:]}"
            assert self.processes[name].poll() is None, self.says(name)[-2000:]
            time.sleep(0.1)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    @contextmanager
    def alive(self):
        """Kill what still runs at the end."""
        try:
            yield self
        finally:
            for process in self.processes.values():
                if process.poll() is None:
                    process.kill()
                process.wait()

    def stop_all(self, seconds=90):
        """Let all end by themselves; those of a shard that stand by would take over, so they go first."""
        end = time.monotonic() + seconds
        while any(self.log(name).stat().st_size == self.begun[name] for name in self.processes):
            assert time.monotonic() < end, "some never said anything"
            time.sleep(0.1)
        names = sorted(self.processes, key=lambda name: not self.stands_by(name))
        for name in names:
            if self.processes[name].poll() is None:
                self.processes[name].send_signal(signal.SIGTERM)
                assert self.processes[name].wait(seconds) == 0, self.says(name)[-3000:]

    def stands_by(self, name):
        """Whether the last thing it said about that is that it stands by."""
        said = self.says(name)
        return said.rfind("standing by in the group") > said.rfind("reading ")

    def chaos(self, seconds, seed, every=3.0):
        """Kill one at random, again and again, and start it once more; return how many were killed."""
        rng, n_killed = random.Random(seed), 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(rng.uniform(0.3, 1.7) * every)
            victim = rng.choice(sorted(self.processes))
            self.kill(victim)
            n_killed += 1
            time.sleep(rng.uniform(0.0, 0.5) * every)
            self.start(victim)
        return n_killed

    # What became of it

    def groups(self):
        shards = range(self.n_shards)
        return [f"{self.group}-predict", *(f"{self.group}-train-{n}-of-{self.n_shards}" for n in shards)]

    def lags(self):
        """Return how many records of its topics each group has not committed yet."""
        topics = [self.topics[kind] for kind in ("documents", "labels") if self.topics[kind] != "none"]
        with KafkaAdminClient(**self.clients) as admin:
            committed = {
                group: patiently(lambda group=group: admin.list_group_offsets({group: None})[group], 30)
                for group in self.groups()
            }
        consumer = KafkaConsumer(**self.clients, group_id=None)
        try:
            ends = {}
            for topic in topics:
                numbers = consumer.partitions_for_topic(topic)
                ends |= consumer.end_offsets([TopicPartition(topic, number) for number in numbers])
        finally:
            consumer.close()
        lags = {}
        for group, offsets in committed.items():
            read = topics[:1] if group.endswith("-predict") else topics
            known = {each: at.offset for each, at in offsets.items()}
            lags[group] = sum(
                end - max(0, known.get(each, 0)) for each, end in ends.items() if each.topic in read
            )
        return lags

    def await_no_lag(self, seconds=120):
        """Wait until all groups have read everything."""
        end = time.monotonic() + seconds
        while any(self.lags().values()):
            told = {name: self.says(name)[-600:] for name in self.processes}
            assert time.monotonic() < end, f"{self.lags()}: {told}"
            time.sleep(0.3)

    def published(self):
        """Return what the topic of models holds: manifests, and the joined model."""
        assembler, versions, newest = Assembler(), Versions(), {}
        for record in self._read(self.config.kafka.models):
            complete = assembler.add(Record(record.key.decode(), record.value, record.headers))
            if complete is not None:
                newest[complete.shard] = complete
        for complete in newest.values():
            versions.add(complete)
        return versions.whole()

    def calm_model(self):
        """Return learner and vectorizer after all records, worked out here by one processor for all nodes."""
        processor = self.calm_processor(build_processor(self.config, self.news.taxonomy))
        [name] = self.config.model.learners
        return processor.line_up.online[name].learner, processor.vectorizer

    def python(self, *arguments, timeout=120):
        """Run a command of `stream-hc kafka` to its end."""
        command = [*COMMAND, *map(str, arguments), "--config", str(self.config_file)]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
