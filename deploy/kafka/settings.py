"""The settings of a broker on loopback, made for tests: few partitions, no delays, nothing by accident."""

import os
import random
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Node", "Pem", "Security", "free_port", "is_free", "properties", "write_properties"]

MODULES = "org.apache.kafka.common.security"
TOKEN = "unsecuredLoginStringClaim_sub=broker"  # unsigned, which tests may be
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
Pem = tuple[str | Path, str | Path, str | Path]
_taken: set[int] = set()


@dataclass(frozen=True)
class Node:
    """A broker's number and ports: for clients, for controllers, for clients that prove who they are."""

    id: int
    port: int
    controller: int
    secure: int


@dataclass(frozen=True)
class Security:
    """Who may do what at the second listener, which exists when there is something to check.

    Files of PEM in `tls`: the certificate (with the chain), its key (PKCS#8, without a password) and the
    certificates trusted for clients.
    """

    tls: Pem | None = None
    scram: Mapping[str, str] = field(default_factory=dict)
    plain: Mapping[str, str] = field(default_factory=dict)
    oauth: bool = False
    authorizer: bool = False

    @property
    def mechanisms(self) -> list[str]:
        """What SASL offers."""
        offered = ["SCRAM-SHA-256", "SCRAM-SHA-512"] if self.scram else []
        return offered + ["PLAIN"] * bool(self.plain) + ["OAUTHBEARER"] * self.oauth

    @property
    def protocol(self) -> str | None:
        """The protocol of the second listener, or None if there is none."""
        if not self.mechanisms:
            return "SSL" if self.tls else None
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"


def properties(
    node: Node, quorum: Sequence[Node], data: Path, security: Security, extra: Mapping[str, object]
) -> dict[str, object]:
    """Return the settings of one node; `extra` has the last word."""
    replicas, in_sync = (3, 2) if len(quorum) >= 3 else (1, 1)
    protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
    clients = [f"PLAINTEXT://127.0.0.1:{node.port}"]
    if security.protocol:
        protocols["SECURE"] = security.protocol
        clients.append(f"SECURE://127.0.0.1:{node.secure}")
    return {
        "process.roles": "broker,controller",
        "node.id": node.id,
        "controller.quorum.voters": ",".join(f"{one.id}@127.0.0.1:{one.controller}" for one in quorum),
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join([*clients, f"CONTROLLER://127.0.0.1:{node.controller}"]),
        "advertised.listeners": ",".join(clients),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in protocols.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": data / "log",
        "auto.create.topics.enable": "false",
        "unclean.leader.election.enable": "false",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.num.partitions": 4,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": 4,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        "log.cleaner.dedupe.buffer.size": 16 << 20,  # of a small heap
        # A killed broker may come back when its session is over: by default after 9 s.
        "broker.session.timeout.ms": 2000 if replicas == 1 else 4000,
        "broker.heartbeat.interval.ms": 250,
        **_secured(security, data),
        **extra,
    }


def _secured(security: Security, data: Path) -> dict[str, object]:
    made: dict[str, object] = {}
    if security.tls:
        made |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": data / "server.pem",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": security.tls[2],
        }
    if security.mechanisms:
        made["listener.name.secure.sasl.enabled.mechanisms"] = ",".join(security.mechanisms)
        users = " ".join(f'user_{name}="{_escaped(word)}"' for name, word in security.plain.items())
        for mechanism in security.mechanisms:
            module = {
                "PLAIN": f"plain.PlainLoginModule required {users}",
                "OAUTHBEARER": f"oauthbearer.OAuthBearerLoginModule required {TOKEN}",
            }.get(mechanism, "scram.ScramLoginModule required")
            made[f"listener.name.secure.{mechanism.lower()}.sasl.jaas.config"] = f"{MODULES}.{module};"
    if security.authorizer:
        made["authorizer.class.name"] = AUTHORIZER
        made["super.users"] = "User:ANONYMOUS"  # whoever comes through the first listener
        made["allow.everyone.if.no.acl.found"] = "true"
    return made


def write_properties(path: Path, made: Mapping[str, object], security: Security) -> None:
    """Write the file of settings, and the key beside it, for nobody else to read."""
    files = {path: "".join(f"{name}={_escaped(str(value), quote='')}\n" for name, value in made.items())}
    if security.tls:
        certificate, key, _ = (Path(file).read_text() for file in security.tls)
        files[path.with_name("server.pem")] = f"{key.rstrip()}\n{certificate}"
    for file, text in files.items():
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
            opened.write(text)


def _escaped(text: str, quote: str = '"') -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace(quote, f"\\{quote}") if quote else text


def free_port() -> int:
    """Return a free port of loopback that no client is given for its end of a connection.

    A client that tries again and again to reach a dead broker could otherwise get that very port itself.
    """
    try:
        top = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        top = 0
    top = top if top > 16000 else 32768
    candidates = [port for port in range(top - 12000, top) if port not in _taken]
    for port in random.SystemRandom().sample(candidates, 50):
        if is_free(port):
            _taken.add(port)
            return port
    raise OSError("no port of loopback is free")


def is_free(port: int) -> bool:
    """Return whether nobody listens at this port of loopback."""
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
