"""Connections to a broker, which mend what those of kafka-python leave open.

An answer before the end of a connection is read: who refuses a password says so and hangs up at once, and
the client would see a broken line only. The handshake of TLS has a time limit: a broker that hangs would
hold up the client for ever. A connection that fails is closed: brokers that are away for hours would use up
all files that a process may open.
"""

import ssl
from collections.abc import Mapping
from typing import Any

from kafka.errors import KafkaConnectionError, KafkaError
from kafka.net.inet import KafkaNetSocket
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

__all__ = ["connect"]


async def connect(
    net: NetworkSelector, host: str, port: int, config: Mapping[str, Any], until: float | None
) -> "_Plain | _Tls":
    """Return a connection with all handshakes made, or raise `KafkaConnectionError`.

    Parameters
    ----------
    net, config
        Of the client.
    host, port
        Of the broker.
    until
        When to give up, by the monotonic clock.
    """
    failure: Exception = KafkaConnectionError("there is no such name")
    sockets = _Sockets()
    for address in sockets.dns_lookup(host, port):
        try:
            sock = await sockets.connect(net, address, config["socket_options"], until)
        except (KafkaError, OSError) as error:
            failure = error
            continue
        if not config["security_protocol"].endswith("SSL"):
            return _Plain(net, sock, host=host)
        return await _shaken(net, sock, host, config, until)
    raise KafkaConnectionError(*failure.args[-1:]) from failure


async def _shaken(
    net: NetworkSelector, sock: Any, host: str, config: Mapping[str, Any], until: float | None
) -> "_Tls":
    files = {key: value for key, value in config.items() if key.startswith("ssl_")}
    try:
        made = _Tls(net, sock, host=host, **files)
    except OSError as error:  # also those of ssl
        sock.close()
        raise KafkaConnectionError(f"TLS cannot begin: {error}") from error
    try:
        await made.shake_hands(until)
    except Exception as error:
        made.abort(error)
        raise KafkaConnectionError(f"the handshake failed: {error}") from error
    return made


class _Sockets(KafkaNetSocket):  # type: ignore[misc]
    SCHEMES = ()  # of proxies

    async def sock_connect(self, net: NetworkSelector, sock: Any, *args: Any, **options: Any) -> Any:
        try:
            return await super().sock_connect(net, sock, *args, **options)
        except BaseException:
            sock.close()
            raise


class _Plain(KafkaTCPTransport):  # type: ignore[misc]
    def _sock_recv(self) -> tuple[bytes, Any]:
        data, error = super()._sock_recv()
        return data, None if data else error  # without data, the end comes again


class _Tls(KafkaSSLTransport):  # type: ignore[misc]
    def _sock_recv(self) -> tuple[bytes, Any]:
        data, error = super()._sock_recv()
        return data, None if data else error

    async def shake_hands(self, until: float | None) -> None:
        """Agree on how to talk, until then at most."""
        while True:
            try:
                self._sock.do_handshake()
                return
            except ssl.SSLWantReadError:
                await self._net.wait_read(self._sock, until)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(self._sock, until)
