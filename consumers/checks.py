"""What a start asks the brokers first, so that what is wrong is named before anything happens."""

from collections.abc import Collection, Iterator

from kafka import KafkaAdminClient

from consumers.checking.brokers import check_brokers, check_limits
from consumers.checking.rights import check_rights
from consumers.checking.topics import check_age, check_names, check_topics
from consumers.topics import READ, Found, describe
from stream_hc.cli.checking import Finding
from stream_hc.runtime.config.kafka import KafkaConfig

__all__ = ["Finding", "check_cluster"]


def check_cluster(
    admin: KafkaAdminClient,
    config: KafkaConfig,
    found: dict[str, Found] | None = None,
    age: float | None = None,
    reading: Collection[str] = READ,
) -> Iterator[Finding]:
    """Look at brokers, topics and rights.

    Parameters
    ----------
    admin
        That may ask.
    config
        Of the job.
    found
        What `describe` returned, if somebody has asked already.
    age
        Seconds since the newest snapshot, if there is one.
    reading
        Keys of the topics that are read; the others are written to.
    """
    yield from check_brokers(admin, config)
    yield from check_limits(admin, config)
    topics = describe(admin, config) if found is None else found
    yield from check_names(config)
    yield from check_topics(topics, config, len(admin.describe_cluster()["brokers"]), reading)
    if age is not None:
        yield from check_age(topics, age)
    yield from check_rights(admin, config, topics, reading)
