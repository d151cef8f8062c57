"""Whether all brokers can be reached, and what they allow."""

from collections.abc import Iterator
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from consumers.errors import explained
from stream_hc.cli.checking import Finding
from stream_hc.runtime.config.kafka import KafkaConfig

__all__ = ["check_brokers", "check_limits"]

OLDEST = (2, 5)  # the first that commits offsets in a transaction only for the one who reads
LONGEST_TRANSACTION = "transaction.max.timeout.ms"
SESSIONS = ("group.min.session.timeout.ms", "group.max.session.timeout.ms")


def check_brokers(admin: KafkaAdminClient, config: KafkaConfig) -> Iterator[Finding]:
    """Connect to every broker at the address that it advertises."""
    brokers = admin.describe_cluster()["brokers"]
    versions, lost = [], []
    for broker in brokers:
        try:
            if broker.get("is_fenced"):
                lost.append(f"broker {broker['broker_id']} at {_address(broker)} is down: start it")
            else:
                versions.append(admin.get_broker_version_data(broker["broker_id"]))
        except KafkaError as error:
            lost.append(f"broker {broker['broker_id']}: {explained(error, config)}")
    if versions:
        oldest = min(versions, key=lambda version: version.broker_version)
        named = f"{_brokers(len(versions))} of Kafka {oldest.broker_version_str}"
        if oldest.broker_version < OLDEST:
            yield Finding("problem", f"{named}: transactions need Kafka 2.5 or newer: upgrade the brokers")
        else:
            yield Finding("ok", f"{named} at {', '.join(map(_address, brokers))}")
    for each in lost:  # one of several may be away: the others take over
        yield Finding("warning" if versions else "problem", each)


def check_limits(admin: KafkaAdminClient, config: KafkaConfig) -> Iterator[Finding]:
    """Compare the timeouts with what the brokers allow, where they say it."""
    limits = _limits(admin)
    longest = limits.get(LONGEST_TRANSACTION)
    if longest is not None and config.transactions and config.transaction_timeout > longest:
        yield Finding(
            "problem",
            f"kafka.transaction_timeout is {config.transaction_timeout:g} seconds, the brokers allow "
            f"{longest:g}: lower it, or raise their {LONGEST_TRANSACTION}",
        )
    least, most = (limits.get(name) for name in SESSIONS)
    if least is not None and most is not None and not least <= config.session_timeout <= most:
        yield Finding(
            "problem",
            f"kafka.session_timeout is {config.session_timeout:g} seconds, the brokers allow {least:g} to "
            f"{most:g}: change it, or their {SESSIONS[0]} and {SESSIONS[1]}",
        )


def _limits(admin: KafkaAdminClient) -> dict[str, float]:
    """Return limits in seconds; none where this client may not see them, or no broker says."""
    for broker in admin.describe_cluster()["brokers"]:
        if broker.get("is_fenced"):
            continue
        number = str(broker["broker_id"])
        asked = ConfigResource(ConfigResourceType.BROKER, number, [LONGEST_TRANSACTION, *SESSIONS])
        try:
            told = admin.describe_configs([asked], config_filter="all").get("broker", {}).get(number, {})
        except KafkaError:  # this one may be away: the next one knows as well
            continue
        return {name: int(each["value"]) / 1000 for name, each in told.items() if each["value"] is not None}
    return {}


def _address(broker: Any) -> str:
    return f"{broker['host']}:{broker['port']}"


def _brokers(n: int) -> str:
    return "1 broker" if n == 1 else f"{n} brokers"
