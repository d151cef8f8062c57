"""The work behind `stream-hc kafka dlq replay`: dead letters back to where they came from, once each."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata

from consumers.clients import explaining, partitions_of, reader, writer
from consumers.offsets import Offsets
from consumers.tools.confirming import confirm
from consumers.tools.letters import Letter, committed_offsets, letters_topic, place_group
from consumers.tools.reading import Reading
from consumers.watchdog import timed
from stream_hc.cli.console import say
from stream_hc.cli.errors import Code
from stream_hc.runtime.config import KafkaConfig

__all__ = ["Wanted", "replay"]

HEADER = "replayed"
LARGEST = 64 * 2**20  # bytes; the brokers took these bytes once, and have the last word


class Wanted(NamedTuple):
    """What `replay` was asked to do, by the names of its options."""

    reasons: frozenset[str]
    limit: int | None
    to: str | None
    again: bool
    dry_run: bool
    yes: bool


class _Chosen(NamedTuple):
    """A letter and the topic it goes to, or None and why it goes nowhere."""

    letter: Letter
    topic: str | None
    why_not: str = ""


class _Tally:
    """How many letters go to which topic, and how many nowhere, and why."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.passed_over: Counter[str] = Counter()

    def add(self, batch: list[_Chosen]) -> None:
        self.sent.update(each.topic for each in batch if each.topic is not None)
        self.passed_over.update(each.why_not for each in batch if each.topic is None)

    def told(self, done: str) -> str:
        sent = ", ".join(f"{count:,} to {topic}" for topic, count in sorted(self.sent.items())) or "none"
        passed = ", ".join(f"{count:,} {why}" for why, count in sorted(self.passed_over.items()))
        return f"{done}: {sent}" + (f"; passed over: {passed}" if passed else "")


def replay(wanted: Wanted, config: KafkaConfig) -> int:
    """Send letters back and return the exit code."""
    group, topic = place_group(config.group), letters_topic(config)
    with ExitStack() as stack:
        stack.enter_context(explaining(config))
        consumer = stack.enter_context(reader(config))
        partitions = partitions_of(consumer, [topic])
        if wanted.to is not None:
            partitions_of(consumer, [wanted.to])
        producer = None if wanted.dry_run else _only_writer(config, group, stack)
        first: Offsets = dict(consumer.beginning_offsets(partitions))
        place = {} if wanted.again else committed_offsets(config, group)
        starts = {each: max(offset, place.get(each, 0)) for each, offset in first.items()}
        # No further: what is sent and refused once more comes behind them.
        ends: Offsets = dict(consumer.end_offsets(partitions))
        work = _Replay(wanted, config, consumer, starts, ends)
        foreseen = work.count()
        if producer is None or not foreseen.sent or not wanted.yes:
            say(foreseen.told("dead letters to be sent"))
        if producer is None or not foreseen.sent:
            return Code.FINE
        if not wanted.yes:
            confirm("A later replay does not come back to any of these. Send them? [yes/no]", "yes", "y")
        say(work.send(producer, group).told("dead letters sent"))
    return Code.FINE


def _only_writer(config: KafkaConfig, group: str, stack: ExitStack) -> KafkaProducer:
    """Open a producer and shut out whoever replays for the same job elsewhere.

    The place is asked for after that: what the other has committed counts, and it commits no more. Beginning
    also waits for the last transaction: brokers may take a moment to show offsets that are committed.
    """
    timeout = round(1000 * config.transaction_timeout)
    options = {"transactional_id": group, "transaction_timeout_ms": timeout, "max_request_size": LARGEST}
    producer = stack.enter_context(writer(config, **options))
    timed(2 * config.request_timeout, "beginning to write", producer.init_transactions)
    return producer


class _Replay:
    def __init__(
        self, wanted: Wanted, config: KafkaConfig, consumer: KafkaConsumer, starts: Offsets, ends: Offsets
    ) -> None:
        self._wanted = wanted
        self._config = config
        self._consumer = consumer
        self._starts = starts
        self._ends = ends
        # A header may name any topic: letters go back to those that the job reads, and to no others.
        self._origins = {config.documents, config.labels}

    def count(self) -> _Tally:
        tally = _Tally()
        for batch in self._batches():
            tally.add(batch)
        return tally

    def send(self, producer: KafkaProducer, group: str) -> _Tally:
        """Send some letters and commit the place behind them in one transaction, and so on.

        Killed in a transaction: the next replay aborts it, and begins with the same letters. Killed between
        two of them: it begins with the next ones.
        """
        tally, topic = _Tally(), letters_topic(self._config)
        for batch in self._batches():
            place = {TopicPartition(topic, each.letter.partition): each.letter.offset + 1 for each in batch}
            producer.begin_transaction()
            try:
                self._send_all(producer, batch, place, group)
            except BaseException:
                with suppress(KafkaError):  # at once: until then readers of the topics have to wait
                    timed(self._config.request_timeout, "aborting", producer.abort_transaction)
                raise
            tally.add(batch)
        return tally

    def _send_all(self, producer: KafkaProducer, batch: list[_Chosen], place: Offsets, group: str) -> None:
        limit = self._config.transaction_timeout
        sent = [_send(producer, letter, topic) for letter, topic, _ in batch if topic is not None]
        producer.flush(limit)
        for each in sent:
            each.get(0)
        commits = {partition: OffsetAndMetadata(offset, "", -1) for partition, offset in place.items()}
        identity = ConsumerGroupMetadata(group)
        timed(limit, "committing offsets", producer.send_offsets_to_transaction, commits, identity)
        timed(limit, "committing", producer.commit_transaction)

    def _batches(self) -> Iterator[list[_Chosen]]:
        """Yield the letters in the order in which they are read, until enough of them go somewhere."""
        left = self._wanted.limit
        reading = Reading(self._consumer, self._starts, self._config.request_timeout, self._ends)
        for records in reading.to_end():
            batch = []
            for record in records:
                if left == 0:
                    break
                batch.append(self._chosen(Letter.of(record)))
                if left is not None and batch[-1].topic is not None:
                    left -= 1
            if batch:
                yield batch
            if left == 0:
                return

    def _chosen(self, letter: Letter) -> _Chosen:
        wanted = self._wanted
        if wanted.reasons and letter.reason not in wanted.reasons:
            return _Chosen(letter, None, "with other reasons")
        if letter.is_cut:
            return _Chosen(letter, None, "that were too long to be kept whole")
        if letter.key is None and letter.value is None:
            return _Chosen(letter, None, "that are empty")
        if wanted.to is None and letter.topic not in self._origins:
            return _Chosen(letter, None, "from topics that this job does not read (see --to)")
        return _Chosen(letter, wanted.to or letter.topic)


def _send(producer: KafkaProducer, letter: Letter, topic: str) -> Any:
    return producer.send(topic, letter.value, letter.key, [(HEADER, str(letter.offset).encode())])
