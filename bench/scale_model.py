"""What a fleet costs: rates from batches, lines through measurements, and what larger fleets need."""

from collections.abc import Sequence
from math import ceil, log
from typing import NamedTuple

__all__ = ["Aim", "Batch", "Costs", "Line", "Need", "Pace", "copied_rate", "error", "evaluated_nodes", "fit"]
__all__ += ["needed", "pace", "shared_rate"]


class Batch(NamedTuple):
    """One that is done: when, documents, processor seconds of the process by then, seconds in the model."""

    at: float
    n: int
    cpu: float
    seconds: float


class Pace(NamedTuple):
    """Documents a second of one process, and its processor seconds for a document."""

    rate: float
    cpu: float


def pace(batches: Sequence[Batch], begin: float, end: float) -> Pace:
    """Return the pace between the first and the last batch that ended in a window.

    A window cuts batches in two; from end to end of batches nothing is cut.
    """
    inside = [batch for batch in batches if begin <= batch.at <= end]
    if len(inside) < 2:
        raise ValueError(f"{len(inside)} batches ended in {end - begin:.1f} s: take more time")
    n = sum(batch.n for batch in inside[1:])
    first, last = inside[0], inside[-1]
    return Pace(n / (last.at - first.at), (last.cpu - first.cpu) / n)


class Line(NamedTuple):
    """fixed + slope · x."""

    fixed: float
    slope: float

    def __call__(self, x: float) -> float:
        """Return its height at x."""
        return self.fixed + self.slope * x


def fit(points: Sequence[tuple[float, float]]) -> Line:
    """Return the line through points (x, y) with the least squared relative errors.

    >>> fit([(0.0, 1.0), (2.0, 5.0)])
    Line(fixed=1.0, slope=2.0)
    """
    w = [1.0 / (y * y) for _, y in points]
    total = sum(w)
    mean_x = sum(k * x for k, (x, _) in zip(w, points, strict=True)) / total
    mean_y = sum(k * y for k, (_, y) in zip(w, points, strict=True)) / total
    spread = sum(k * (x - mean_x) ** 2 for k, (x, _) in zip(w, points, strict=True))
    if not spread:
        raise ValueError("all points have the same x: measure something larger")
    slope = sum(k * (x - mean_x) * (y - mean_y) for k, (x, y) in zip(w, points, strict=True)) / spread
    return Line(round(mean_y - slope * mean_x, 15), round(slope, 15))


def shared_rate(n: int, alone: float, cpu: float, broker: float, cores: float) -> float:
    """Return the documents a second of n processes that share a stream, and the machine with their broker.

    Each is as fast as one alone, until the cores are used up.

    >>> shared_rate(1, 10_000.0, 80e-6, 20e-6, 2.0), shared_rate(4, 10_000.0, 80e-6, 20e-6, 2.0)
    (10000.0, 20000.0)
    """
    return min(n * alone, cores / (cpu + broker))


def copied_rate(cpus: Sequence[float], broker: float, cores: float, threads: float = 1.0) -> float:
    """Return the documents a second of processes that read the same stream, all of it, each.

    A process that uses `threads` cores by itself is as fast as they allow; together they have those of the
    machine, less what the broker needs for each copy of the stream.
    """
    return min(threads / max(cpus), cores / (sum(cpus) + broker * len(cpus)))


class Costs(NamedTuple):
    """All that is known about a fleet: seconds for a document, bytes."""

    predictor: Line  # processor seconds, by weights looked at
    trainer: Line
    broker: float  # processor seconds of the broker for a document that is predicted, one replica
    terms: float
    document_bytes: float
    answer_bytes: float
    predictor_memory: Line  # bytes, by bytes of the model
    trainer_memory: Line
    publishing: Line  # seconds, by bytes of the model


class Aim(NamedTuple):
    """What somebody wants."""

    rate: float
    nodes: int
    features: int
    labelled: float  # documents a second that are learned


class Need(NamedTuple):
    """What that takes."""

    evaluated: float
    predictors: int
    partitions: int
    broker_cores: float
    network: float  # bytes a second into and out of all brokers
    model: float  # bytes
    predictor_memory: float
    shards: int | None  # None: no number of them would do
    trainer_memory: float
    publishing: float  # seconds for a version of one shard


PATHS, FAN_OUT = 1.5, 50  # of a document, and of a node, in taxonomies that were not measured
USED = 0.7  # of a core: the rest is for peaks, and for those who take over
REPLICAS, BYTES = 3, 8  # of a partition; of a weight with its variance
MOST_MEMORY = 16 * 2**30  # bytes of a process


def evaluated_nodes(nodes: int) -> float:
    """Return how many nodes are looked at for a document in a taxonomy with the fan-out that is assumed.

    >>> round(evaluated_nodes(2_500))
    150
    """
    return PATHS * FAN_OUT * max(1.0, log(nodes) / log(FAN_OUT))


def needed(costs: Costs, aim: Aim) -> Need:
    """Return what a fleet for this aim has to have."""
    evaluated = evaluated_nodes(aim.nodes)
    products = evaluated * costs.terms
    predictors = ceil(aim.rate * costs.predictor(products) / USED)
    model = float(BYTES * aim.nodes * aim.features)
    shards = _shards(costs, aim, products, model)
    traffic = aim.rate * (costs.document_bytes + costs.answer_bytes)
    # Written once and copied to the other replicas, in and out; documents are read by predictors and, those
    # with labels, by every shard.
    read = aim.rate * costs.document_bytes + (shards or 0) * aim.labelled * costs.document_bytes
    network = traffic * (1 + 2 * (REPLICAS - 1)) + read
    return Need(
        evaluated,
        predictors,
        2 * predictors,
        aim.rate * costs.broker * REPLICAS,
        network,
        model,
        costs.predictor_memory(model),
        shards,
        costs.trainer_memory(model / (shards or 1)),
        costs.publishing(model / (shards or 1)),
    )


def _shards(costs: Costs, aim: Aim, products: float, model: float) -> int | None:
    """Return the least number whose trainers are fast and small enough; None if there is none."""
    allowed = USED / aim.labelled  # seconds for a document
    spare = allowed - costs.trainer.fixed
    if spare <= 0 or costs.trainer_memory.fixed >= MOST_MEMORY:
        return None
    for_time = ceil(costs.trainer.slope * products / spare)
    for_memory = ceil(costs.trainer_memory.slope * model / (MOST_MEMORY - costs.trainer_memory.fixed))
    return max(1, for_time, for_memory)


def error(modelled: float, measured: float) -> float:
    """Return how far off a model is, as a share of what was measured."""
    return modelled / measured - 1.0


def breaks(need: Need, interval: float = 60.0) -> list[str]:
    """Return what does not hold any more, the worst first."""
    found = []
    if need.predictor_memory > MOST_MEMORY:
        found.append(f"a predictor holds the whole model: {need.predictor_memory / 2**30:,.0f} GiB")
    if need.shards is None:
        found.append("trainers: each shard parses every labelled document")
    if need.publishing > interval:
        found.append(
            f"a version takes {need.publishing:,.0f} s to publish, snapshots come every {interval:.0f} s"
        )
    return found
