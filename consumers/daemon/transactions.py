"""Predictions, letters, events and progress reach the brokers together or not at all, once."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from kafka import KafkaProducer, TopicPartition
from kafka.errors import (
    AuthorizationError,
    CommitFailedError,
    FencedInstanceIdError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata

from consumers.clients import give_up
from consumers.daemon.membership import Fenced, Membership
from consumers.errors import KafkaProblem, explained
from consumers.patience import FENCED, Patience
from consumers.watchdog import timed
from stream_hc.runtime.config import KafkaConfig

__all__ = ["Message", "NotPublished", "Transactions"]

MAX_REQUEST = 4 * 2**20  # bytes; the brokers have the last word
BATCH, BUFFER_MS = 2**18, 5
OVERHEAD = 100  # bytes around a record
RETRY_MS = 10  # a transaction that begins while the one before is being ended is sent away for a moment
TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)

T = TypeVar("T")


class NotPublished(RuntimeError):  # noqa: N818 (it says what is the matter)
    """A transaction did not come to its end."""


Commits = Mapping[TopicPartition, OffsetAndMetadata]


class Message(NamedTuple):
    """One record to be written."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int | None = 0
    headers: Sequence[tuple[str, bytes]] = ()


class Transactions:
    """Writes to the topics of a job, under its one name: whoever opens it shuts out the one before.

    Parameters
    ----------
    config, settings
        Of the clients.
    membership
        Of the group whose offsets are committed.
    stop
        Asked while the brokers are away.
    note
        Called with what somebody should know.
    largest
        Bytes that a record of each topic may have, as far as that is known.
    name
        Of the transactions; that of the group if not given.
    """

    def __init__(
        self,
        config: KafkaConfig,
        settings: Mapping[str, Any],
        membership: Membership,
        stop: Callable[[], bool],
        note: Callable[[str], None],
        largest: Mapping[str, int] | None = None,
        name: str | None = None,
    ) -> None:
        self._config = config
        self._settings = dict(settings)
        self._membership = membership
        self._stop = stop
        self._note = note
        self._largest = dict(largest or {})
        self._name = config.group if name is None else name
        self._patience = Patience(config, stop, note)
        self._producer: KafkaProducer | None = None
        self.counts: Counter[str] = Counter()
        self.seconds = 0.0  # that the last commit took

    def open(self) -> None:
        """Connect, end what the one before left open, and shut it out."""
        self.patiently(self._connect)

    def close(self) -> None:
        """Give up what was not committed."""
        producer, self._producer = self._producer, None
        if producer is not None:
            give_up(producer)

    def publish(self, messages: Sequence[Message], commits: Commits) -> None:
        """Write the messages and commit the offsets, however long that takes.

        Raises
        ------
        Fenced
            Another process writes under this name.
        LostPartitions
            The group has given the partitions to another member.
        Interrupted
            Somebody wanted to stop before it could be done.
        KafkaProblem
            It can never be done.
        """
        began = time.monotonic()
        self._check(messages)
        while True:
            try:
                with self._saying_what_never_works():
                    self._write(messages, commits, self._membership.identity())
                break
            except (Fenced, KafkaProblem):
                raise
            except (CommitFailedError, FencedInstanceIdError, *FENCED):
                # The group is not as it was, or the brokers gave up a transaction that took too long, perhaps
                # because this process was halted and has joined once more: see who reads now.
                self.counts["aborted"] += 1
                self._membership.settle_again(commits, self._stop)
                self.patiently(self._connect)
            except KafkaError as error:
                self.counts["aborted"] += 1
                self._note(f"{explained(error, self._config)}: once more")
                self.patiently(self._connect)
            if self._is_committed(commits):
                break
        self.counts["committed"] += 1
        self.seconds = time.monotonic() - began

    def publish_once(
        self, messages: Sequence[Message], commits: Commits, identity: ConsumerGroupMetadata
    ) -> None:
        """Write the messages and commit the offsets, as the member that the group knew by `identity`.

        Raises
        ------
        NotPublished
            It has not happened, or it is not known whether: what is committed tells where to go on.
        KafkaProblem
            It can never be done.
        """
        began = time.monotonic()
        self._check(messages)
        try:
            with self._saying_what_never_works():
                self._write(messages, commits, identity)
        except KafkaError as error:
            self.counts["aborted"] += 1
            self.patiently(self._connect)
            raise NotPublished(explained(error, self._config)) from error
        self.counts["committed"] += 1
        self.seconds = time.monotonic() - began

    @contextmanager
    def _saying_what_never_works(self) -> Iterator[None]:
        try:
            yield
        except TOO_LARGE as error:
            raise KafkaProblem(
                f"a record is too large for its topic ({error}): raise max.message.bytes of it"
            ) from error
        except AuthorizationError as error:
            raise KafkaProblem(explained(error, self._config)) from error

    def _check(self, messages: Sequence[Message]) -> None:
        """Refuse what its topic would: the client would try for ever, in ever smaller pieces."""
        for topic, value, key, _, _ in messages:
            size = len(value or b"") + len(key or b"") + OVERHEAD
            if size > self._largest.get(topic, MAX_REQUEST):
                told = f"a record is too large for its topic {topic} ({size} bytes)"
                raise KafkaProblem(f"{told}: raise max.message.bytes of it")

    def _write(self, messages: Sequence[Message], commits: Commits, identity: ConsumerGroupMetadata) -> None:
        """Do it in this order; a crash before the last step leaves nothing that a reader sees."""
        assert self._producer is not None
        producer, config = self._producer, self._config
        if not config.transactions:
            self._write_plainly(producer, messages, commits)
            return
        # 1. Begin. Killed here: the next one of this name aborts what is open.
        producer.begin_transaction()
        # 2. Write. Killed here: readers of what is committed never see these records.
        send = producer.send
        for topic, value, key, partition, headers in messages:
            send(topic, value, key, list(headers), partition)
        # 3. The offsets. Refused where the group has another reader by now.
        limit = config.transaction_timeout
        timed(limit, "committing offsets", producer.send_offsets_to_transaction, dict(commits), identity)
        # 4. Commit. Killed here: the brokers know whether it happened, and the next start asks them.
        timed(limit, "committing", producer.commit_transaction)

    def _write_plainly(self, producer: KafkaProducer, messages: Sequence[Message], commits: Commits) -> None:
        sent = [
            producer.send(topic, value, key, list(headers), partition)
            for topic, value, key, partition, headers in messages
        ]
        producer.flush(self._config.transaction_timeout)
        for each in sent:
            each.get(0)
        self._membership.commit(commits)

    def _connect(self) -> None:
        self.close()
        config = self._config
        named = {"transactional_id": self._name} if config.transactions else {}
        self._producer = KafkaProducer(
            **self._settings,
            **named,
            transaction_timeout_ms=round(1000 * config.transaction_timeout),
            acks="all",
            batch_size=BATCH,
            linger_ms=BUFFER_MS,
            retry_backoff_ms=RETRY_MS,
            max_request_size=MAX_REQUEST,
            max_block_ms=round(1000 * config.request_timeout),
            allow_auto_create_topics=False,
            metrics_enabled=False,
        )
        if config.transactions:
            limit = config.request_timeout + 5
            timed(limit, "beginning to write", self._producer.init_transactions)

    def _is_committed(self, commits: Commits) -> bool:
        """Whether what seemed to fail has happened after all."""
        found = self.patiently(lambda: self._membership.committed(commits))
        # What is said beside the offsets is another thing every time, also where no record was read.
        return all(
            partition in found
            and (found[partition].offset, found[partition].metadata) == (at.offset, at.metadata)
            for partition, at in commits.items()
        )

    def patiently(self, work: Callable[[], T]) -> T:
        """Do something that needs brokers, however long they are away."""
        try:
            return self._patience.until_done(work, lambda seconds: self._membership.wait(seconds, self._stop))
        except FENCED as error:
            raise Fenced(f"another process writes as {self._name} now") from error
