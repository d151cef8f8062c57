"""How to sign in: whether all is there that it takes, and how a client takes it."""

from collections.abc import Iterator
from typing import Any

from consumers.errors import KafkaProblem
from consumers.secrets import FileToken, Secret, first_line, whole_text
from consumers.tls import has_tls
from stream_hc.runtime.config.kafka import KafkaConfig

__all__ = ["has_sasl", "is_in_clear", "sasl_problems", "sasl_settings"]

IN_CLEAR = ("plain", "oauthbearer")  # what these send signs in whoever hears it


def has_sasl(config: KafkaConfig) -> bool:
    """Whether somebody signs in."""
    return config.security.startswith("sasl_")


def is_in_clear(config: KafkaConfig) -> bool:
    """Whether a password or a token could be read by everybody on the way."""
    return has_sasl(config) and config.sasl in IN_CLEAR and not has_tls(config)


def sasl_settings(config: KafkaConfig) -> dict[str, Any]:
    """Return what a client needs to sign in; a table without problems is taken for granted."""
    if not has_sasl(config) or config.sasl is None:
        return {}
    mechanism = {"sasl_mechanism": config.sasl.upper()}
    if config.sasl == "oauthbearer":
        assert config.token_file is not None
        return {**mechanism, "sasl_oauth_token_provider": FileToken(config.token_file)}
    if config.password_file is not None:
        password = first_line(config.password_file, "kafka.password_file")
    else:
        password = Secret(config.password or "")
    username = config.username or ""
    if config.sasl.startswith("scram"):  # RFC 5802; kafka-python leaves it to us
        username = username.replace("=", "=3D").replace(",", "=2C")
    return {**mechanism, "sasl_plain_username": username, "sasl_plain_password": password}


def sasl_problems(config: KafkaConfig) -> Iterator[str]:
    """Return what is wrong with how to sign in."""
    if not has_sasl(config):
        if config.sasl is not None:
            other = f"sasl_{config.security}"
            yield f"kafka.sasl is {config.sasl}, and kafka.security {config.security}: set that to {other}"
        return
    if config.sasl is None:
        offered = "plain, scram-sha-256, scram-sha-512 or oauthbearer"
        yield f"kafka.security is {config.security} without kafka.sasl: set it to {offered}"
        return
    if is_in_clear(config) and not config.allow_plain_text:
        remedy = "set kafka.security to sasl_ssl, or kafka.allow_plain_text to true if you must"
        yield f"kafka.sasl is {config.sasl}, which without TLS lets everybody read along: {remedy}"
    yield from _token_problems(config) if config.sasl == "oauthbearer" else _password_problems(config)


def _token_problems(config: KafkaConfig) -> Iterator[str]:
    if config.token_file is None:
        yield "kafka.token_file is missing: oauthbearer takes its token from there"
        return
    try:
        whole_text(config.token_file, "kafka.token_file")
    except KafkaProblem as problem:
        yield str(problem)


def _password_problems(config: KafkaConfig) -> Iterator[str]:
    if config.username is None:
        yield f"kafka.username is missing: {config.sasl} signs in with a name and a password"
    if config.password is not None and config.password_file is not None:
        yield "kafka.password and kafka.password_file are both set: leave one of them out"
    elif config.password_file is not None:
        try:
            first_line(config.password_file, "kafka.password_file")
        except KafkaProblem as problem:
            yield str(problem)
    elif config.password is None:
        yield "the password is missing: set STREAM_HC_KAFKA_PASSWORD, or name a file with kafka.password_file"
