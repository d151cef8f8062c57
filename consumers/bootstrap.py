"""Clients that say why they cannot begin.

By itself, kafka-python tries until its time is up and then names the addresses only; why it failed is in its
log at best. Here a wrong password ends it at once, and an error has its cause.
"""

import ssl
from typing import Any

from kafka.errors import (
    IllegalSaslStateError,
    InvalidReceiveError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from consumers.errors import causes_of
from consumers.transports import connect

__all__ = ["Client", "Connections"]

# What no waiting mends; a connection that ends before its time may be that of a broker that is restarted.
FINAL = (
    IllegalSaslStateError,
    InvalidReceiveError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    ssl.SSLError,
)
PASSING = (ssl.SSLEOFError, ssl.SSLZeroReturnError)


class Connections(KafkaConnectionManager):  # type: ignore[misc]
    """Connections that note on every error whose it is; those to begin with remember their errors.

    It gives up beginning when all addresses have failed, one of them for a reason that no waiting mends. A
    client that has begun never gives up.
    """

    def __init__(self, net: NetworkSelector, **configs: Any) -> None:
        super().__init__(net, **configs)
        self._failures: dict[Any, Exception] = {}  # by address to begin with
        self._has_begun = False

    def get_connection(self, node_id: Any, *args: Any, **options: Any) -> Any:
        """Return a connection to a broker, which may still be in the making."""
        if node_id in self._conns:  # the way of nearly every request
            return super().get_connection(node_id, *args, **options)
        if not self._has_begun:
            self._give_up_if_hopeless()
        made = super().get_connection(node_id, *args, **options)
        broker = self.cluster.broker_metadata(node_id)

        def failed(error: Exception) -> None:
            if not hasattr(error, "__notes__"):
                error.add_note(f"{broker.host}:{broker.port}")
            if self.cluster.is_bootstrap(node_id):
                self._failures[node_id] = error

        made.close_future.add_errback(failed)
        return made

    def bootstrap(self, timeout_ms: float | None = None, refresh: bool = True) -> None:
        """Find the brokers; the first time, an error has its cause and leaves nothing open."""
        if self._has_begun:
            super().bootstrap(timeout_ms, refresh)
            return
        try:
            super().bootstrap(timeout_ms, refresh)
            self._has_begun = True
        except KafkaTimeoutError as error:
            raise error from max(self._failures.values(), key=_is_final, default=None)
        finally:
            self._failures.clear()
            if not self._has_begun:  # the constructor of a client fails now: nobody could close it
                self.close()
                self._net.close()

    def _give_up_if_hopeless(self) -> None:
        if len(self._failures) == len(self.cluster.bootstrap_brokers()):
            for error in filter(_is_final, self._failures.values()):
                raise error if isinstance(error, KafkaError) else KafkaConnectionError(error)

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        return await connect(self._net, node.host, node.port, self.config, timeout_at)


def _is_final(error: Exception) -> bool:
    return any(isinstance(cause, FINAL) and not isinstance(cause, PASSING) for cause in causes_of(error))


class Client(KafkaNetClient):  # type: ignore[misc]
    """What consumers, producers and administrators take as their `kafka_client`."""

    def __init__(self, **configs: Any) -> None:
        net = NetworkSelector(**configs)
        super().__init__(net=net, manager=Connections(net, **configs), **configs)
