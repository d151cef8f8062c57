"""Who of a group reads: one takes all partitions, the others stand by until it is gone."""

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

__all__ = ["OneReader"]

VERSION = 1  # of the subscription: the first that names the partitions a member has


class Cluster(Protocol):
    """What is asked of the metadata of the brokers."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the numbers of the partitions of a topic."""


class OneReader(AbstractPartitionAssignor):  # type: ignore[misc]
    """Gives all partitions to one member: a model that learns a stream needs all of it, in one order.

    Whoever reads goes on when others come: the protocol is cooperative, nothing is taken away meanwhile.
    Among those who believe they read, the one who learned of it last is right. Where nobody reads, it is the
    first by name, static members before others, so that all agree.
    """

    name = "stream-hc-one-reader"

    def __init__(self) -> None:
        self._generation = -1  # in which this member was given partitions
        self._partitions: list[tuple[str, list[int]]] = []

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Keep what is owned while the group agrees."""
        return [RebalanceProtocol.COOPERATIVE]

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Tell the group what this member has, and since when."""
        part = ConsumerProtocolSubscription.TopicPartition
        return ConsumerProtocolSubscription(
            version=VERSION,
            topics=sorted(topics),
            user_data=struct.pack(">i", self._generation),
            owned_partitions=[part(topic=topic, partitions=numbers) for topic, numbers in self._partitions],
        )

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Remember what this member was given."""
        found: dict[str, list[int]] = defaultdict(list)
        for partition in assignment.partitions():
            found[partition.topic].append(partition.partition)
        self._partitions = sorted((topic, sorted(numbers)) for topic, numbers in found.items())
        self._generation = generation if self._partitions else -1

    def assign(self, cluster: Cluster, members: Iterable[Any]) -> Mapping[str, ConsumerProtocolAssignment]:
        """Give everything to one of the members; what another one still has comes in the next round."""
        ranked = sorted(members, key=_rank)
        reader = ranked[0]
        topics = sorted({topic for member in ranked for topic in member.metadata.topics})
        # What the reader has is its own, whatever others believe who were away for a while.
        others = {partition for member in ranked[1:] for partition in _owned(member)} - set(_owned(reader))
        wanted = {
            topic: [number for number in sorted(numbers) if (topic, number) not in others]
            for topic in topics
            if (numbers := cluster.partitions_for_topic(topic))
        }
        return {
            member.member_id: ConsumerProtocolAssignment(
                VERSION, sorted(wanted.items()) if member is reader else [], b""
            )
            for member in ranked
        }


def _rank(member: Any) -> tuple[int, bool, str]:
    data = member.metadata.user_data or b""
    generation = struct.unpack(">i", data)[0] if len(data) == 4 and list(_owned(member)) else -1
    name = member.group_instance_id
    return -generation, name is None, name or member.member_id


def _owned(member: Any) -> Iterable[tuple[str, int]]:
    for owned in getattr(member.metadata, "owned_partitions", None) or ():
        for number in owned.partitions:
            yield owned.topic, number
