"""Messages and progress reach a real broker together, once, whatever fails at whichever step."""

import threading
import time
import uuid
from contextlib import ExitStack

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import (
    CommitFailedError,
    InvalidProducerEpochError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    ProducerFencedError,
    TopicAuthorizationFailedError,
)

from consumers.daemon.membership import Fenced, LostPartitions, Membership
from consumers.daemon.transactions import Message, Transactions
from consumers.errors import KafkaProblem
from consumers.offsets import Named, offsets_to_commit
from consumers.patience import FENCED, Interrupted
from consumers.settings import client_settings
from stream_hc.runtime.config import KafkaConfig

pytestmark = pytest.mark.kafka

STEPS = ("begin_transaction", "send", "send_offsets_to_transaction", "commit_transaction")


class Publishing:
    """A member of a group of its own that writes to a topic of its own."""

    def __init__(self, kafka, topic, stack, **settings):
        self.documents, self.out = topic("documents"), topic("out")
        self.partition = TopicPartition(self.documents, 0)
        given = {"request_timeout": 5.0, "session_timeout": 6.0, "transaction_timeout": 10.0} | settings
        self.config = KafkaConfig(
            bootstrap=kafka.bootstrap,
            documents=self.documents,
            labels=None,
            predictions=self.out,
            group=f"group-{uuid.uuid4().hex[:8]}",
            **given,
        )
        self._stack = stack
        self.stopped, self.notes = False, []
        self.membership = self.member()
        self.membership_ready(self.membership)
        self.transactions = Transactions(
            self.config,
            client_settings(self.config),
            self.membership,
            lambda: self.stopped,
            self.notes.append,
        )
        stack.callback(self.transactions.close)
        self.transactions.open()

    def member(self):
        return self._stack.enter_context(Membership(self.config, client_settings(self.config), lambda: None))

    def membership_ready(self, membership, seconds=30):
        end = time.monotonic() + seconds
        while not membership.stand_by():
            assert time.monotonic() < end
        membership.settle([], lambda: False)

    def commits(self, number):
        """Return offsets as a job commits them: also where no record was read, they name another entry."""
        return offsets_to_commit({self.partition: number}, Named("job", 1, "0f", number))

    def publish(self, number, topic=None, size=0):
        texts = [f"{number}-{letter}".encode().ljust(size) for letter in "ab"]
        self.transactions.publish(
            [Message(topic or self.out, text, text) for text in texts], self.commits(number)
        )

    def fail(self, step, error, after=False, times=1):
        """Let a step of the next transaction fail, before or after it is really done."""
        producer, failures = self.transactions._producer, [error] * times
        really = getattr(producer, step)

        def failing(*args):
            done = really(*args) if after or not failures else None
            if failures:
                if isinstance(error, FENCED):
                    self.shut_out()
                raise failures.pop()
            return done

        setattr(producer, step, failing)

    def shut_out(self):
        """Do what ends all transactions of this name that are open, as the brokers do after a while."""
        other = KafkaProducer(bootstrap_servers=self.config.bootstrap, transactional_id=self.config.group)
        other.init_transactions()
        other.close(timeout=1)

    def read(self):
        """Return what readers of committed records see, in order."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.config.bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        )
        found, partition = [], TopicPartition(self.out, 0)
        try:
            consumer.assign([partition])
            end = consumer.end_offsets([partition])[partition]
            while consumer.position(partition) < end:
                found += [record.value.decode() for batch in consumer.poll(100).values() for record in batch]
        finally:
            consumer.close()
        return found

    @property
    def committed(self):
        return self.membership.committed([self.partition])


@pytest.fixture
def publishing(kafka, topic):
    with ExitStack() as stack:
        yield lambda **settings: Publishing(kafka, topic, stack, **settings)


def test_messages_and_offsets_are_committed_once(publishing):
    here = publishing()
    assert here.committed == {}
    here.publish(1)
    here.publish(2)
    assert here.read() == ["1-a", "1-b", "2-a", "2-b"]
    assert here.committed == here.commits(2)
    assert here.transactions.counts == {"committed": 2}
    assert here.transactions.seconds > 0
    assert here.notes == []


def test_where_there_are_no_messages_the_offsets_are_committed(publishing):
    here = publishing()
    here.transactions.publish([], here.commits(3))
    assert here.committed == here.commits(3)


def test_a_failure_at_any_step_ends_with_one_copy(publishing):
    here, number, aborted = publishing(), 1, 0
    here.publish(number)
    kinds = (KafkaTimeoutError, CommitFailedError, ProducerFencedError, InvalidProducerEpochError)
    for step in STEPS:
        for after in (False, True):
            # One kind of error after the other; what happened all the same is for other tests.
            here.fail(step, kinds[number % 4]("injected"), after and step != "commit_transaction")
            number, aborted = number + 1, aborted + 1
            here.publish(number)
            assert here.committed == here.commits(number), (step, after)
            assert here.transactions.counts["aborted"] == aborted
    assert here.read() == [f"{each}-{letter}" for each in range(1, number + 1) for letter in "ab"]
    assert here.transactions.counts["committed"] == number


@pytest.mark.parametrize(
    "kind",
    [
        KafkaTimeoutError,
        CommitFailedError,
        ProducerFencedError,
    ],
)
def test_a_commit_that_happened_is_not_repeated_whatever_is_said(publishing, kind):
    here = publishing()
    here.publish(1)
    here.fail("commit_transaction", kind("injected"), after=True)
    here.publish(2)
    assert here.read() == ["1-a", "1-b", "2-a", "2-b"]
    assert here.committed == here.commits(2)


def test_a_commit_that_happened_is_not_even_tried_again(publishing, monkeypatch):
    here = publishing()
    here.fail("commit_transaction", KafkaTimeoutError("injected"), after=True)
    written = []
    write = here.transactions._write
    monkeypatch.setattr(here.transactions, "_write", lambda *what: (written.append(1), write(*what)))
    here.publish(1)
    assert written == [1]
    assert here.read() == ["1-a", "1-b"]
    (note,) = here.notes
    assert note.endswith(": once more")
    assert "injected" in note


def test_an_entry_without_records_is_told_from_the_one_before(publishing):
    here = publishing()
    here.publish(1)
    # The same offset, but another entry of the journal: it is not committed yet.
    again = offsets_to_commit({here.partition: 1}, Named("job", 1, "0f", 2))
    here.fail("commit_transaction", KafkaTimeoutError("injected"))
    here.transactions.publish([Message(here.out, b"event")], again)
    assert here.read() == ["1-a", "1-b", "event"]
    assert here.committed == again


def test_a_failure_again_and_again_is_tried_again(publishing, monkeypatch):
    here = publishing()
    connect, failures = here.transactions._connect, [NotEnoughReplicasError()] * 2

    def fails_at_first():
        if failures:
            raise failures.pop()
        connect()

    monkeypatch.setattr(here.transactions, "_connect", fails_at_first)
    here.fail("send", KafkaTimeoutError("injected"))
    here.publish(1)
    assert here.read() == ["1-a", "1-b"]
    assert here.notes[-1] == "the brokers are back"


def test_somebody_may_want_to_stop_while_nothing_can_be_written(publishing, monkeypatch):
    here = publishing()

    def away():
        here.stopped = True
        raise KafkaTimeoutError("away")

    monkeypatch.setattr(here.transactions, "_connect", away)
    here.fail("begin_transaction", KafkaTimeoutError("injected"))
    with pytest.raises(Interrupted):
        here.publish(1)
    assert here.read() == []


def test_a_transaction_that_hangs_is_given_up_and_done_again(publishing):
    here = publishing(transaction_timeout=1.0)
    producer = here.transactions._producer
    producer.commit_transaction = lambda: time.sleep(1.5)
    here.publish(1)
    assert here.read() == ["1-a", "1-b"]
    assert "committing takes longer than 1 s" in here.notes[0]


def test_one_that_writes_under_this_name_is_shut_out_while_the_group_knows_this_one(publishing):
    here = publishing()
    here.publish(1)
    other = KafkaProducer(bootstrap_servers=here.config.bootstrap, transactional_id=here.config.group)
    try:
        other.init_transactions()
        other.begin_transaction()
        other.send(here.out, b"of the other").get(10)
        here.publish(2)
        with pytest.raises(KafkaError):
            other.commit_transaction()
    finally:
        other.close(timeout=1)
    assert here.read() == ["1-a", "1-b", "2-a", "2-b"]


def test_one_that_has_the_same_name_and_the_group_ends_this_one(publishing):
    here = publishing(instance="one")
    here.publish(1)
    second = here.member()
    end = time.monotonic() + 30
    while not second.stand_by():
        assert time.monotonic() < end
    with pytest.raises(Fenced, match="another process is one"):
        here.publish(2)
    assert here.read() == ["1-a", "1-b"]


def test_shut_out_and_unknown_to_the_group_it_ends(publishing, monkeypatch):
    here = publishing()
    here.publish(1)

    def given_away(mine, stop):
        raise LostPartitions("all partitions were given to another member")

    monkeypatch.setattr(here.membership, "settle", given_away)
    here.fail("begin_transaction", ProducerFencedError("injected"))
    with pytest.raises(LostPartitions, match="given to another member"):
        here.publish(2)
    assert here.read() == ["1-a", "1-b"]


def test_shut_out_while_it_connects_it_ends(publishing, monkeypatch):
    here = publishing()

    def fenced():
        raise InvalidProducerEpochError

    monkeypatch.setattr(here.transactions, "_connect", fenced)
    here.fail("send", KafkaTimeoutError("injected"))
    with pytest.raises(Fenced):
        here.publish(1)


def drop_out(here):
    """Let the member leave, while what it tells the brokers next is what it was before."""
    before, really = [here.membership.identity()], here.membership.identity
    here.membership.identity = lambda: before.pop() if before else really()
    here.membership.consumer._coordinator.maybe_leave_group()


def test_a_member_that_dropped_out_and_came_back_writes_once(publishing):
    here = publishing()
    here.publish(1)
    drop_out(here)
    here.publish(2)
    assert here.transactions.counts == {"committed": 2, "aborted": 1}
    assert here.read() == ["1-a", "1-b", "2-a", "2-b"]
    assert here.committed == here.commits(2)


def test_partitions_that_another_member_has_by_now_are_lost(publishing):
    here = publishing()
    here.publish(1)
    drop_out(here)
    second, done = here.member(), threading.Event()
    here.membership_ready(second)

    def take_part():
        while not done.is_set():
            second.stand_by()

    thread = threading.Thread(target=take_part)
    thread.start()
    try:
        with pytest.raises(LostPartitions, match="1 partitions were given to another member"):
            here.publish(2)
    finally:
        done.set()
        thread.join()
    assert here.read() == ["1-a", "1-b"]


def test_partitions_that_came_before_a_commit_that_failed_are_still_to_be_seen_to(publishing):
    here = publishing()
    with KafkaAdminClient(bootstrap_servers=here.config.bootstrap) as admin:
        admin.create_partitions({here.documents: 2})
    end = time.monotonic() + 60
    while len(here.membership.consumer.assignment()) < 2:
        assert time.monotonic() < end
        here.membership.consumer._client.cluster.request_update()
        here.membership.stand_by()
    here.fail("begin_transaction", CommitFailedError("injected"))
    here.publish(1)
    assert here.membership.changed
    assert here.membership.settle([here.partition], lambda: False) == {TopicPartition(here.documents, 1)}


def test_a_record_that_no_request_can_hold_is_a_problem(publishing):
    here = publishing()
    with pytest.raises(KafkaProblem, match=r"a record is too large for its topic .* max\.message\.bytes"):
        here.publish(1, size=5 * 2**20)
    assert here.committed == {}


@pytest.mark.parametrize("transactions", [True, False])
def test_a_record_that_its_topic_refuses_is_a_problem(publishing, topic, transactions):
    here = publishing(transactions=transactions)
    here.transactions._note = pytest.fail  # once more would be for ever
    small = topic("small", max_message_bytes=1_000)
    here.transactions._largest[small] = 1_000
    with pytest.raises(
        KafkaProblem, match=rf"a record is too large for its topic {small} .* max\.message\.bytes"
    ):
        here.publish(1, small, 5_000)
    assert here.committed == {}


def test_a_record_that_the_brokers_call_too_large_is_a_problem(publishing):
    here = publishing()
    here.fail("send", MessageSizeTooLargeError("injected"))
    with pytest.raises(KafkaProblem, match=r"too large for its topic .*: raise max\.message\.bytes of it"):
        here.publish(1)


def test_what_is_not_allowed_is_a_problem(publishing):
    here = publishing()
    here.fail("commit_transaction", TopicAuthorizationFailedError(here.out))
    with pytest.raises(KafkaProblem, match=f"may not write topic {here.out}: kafka-acls"):
        here.publish(1)
    here.transactions.close()
    assert here.read() == []


def test_without_transactions_messages_come_before_the_offsets(publishing):
    here = publishing(transactions=False)
    here.publish(1)
    assert here.read() == ["1-a", "1-b"]
    assert here.committed == here.commits(1)
    really, here.membership.commit = here.membership.commit, lambda commits: 1 / 0
    with pytest.raises(ZeroDivisionError):  # as if it were killed there
        here.publish(2)
    here.membership.commit = really
    here.publish(2)
    assert here.read() == ["1-a", "1-b", *["2-a", "2-b"] * 2]


def test_without_transactions_it_is_tried_again_too(publishing):
    here = publishing(transactions=False)
    here.fail("send", KafkaTimeoutError("injected"), after=True)
    here.publish(1)
    assert sorted(set(here.read())) == ["1-a", "1-b"]
    assert here.committed == here.commits(1)
    assert here.transactions.counts == {"aborted": 1, "committed": 1}
