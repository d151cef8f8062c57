"""The live page of a command: begun before its job, ended with it."""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry

from stream_hc.cli.console import say
from stream_hc.cli.errors import usage_error
from stream_hc.runtime.config import HttpConfig
from stream_hc.runtime.http import HttpError, HttpServer, TokenError
from stream_hc.runtime.telemetry import Telemetry

__all__ = ["served", "split_address"]


@contextmanager
def served(config: HttpConfig, quiet: bool = False) -> Iterator[Telemetry | None]:
    """Serve what a telemetry is told, and say where; nothing where nobody wants it."""
    if not config.enabled:
        yield None
        return
    telemetry = Telemetry(CollectorRegistry(), config.worst_nodes)
    try:
        server = HttpServer(telemetry, config)
    except (HttpError, TokenError) as error:
        raise usage_error(str(error)) from None
    with server:
        if not quiet:
            say(f"live page: {server.url}")
        yield telemetry


def split_address(address: str) -> tuple[str | None, int]:
    """Return host and port of `[HOST:]PORT`; None where no host is named.

    >>> split_address("9464"), split_address("[::1]:80"), split_address("0.0.0.0:9464")
    ((None, 9464), ('::1', 80), ('0.0.0.0', 9464))
    """
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise usage_error(f"--http {address}: expected PORT or HOST:PORT, such as 9464 or 127.0.0.1:9464")
    return host.strip("[]") or None, int(port)
