"""Tables of what was measured beside what the model says; each returns its lines and the errors it shows."""

from statistics import mean, median
from typing import Any

from bench.scale_measure import medians
from bench.scale_model import Aim, Costs, breaks, error, needed
from bench.scale_results import Results, fleets, peak_of, rates, ratio
from bench.scale_world import LARGE, MEDIUM, SMALL

__all__ = ["extrapolated", "kinds", "memory", "predictors", "shard_costs", "trainers", "versions"]

MB, US = 1e6, 1e6
# Documents a second, nodes, hash buckets as a power of two.
AIMS = [(10_000, 1_000, 18), (100_000, 1_000, 18), (1_000_000, 1_000, 18), (10_000, 10_000, 18)]
AIMS += [(10_000, 100_000, 18), (10_000, 100_000, 13), (1_000_000, 100_000, 13)]

Table = tuple[str, list[float]]


def _row(*cells: Any) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def kinds(found: Results) -> str:
    """Return the taxonomies."""
    return "\n".join(
        _row(
            kind,
            f"{found.nodes[kind]:,}",
            f"{work.evaluated:.0f}",
            f"{work.products:,.0f}",
            f"{found.models[kind] / MB:.0f}",
        )
        for kind, work in found.works.items()
    )


def predictors(found: Results, costs: Costs) -> Table:
    """Return the rates of predictors; one on the small taxonomy is what the model knows."""
    expected, lines, errors = rates(found, costs), [], []
    order = list(found.works)
    for (kind, n), runs in sorted(
        found.predicted.items(), key=lambda each: (order.index(each[0][0]), each[0][1])
    ):
        off = error(expected[kind, n], medians(runs, "rate"))
        lines.append(
            _row(
                n,
                kind,
                f"{medians(runs, 'rate'):,.0f}",
                f"{ratio(runs, found.predicted[kind, 1]):.2f}",
                f"{US * medians(runs, 'cpu'):.1f}",
                f"{US * medians(runs, 'broker'):.1f}",
                f"{medians(runs, 'cores') + medians(runs, 'broker_cores'):.2f}",
                f"{expected[kind, n]:,.0f}",
                f"{off:+.0%}",
            )
        )
        errors += [off] if (kind, n) != (SMALL, 1) else []
    return "\n".join(lines), errors


def trainers(found: Results, costs: Costs) -> Table:
    """Return the rates of the trainers of some shards; those of one are what the model knows."""
    expected, lines, errors = fleets(found, costs), [], []
    for k, runs in sorted(found.trained.items()):
        off = error(expected[k], medians(runs, "slowest"))
        lines.append(
            _row(
                k,
                f"{mean(found.eligible[k]):.0f}",
                f"{US * medians(runs, 'cpu'):.1f}",
                f"{medians(runs, 'slowest'):,.0f}",
                f"{expected[k]:,.0f}",
                f"{off:+.0%}",
            )
        )
        errors += [off] if k > 1 else []
    return "\n".join(lines), errors


def shard_costs(found: Results, costs: Costs) -> Table:
    """Return what a document costs a predictor of the medium kind, and a shard: what was not fitted, too."""
    works, lines, errors = found.works, [], []
    named = [
        *(
            (
                f"predictor, {kind}",
                medians(found.predicted[kind, 1], "cpu"),
                costs.predictor(works[kind].products),
            )
            for kind in works
        ),
        *(
            (f"trainer, {k} shards", medians(runs, "cpu"), _shard(found, costs, k))
            for k, runs in sorted(found.trained.items())
        ),
    ]
    for name, measured, modelled in named:
        fitted = name.endswith((SMALL, LARGE, " 1 shards", " 2 shards"))
        off = error(modelled, measured)
        lines.append(
            _row(_named(name, fitted), f"{US * measured:.1f}", f"{US * modelled:.1f}", f"{off:+.0%}")
        )
        errors += [] if fitted else [off]
    return "\n".join(lines), errors


def _shard(found: Results, costs: Costs, k: int) -> float:
    return mean(costs.trainer(nodes * costs.terms) for nodes in found.eligible[k])


def _named(name: str, fitted: bool) -> str:
    return f"{name} (fitted)" if fitted else name


def versions(found: Results, costs: Costs) -> Table:
    """Return what it takes to publish a version with nothing beside it."""
    lines, errors = [], []
    for kind, each in found.versions.items():
        seconds, modelled = median(one.seconds for one in each), costs.publishing(found.models[kind])
        off, fitted = error(modelled, seconds), kind != MEDIUM
        lines.append(
            _row(
                _named(f"{found.models[kind] / MB:.0f}", fitted),
                f"{seconds:.2f}",
                f"{median(one.extract for one in each):.2f}",
                f"{median(one.cpu for one in each):.2f}",
                f"{modelled:.2f}",
                f"{off:+.0%}",
            )
        )
        errors += [] if fitted else [off]
    return "\n".join(lines), errors


def memory(found: Results, costs: Costs) -> Table:
    """Return the memory of predictors and trainers."""
    models, lines, errors = found.models, [], []
    rows = [
        *(
            ("predictor", models[kind], costs.predictor_memory, found.predicted[kind, 1], kind != MEDIUM)
            for kind in models
        ),
        *(
            (f"trainer, {k} shards", models[LARGE] / k, costs.trainer_memory, runs, k <= 2)
            for k, runs in sorted(found.trained.items())
        ),
    ]
    for name, size, line, runs, fitted in rows:
        off, held = error(line(size), peak_of(runs)), median(max(run.resident) for run in runs)
        lines.append(
            _row(
                _named(name, fitted),
                f"{size / MB:.0f}",
                f"{held / MB:.0f}",
                f"{peak_of(runs) / MB:.0f}",
                f"{line(size) / MB:.0f}",
                f"{off:+.0%}",
            )
        )
        errors += [] if fitted else [off]
    return "\n".join(lines), errors


def extrapolated(costs: Costs) -> str:
    """Return what larger fleets would need."""
    lines = []
    for rate, nodes, bits in AIMS:
        need = needed(costs, Aim(rate, nodes, 2**bits, rate / 10))
        lines.append(
            _row(
                f"{rate:,}",
                f"{nodes:,}",
                f"2^{bits}",
                f"{need.predictors:,}",
                f"{need.partitions:,}",
                f"{need.broker_cores:,.1f}",
                f"{need.network / MB:,.0f}",
                f"{need.model / 1e9:,.1f}",
                f"{need.predictor_memory / 1e9:,.1f}",
                "none" if need.shards is None else f"{need.shards:,}",
                f"{need.publishing:,.0f}",
                "; ".join(breaks(need)) or "nothing",
            )
        )
    return "\n".join(lines)
