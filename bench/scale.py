"""How far it goes: predictors, trainers of shards, versions of models, and what they cost.

`make bench-scale` writes `docs/scale-speed.md`; `python -m bench.scale --quick` tries it, and writes nothing.
"""

import sys
from collections import defaultdict
from pathlib import Path

from rich.console import Console

from bench.machine import machine
from bench.rounds import progress
from bench.scale_measure import Run, Sizes, documents_topic, plan_of, predictors, trainers, without_broker
from bench.scale_page import draw, fill_in
from bench.scale_publishing import beside_the_stream, one_version
from bench.scale_results import Results, verdicts
from bench.scale_world import KINDS, LARGE, MEDIUM, PARTITIONS, SMALL, fill, prepare, publish, topics
from deploy.kafka.broker import Broker

__all__ = ["main"]

COUNTS = (1, 2, 3, 4)
PREDICTED = [*((SMALL, n) for n in COUNTS), (MEDIUM, 1), (LARGE, 1)]
QUICK = Sizes(
    rounds=1, seconds=2.0, predicted=200_000, learned=80_000, long=140_000, published=2, interval=3.0
)
TRAINING, LONG = "training", "training-long"
TEXTS = 4  # in a document of the long stream: it lasts while versions are published
PAGE = Path(__file__).with_name("scale.md")
DOCS = Path(__file__).resolve().parent.parent / "docs"
# All join at once, and not one after the other: it takes less time to begin.
BROKER = {"group.initial.rebalance.delay.ms": 4_000}


def main() -> None:
    """Measure, print, write; exit with 1 where a requirement is missed."""
    quick = "--quick" in sys.argv[1:]
    found = _measure(QUICK if quick else Sizes())
    page = fill_in(PAGE.read_text(encoding="utf-8"), found)
    if not quick:
        (DOCS / "scale-speed.md").write_text(page, encoding="utf-8")
        draw(found, DOCS / "scale-curves.svg")
    Console(width=200).print(page, markup=False, highlight=False)
    sys.exit(0 if all(verdict.met for verdict in verdicts(found)) else 1)


def _measure(sizes: Sizes) -> Results:
    worlds = {kind: prepare(kind) for kind in KINDS}
    large = worlds[LARGE]
    predicted: dict[tuple[str, int], list[Run]] = defaultdict(list)
    alone: dict[int, list[Run]] = defaultdict(list)
    trained: dict[int, list[Run]] = defaultdict(list)
    with Broker(settings=BROKER) as broker, progress() as bar:
        steps = sizes.rounds * (len(PREDICTED) + 2) + max(1, sizes.rounds - 1) * len(COUNTS) + 3
        task = bar.add_task(machine(), total=steps)

        def step(what: str) -> None:
            bar.update(task, description=what, advance=1)
            bar.refresh()

        step("topics")
        one = {"predictions": PARTITIONS, "dead-letters": 1, "model-events": 1, TRAINING: 1, LONG: 1}
        one |= {f"models-{name}": 1 for name in (*KINDS, "alone", "beside")}
        topics(broker.bootstrap, one | {documents_topic(kind): PARTITIONS for kind in KINDS})
        for kind, world in worlds.items():
            n = sizes.predicted if kind == SMALL else sizes.predicted // 2
            fill(broker.bootstrap, documents_topic(kind), PARTITIONS, world.documents(n, labels=False))
            publish(broker.bootstrap, f"models-{kind}", world.data)
        fill(broker.bootstrap, TRAINING, 1, large.documents(sizes.learned, labels=True))
        fill(broker.bootstrap, LONG, 1, large.documents(sizes.long, labels=True, texts=TEXTS))
        for _ in range(sizes.rounds):
            for kind, n in PREDICTED:
                step(f"{n} predictors, {kind} taxonomy")
                predicted[kind, n].append(predictors(broker, kind, n, sizes))
            for n in (1, 2):
                step(f"{n} without a broker")
                alone[n].append(without_broker(broker, worlds[SMALL], n, sizes))
        for _ in range(max(1, sizes.rounds - 1)):
            for n in COUNTS:
                step(f"trainers of {n} shards")
                trained[n].append(trainers(broker, large, TRAINING, n, sizes))
        step("versions")
        versions = {kind: one_version(broker, world, 3) for kind, world in worlds.items()}
        step("versions beside a stream")
        beside = beside_the_stream(broker, large, LONG, sizes)
        return Results(
            broker.kind,
            sizes,
            {kind: len(world.stream.taxonomy) for kind, world in worlds.items()},
            {kind: world.work for kind, world in worlds.items()},
            {kind: len(world.data) for kind, world in worlds.items()},
            predicted,
            alone,
            trained,
            {n: plan_of(large, n) for n in COUNTS},
            versions,
            beside,
        )


if __name__ == "__main__":
    main()
