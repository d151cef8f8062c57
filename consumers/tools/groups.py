"""Groups that nobody is in: what they have committed, and how it is changed."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from kafka import KafkaAdminClient, TopicPartition, errors
from kafka.errors import (
    GroupIdNotFoundError,
    KafkaError,
    NoError,
    NonEmptyGroupError,
    UnknownMemberIdError,
)
from kafka.structs import OffsetAndMetadata

from consumers.clients import patiently, writer
from consumers.errors import KafkaProblem
from consumers.watchdog import timed
from stream_hc.runtime.config import KafkaConfig

__all__ = ["Group"]

T = TypeVar("T")

SHOWN_MEMBERS = 3
NOBODY = ("Empty", "Dead")


class Group:
    """The group of a job, as an administrator sees it.

    Parameters
    ----------
    admin
        Asks the brokers.
    config
        Of the job.
    """

    def __init__(self, admin: KafkaAdminClient, config: KafkaConfig) -> None:
        self._admin = admin
        self._config = config
        self._name = config.group

    def refuse_members(self) -> None:
        """Raise `KafkaProblem` if somebody is in the group."""
        found = self._ask(lambda: self._admin.describe_groups([self._name])[self._name])
        members = found["members"]
        if not members and found["group_state"] in NOBODY:
            return
        shown = [f"{each['client_id']} at {each['client_host'].lstrip('/')}" for each in members]
        who = ", ".join(shown[:SHOWN_MEMBERS]) + (", ..." if len(shown) > SHOWN_MEMBERS else "")
        wait = f"one that ended without a word is a member for {self._config.session_timeout:g} s more"
        raise KafkaProblem(
            f"group {self._name} has {len(members)} members ({who or found['group_state']}): "
            f"stop them first ({wait})"
        )

    def end_transactions(self) -> None:
        """End what a process that was killed left open, and shut it out should it still be there.

        Only then the committed offsets are the last word.
        """
        if self._config.transactions:
            with writer(self._config, transactional_id=self._name) as producer:
                timed(2 * self._config.request_timeout, "ending transactions", producer.init_transactions)

    def committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what was committed."""
        found = self._ask(lambda: self._admin.list_group_offsets({self._name: None})[self._name])
        return {partition: at for partition, at in found.items() if at.offset >= 0}

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit all of them at once; the brokers refuse that while somebody is in the group."""

        def once() -> None:
            for partition, error in self._admin.alter_group_offsets(self._name, dict(offsets)).items():
                if error is not NoError:
                    raise error(f"{partition.topic}:{partition.partition}")

        try:
            self._ask(once)
        except UnknownMemberIdError:
            self.refuse_members()
            raise

    def delete(self) -> None:
        """Make the group new: nothing is committed any more."""

        def once() -> None:
            found = self._admin.delete_groups([self._name])[self._name]
            if found not in ("OK", GroupIdNotFoundError.__name__):
                raise getattr(errors, found, KafkaError)(self._name)

        try:
            self._ask(once)
        except NonEmptyGroupError:
            self.refuse_members()
            raise

    def _ask(self, call: Callable[[], T]) -> T:
        return patiently(call, self._config.request_timeout)
