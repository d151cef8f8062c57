"""The server: in a thread beside the stream, at an address that is taken before anything else begins."""

import socket
import ssl
import threading
from types import TracebackType
from typing import Self

import uvicorn

from stream_hc.runtime.config import HttpConfig
from stream_hc.runtime.config.http import http_problem
from stream_hc.runtime.http.app import make_app
from stream_hc.runtime.telemetry import Telemetry

__all__ = ["HttpError", "HttpServer"]

MOST_CONNECTIONS = 100
LAST_REQUESTS = 2  # seconds for what is being answered when the server ends


class HttpError(ValueError):
    """A server that cannot begin; the message says why and what would help."""


class HttpServer:
    """Serves while the `with` lasts.

    Parameters
    ----------
    telemetry
        What is served.
    config
        Where, and to whom.
    """

    def __init__(self, telemetry: Telemetry, config: HttpConfig) -> None:
        problem = http_problem(config)
        if problem:
            raise HttpError(problem)
        self._config = config
        self._socket = _listen(config)
        try:
            self._server = uvicorn.Server(_settings(telemetry, config))
        except (OSError, ssl.SSLError, ValueError) as error:
            self._socket.close()
            raise HttpError(f"cannot serve: {error}") from None
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="http", daemon=True
        )

    @property
    def port(self) -> int:
        """The port, also where any would do."""
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """Where to look."""
        scheme = "http" if self._config.certificate is None else "https"
        host = f"[{self._config.host}]" if ":" in self._config.host else self._config.host
        return f"{scheme}://{host}:{self.port}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(LAST_REQUESTS + 3)
        self._socket.close()


def _listen(config: HttpConfig) -> socket.socket:
    try:
        found = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise HttpError(f"http.host: {config.host}: {error.strerror}: name another address") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(MOST_CONNECTIONS)
    except OSError as error:
        listener.close()
        where = f"{config.host}, port {config.port}"
        raise HttpError(f"cannot listen at {where}: {error.strerror}: choose another --http") from None
    return listener


def _settings(telemetry: Telemetry, config: HttpConfig) -> uvicorn.Config:
    settings = uvicorn.Config(
        make_app(telemetry, config),
        ssl_certfile=config.certificate,
        ssl_keyfile=config.key,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=LAST_REQUESTS,
    )
    settings.load()  # here and now: a certificate that is wrong should be known before the stream begins
    return settings
