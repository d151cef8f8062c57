"""One run each: some predictors, some predictors without a broker, the trainers of some shards."""

import tempfile
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from bench import scale_processes as processes
from bench.scale_model import Pace, pace
from bench.scale_world import PARTITIONS, World, job, write_taxonomy
from deploy.kafka.broker import Broker
from stream_hc.sharding import Plan
from stream_hc.sharding.groups import node_costs

__all__ = [
    "Run",
    "Sizes",
    "documents_topic",
    "medians",
    "plan_of",
    "predictors",
    "trainers",
    "without_broker",
]


class Sizes(NamedTuple):
    """How much is measured."""

    rounds: int = 2
    seconds: float = 4.0  # of a run, when all are at work
    predicted: int = 320_000  # documents in a topic that predictors read
    learned: int = 120_000  # and trainers
    long: int = 320_000  # of several texts each, while versions are published
    published: int = 6  # intervals after snapshots that are published, and as many after others
    interval: float = 4.0  # seconds between snapshots


class Run(NamedTuple):
    """What some processes did at the same time."""

    paces: list[Pace]
    broker: float  # processor seconds for a document that was done
    broker_cores: float
    others: float  # cores that were used by whoever else is on this machine
    resident: list[int]  # bytes of each
    peak: list[int]

    @property
    def rate(self) -> float:
        """Documents a second of all together: they share them."""
        return sum(each.rate for each in self.paces)

    @property
    def slowest(self) -> float:
        """Documents a second of the slowest: each has to read all."""
        return min(each.rate for each in self.paces)

    @property
    def cpu(self) -> float:
        """Processor seconds for a document, on average."""
        return sum(each.rate * each.cpu for each in self.paces) / self.rate

    @property
    def cores(self) -> float:
        """How many the processes used."""
        return sum(each.rate * each.cpu for each in self.paces)


def documents_topic(name: str) -> str:
    """Return the topic with the documents of a kind."""
    return f"documents-{name}"


def predictors(broker: Broker, name: str, n: int, sizes: Sizes) -> Run:
    """Let so many predictors share the partitions of a topic, from its beginning."""
    config = job(broker.bootstrap, "", models=f"models-{name}", documents=documents_topic(name))

    def is_shared(held: list[int]) -> bool:
        return sum(held) == PARTITIONS and max(held) - min(held) <= 1

    with processes.crew(processes.predict, [(config,)] * n) as (signals, members):
        processes.await_all(members, is_shared)
        signals.go.set()
        return _run(members, broker, sizes.seconds, shared=True)


def without_broker(broker: Broker, world: World, n: int, sizes: Sizes) -> Run:
    """Let so many processes do what a predictor does between reading and writing."""
    with processes.crew(processes.answer, [(world.data, world.lines, 5_000)] * n) as (signals, members):
        processes.await_all(members, lambda held: min(held) == 1)
        signals.go.set()
        return _run(members, broker, sizes.seconds / 2, shared=True)


def trainers(broker: Broker, world: World, topic: str, n_shards: int, sizes: Sizes) -> Run:
    """Let the trainers of all shards learn a topic, from its beginning."""
    traffic = _traffic(world)
    with tempfile.TemporaryDirectory(prefix="stream-hc-bench-") as folder:
        config = job(broker.bootstrap, f"{folder}/state", documents=topic)
        tree = write_taxonomy(world, folder)
        each = [(config, tree, (number, n_shards), traffic) for number in range(n_shards)]
        with processes.crew(processes.train, each) as (signals, members):
            processes.await_all(members, lambda held: min(held) == 1)
            signals.go.set()
            return _run(members, broker, sizes.seconds, shared=False)


def _run(members: list[Any], broker: Broker, seconds: float, shared: bool) -> Run:
    before, after = processes.watch(members, broker.pid, seconds)
    span = after.at - before.at
    paces = [pace(member.batches, before.at, after.at) for member in members]
    memory = [processes.resident(member.process.pid) for member in members]
    rate = sum(each.rate for each in paces) if shared else min(each.rate for each in paces)
    broker_cores = (after.broker - before.broker) / span
    used = sum(each.rate * each.cpu for each in paces) + broker_cores
    return Run(
        paces,
        broker_cores / rate,
        broker_cores,
        max(0.0, (after.busy - before.busy) / span - used),
        [each[0] for each in memory],
        [each[1] for each in memory],
    )


def _traffic(world: World) -> tuple[Any, int]:
    """Return how many documents each node has, and how many there are: `--traffic` counts the same."""
    taxonomy, labels = world.stream.taxonomy, world.stream.labels
    return np.asarray(taxonomy.encode(labels).sum(axis=0)).astype(np.int64), len(labels)


def plan_of(world: World, n_shards: int) -> list[float]:
    """Return how many nodes are eligible for a document, on average, in each shard."""
    traffic, n = _traffic(world)
    taxonomy = world.stream.taxonomy
    costs = node_costs(taxonomy, traffic, n)
    return [
        float(costs[shard.columns].sum()) / n for shard in Plan.cut(taxonomy, n_shards, traffic, n).shards
    ]


def medians(runs: list[Run], what: str) -> float:
    """Return the median of a number over the rounds."""
    return median(getattr(run, what) for run in runs)
