"""Writes the records of a version, all or none: whoever takes a trainer's place shuts it out here, too."""

from collections.abc import Iterable, Mapping
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from consumers.clients import give_up
from consumers.models.chunks import Record
from consumers.watchdog import timed
from stream_hc.runtime.config import KafkaConfig

__all__ = ["MOST", "ModelWriter"]

MOST = 2**20  # bytes of a chunk: more in one request gains nothing
LONGEST = 300.0  # seconds for a version to be written


class ModelWriter:
    """Writes to the topic of models, under the name of one trainer.

    Parameters
    ----------
    config, settings
        Of the client.
    topic, partition
        Where to: versions of a shard keep their order.
    largest
        Bytes that the topic takes at once.
    """

    def __init__(
        self,
        config: KafkaConfig,
        settings: Mapping[str, Any],
        topic: str,
        partition: int,
        largest: int = MOST,
    ) -> None:
        self._largest = min(MOST, largest)
        self._config = config
        self._settings = dict(settings)
        self._topic = topic
        self._partition = partition
        self._producer: KafkaProducer | None = None

    def connect(self) -> None:
        """Shut out whoever wrote under this name before, and end what it left open."""
        if self._producer is None:
            self._producer = self._connected()

    def write(self, records: Iterable[Record]) -> None:
        """Write records in their order; a `KafkaError` means that readers see none of them."""
        try:
            self.connect()
            assert self._producer is not None
            self._write(self._producer, records)
        except KafkaError:
            self.close()  # the next one begins with ending what is open
            raise

    def _write(self, producer: KafkaProducer, records: Iterable[Record]) -> None:
        if self._config.transactions:
            producer.begin_transaction()
        sent = [
            producer.send(self._topic, value, key.encode(), list(headers), self._partition)
            for key, value, headers in records
        ]
        for each in sent:
            each.get(LONGEST)
        if self._config.transactions:
            timed(LONGEST, "publishing a model", producer.commit_transaction)

    def _connected(self) -> KafkaProducer:
        patience = round(1000 * self._config.request_timeout)
        named = {"transactional_id": f"{self._config.group}-models"} if self._config.transactions else {}
        producer = KafkaProducer(
            **self._settings,
            **named,
            transaction_timeout_ms=round(1000 * LONGEST),
            acks="all",
            enable_idempotence=True,
            allow_auto_create_topics=False,
            batch_size=self._largest,
            max_request_size=4 * MOST,
            linger_ms=0,
            max_block_ms=patience,
            metrics_enabled=False,
        )
        try:
            if self._config.transactions:
                timed(self._config.request_timeout + 5, "beginning to publish", producer.init_transactions)
        except KafkaError:
            give_up(producer)
            raise
        return producer

    def close(self) -> None:
        """Give up what is not written."""
        producer, self._producer = self._producer, None
        if producer is not None:
            give_up(producer)
