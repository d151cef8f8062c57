"""Records of the topics, each topic through a client of its own, so that one can wait for the other."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from consumers.offsets import Offsets
from stream_hc.runtime.config import KafkaConfig

__all__ = ["Fetching"]

FETCHED = 4 * 2**20  # bytes of a partition at a time
TURN = 0.05  # seconds that one topic is waited for while the others are not looked at

Records = dict[TopicPartition, list[Any]]


class Fetching:
    """Reads partitions that the group has given to this process, from wherever it is told.

    A client of kafka-python that pauses a partition in the middle of what it has fetched may never go on with
    it (3.0.12). A topic that is far enough ahead is not asked instead.

    Parameters
    ----------
    config, settings
        Of the clients.
    beat
        Called whenever something has moved.
    """

    def __init__(self, config: KafkaConfig, settings: Mapping[str, Any], beat: Callable[[], object]) -> None:
        self._config = config
        self._settings = dict(settings)
        self._beat = beat
        self._clients: dict[str, KafkaConsumer] = {}

    def begin(self, position: Offsets) -> None:
        """Go on there, whatever was read ahead."""
        for topic in sorted({partition.topic for partition in position}):
            if topic not in self._clients:
                self._clients[topic] = self._client()
            client = self._clients[topic]
            client.assign([partition for partition in sorted(position) if partition.topic == topic])
            for partition in client.assignment():
                client.seek(partition, position[partition])

    def read(self, wait: float, topics: Collection[str], most: int) -> Records:
        """Return the next records of some topics as soon as there are any, so many of each at most."""
        self._beat()
        found: Records = {}
        for topic in topics:
            found |= self._clients[topic].poll(0, most)
        while not found and wait > 0:
            turn = min(wait, TURN) if len(topics) > 1 else wait
            for topic in topics:
                found |= self._clients[topic].poll(round(1000 * turn / len(topics)), most)
            wait -= turn
        return found

    def end(self, partition: TopicPartition) -> int | None:
        """Return the offset behind the last record, as far as the brokers have said."""
        found: int | None = self._clients[partition.topic].highwater(partition)
        return found

    def next_offset(self, partition: TopicPartition) -> int:
        """Return the offset from which this partition is read on."""
        limit = round(1000 * self._config.request_timeout)
        found = self._clients[partition.topic].position(partition, timeout_ms=limit)
        return -1 if found is None else int(found)

    def close(self) -> None:
        """End all of them."""
        for client in self._clients.values():
            client.close(autocommit=False, timeout_ms=2000)
        self._clients = {}

    def _client(self) -> KafkaConsumer:
        return KafkaConsumer(
            **self._settings,
            group_id=None,
            isolation_level="read_committed",
            auto_offset_reset="none",  # a hole is never passed over in silence
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            max_partition_fetch_bytes=FETCHED,
            metrics_enabled=False,
        )
