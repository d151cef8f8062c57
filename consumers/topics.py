"""The topics of a job: what there is of them, and how those that are missing are made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kafka import KafkaAdminClient
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType

from consumers.errors import KafkaProblem, explained
from stream_hc.runtime.config.kafka import KafkaConfig

__all__ = ["READ", "ROLES", "Found", "create_missing", "describe", "topics_of", "wanted"]

READ = ("documents", "labels")
ROLES = (*READ, "predictions", "dead_letters", "requests", "events", "models")
SPREAD = (*READ, "predictions")  # those that have as many partitions as asked for
SETTINGS = ("cleanup.policy", "retention.ms", "retention.bytes", "max.message.bytes", "min.insync.replicas")
DAY = 86_400_000  # milliseconds
DAYS = {"dead_letters": 30, "events": 30}  # 7 for the others
# Old versions go soon: they are the better part of a topic of models.
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": str(2**27), "min.cleanable.dirty.ratio": "0.2"}
ROOM = 2**20  # bytes that headers may add to a record that is put aside


@dataclass(frozen=True)
class Found:
    """A topic that the configuration names, as the brokers describe it.

    Attributes
    ----------
    role, name
        The key of the table [kafka], and its value.
    state
        Whether it is there, missing, or may not be seen.
    partitions, replication
        How many there are, and the least number of replicas of one of them.
    without_leader
        Partitions that nobody can read or write now.
    settings
        Those in `SETTINGS`; empty if they may not be seen.
    allowed
        Operations such as READ, None if the brokers do not say.
    """

    role: str
    name: str
    state: Literal["there", "missing", "denied"]
    partitions: int = 0
    replication: int = 0
    without_leader: tuple[int, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    allowed: frozenset[str] | None = None

    def number(self, setting: str) -> int | None:
        """Return the value of a setting that is a number, None if it is not known."""
        value = self.settings.get(setting)
        return None if value is None else int(value)


def topics_of(config: KafkaConfig) -> dict[str, str]:
    """Return the topics that the configuration names, by their keys.

    >>> topics_of(KafkaConfig(labels=None, events=None))
    {'documents': 'documents', 'predictions': 'predictions', 'dead_letters': 'dead-letters'}
    """
    return {role: name for role in ROLES if (name := getattr(config, role)) is not None}


def describe(admin: KafkaAdminClient, config: KafkaConfig) -> dict[str, Found]:
    """Return what there is of the topics, by their keys."""
    names = topics_of(config)
    told = {each["name"]: each for each in admin.describe_topics(sorted(set(names.values())))}
    there = sorted(name for name, each in told.items() if _state(each, config) == "there")
    settings = _settings(admin, there)
    return {role: _found(role, told[name], settings.get(name, {}), config) for role, name in names.items()}


def _state(told: Mapping[str, Any], config: KafkaConfig) -> Literal["there", "missing", "denied"]:
    error = kafka_errors.for_code(told["error_code"])
    if error in (kafka_errors.NoError, kafka_errors.LeaderNotAvailableError):
        return "there"
    if error is kafka_errors.UnknownTopicOrPartitionError:
        return "missing"
    if error is kafka_errors.TopicAuthorizationFailedError:
        return "denied"
    raise KafkaProblem(explained(error(told["name"]), config))


def _settings(admin: KafkaAdminClient, names: Iterable[str]) -> dict[str, dict[str, str]]:
    asked = [ConfigResource(ConfigResourceType.TOPIC, name, list(SETTINGS)) for name in names]
    told = admin.describe_configs(asked, config_filter="all").get("topic", {}) if asked else {}
    return {name: {key: each["value"] for key, each in found.items()} for name, found in told.items()}


def _found(role: str, told: Mapping[str, Any], settings: Mapping[str, str], config: KafkaConfig) -> Found:
    partitions, allowed = told["partitions"], told["authorized_operations"]
    return Found(
        role,
        told["name"],
        _state(told, config),
        len(partitions),
        min((len(each["replica_nodes"]) for each in partitions), default=0),
        tuple(sorted(each["partition_index"] for each in partitions if each["leader_id"] < 0)),
        settings,
        None if allowed is None else frozenset(allowed),
    )


def wanted(role: str, config: KafkaConfig, largest: int = 0) -> dict[str, Any]:
    """Return how a topic is made; `largest` is what a record in the topics that are read may have in bytes.

    Records are never thinned out by key, since a document that vanished would be a hole in what is learned.
    Of models only the newest count, for as long as it takes.
    """
    settings = {"cleanup.policy": "delete", "retention.ms": str(DAYS.get(role, 7) * DAY)}
    if role == "models":
        settings = dict(COMPACTED)
    if role == "dead_letters":
        settings["max.message.bytes"] = str(max(2**20, largest) + ROOM)
    return {
        "num_partitions": config.partitions if role in SPREAD else 1,
        "replication_factor": config.replication or -1,
        "configs": settings,
    }


def create_missing(admin: KafkaAdminClient, config: KafkaConfig) -> list[str]:
    """Make the topics that are missing, wait until they can be used, and return their names.

    Raises
    ------
    KafkaProblem
        The brokers refuse. That another process was quicker is fine.
    """
    found = describe(admin, config)
    largest = max((found[role].number("max.message.bytes") or 0 for role in READ if role in found), default=0)
    new = {
        each.name: wanted(role, config, largest) for role, each in found.items() if each.state == "missing"
    }
    if not new:
        return []
    answers = admin.create_topics(new, raise_errors=False)["topics"]
    for answer in answers:
        error = kafka_errors.for_code(answer["error_code"])
        if error is kafka_errors.TopicAuthorizationFailedError:
            raise KafkaProblem(
                f"topic {answer['name']} is missing and may not be made: allow Create, or make it"
            )
        if error not in (kafka_errors.NoError, kafka_errors.TopicAlreadyExistsError):
            problem = explained(error(answer["error_message"] or ""), config)
            raise KafkaProblem(f"topic {answer['name']} cannot be made: {problem}")
    admin.wait_for_topics(list(new))
    return sorted(
        answer["name"]
        for answer in answers
        if kafka_errors.for_code(answer["error_code"]) is kafka_errors.NoError
    )
