"""The settings that every client takes, from the table [kafka], and what is wrong with that table."""

import re
from collections.abc import Iterator
from typing import Any

from consumers.bootstrap import Client
from consumers.errors import KafkaProblem
from consumers.sasl import has_sasl, is_in_clear, sasl_problems, sasl_settings
from consumers.secrets import guard_logs, others_can_read
from consumers.tls import tls_problems, tls_settings
from stream_hc.runtime.config.kafka import KafkaConfig

__all__ = ["addresses", "client_settings", "problems_of", "warnings_of"]

ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
SIGNING_IN = ("username", "password", "password_file", "token_file")
SHORTEST, LONGEST = 1.0, 500.0  # seconds for an answer: kafka-python's other limits are around them
FIRST_BACKOFF, LONGEST_BACKOFF = 100, 5_000  # milliseconds: a broker that is away for hours is no hurry


def client_settings(config: KafkaConfig) -> dict[str, Any]:
    """Return the arguments that consumers, producers and administrators of kafka-python all take.

    A client made of them begins within `request_timeout`, or says at once why it never will. Later it waits
    for brokers that are away, however long.

    Raises
    ------
    KafkaProblem
        The table makes no sense: the first of `problems_of`.

    Examples
    --------
    >>> client_settings(KafkaConfig(bootstrap="a:9092, b:9092"))["bootstrap_servers"]
    ['a:9092', 'b:9092']
    """
    for problem in problems_of(config):
        raise KafkaProblem(problem)
    guard_logs()
    patience = round(1000 * config.request_timeout)
    return {
        "bootstrap_servers": addresses(config),
        "client_id": config.group if config.instance is None else f"{config.group}-{config.instance}",
        "security_protocol": config.security.upper(),
        "request_timeout_ms": patience,
        "bootstrap_timeout_ms": patience,
        "reconnect_backoff_ms": FIRST_BACKOFF,
        "reconnect_backoff_max_ms": LONGEST_BACKOFF,
        "kafka_client": Client,
        **tls_settings(config),
        **sasl_settings(config),
    }


def addresses(config: KafkaConfig) -> list[str]:
    """Return the brokers to begin with, each as host:port."""
    return [address.strip() for address in config.bootstrap.split(",")]


def problems_of(config: KafkaConfig) -> list[str]:
    """Return all that is wrong with the table, a line for each; no broker is asked."""
    checks = (_address_problems, _timeout_problems, tls_problems, sasl_problems)
    return [problem for check in checks for problem in check(config)]


def warnings_of(config: KafkaConfig) -> list[str]:
    """Return what works and should not stay so, a line for each."""
    found = []
    if is_in_clear(config):
        secret = "token" if config.sasl == "oauthbearer" else "password"
        crosses = f"the {secret} crosses the network for all to read"
        found.append(f"kafka.allow_plain_text: {crosses}: set kafka.security to sasl_ssl")
    given = [name for name in SIGNING_IN if getattr(config, name) is not None]
    if given and not has_sasl(config):
        found.append(f"kafka.{given[0]} is set, but kafka.security is {config.security}: nobody signs in")
    for name in ("password_file", "token_file", "key"):
        path = getattr(config, name)
        if path is not None and others_can_read(path):
            found.append(f"kafka.{name}: everybody on this machine can read {path}: chmod o-r {path}")
    return found


def _address_problems(config: KafkaConfig) -> Iterator[str]:
    for address in addresses(config):
        found = ADDRESS.fullmatch(address)
        if not found or not 0 < int(found[2]) < 2**16:
            yield f"kafka.bootstrap: {address!r} is no host:port: write such as broker-1:9092,broker-2:9092"


def _timeout_problems(config: KafkaConfig) -> Iterator[str]:
    if not SHORTEST <= config.request_timeout <= LONGEST:
        given = f"kafka.request_timeout is {config.request_timeout:g}"
        yield f"{given}: give it {SHORTEST:g} to {LONGEST:g} seconds"
