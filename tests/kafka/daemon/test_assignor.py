"""One member of a group reads everything; who that is, all agree on."""

import struct
from types import SimpleNamespace

import pytest
from kafka import TopicPartition
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from consumers.daemon.assignor import OneReader

CLUSTER = SimpleNamespace(partitions_for_topic={"documents": {2, 0, 1}, "labels": {0}}.get)
ALL = {"documents": [0, 1, 2], "labels": [0]}


def member(name, owned=None, generation=-1, instance=None, topics=("documents", "labels"), data=None):
    """Return a member as the one who assigns sees it."""
    parts = [SimpleNamespace(topic=topic, partitions=numbers) for topic, numbers in (owned or {}).items()]
    told = struct.pack(">i", generation) if data is None else data
    metadata = SimpleNamespace(topics=list(topics), user_data=told, owned_partitions=parts)
    return SimpleNamespace(member_id=name, group_instance_id=instance, metadata=metadata)


def assigned(*members):
    """Return what each member was given, by name."""
    found = OneReader().assign(CLUSTER, members)
    return {name: _partitions(each) for name, each in found.items()}


def _partitions(assignment):
    found = {}
    for partition in assignment.partitions():
        found.setdefault(partition.topic, []).append(partition.partition)
    return found


def test_the_first_by_name_reads_everything_and_the_others_nothing():
    assert assigned(member("b"), member("a"), member("c")) == {"a": ALL, "b": {}, "c": {}}


def test_static_members_come_before_others_by_their_own_names():
    found = assigned(member("a"), member("b", instance="two"), member("c", instance="one"))
    assert found == {"a": {}, "b": {}, "c": ALL}


def test_who_reads_goes_on_whoever_comes():
    found = assigned(member("z", ALL, generation=3), member("a"), member("b", instance="one"))
    assert found == {"z": ALL, "a": {}, "b": {}}


def test_of_two_who_believe_they_read_the_one_who_learned_of_it_last_is_right():
    found = assigned(member("a", {"labels": [0]}, 3), member("b", {"documents": [0, 1, 2]}, 4))
    # Labels come in the next round, when the other one has let go of them.
    assert found == {"a": {}, "b": {"documents": [0, 1, 2]}}


def test_what_a_stale_member_claims_is_not_taken_from_the_one_who_reads():
    assert assigned(member("a", ALL, generation=3), member("b", ALL, generation=4)) == {"a": {}, "b": ALL}


def test_a_generation_without_partitions_does_not_count():
    assert assigned(member("a"), member("b", {}, generation=9)) == {"a": ALL, "b": {}}


@pytest.mark.parametrize("data", [b"", b"something else"])
def test_what_cannot_be_understood_does_not_count(data):
    assert assigned(member("a"), member("b", ALL, data=data))["b"] == {}


def test_members_without_word_of_what_they_have_are_taken_as_they_are():
    old = member("a")
    old.metadata = SimpleNamespace(topics=["documents"], user_data=None)
    assert assigned(old) == {"a": {"documents": [0, 1, 2]}}


def test_topics_of_all_members_are_read_and_missing_ones_left_out():
    found = assigned(member("a", topics=["documents"]), member("b", topics=["labels", "missing"]))
    assert found == {"a": ALL, "b": {}}


def test_a_member_tells_what_it_was_given_and_since_when():
    reader = OneReader()
    assert reader.supported_protocols() == [RebalanceProtocol.COOPERATIVE]
    told = reader.metadata({"labels", "documents"})
    assert (told.topics, told.owned_partitions) == (["documents", "labels"], [])
    assert told.user_data == struct.pack(">i", -1)
    given = [("labels", [0]), ("documents", [2, 0, 1])]
    reader.on_assignment(ConsumerProtocolAssignment(1, given, b""), 5)
    told = reader.metadata(["documents"])
    assert told.user_data == struct.pack(">i", 5)
    assert [(each.topic, each.partitions) for each in told.owned_partitions] == sorted(ALL.items())
    reader.on_assignment(ConsumerProtocolAssignment(1, [], b""), 6)
    assert reader.metadata([]).user_data == struct.pack(">i", -1)
    assert reader.metadata([]).owned_partitions == []


def test_what_one_tells_is_what_the_next_round_goes_by():
    reader = OneReader()
    reader.on_assignment(ConsumerProtocolAssignment(1, sorted(ALL.items()), b""), 5)
    going_on = SimpleNamespace(
        member_id="z", group_instance_id=None, metadata=reader.metadata(["documents", "labels"])
    )
    assert assigned(member("a"), going_on) == {"a": {}, "z": ALL}
    found = OneReader().assign(CLUSTER, [going_on])["z"].partitions()
    assert TopicPartition("documents", 2) in list(found)
