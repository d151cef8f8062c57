"""Certificates and keys: whether their files can be used, and how a client takes them."""

import ssl
from collections.abc import Iterator
from typing import Any

from consumers.secrets import Secret
from stream_hc.runtime.config.kafka import KafkaConfig

__all__ = ["has_tls", "tls_problems", "tls_settings"]


def has_tls(config: KafkaConfig) -> bool:
    """Whether what is sent is encrypted."""
    return config.security.endswith("ssl")


def tls_settings(config: KafkaConfig) -> dict[str, Any]:
    """Return what a client needs for TLS; it reads the files for every connection."""
    if not has_tls(config):
        return {}
    return {
        "ssl_check_hostname": True,
        "ssl_cafile": config.ca,
        "ssl_certfile": config.certificate,
        "ssl_keyfile": config.key,
        "ssl_password": _key_password(config),
    }


def _key_password(config: KafkaConfig) -> Secret:
    # Without any, OpenSSL would ask at the terminal.
    return Secret(config.key_password or "")


def tls_problems(config: KafkaConfig) -> Iterator[str]:
    """Return what is wrong with the files, or with having them."""
    files = [name for name in ("ca", "certificate", "key") if getattr(config, name) is not None]
    if not has_tls(config):
        for name in files:
            other = config.security.replace("plaintext", "ssl")
            given = f"kafka.{name} is for TLS, and kafka.security is {config.security}"
            yield f"{given}: set that to {other}, or leave {name} out"
        return
    unreadable = [
        problem for name in files if (problem := _unreadable(getattr(config, name), f"kafka.{name}"))
    ]
    if config.key is not None and config.certificate is None:
        unreadable.append("kafka.key is of no use without kafka.certificate: name both files")
    yield from unreadable
    if not unreadable:
        yield from _unsound(config)


def _unreadable(path: str, key: str) -> str:
    try:
        with open(path, "rb"):
            return ""
    except OSError as error:
        return f"{key}: {path}: cannot be read ({error.strerror}): name a PEM file that can"


def _unsound(config: KafkaConfig) -> Iterator[str]:
    """Load the files as a connection does, since it would say less."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if config.ca is not None:
        try:
            context.load_verify_locations(config.ca)
        except ssl.SSLError:
            yield f"kafka.ca: {config.ca}: holds no certificate: name a PEM file with those to be trusted"
    if config.certificate is None:
        return
    key = config.certificate if config.key is None else config.key
    try:
        context.load_cert_chain(config.certificate, config.key, _key_password(config))
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            yield f"kafka.key: {key}: belongs to another certificate than {config.certificate}: name its own"
        elif _is_encrypted(key):
            remedy = "set STREAM_HC_KAFKA_KEY_PASSWORD to its password"
            yield f"kafka.key: {key}: is encrypted, and cannot be opened: {remedy}"
        elif config.key is None:
            yield f"kafka.certificate: {key}: holds no certificate with its key: name the key with kafka.key"
        else:
            yield f"kafka.certificate, kafka.key: {config.certificate} and {key} have to be PEM files"


def _is_encrypted(path: str) -> bool:
    with open(path, "rb") as stream:
        return b"ENCRYPTED" in stream.read(2**20)
