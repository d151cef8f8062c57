"""All that was measured, the model fitted to a part of it, and what is required."""

import os
from collections.abc import Mapping
from statistics import mean, median
from typing import NamedTuple

from bench.required import Verdict
from bench.scale_measure import Run, Sizes, medians
from bench.scale_model import Costs, Line, copied_rate, fit, shared_rate
from bench.scale_publishing import Beside, Version
from bench.scale_world import LARGE, SMALL, Work

__all__ = [
    "CORES",
    "INTERVAL",
    "Results",
    "costs_of",
    "fleets",
    "publishing_memory",
    "rates",
    "ratio",
    "verdicts",
]

CORES = float(os.cpu_count() or 1)
INTERVAL = 60.0  # seconds between snapshots, the default
LEAST_RATIO, MOST_SHARE, LEAST_SIZE = 1.7, 0.02, 100.0


class Results(NamedTuple):
    """Everything that was measured, by kind of taxonomy and number of processes."""

    broker: str
    sizes: Sizes
    nodes: Mapping[str, int]
    works: Mapping[str, Work]
    models: Mapping[str, int]  # bytes
    predicted: Mapping[tuple[str, int], list[Run]]
    alone: Mapping[int, list[Run]]  # without a broker
    trained: Mapping[int, list[Run]]  # by number of shards, the large kind
    eligible: Mapping[int, list[float]]  # nodes for a document, of each shard
    versions: Mapping[str, list[Version]]
    beside: Beside


def ratio(more: list[Run], one: list[Run]) -> float:
    """Return the median of the ratios of the rounds."""
    return median(a.rate / b.rate for a, b in zip(more, one, strict=True))


def costs_of(found: Results) -> Costs:
    """Fit the model to one process on the small and the large kind, and to one and two shards."""
    ones = {kind: found.predicted[kind, 1] for kind in (SMALL, LARGE)}
    terms, small = found.works[LARGE].terms, found.works[SMALL]
    shards = [
        (nodes * terms, median(run.paces[number].cpu for run in found.trained[k]))
        for k in (1, 2)
        for number, nodes in enumerate(found.eligible[k])
    ]
    versions = {kind: median(each.seconds for each in found.versions[kind]) for kind in ones}
    return Costs(
        fit([(found.works[kind].products, medians(runs, "cpu")) for kind, runs in ones.items()]),
        fit(shards),
        medians(ones[SMALL], "broker"),
        terms,
        small.document_bytes,
        small.answer_bytes,
        fit([(found.models[kind], peak_of(runs)) for kind, runs in ones.items()]),
        fit([(found.models[LARGE] / k, peak_of(found.trained[k])) for k in (1, 2)]),
        fit([(found.models[kind], seconds) for kind, seconds in versions.items()]),
    )


def peak_of(runs: list[Run]) -> float:
    """Return the most memory that one of the processes ever had, in bytes."""
    return median(max(run.peak) for run in runs)


def publishing_memory(found: Results, costs: Costs) -> Line:
    """Return the memory of a trainer that publishes, too: from one point, since there is only one."""
    fixed = costs.trainer_memory.fixed
    return Line(fixed, (found.beside.peak - fixed) / found.models[LARGE])


def rates(found: Results, costs: Costs) -> dict[tuple[str, int], float]:
    """Return the documents a second of predictors that one alone lets expect."""
    one = found.predicted[SMALL, 1]
    waits = 1 / medians(one, "rate") - medians(one, "cpu")  # for the broker, whatever the taxonomy
    expected = {}
    for kind, n in found.predicted:
        cpu = costs.predictor(found.works[kind].products)
        expected[kind, n] = shared_rate(n, 1 / (cpu + waits), cpu, costs.broker, CORES)
    return expected


def fleets(found: Results, costs: Costs) -> dict[int, float]:
    """Return the documents a second of the trainers of all shards that one alone lets expect."""
    one = found.trained[1]
    expected = {}
    for k in found.trained:
        cpus = [costs.trainer(nodes * costs.terms) for nodes in found.eligible[k]]
        expected[k] = copied_rate(cpus, medians(one, "broker"), CORES, medians(one, "cores"))
    return expected


def verdicts(found: Results) -> list[Verdict]:
    """Judge what is required."""
    beside = found.beside
    least = min(version.size for version in beside.versions) / 1e6
    two = ratio(found.predicted[SMALL, 2], found.predicted[SMALL, 1])
    threads = mean(version.cpu for version in beside.versions)
    lost = "share of a trainer's minute that publishing it takes from the stream"
    return [
        Verdict("rate of two predictors ÷ rate of one", two, LEAST_RATIO),
        Verdict("MB of the model that is published", least, LEAST_SIZE),
        Verdict(lost, beside.lost / INTERVAL, MOST_SHARE, at_least=False),
        Verdict("share of a minute that its threads use", threads / INTERVAL, MOST_SHARE, at_least=False),
    ]
