"""Follows the topic of models in a thread of its own: the next model is ready before anybody waits for it."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from consumers.errors import KafkaProblem, explained
from consumers.models.chunks import Assembler, Broken, Complete, Record
from consumers.models.manifest import ShardKey
from consumers.models.versions import Versions
from consumers.patience import HOPELESS
from consumers.predictor.served import ServedModel
from stream_hc.runtime.config import KafkaConfig

__all__ = ["Follower"]

FETCHED = 8 * 2**20  # bytes of a partition at a time
POLL_MS = 200
FIRST_WAIT, LONGEST_WAIT = 0.2, 10.0  # seconds until it is tried again


class Follower:
    """Reads versions as they come and makes models of them.

    Everything that takes time happens here: reading, checking, joining, and one prediction so that kernels
    are loaded. Whoever predicts asks between two batches whether there is a newer one.

    Parameters
    ----------
    config, settings
        Of the client; `config.models` names the topic.
    note
        Called with what somebody should know, from the thread.

    Attributes
    ----------
    counts
        Models "ready", and versions "refused".
    problem
        Why it has ended, if it cannot go on.
    """

    def __init__(self, config: KafkaConfig, settings: Mapping[str, Any], note: Callable[[str], None]) -> None:
        if config.models is None:
            raise KafkaProblem("kafka.models is none: name the topic of models")
        self._topic = config.models
        self._config = config
        self._settings = dict(settings)
        self._note = note
        self._versions = Versions()
        self._ready: ServedModel | None = None
        self._refused: set[str] = set()  # versions
        self._made: ServedModel | None = None  # the last one, taken or not
        self._lock = threading.Lock()
        self._done = threading.Event()
        self.counts: Counter[str] = Counter()
        self.problem: KafkaProblem | None = None
        self._thread = threading.Thread(target=self._run, name="models", daemon=True)
        self._thread.start()

    def take(self) -> ServedModel | None:
        """Return the newest model, once; None if there is none since the last time.

        Raises
        ------
        KafkaProblem
            No model can ever come.
        """
        if self.problem is not None:
            raise self.problem
        with self._lock:
            ready, self._ready = self._ready, None
        return ready

    def close(self) -> None:
        """End it."""
        self._done.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        wait, said = FIRST_WAIT, ""
        while not self._done.is_set():
            began = time.monotonic()
            try:
                self._follow()
            except HOPELESS as error:
                self.problem = KafkaProblem(explained(error, self._config))
                return
            except Exception as error:  # whatever it is: the model before goes on, and it is tried again
                known = isinstance(error, KafkaError)
                problem = explained(error, self._config) if known else f"{type(error).__name__}: {error}"
                if problem != said:
                    self._note(f"models are not followed: {problem}: trying again until it works")
                said = problem
            wait = FIRST_WAIT if time.monotonic() > began + LONGEST_WAIT else min(2 * wait, LONGEST_WAIT)
            self._done.wait(wait)

    def _follow(self) -> None:
        """Read from the beginning: the topic holds little more than what counts."""
        consumer = KafkaConsumer(
            **self._settings,
            group_id=None,
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
            max_partition_fetch_bytes=FETCHED,
            metrics_enabled=False,
        )
        try:
            numbers = consumer.partitions_for_topic(self._topic) or {0}
            partitions = [TopicPartition(self._topic, number) for number in sorted(numbers)]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            ends = consumer.end_offsets(partitions)
            assembler, newest = Assembler(), dict[ShardKey, Complete]()
            while not self._done.is_set():
                for records in consumer.poll(POLL_MS).values():
                    for record in records:
                        self._add(assembler, record, newest)
                # Of what has piled up only the newest is worth reading.
                if newest and all(self._position(consumer, each) >= ends[each] for each in partitions):
                    ends = consumer.end_offsets(partitions)
                    if all(self._position(consumer, each) >= ends[each] for each in partitions):
                        self._make(newest)
                        newest = {}
                        assembler.forget_chunks()
        finally:
            consumer.close(autocommit=False, timeout_ms=2000)

    def _position(self, consumer: KafkaConsumer, partition: TopicPartition) -> int:
        found = consumer.position(partition, timeout_ms=round(1000 * self._config.request_timeout))
        return -1 if found is None else int(found)

    def _add(self, assembler: Assembler, record: Any, newest: dict[ShardKey, Complete]) -> None:
        key = (record.key or b"").decode(errors="replace")
        try:
            complete = assembler.add(Record(key, record.value, record.headers or ()))
        except Broken as problem:
            self._refuse(problem)
            return
        if complete is not None:
            newest[complete.shard] = complete

    def _make(self, newest: Mapping[ShardKey, Complete]) -> None:
        """Read the new versions, and have a model ready where that makes one."""
        for complete in newest.values():
            if complete.manifest.version in self._refused:
                continue  # told of once more; what was wrong with it was said
            try:
                self._versions.add(complete)
            except Broken as problem:
                self._refused.add(complete.manifest.version)
                self._refuse(problem)
        manifests = self._versions.manifests()
        if manifests is None or (self._made is not None and self._made.renew(manifests)):
            return
        try:
            whole = self._versions.whole()
            if whole is not None:
                served = ServedModel(*whole)
                served.warm_up()
                self._made = served
                with self._lock:
                    self._ready = served
                self.counts["ready"] += 1
        except (Broken, MemoryError) as problem:
            self._refuse(problem)

    def _refuse(self, problem: Broken | MemoryError) -> None:
        self.counts["refused"] += 1
        self._note(f"{str(problem) or 'not enough memory'}: refused, the model before stays")
