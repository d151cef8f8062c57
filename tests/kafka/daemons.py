"""A daemon in a process of its own, the stream it reads, and what became of both."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from consumers.daemon.clock import StreamClock
from consumers.daemon.reading import ranges_of
from consumers.settings import client_settings
from stream_hc import snapshot
from stream_hc.datasets import make_news
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import KafkaConfig, load_config
from stream_hc.runtime.jsonl import Line
from stream_hc.snapshot import dump_bytes

COMMAND = (sys.executable, "-m", "stream_hc.cli", "kafka")
TOPICS = ("documents", "labels", "predictions", "dead_letters", "requests", "events")
POISON = {
    "not_json": b"{",
    "not_utf8": b'{"id": "\xff", "text": "x"}',
    "wrong_type": b'{"id": 7, "text": "x"}',
    "missing_field": b'{"text": "x"}',
    "no_content": b'{"id": "x"}',
    "several_contents": b'{"id": "x", "text": "x", "vector": [1]}',
    "empty_id": b'{"id": " ", "text": "x"}',
    "unknown_label": b'{"id": "x", "text": "x", "labels": ["no such thing"]}',
    "number_out_of_range": b'{"id": "x", "features": {"a": 1e300}}',
    "too_deep": b'{"id": "x", "text": "x", "more": ' + b"[" * 2000 + b"]" * 2000 + b"}",
    "id_too_long": b'{"id": "' + b"x" * 600 + b'", "text": "x"}',
    "bad_ts": b'{"id": "x", "text": "x", "ts": "' + b"9" * 100 + b'"}',
}


class World:
    """Topics with names of their own, a configuration that uses them, and a synthetic stream.

    Parameters
    ----------
    where
        The broker.
    folder
        For the configuration and the state.
    together
        Documents and labels in one topic with one partition: then the order is given, to the last record.
    settings
        Lines of the table [kafka] beside the names.
    """

    def __init__(
        self, where, folder, *, together=True, partitions=1, learners=("h-arow",), state="", **settings
    ):
        self.where, self.folder = where, Path(folder)
        name = uuid.uuid4().hex[:8]
        self.topics = {topic: f"{topic}-{name}" for topic in TOPICS}
        if together:
            self.topics["labels"] = "none"
        self.topics["requests"] = "none"
        self.group = f"group-{name}"
        self.clients = client_settings(KafkaConfig(bootstrap=where.bootstrap))
        with KafkaAdminClient(**self.clients) as admin:
            wanted = {
                topic: {
                    "num_partitions": partitions if kind in ("documents", "labels", "predictions") else 1,
                    "configs": {"retention.ms": "-1"},  # the stamps of some tests are older than a week
                }
                for kind, topic in self.topics.items()
                if topic != "none"
            }
            admin.create_topics(wanted, wait_for_metadata=True)
        self.news = make_news(100, seed=3)
        self.news.taxonomy.write(self.folder / "tree.tsv")
        address = settings.pop("bootstrap", where.bootstrap)
        given = {"instance": "one", "session_timeout": 6.0, "request_timeout": 5.0, "batch": 500} | settings
        lines = [f'bootstrap = "{address}"', f'group = "{self.group}"']
        lines += [f'{kind} = "{topic}"' for kind, topic in self.topics.items()]
        lines += [f"{key} = {json.dumps(value)}" for key, value in given.items()]
        self.config_file = self.folder / "job.toml"
        self.config_file.write_text(
            f'[model]\ntaxonomy = "tree.tsv"\nlearners = {json.dumps(list(learners))}\nn_features = 4096\n'
            f'[state]\nfolder = "state"\n{state}\n[kafka]\n' + "\n".join(lines) + "\n"
        )
        self.config = load_config(str(self.config_file), {}, {}).config

    # The stream

    def records(self, n, seed=3, delay=200, poison=0):
        """Yield (kind, value): documents, their labels so many documents later, and now and then rubbish."""
        waiting = []
        rubbish = list(POISON.values())
        for number, (text, labels) in enumerate(stream(n, seed)):
            yield "documents", json.dumps({"id": f"d{number}", "text": text}).encode()
            waiting.append(json.dumps({"id": f"d{number}", "labels": labels}).encode())
            if number >= delay:
                yield "labels", waiting[number - delay]
            if poison and number % poison == 0:
                yield "documents", rubbish[number // poison % len(rubbish)]
        for value in waiting[max(0, n - delay) :]:
            yield "labels", value

    def produce(self, records, partitions=1, pause=None):
        """Send records, and return how many there were of each kind."""
        count = Counter()
        producer = KafkaProducer(**self.clients, linger_ms=20, batch_size=2**17)
        for number, (kind, value) in enumerate(records):
            topic = self.topics[kind] if self.topics[kind] != "none" else self.topics["documents"]
            producer.send(topic, value, partition=number % partitions)
            count[kind] += 1
            if pause is not None and number % 1000 == 999:
                pause()
        producer.flush()
        producer.close()
        return count

    # The daemon

    def command(self, *more, config=None):
        return [*COMMAND, "consume", "--config", str(config or self.config_file), *map(str, more)]

    @contextmanager
    def daemon(self, *more, config=None, log="daemon.log"):
        """Run a daemon; it is killed at the end if it still runs."""
        with open(self.folder / log, "ab") as output:
            process = subprocess.Popen(
                self.command(*more, config=config),
                stderr=output,
                stdout=output,
                env=os.environ | {"PYTHONFAULTHANDLER": "1"},
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    def said(self, log="daemon.log"):
        return (self.folder / log).read_text()

    def run(self, *more, config=None, log="calm.log", timeout=120):
        with self.daemon(*more, config=config, log=log) as process:
            try:
                assert process.wait(timeout) == 0, self.said(log)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGABRT)  # it says where it hangs
                process.wait()
                raise AssertionError(f"hangs: {self.said(log)[-6000:]}") from None

    def stop(self, process, timeout=60):
        process.send_signal(signal.SIGTERM)
        return process.wait(timeout)

    # What became of it

    def read(self, kind):
        """Return all committed records of a topic, in order; brokers may be away for a moment."""
        for _ in range(30):
            try:
                return self._read(self.topics[kind])
            except KafkaError as error:
                problem = error
                time.sleep(0.5)
        raise problem

    def _read(self, topic):
        found = []
        consumer = KafkaConsumer(
            **self.clients,
            group_id=None,
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        )
        try:
            partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
            consumer.assign(partitions)
            ends = consumer.end_offsets(partitions)
            while any(consumer.position(each) < ends[each] for each in partitions):
                for records in consumer.poll(200).values():
                    found += records
        finally:
            consumer.close()
        return found

    def predicted(self):
        return [json.loads(record.value)["id"] for record in self.read("predictions")]

    def await_predictions(self, n, process=None, seconds=90):
        """Wait until there are so many, and return them."""
        end = time.monotonic() + seconds
        while len(found := self.predicted()) < n:
            assert time.monotonic() < end, f"{len(found)} of {n} predictions: {self.said()[-2000:]}"
            assert process is None or process.poll() is None, self.said()[-2000:]
            time.sleep(0.3)
        return found

    def parts(self, folder="state"):
        """Return the state in the newest snapshot, as bytes."""
        newest = max((self.folder / folder).glob("snapshot-*.snap"))
        return dump_bytes(snapshot.load(newest))

    def calm_parts(self):
        """Return the state after all records, worked out here from the records of the one partition alone."""
        return dump_bytes(self.calm_processor(build_processor(self.config, self.news.taxonomy)).parts())

    def calm_processor(self, processor):
        """Return a processor after all records of the one partition."""
        records = self.read("documents")
        clock = StreamClock(0.0, None, 60.0)
        for piece in clock.pieces(records):
            if piece.now is not None:
                processor.tick(piece.now)
            processor.process([Line(place, each.value or b"") for place, each in enumerate(piece.records)])
        assert ranges_of(records)
        return processor

    def check(self, n, letters=0):
        """Every document has exactly one prediction, and every bad record is among the dead letters once."""
        counted = Counter(self.predicted())
        assert counted == Counter(f"d{number}" for number in range(n))
        sent = Counter(record.value for record in self.read("dead_letters"))
        assert sum(sent.values()) == letters
        names = ("topic", "partition", "offset")
        origins = [
            tuple(dict(record.headers)[name] for name in names) for record in self.read("dead_letters")
        ]
        assert len(set(origins)) == letters


def stream(n, seed):
    """Return (text, labels) of synthetic news."""
    for text, labels in make_news(n, seed=seed):
        yield text, sorted(labels)
