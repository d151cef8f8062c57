"""Clients for the tools: made from the table [kafka], closed whatever happens, their errors as one line."""

import logging
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError

from consumers.errors import KafkaProblem, explained
from consumers.settings import client_settings
from stream_hc.cli.errors import CliError, Code, debugging
from stream_hc.runtime.config import KafkaConfig

__all__ = ["administrator", "explaining", "give_up", "partitions_of", "patiently", "reader", "writer"]

T = TypeVar("T")

RETRY = 0.1  # seconds
CLOSING = 2.0  # seconds
LINGER = 5  # milliseconds that a record waits for others


@contextmanager
def explaining(config: KafkaConfig) -> Iterator[None]:
    """Let what Kafka says end the command as one line with a remedy."""
    log = logging.getLogger("kafka")
    if not debugging() and not log.handlers:  # otherwise Python prints its warnings beside ours
        log.addHandler(logging.NullHandler())
    try:
        yield
    except KafkaProblem as error:
        raise CliError(str(error), Code.BAD_INPUT) from error
    except (KafkaError, ssl.SSLError) as error:
        raise CliError(explained(error, config), Code.BAD_INPUT) from error


@contextmanager
def reader(config: KafkaConfig) -> Iterator[KafkaConsumer]:
    """Open a consumer that is in no group and sees what is committed."""
    consumer = KafkaConsumer(
        **client_settings(config),
        group_id=None,
        enable_auto_commit=False,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
        metrics_enabled=False,
    )
    try:
        yield consumer
    finally:
        consumer.close(autocommit=False, timeout_ms=int(CLOSING * 1000))


@contextmanager
def writer(config: KafkaConfig, **options: Any) -> Iterator[KafkaProducer]:
    """Open a producer whose records are acknowledged by all replicas, once each, or fail in time.

    What is not acknowledged when the block ends is given up: flush before.
    """
    patience = round(1000 * config.request_timeout)
    settings: dict[str, Any] = client_settings(config) | {
        "acks": "all",
        "enable_idempotence": True,
        "allow_auto_create_topics": False,
        "linger_ms": LINGER,
        "max_block_ms": patience,
        "delivery_timeout_ms": patience + LINGER,
        "metrics_enabled": False,
    }
    producer = KafkaProducer(**settings | options)
    try:
        yield producer
    finally:
        give_up(producer)


def give_up(producer: KafkaProducer) -> None:
    """Give up what is left over: whoever needed it has waited for it."""
    try:
        producer.close(timeout=CLOSING)
    except KafkaTimeoutError:  # it has closed nothing: its thread would try to send for ever
        producer._sender.force_close()  # noqa: SLF001
        with suppress(KafkaError):
            producer.close(timeout=CLOSING)


@contextmanager
def administrator(config: KafkaConfig) -> Iterator[KafkaAdminClient]:
    """Open a client that looks after groups."""
    admin = KafkaAdminClient(**client_settings(config))
    try:
        yield admin
    finally:
        admin.close()


def partitions_of(consumer: KafkaConsumer, topics: Iterable[str]) -> list[TopicPartition]:
    """Return all partitions of these topics, or raise `KafkaProblem` if one of them is not there."""
    found = []
    for topic in topics:
        numbers = consumer.partitions_for_topic(topic)
        if not numbers:
            remedy = "make it (--create-topics of consume and produce does), or name another"
            raise KafkaProblem(f"there is no topic {topic}, or you may not see it: {remedy}")
        found += [TopicPartition(topic, number) for number in sorted(numbers)]
    return found


def patiently(call: Callable[[], T], seconds: float) -> T:
    """Call again while the error is one that passes, such as that nobody looks after the group yet."""
    end = time.monotonic() + seconds
    while True:
        try:
            return call()
        except KafkaError as error:
            if not error.retriable or time.monotonic() > end:
                raise
        time.sleep(RETRY)
