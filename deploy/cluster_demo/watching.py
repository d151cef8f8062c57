"""Follows predictions and models as any reader may, in a thread of its own, for those who watch."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from kafka import TopicPartition
from kafka.errors import KafkaError

from consumers.clients import partitions_of, reader
from consumers.errors import KafkaProblem
from consumers.models.manifest import Manifest, ShardKey
from deploy.cluster_demo.job import DemoError, Stage, partition_of

__all__ = ["Prediction", "Watch", "read_all"]


class Prediction(msgspec.Struct):
    """What counts of a record in the topic of predictions."""

    id: str
    path_labels: list[str]
    model_version: int


decode = msgspec.json.Decoder(Prediction).decode


class Watch:
    """Reads what is committed, and counts.

    Attributes
    ----------
    n_predictions
        Seen so far.
    in_use
        How many documents the model had learned that wrote the newest prediction.
    versions
        Predictions by that number.
    published
        The manifests of each shard, in their order.
    resumed
        When somebody answered again in a partition after `expect`, in seconds since 1970.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._places = {name: place for place, name in enumerate(stage.news.ids)}
        self.n_predictions = self.in_use = 0
        self.versions: Counter[int] = Counter()
        self.published: dict[int, list[Manifest]] = {}
        self.resumed: dict[int, float] = {}
        self._expected: dict[int, float] = {}
        self._problem: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def expect(self, partitions: Iterable[int], since: float) -> None:
        """Note when there is a prediction of a document of each partition that was written after a time."""
        self._expected = dict.fromkeys(partitions, since)

    def age(self) -> float | None:
        """Return how many seconds ago the model in use was saved; None if there is none yet."""
        found = [
            each.saved for known in self.published.values() for each in known if each.learned == self.in_use
        ]
        return max(0.0, time.time() - min(found)) if found and self.n_predictions else None

    def check(self) -> None:
        """Raise what went wrong."""
        if self._problem is not None:
            raise DemoError(f"the topics cannot be read: {self._problem}")

    def close(self) -> None:
        """End it."""
        self._stop.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        try:
            self._follow()
        except (KafkaError, KafkaProblem, msgspec.DecodeError) as error:
            self._problem = error

    def _follow(self) -> None:
        kafka = self._stage.config.kafka
        with reader(kafka) as consumer:
            partitions = partitions_of(consumer, [str(kafka.predictions), str(kafka.models)])
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            while not self._stop.is_set():
                for partition, records in consumer.poll(100, max_records=5000).items():
                    for record in records:
                        if partition.topic == kafka.models:
                            self._model(record)
                        else:
                            self._prediction(record)

    def _model(self, record: Any) -> None:
        shard = ShardKey.of(record.key.decode())
        if shard is not None:  # the others are parts of the model itself
            self.published.setdefault(shard.number, []).append(Manifest.of(record.value))

    def _prediction(self, record: Any) -> None:
        found = decode(record.value)
        self.n_predictions += 1
        self.versions[found.model_version] += 1
        self.in_use = max(self.in_use, found.model_version)
        partition = partition_of(self._places.get(found.id, 0))
        if partition in self._expected and record.timestamp > 1000 * self._expected[partition]:
            self.resumed[partition] = time.time()
            del self._expected[partition]


def read_all(stage: Stage, topic: str) -> Iterator[Any]:
    """Yield every committed record of a topic, from the first to the last."""
    with reader(stage.config.kafka) as consumer:
        partitions = partitions_of(consumer, [topic])
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends: dict[TopicPartition, int] = consumer.end_offsets(partitions)
        while any(consumer.position(each) < ends[each] for each in partitions):
            for records in consumer.poll(200, max_records=5000).values():
                yield from records
