"""The table [http]: where the numbers of a job can be seen, and by whom."""

import ipaddress
from typing import Annotated

from msgspec import Meta

from stream_hc.runtime.config.table import Path, Table

__all__ = ["HttpConfig", "http_problem", "is_loopback"]

Host = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,253}$")]


class HttpConfig(Table, frozen=True):
    """The live page and what Prometheus reads, while a job runs. All of it is read-only.

    Attributes
    ----------
    enabled
        Whether there is any of it.
    host
        Address to listen at; any but that of this machine alone needs `token_file` or `certificate`.
    port
        To listen at; 0 takes one that is free.
    token_file
        File whose first line everybody has to send along: `Authorization: Bearer ...`.
    certificate
        PEM file; the numbers then travel by HTTPS.
    key
        PEM file with the key of the certificate, if it is not in the same file.
    hosts
        Names by which browsers may call the server; "none" leaves it to the address.
    worst_nodes
        How many nodes Prometheus is told of by name: those with most of the recent H-loss.
    """

    enabled: bool = False
    host: Host = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 9464
    token_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    hosts: Annotated[list[str], Meta(min_length=1)] | None = None
    worst_nodes: Annotated[int, Meta(ge=0, le=100)] = 10


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def http_problem(config: HttpConfig) -> str:
    """Return what is wrong with the table, or nothing."""
    if config.key is not None and config.certificate is None:
        return "http.key is of no use alone: name the http.certificate, too"
    is_safe = config.token_file is not None or config.certificate is not None
    if config.enabled and not is_loopback(config.host) and not is_safe:
        remedy = "set http.token_file or http.certificate, or listen at 127.0.0.1"
        return f"everybody could read the numbers at {config.host}: {remedy}"
    return ""
