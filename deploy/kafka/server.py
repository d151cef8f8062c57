"""One broker on loopback: Apache Kafka in KRaft mode, its own controller, or the stand-in."""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from deploy.kafka.fetch import Engine, UnavailableError, find, format_arguments, new_cluster_id
from deploy.kafka.process import BrokerError, Process, why
from deploy.kafka.settings import Node, Pem, Security, free_port, is_free, properties, write_properties

__all__ = ["Broker"]


class Broker:
    """One broker, which is its own controller; up inside a `with`, or between `start` and `close`.

    Parameters
    ----------
    data
        Folder for what it stores; without one, a temporary folder that `close` removes.
    port
        Port for clients on 127.0.0.1; 0 takes a free one. It stays the same over restarts.
    settings
        Further settings of Apache Kafka, which have the last word.
    tls, scram, plain, oauth
        What opens a second listener, at `secure`: files of PEM (certificate with its chain, key, trusted
        certificates), names with passwords for SCRAM and for PLAIN, unsigned tokens for OAUTHBEARER.
    authorizer
        Obey access lists. Whoever comes through the first listener may do anything.
    engine
        What to run: Apache Kafka, or the stand-in where it cannot be had.
    java_options
        Options for Java, after our own.
    wait
        Seconds until it has to answer.
    quorum, node_id
        The nodes of its cluster and which of them it is: `Cluster` sets them.
    """

    def __init__(
        self,
        data: str | Path | None = None,
        *,
        port: int = 0,
        settings: Mapping[str, object] | None = None,
        tls: Pem | None = None,
        scram: Mapping[str, str] | None = None,
        plain: Mapping[str, str] | None = None,
        oauth: bool = False,
        authorizer: bool = False,
        engine: Engine | None = None,
        java_options: Sequence[str] = (),
        wait: float = 60.0,
        quorum: Sequence[Node] = (),
        node_id: int = 1,
    ) -> None:
        self.engine = engine or find()
        self.security = Security(tls, dict(scram or {}), dict(plain or {}), oauth, authorizer)
        self.quorum = quorum or [Node(node_id, port or free_port(), free_port(), free_port())]
        self.node = next(node for node in self.quorum if node.id == node_id)
        asked_for = data or settings or quorum or self.security != Security()
        if asked_for and not self.engine.real:
            raise UnavailableError(f"needs Apache Kafka, and there is only {self.engine.kind}")
        self._temporary = data is None
        self.data = Path(tempfile.mkdtemp(prefix="stream-hc-kafka-") if data is None else data).resolve()
        self._settings, self._wait = dict(settings or {}), wait
        self._process = Process(self.engine.kind, self._command(java_options), self.data / "server.log")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.bootstrap}: {self.kind}>"

    @property
    def kind(self) -> str:
        """What runs, like "Apache Kafka 4.3.1"."""
        return self.engine.kind

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.node.port}"

    @property
    def secure(self) -> str:
        """Where clients connect that prove who they are."""
        return f"127.0.0.1:{self.node.secure}"

    @property
    def alive(self) -> bool:
        """Whether the process is there, paused or not."""
        return self._process.alive

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def log(self) -> Path:
        """The file with what it writes, over all its starts."""
        return self._process.log

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start it, and return when it answers."""
        self.prepare(new_cluster_id())
        self.launch()
        self.await_answer()

    def prepare(self, cluster: str) -> None:
        """Write its settings, and format its storage if that is new."""
        self.data.mkdir(parents=True, exist_ok=True)
        if not self.engine.real:
            return
        file = self.data / "server.properties"
        made = properties(self.node, self.quorum, self.data, self.security, self._settings)
        write_properties(file, made, self.security)
        if (self.data / "log" / "meta.properties").exists():
            return
        arguments = format_arguments(file, cluster)
        for name, word in self.security.scram.items():
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                arguments += ["--add-scram", f"{mechanism}=[name={name},password={word}]"]
        done = subprocess.run([*self.engine.command, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokerError(why(f"{self.kind} refuses its settings", done.stdout + done.stderr))

    def launch(self) -> None:
        """Start the process, and do not wait."""
        if not self.alive and not is_free(self.node.port):  # or another's answer would be taken for ours
            raise BrokerError(f"{self.kind} cannot start: port {self.node.port} is taken")
        self._process.start()

    def await_answer(self) -> None:
        """Return when it answers."""
        self._process.wait_until_it_answers(self.node.port, self._wait)

    def stop(self, seconds: float = 20.0) -> None:
        """Ask it to end and wait; killed if that takes too long."""
        self._process.end(seconds)

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        self._process.kill()

    def pause(self) -> None:
        """Let it hang: connections stay open, and nothing is answered."""
        self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._process.signal(signal.SIGCONT)

    def restart(self) -> None:
        """Stop it and start it again, with the same data at the same port."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End it, and remove the data if nobody asked to keep them."""
        if self._temporary:
            self.kill()
            shutil.rmtree(self.data, ignore_errors=True)
        else:
            self.stop()

    def _command(self, java_options: Sequence[str]) -> list[str]:
        first, *rest = self.engine.command
        if self.engine.real:
            place = rest.index("-cp")
            options = [*rest[:place], *java_options, *rest[place:]]
            return [first, *options, "kafka.Kafka", str(self.data / "server.properties")]
        url = f"tcp://{self.bootstrap}"
        return [first, "broker", "--listener-url", url, "--advertised-listener-url", url]
