"""Several brokers that are one cluster, each of them in a process of its own."""

import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from deploy.kafka.fetch import new_cluster_id
from deploy.kafka.server import Broker
from deploy.kafka.settings import Node, free_port

__all__ = ["Cluster"]


class Cluster:
    """Three brokers, which are the controllers, too; what is acknowledged is on two of them at least.

    `cluster[2]` is the broker whose number is 2: stop, kill or pause it alone. Numbers begin at 1.

    Parameters
    ----------
    brokers
        How many; with fewer than three, nothing is replicated.
    data
        Folder for what they store; without one, a temporary folder that `close` removes.
    port
        Port of the first one for clients, the others follow; 0 takes free ones.
    options
        As for `Broker`, for all of them.
    """

    def __init__(
        self, brokers: int = 3, data: str | Path | None = None, *, port: int = 0, **options: Any
    ) -> None:
        self._temporary = data is None
        self.data = Path(tempfile.mkdtemp(prefix="stream-hc-kafka-") if data is None else data)
        quorum = [
            Node(number, port + number - 1 if port else free_port(), free_port(), free_port())
            for number in range(1, brokers + 1)
        ]
        try:
            self.nodes = {
                node.id: Broker(self.data / f"node-{node.id}", quorum=quorum, node_id=node.id, **options)
                for node in quorum
            }
        except BaseException:
            self._clear()
            raise

    def __repr__(self) -> str:
        return f"<Cluster {self.bootstrap}: {self.kind}>"

    def __getitem__(self, number: int) -> Broker:
        return self.nodes[number]

    def __iter__(self) -> Iterator[Broker]:
        return iter(self.nodes.values())

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def kind(self) -> str:
        """What runs, like "Apache Kafka 4.3.1"."""
        return self[1].kind

    @property
    def bootstrap(self) -> str:
        """Where clients connect: all of them."""
        return ",".join(node.bootstrap for node in self)

    @property
    def secure(self) -> str:
        """Where clients connect that prove who they are."""
        return ",".join(node.secure for node in self)

    @property
    def alive(self) -> bool:
        """Whether all of them are there."""
        return all(node.alive for node in self)

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
        """Start those that do not run, and return when all of them answer."""
        down = [node for node in self if not node.alive]
        cluster = new_cluster_id()
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: node.prepare(cluster), down))
        for node in down:
            node.launch()
        for node in self:
            node.await_answer()

    def stop(self, seconds: float = 20.0) -> None:
        """Ask all of them to end and wait; those that find no controller left are killed after a while."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: node.stop(seconds), self))

    def kill(self) -> None:
        """End all of them at once."""
        for node in self:
            node.kill()

    def restart(self) -> None:
        """Stop all of them and start them again, with the same data at the same ports."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End all of them, and remove the data if nobody asked to keep them."""
        if self._temporary:
            self.kill()
        else:
            self.stop()
        self._clear()

    def _clear(self) -> None:
        if self._temporary:
            shutil.rmtree(self.data, ignore_errors=True)
