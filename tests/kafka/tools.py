"""What tests of the tools share: topics of their own, the commands in this process, records in and out."""

import json
import sys
import time
import uuid
from importlib.metadata import EntryPoint

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from stream_hc.cli import main, plugins

NAMES = ("documents", "labels", "predictions", "dead_letters")


class Tools:
    """Calls `stream-hc kafka ...` as the script does, for topics and a group that nobody else has."""

    def __init__(self, kafka, monkeypatch, capfd, **partitions):
        self.bootstrap = kafka.bootstrap
        self._monkeypatch, self._capfd = monkeypatch, capfd
        monkeypatch.delenv("STREAM_HC_DEBUG", raising=False)
        monkeypatch.setenv("COLUMNS", "160")
        entry = EntryPoint("kafka", "consumers.app:app", plugins.GROUP)
        monkeypatch.setattr(plugins, "_entry_points", lambda: {"kafka": entry})
        self.group = f"group-{uuid.uuid4().hex[:8]}"
        self.admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        wanted = {}
        for name in NAMES:
            topic = f"{name.replace('_', '-')}-{self.group}"
            wanted[topic] = {"num_partitions": partitions.get(name, 1)}
            setattr(self, name, topic)
        self.admin.create_topics(wanted, wait_for_metadata=True)
        self._producer = KafkaProducer(bootstrap_servers=self.bootstrap)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.admin.close()
        self._producer.close(timeout=1)

    def __call__(self, *args, **settings):
        """Return the exit code, what was printed, and what was said beside it."""
        given = {f"kafka.{name}": getattr(self, name) for name in NAMES} | {"kafka.group": self.group}
        given |= {name.replace("__", "."): value for name, value in settings.items()}
        options = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
        argv = ["stream-hc", "kafka", *map(str, args), *options]
        if "--bootstrap" not in argv:
            argv += ["--bootstrap", self.bootstrap]
        self._monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as ended:
            main()
        shown = self._capfd.readouterr()
        return int(ended.value.code), shown.out, shown.err

    def send(self, topic, *values, **how):
        """Write records: bytes, or something for JSON."""
        data = [value if isinstance(value, bytes | None) else json.dumps(value).encode() for value in values]
        for future in [self._producer.send(topic, value, **how) for value in data]:
            future.get(20)

    def read(self, topic, n):
        """Return the first records of a topic that are committed: fewer if no more come for 10 s."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        found, end = [], time.monotonic() + 10
        try:
            consumer.assign(
                [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
            )
            while len(found) < n and time.monotonic() < end:
                found += [record for batch in consumer.poll(100).values() for record in batch]
        finally:
            consumer.close()
        return found

    def count(self, topic):
        """Return how many offsets a topic has used up."""
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap)
        try:
            numbers = consumer.partitions_for_topic(topic)
            return sum(consumer.end_offsets([TopicPartition(topic, number) for number in numbers]).values())
        finally:
            consumer.close()
