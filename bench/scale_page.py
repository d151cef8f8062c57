"""The page about scale, and its picture: measured and modelled rates over the number of processes."""

from pathlib import Path
from statistics import mean, median

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from bench import scale_tables as tables
from bench.machine import machine
from bench.scale_measure import medians
from bench.scale_model import BYTES, FAN_OUT, PATHS, REPLICAS, USED, Costs
from bench.scale_results import (
    CORES,
    INTERVAL,
    Results,
    costs_of,
    fleets,
    publishing_memory,
    rates,
    ratio,
    verdicts,
)
from bench.scale_world import N_FEATURES, PARTITIONS, SMALL

__all__ = ["draw", "fill_in"]

MB, US, NS = 1e6, 1e6, 1e9
MEASURED, MODELLED, ROUNDS = "#1f6f8b", "#e07a3f", "#b0b7bd"


def fill_in(template: str, found: Results) -> str:
    """Return the page."""
    costs = costs_of(found)
    predictors, by_number = tables.predictors(found, costs)
    trainers, by_shards = tables.trainers(found, costs)
    seconds, cost_errors = tables.shard_costs(found, costs)
    versions, version_errors = tables.versions(found, costs)
    memory, memory_errors = tables.memory(found, costs)
    every = [run for runs in [*found.predicted.values(), *found.trained.values()] for run in runs]
    return template.format(
        machine=machine(),
        broker=found.broker,
        terms=round(costs.terms),
        document_bytes=round(costs.document_bytes),
        answer_bytes=round(costs.answer_bytes),
        features=N_FEATURES,
        rounds=found.sizes.rounds,
        others=median(run.others for run in every),
        partitions=PARTITIONS,
        cores=round(CORES),
        kinds=tables.kinds(found),
        predictors=predictors,
        reason=_reason(found),
        trainers=trainers,
        seconds=seconds,
        versions=versions,
        memory=memory,
        extrapolated=tables.extrapolated(costs._replace(trainer_memory=publishing_memory(found, costs))),
        tp_slope=publishing_memory(found, costs).slope,
        worst_rate=_worst(by_number + by_shards),
        worst_cost=_worst(cost_errors + version_errors),
        worst_memory=_worst(memory_errors),
        paths=PATHS,
        fan_out=FAN_OUT,
        used=USED,
        replicas=REPLICAS,
        bytes=BYTES,
        required="\n".join(f"- {verdict}" for verdict in verdicts(found)),
        **_fitted(costs),
        **_beside(found),
    )


def _worst(errors: list[float]) -> float:
    return max(map(abs, errors))


def _fitted(costs: Costs) -> dict[str, float]:
    return {
        "predictor_fixed": US * costs.predictor.fixed,
        "predictor_slope": NS * costs.predictor.slope,
        "trainer_fixed": US * costs.trainer.fixed,
        "trainer_slope": NS * costs.trainer.slope,
        "trainer_node": US * costs.trainer.slope * costs.terms,
        "trainer_most": USED / costs.trainer.fixed,
        "broker_us": US * costs.broker,
        "publish_fixed": costs.publishing.fixed,
        "publish_slope": NS * costs.publishing.slope,
        "pm_fixed": costs.predictor_memory.fixed / MB,
        "pm_slope": costs.predictor_memory.slope,
        "tm_fixed": costs.trainer_memory.fixed / MB,
        "tm_slope": costs.trainer_memory.slope,
    }


def _beside(found: Results) -> dict[str, float]:
    beside = found.beside
    cpu = mean(version.cpu for version in beside.versions)
    return {
        "beside_mb": beside.versions[0].size / MB,
        "held": beside.resident / MB,
        "peak": beside.peak / MB,
        "interval": beside.interval,
        "with_rate": mean(beside.with_),
        "without_rate": mean(beside.without),
        "intervals": min(len(beside.with_), len(beside.without)),
        "lost": beside.lost,
        "noise": beside.noise,
        "cpu": cpu,
        "lost_share": beside.lost / INTERVAL,
        "noise_share": beside.noise / INTERVAL,
        "cpu_share": cpu / INTERVAL,
    }


def _reason(found: Results) -> str:
    """Say what keeps two from being twice as fast as one."""
    one, two, alone = found.predicted[SMALL, 1], found.predicted[SMALL, 2], found.alone
    cpu, broker = medians(one, "cpu"), medians(one, "broker")
    allowed = min(2.0, CORES / (cpu + broker) / medians(one, "rate"))
    return (
        f"Two are {ratio(two, one):.2f} × as fast as one. A document takes {US * cpu:.1f} µs of a predictor "
        f"and {US * broker:.1f} µs of the broker; {CORES:.0f} cores for both allow {allowed:.2f} × the rate "
        f"of one at most, and others used {medians(two, 'others'):.2f} of them meanwhile. Without a broker, "
        f"the code between reading and writing: one process {medians(alone[1], 'rate'):,.0f} documents/s, "
        f"two {medians(alone[2], 'rate'):,.0f}, {ratio(alone[2], alone[1]):.2f} × as many: brokers on "
        "machines of their own would leave at most that."
    )


def draw(found: Results, path: Path) -> None:
    """Draw predictors on the left, trainers on the right; every round is a dot."""
    costs = costs_of(found)
    expected, expected_fleets = rates(found, costs), fleets(found, costs)
    numbers = sorted(n for kind, n in found.predicted if kind == SMALL)
    shared = {n: [run.rate for run in found.predicted[SMALL, n]] for n in numbers}
    copied = {k: [run.slowest for run in found.trained[k]] for k in sorted(found.trained)}
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), facecolor="white")
    _curve(left, "predictors share the stream", shared, {n: expected[SMALL, n] for n in numbers})
    _curve(right, "trainers of shards each read all of it", copied, expected_fleets)
    left.set_ylabel("documents a second")
    left.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _curve(axes: plt.Axes, title: str, measured: dict[int, list[float]], modelled: dict[int, float]) -> None:
    xs = list(measured)
    axes.plot(xs, [modelled[x] for x in xs], "--", color=MODELLED, label="modelled from one process")
    axes.plot(xs, [median(measured[x]) for x in xs], "o-", color=MEASURED, label="measured")
    for x in xs:
        axes.plot([x] * len(measured[x]), measured[x], ".", color=ROUNDS, zorder=0)
    axes.set(title=title, xlabel="processes", xticks=xs, ylim=(0, None))
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)
