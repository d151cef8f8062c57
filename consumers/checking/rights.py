"""Whether this client may do what a job does, found out without doing any of it."""

import uuid
from collections.abc import Collection, Iterator, Mapping

from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove
from kafka.errors import (
    GroupAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    TransactionalIdNotFoundError,
    UnsupportedVersionError,
)

from consumers.clients import patiently
from consumers.errors import may_not, who
from consumers.topics import READ, Found
from stream_hc.cli.checking import Finding
from stream_hc.runtime.config.kafka import KafkaConfig

__all__ = ["check_rights"]


def check_rights(
    admin: KafkaAdminClient,
    config: KafkaConfig,
    found: Mapping[str, Found],
    reading: Collection[str] = READ,
) -> Iterator[Finding]:
    """Ask for the rights on topics, group and transactions; topics of the keys in `reading` are read."""
    on_cluster = admin.describe_cluster().get("authorized_operations") or ()
    topics = _topics(found, config, on_cluster, reading)
    denied = [*topics, *_group(admin, config), *_transactions(admin, config, reading)]
    yield from denied or [Finding("ok", f"{who(config)} may read, write and commit as {config.group}")]


def _topics(
    found: Mapping[str, Found], config: KafkaConfig, on_cluster: Collection[str], reading: Collection[str]
) -> Iterator[Finding]:
    for role, topic in found.items():
        operation = "Read" if role in reading else "Write"
        if topic.state == "missing":
            operation = "Create"
            if not config.create_topics or "CREATE" in on_cluster:
                continue
        # Of a topic that may not be seen it was said before; where brokers do not say, nobody knows.
        if topic.state != "denied" and topic.allowed is not None and operation.upper() not in topic.allowed:
            yield Finding("problem", may_not(operation, "topic", topic.name, config))


def _group(admin: KafkaAdminClient, config: KafkaConfig) -> Iterator[Finding]:
    # Only who may read in a group is told that nobody of this name is in it.
    nobody = MemberToRemove(group_instance_id=f"nobody-{uuid.uuid4().hex}")
    try:
        patiently(lambda: admin.remove_group_members(config.group, [nobody]), config.request_timeout)
    except GroupAuthorizationFailedError:
        yield Finding("problem", may_not("Read", "group", config.group, config))


def _transactions(
    admin: KafkaAdminClient, config: KafkaConfig, reading: Collection[str]
) -> Iterator[Finding]:
    for name in _transaction_names(config, reading):
        try:
            patiently(lambda name=name: admin.describe_transactions([name]), config.request_timeout)  # type: ignore[misc]
        except TransactionalIdAuthorizationFailedError:
            prefixed = "" if name == config.group else " --resource-pattern-type prefixed"
            yield Finding("problem", may_not("Write", "transactional-id", config.group, config) + prefixed)
        except (TransactionalIdNotFoundError, UnsupportedVersionError):
            pass  # new, or nobody can say


def _transaction_names(config: KafkaConfig, reading: Collection[str]) -> list[str]:
    """Return the names under which is written: one for each predictor, and one for published models."""
    if not config.transactions:
        return []
    if "models" in reading:
        return [f"{config.group}-{config.instance or 'any'}"]
    return [config.group, *([] if config.models is None else [f"{config.group}-models"])]
