"""A process that predicts and never learns, one of any number in a group: what one loses, another takes."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import OffsetOutOfRangeError
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata

from consumers.daemon.fetching import Fetching
from consumers.daemon.looking import Topics, look_first
from consumers.daemon.membership import LostPartitions, Membership
from consumers.daemon.messages import MessageMaker
from consumers.daemon.reading import offsets_behind
from consumers.daemon.transactions import NotPublished, Transactions
from consumers.errors import KafkaProblem
from consumers.offsets import Offsets, key_of
from consumers.patience import Interrupted, Patience
from consumers.predictor.following import Follower
from consumers.predictor.served import ServedModel
from consumers.predictor.watching import PredictWatcher
from consumers.settings import client_settings, warnings_of
from consumers.watchdog import Watchdog
from stream_hc.runtime.config import Config
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.outcome import Outcome
from stream_hc.runtime.watcher import StopRequest

__all__ = ["READING", "Predictor"]

READING = ("documents", "models")
LOOK_AROUND = 0.2  # seconds


class Predictor:
    """Answers the documents of the partitions that its group gives it, until somebody wants it to stop.

    Predictions, dead letters and offsets are committed in one transaction, as the member that the group knew
    when it gave the partitions away: the brokers refuse it as soon as they are another one's.

    Parameters
    ----------
    config
        As `predicting` has made it for a predictor.
    stop
        Asked between two batches, and while it waits.
    watcher
        Told what happens.
    least
        How many labelled documents the first model must know.
    """

    def __init__(self, config: Config, stop: StopRequest, watcher: PredictWatcher, least: int = 0) -> None:
        self.config = config
        self._least = least
        self._stop = stop
        self._watcher = watcher
        self._settings = client_settings(config.kafka)
        self._patience = Patience(config.kafka, self._is_stopped, watcher.note)
        self._answered = 0
        self.model: ServedModel | None = None

    def run(self) -> None:
        """Run until somebody wants it to stop, or as many documents were answered as asked for.

        Raises
        ------
        Fenced
            Another process has taken this one's place: do not start it again.
        KafkaProblem
            It cannot go on, and why.
        """
        kafka = self.config.kafka
        for warning in warnings_of(kafka):
            self._watcher.note(f"warning: {warning}")
        follower: Follower | None = None
        try:
            with Watchdog(kafka.stuck_after) as watchdog:
                sleep = self._sleep(watchdog.beat)
                topics = self._patience.until_done(self._look_first, sleep)
                follower = Follower(kafka, self._settings, self._watcher.note)
                self._wait_for_model(follower, sleep)
                with self._patience.until_done(
                    lambda: Membership(kafka, self._settings, watchdog.beat, CooperativeStickyAssignor), sleep
                ) as membership:
                    self._take_part(membership, follower, topics)
        except Interrupted as error:
            self._watcher.note(str(error))
        finally:
            if follower is not None:
                follower.close()

    def _look_first(self) -> Topics:
        admin = KafkaAdminClient(**self._settings)
        try:
            return look_first(admin, self.config, self._watcher.note, READING)
        finally:
            admin.close()

    def _wait_for_model(self, follower: Follower, sleep: Callable[[float], None]) -> None:
        """Wait for the first model: until then, a place in the group would keep documents from others."""
        wanted = f" that has learned from {self._least:,} documents" if self._least else ""
        self._watcher.note(f"waiting for a model in {self.config.kafka.models}{wanted}")
        while self.model is None:
            self._swap(follower)
            sleep(LOOK_AROUND)
            if self._is_stopped():
                raise Interrupted("stopped before there was a model")

    def _swap(self, follower: Follower) -> None:
        """Go over to a newer model, if there is one: always between two batches."""
        newer = follower.take()
        if newer is not None and (self.model is not None or newer.learned >= self._least):
            self.model = newer
            self._watcher.swapped(newer)
        self._watcher.refused(follower.counts["refused"])

    def _take_part(self, membership: Membership, follower: Follower, topics: Topics) -> None:
        kafka = self.config.kafka
        name = f"{kafka.group}-{kafka.instance or uuid.uuid4().hex[:12]}"
        transactions = Transactions(
            kafka, self._settings, membership, self._is_stopped, self._watcher.note, topics.largest, name
        )
        fetching = Fetching(kafka, self._settings, membership.beat)
        letters = topics.largest.get(kafka.dead_letters or "", 0)
        messages = MessageMaker(kafka, topics.partitions, letters)
        try:
            transactions.open()
            while not self._is_done():
                self._read(membership, transactions, fetching, messages, follower)
        finally:
            transactions.close()
            fetching.close()

    def _read(
        self,
        membership: Membership,
        transactions: Transactions,
        fetching: Fetching,
        messages: MessageMaker,
        follower: Follower,
    ) -> None:
        """Read what the group has given, from what is committed on, until the group changes or it fails."""
        # 1. As whom, and what: whatever happens from here on, the brokers know whether it still holds.
        agreed = membership.agreed()
        self._swap(follower)
        self._watcher.looked({})
        if agreed is None:
            return
        identity, mine = agreed
        try:
            # 2. Where to go on. An open transaction of the one before is waited for.
            position, new = transactions.patiently(lambda: self._beginning(membership, mine))
            if new:  # or the next one would begin at another place
                transactions.publish_once([], _commits(new), identity)
            transactions.patiently(lambda: fetching.begin(position))
            self._watcher.reading([key_of(partition) for partition in sorted(mine)])
            while not self._is_done():
                membership.look()
                if membership.changed:
                    return
                self._swap(follower)
                records = self._gather(fetching)
                self._watcher.looked(lag_of(fetching, position))
                if records:
                    # 3. Predict and commit. Killed anywhere: the next one begins at step 2.
                    self._publish(records, transactions, messages, identity)
                    position |= offsets_behind(records)
        except (NotPublished, LostPartitions) as error:
            self._watcher.note(f"{error}: going on from what is committed")

    def _beginning(self, membership: Membership, mine: set[TopicPartition]) -> tuple[Offsets, Offsets]:
        """Return where to go on, and the part of it that nobody has committed yet."""
        committed = membership.committed(membership.known())
        first, last = membership.ends(first=True), membership.ends(first=False)
        if not mine <= first.keys() & last.keys():
            raise LostPartitions("partitions were given to another member")
        # A partition that came later is read from its beginning, wherever the others began.
        start = last if self.config.kafka.start == "latest" and not committed else first
        position = {each: committed[each].offset if each in committed else start[each] for each in mine}
        group = self.config.kafka.group
        remedy = f"kafka-consumer-groups --reset-offsets --group {group} goes on without them"
        for partition, offset in position.items():
            if offset < first[partition]:
                gone = f"records {offset} to {first[partition] - 1} of {key_of(partition)} are gone"
                raise KafkaProblem(
                    f"{gone} before they were predicted: keep records longer (retention.ms); {remedy}"
                )
            if offset > last[partition]:
                ends = f"{key_of(partition)} ends at {last[partition]}, the group {group} is at {offset}"
                raise KafkaProblem(f"{ends}: was the topic made anew? {remedy}")
        return position, {each: at for each, at in position.items() if each not in committed}

    def _gather(self, fetching: Fetching) -> list[Any]:
        """Return the next records, together with those that come soon."""
        kafka = self.config.kafka
        most, limit = kafka.batch, self.config.stream.limit
        if limit is not None:
            most = min(most, limit - self._answered)
        found: list[Any] = []
        until = time.monotonic() + LOOK_AROUND
        while len(found) < most and (left := until - time.monotonic()) > 0:
            parts = self._fetched(fetching, left, most - len(found))
            if parts and not found:
                until = min(until, time.monotonic() + kafka.linger)
            for records in parts.values():
                found += records
        return found

    def _fetched(self, fetching: Fetching, wait: float, most: int) -> dict[TopicPartition, list[Any]]:
        try:
            return fetching.read(wait, [self.config.kafka.documents], most)
        except OffsetOutOfRangeError as error:
            raise KafkaProblem(
                f"records were deleted before they were predicted ({error}): keep them longer (retention.ms)"
            ) from error

    def _publish(
        self,
        records: Sequence[Any],
        transactions: Transactions,
        messages: MessageMaker,
        identity: ConsumerGroupMetadata,
    ) -> None:
        assert self.model is not None
        began = time.perf_counter()
        lines = [Line(place, record.value or b"") for place, record in enumerate(records)]
        answered = self.model.answer(lines)
        took = time.perf_counter() - began
        written = messages.of_outcome(Outcome(answers=[answered.answers], rejects=answered.rejects), records)
        transactions.publish_once(written, _commits(offsets_behind(records)), identity)
        self._answered += len(answered.answers) + len(answered.rejects)
        self._watcher.answered(self.model, answered, took, transactions)

    def _is_done(self) -> bool:
        limit = self.config.stream.limit
        return self._is_stopped() or (limit is not None and self._answered >= limit)

    def _sleep(self, beat: Callable[[], Any]) -> Callable[[float], None]:
        def sleep(seconds: float) -> None:
            until = time.monotonic() + seconds
            while not self._is_stopped() and (left := until - time.monotonic()) > 0:
                beat()
                time.sleep(min(left, 0.2))

        return sleep

    def _is_stopped(self) -> bool:
        return self._stop.requested


def _commits(offsets: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
    return {partition: OffsetAndMetadata(at, "", -1) for partition, at in offsets.items()}


def lag_of(fetching: Fetching, position: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return how many records each partition has behind a position, as far as the brokers have said."""
    ends = {partition: fetching.end(partition) for partition in position}
    return {each: max(0, end - position[each]) for each, end in ends.items() if end is not None}
