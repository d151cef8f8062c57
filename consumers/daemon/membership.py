"""A place in the consumer group: whether this process reads or stands by, and what is committed."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, Self

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.errors import FencedInstanceIdError, KafkaError
from kafka.structs import ConsumerGroupMetadata, MemberState, OffsetAndMetadata

from consumers.daemon.assignor import OneReader
from consumers.offsets import Offsets
from stream_hc.runtime.config import KafkaConfig

__all__ = ["Fenced", "LostPartitions", "Membership"]


SHORTEST, LONGEST = 0.2, 5.0  # seconds for a group to agree
LAST_PATIENCE = 10.0  # seconds for it, when somebody wants to stop
MENDED = 5.0  # seconds between two looks for partitions that nobody reads


class Fenced(RuntimeError):  # noqa: N818 (it says what is the matter)
    """Another process has this one's identity: it has to end."""


class LostPartitions(RuntimeError):  # noqa: N818
    """The group has given the partitions to another member."""


class _Flag(ConsumerRebalanceListener):  # type: ignore[misc]
    """Notes that something has changed: the client's own thread calls it, and must not be held up."""

    def __init__(self) -> None:
        self.changed = False

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.changed = True

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.changed = True

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        self.changed = True


class Membership:
    """A consumer in a group where one member reads everything, or where all share what there is.

    Parameters
    ----------
    config
        Topics, group and times.
    settings
        What every client takes.
    beat
        Called whenever something has moved.
    assignor
        Decides who reads what.
    """

    def __init__(
        self,
        config: KafkaConfig,
        settings: Mapping[str, Any],
        beat: Callable[[], object],
        assignor: type[AbstractPartitionAssignor] = OneReader,
    ) -> None:
        self._config = config
        self._is_shared = assignor is not OneReader
        self._known: set[TopicPartition] | None = None  # when that was looked at last
        self.beat = beat
        self._flag = _Flag()
        self._wait = SHORTEST
        session = round(1000 * config.session_timeout)
        self._heartbeat = max(0.1, min(3.0, config.session_timeout / 5))  # seconds
        self._mended = time.monotonic()
        self.consumer = KafkaConsumer(
            **settings,
            group_id=config.group,
            group_instance_id=config.instance,
            partition_assignment_strategy=[assignor],
            isolation_level="read_committed",  # or what was just committed may not be seen yet
            auto_offset_reset="earliest",  # nothing is read here, and whoever reads is told where
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            session_timeout_ms=session,
            heartbeat_interval_ms=round(1000 * self._heartbeat),
            max_poll_interval_ms=round(1000 * max(config.stuck_after, config.session_timeout)) + 60_000,
            metrics_enabled=False,
        )
        self.consumer.subscribe(self.topics, listener=self._flag)

    @property
    def topics(self) -> list[str]:
        """The topics that are read; documents first."""
        labels = self._config.labels
        return [self._config.documents, *([] if labels in (None, self._config.documents) else [labels])]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # A static member keeps its place: whoever comes back under its name goes on without the others.
        self.consumer.close(autocommit=False, timeout_ms=5000)

    # The group

    @property
    def changed(self) -> bool:
        """Whether partitions came or went since `settle`."""
        return self._flag.changed

    def agreed(self) -> tuple[ConsumerGroupMetadata, set[TopicPartition]] | None:
        """Wait for a moment, and return who this is and what it was given; None if the group does not agree.

        Should the group change in between, it is an earlier member that has them: whoever commits as that
        one is refused by the brokers. The other way round nobody would notice.
        """
        self._flag.changed = False
        if not self.stand_by():
            return None
        identity, given = self.identity(), set(self.consumer.assignment())
        # Brokers take a member without a generation for somebody who is alone: they would not refuse it.
        is_member = identity.state == MemberState.STABLE and identity.generation_id >= 0
        return None if self._flag.changed or not given or not is_member else (identity, given)

    def identity(self) -> ConsumerGroupMetadata:
        """Return what shows the brokers that this is a member of the group as it is now."""
        return self.consumer.group_metadata()

    def stand_by(self) -> bool:
        """Wait for partitions for a moment; True if there are any."""
        self._wait = SHORTEST if self.is_stable else min(2 * self._wait, LONGEST)
        self._poll(self._wait)
        # Not before every topic is there: the records of one would be taken for all.
        topics = {partition.topic for partition in self.consumer.assignment()}
        return self.is_stable and topics == set(self.topics)

    def look(self) -> None:
        """Let the client see to what the group wants of it, without waiting."""
        self._poll(0.0)
        if not self.is_stable:
            self._flag.changed = True

    def settle(self, mine: Iterable[TopicPartition], stop: Callable[[], bool]) -> set[TopicPartition]:
        """Wait until the group agrees; return what was given to this member beside `mine`.

        Raises
        ------
        LostPartitions
            Not everything of `mine` is this member's any more, or somebody wants to stop and the group takes
            long: usually it agrees soon, and then all that was done can be saved.
        """
        had, wait, asked = set(mine), SHORTEST, 0.0
        while True:
            self._flag.changed = False
            self._poll(wait)
            if self.is_stable and not self._flag.changed:
                break
            if stop():
                asked = asked or time.monotonic()
                if time.monotonic() > asked + LAST_PATIENCE:
                    raise LostPartitions("stopped while the group was not in order")
            wait = min(2 * wait, LONGEST)
        have = set(self.consumer.assignment())
        if not had <= have or not have:
            raise LostPartitions(f"{len(had - have) or 'all'} partitions were given to another member")
        return have - had

    def settle_again(self, mine: Iterable[TopicPartition], stop: Callable[[], bool]) -> None:
        """Settle after brokers refused this member, and they may have a reason: give them time to say it.

        Whoever reads is told of new partitions by `changed`.
        """
        self.wait(1.2 * self._heartbeat, stop)
        if self.settle(mine, stop):
            self._flag.changed = True

    def _poll(self, seconds: float) -> None:
        """Take part in the group; nothing is ever read here."""
        self.beat()
        try:
            self.consumer.pause(*self.consumer.assignment())
            self.consumer.poll(timeout_ms=round(1000 * seconds), max_records=1)
        except FencedInstanceIdError:
            self._is_fenced()
        self._mend()

    def _is_fenced(self) -> NoReturn:
        raise Fenced(f"another process is {self._config.instance} of {self._config.group} now")

    def _mend(self) -> None:
        """Join once more where the client has lost what the group gave it.

        In kafka-python 3.0.12 that happens when the answer comes between two calls of `poll`: it is forgotten
        then, and the member stays without partitions for ever.
        """
        coordinator = self.consumer._coordinator  # noqa: SLF001 (nothing public tells)
        task = getattr(coordinator, "_join_task", None)
        if task is not None and task.is_done and not coordinator.need_rejoin():
            coordinator.request_rejoin()
        if time.monotonic() > self._mended + MENDED:
            self._mended = time.monotonic()
            (self._want_new if self._is_shared else self._want_all)(coordinator)
        # The one case where a member that seems to be in order shows no sign of life any more.
        is_named = self._config.instance is not None
        if is_named and self.is_stable and not getattr(coordinator, "_heartbeat_enabled", True):
            self._is_fenced()

    def _want_new(self, coordinator: Any) -> None:
        """Join once more where there are partitions that were not there before, or were given to nobody.

        Who comes back under its name is given what it had, and nobody may notice that there are more.
        """
        known, before = self.known(), self._known
        self._known = known
        if self.is_stable and known != before and (before is not None or self._config.instance is not None):
            coordinator.request_rejoin()

    def known(self) -> set[TopicPartition]:
        """Return all partitions of the topics that are read."""
        numbers = {topic: self.consumer.partitions_for_topic(topic) or () for topic in self.topics}
        return {TopicPartition(topic, number) for topic in self.topics for number in numbers[topic]}

    def _want_all(self, coordinator: Any) -> None:
        """Join once more where there are partitions that nobody reads.

        A static member that comes back is given what it had, not what was added meanwhile.
        """
        have = self.consumer.assignment()
        if self.is_stable and have and self.known() - have:
            coordinator.request_rejoin()

    @property
    def is_stable(self) -> bool:
        """Whether the group agrees, as far as this member knows."""
        return bool(self.consumer.group_metadata().state == MemberState.STABLE)

    # What is committed

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what the group has committed, with what is said beside it."""
        found = {}
        for partition in partitions:
            at = self.consumer.committed(
                partition, metadata=True, timeout_ms=round(1000 * self._config.request_timeout)
            )
            self.beat()
            if at is not None:
                found[partition] = at
        return found

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit without a transaction; an error if this is not a member of the group as it is now."""
        self.consumer.commit(dict(offsets), timeout_ms=round(1000 * self._config.request_timeout))

    def ends(self, first: bool) -> Offsets:
        """Return where the partitions begin, or end."""
        partitions = sorted(self.consumer.assignment())
        ask = self.consumer.beginning_offsets if first else self.consumer.end_offsets
        return dict(ask(partitions, timeout_ms=round(1000 * self._config.request_timeout)))

    def wait(self, seconds: float, stop: Callable[[], bool]) -> None:
        """Let time pass without leaving the group; ends early if somebody wants to stop."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not stop():
            try:
                self._poll(min(left, 0.2))
            except KafkaError:
                time.sleep(min(left, 0.2))
