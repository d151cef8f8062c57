"""H-M³ on workers of Dask: seconds to the same gap for one process, one worker and two.

`make bench-distributed` writes `docs/distributed-refit.md`.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

from rich.console import Console

from bench.contest import Contestant
from bench.machine import machine
from bench.required import Verdict
from bench.rounds import Timing, measure, ratio
from bench.streams import news_like
from stream_hc import HM3, TextVectorizer
from stream_hc.maxmargin.crew import Call, Here, nothing
from stream_hc.maxmargin.distributed import DaskWorkers, dask_workers
from stream_hc.taxonomy import CostScheme

# So many nodes that a visit takes longer than to follow one, and so many documents that an exchange is short
# beside the visits between two: where it is worth while to distribute.
LEVELS = (10, 80, 250, 160)
ALONE, ONE, TWO = "one process, without Dask", "one worker", "two workers"
LEAST = 1.4
PAGE = Path(__file__).with_name("distributed.md")
WRITTEN = Path(__file__).resolve().parent.parent / "docs" / "distributed-refit.md"


class Ended(NamedTuple):
    """How a fit ended."""

    epochs: int
    gap: float
    processor: float  # seconds, of this process and of those that helped


class Timed(Here):
    """Shards in this process, with the processor time of what they are told."""

    def __init__(self, n_shards: int) -> None:
        super().__init__(n_shards)
        self.seconds: Counter[str] = Counter()
        self.n_calls = 0

    def call(self, calls: dict[int, Call], meanwhile: Callable[[], None] = nothing) -> dict[int, Any]:
        """Return the answers; what others told is followed before the clock of the call itself."""
        meanwhile()
        self.n_calls += 1
        answers = {}
        for number, call in calls.items():
            shard = self._shards[number]
            began = process_time()
            for changes in call.told:
                changes.move(shard._features, shard._table)  # noqa: SLF001, as the shard itself would
            followed = process_time()
            answers[number] = shard.do(*call._replace(told=()))
            self.seconds["follow the others"] += followed - began
            self.seconds[call.name] += process_time() - followed
        return answers


class Problem(NamedTuple):
    """What is fitted: so many documents, with these costs, in so many rounds."""

    n: int
    costs: CostScheme
    rounds: int


REQUIRED = Problem(30_000, "uniform", 3)  # the default costs
OTHER = Problem(15_000, "subtree", 1)  # each visit changes ten times as many dual variables


class Result(NamedTuple):
    """What came of a problem: the tables of the page, and what one worker takes ÷ what two do."""

    n: int
    costs: str
    nodes: int
    columns: int
    table: str
    each: str
    parts: str
    most: float
    calls: int
    gained: float

    @property
    def size(self) -> float:
        """MiB of weights."""
        return self.columns * self.nodes * 8 / 2**20


def main() -> None:
    """Measure, print, write; exit with 1 where the requirement is missed."""
    load = os.getloadavg()[0]
    result, other = measured(REQUIRED), measured(OTHER)
    verdict = Verdict("seconds, one worker ÷ two workers", result.gained, LEAST)
    what, met = f"{verdict.what}, {result.costs} costs", "yes" if verdict.met else "NO"
    page = PAGE.read_text(encoding="utf-8").format(
        machine=machine(),
        load=(load, os.getloadavg()[0]),
        rounds=REQUIRED.rounds,
        result=result,
        other=other,
        required=f"| {what} | {verdict.measured} | {verdict.required} | {met} |",
    )
    WRITTEN.write_text(page, encoding="utf-8")
    Console().print(page, markup=False, highlight=False)
    sys.exit(0 if verdict.met else 1)


def measured(problem: Problem) -> Result:
    """Fit it by one process, one worker and two, in turns, and see where the time goes."""
    stream = news_like(problem.n, levels=LEVELS)
    X = TextVectorizer().learn_transform(stream.texts)
    Y = stream.taxonomy.encode(stream.labels)
    ended: dict[str, Ended] = {}

    def fit(name: str, workers: Any) -> HM3:
        began = _processor(workers)
        model = HM3(stream.taxonomy, costs=problem.costs).fit(X, Y, workers=workers)
        gap = model.duality_gap_ / model.dual_objective_
        ended[name] = Ended(len(model.history_) - 1, gap, _processor(workers) - began)
        return model

    with ExitStack() as stack:
        who = {
            ALONE: None,
            ONE: stack.enter_context(dask_workers(1)),
            TWO: stack.enter_context(dask_workers(2)),
        }
        contestants = [
            Contestant(name, "", problem.n, lambda _, name=name, workers=workers: fit(name, workers))  # type: ignore[misc]
            for name, workers in who.items()
        ]
        timings = measure(contestants, problem.rounds, "fitting")
    shares = {n_shards: Timed(n_shards) for n_shards in (1, 2)}
    for n_shards, workers in shares.items():
        model = fit(f"{n_shards} here", workers)
    rates = zip(timings[ONE].rates, timings[TWO].rates, strict=True)
    return Result(
        problem.n,
        problem.costs,
        len(stream.taxonomy),
        model.state()["columns"].size,
        "\n".join(_line(timings, ended, name, problem.n) for name in timings),
        ", ".join(f"{two / one:.2f}" for one, two in rates),
        _parts(shares),
        sum(shares[1].seconds.values()) / (sum(shares[2].seconds.values()) / 2),
        shares[2].n_calls,
        ratio(timings, TWO, ONE),
    )


def _line(timings: dict[str, Timing], ended: dict[str, Ended], name: str, n: int) -> str:
    seconds, of_one = median(n / rate for rate in timings[name].rates), ratio(timings, name, ONE)
    epochs, gap, processor = ended[name]
    return f"| {name} | {seconds:.2f} | {processor:.2f} | {epochs} | {gap:.2%} | {of_one:.2f} |"


def _processor(workers: Any) -> float:
    """Return the processor seconds of this process and of the workers so far."""
    clients = [workers.client] if isinstance(workers, DaskWorkers) else []
    return process_time() + sum(sum(client.run(process_time).values()) for client in clients)


def _parts(shares: dict[int, Timed]) -> str:
    names = {"work": "visit documents", "look": "look at all documents", "renew": "work the weights out anew"}
    names |= {"begin": "begin", "follow the others": "follow the others"}
    lines = [
        f"| {said} | {shares[1].seconds[name]:.2f} | {shares[2].seconds[name]:.2f} |"
        for name, said in names.items()
    ]
    one, two = (sum(shares[n].seconds.values()) for n in (1, 2))
    return "\n".join([*lines, f"| all | {one:.2f} | {two:.2f} |", f"| half of it | | {two / 2:.2f} |"])


if __name__ == "__main__":
    main()
