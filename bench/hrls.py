"""How fast H-RLS is, in one run: `python -m bench.hrls`. All contestants take turns; ratios count, not times.

Exact H-RLS on the first 7,775 documents of reuters21578 (141 nodes), beside a plain numba prototype that
loops over nodes in Python, the triangular solves alone, H-RLS with a budget, APPROX-H-BAYES and H-AROW.
"""

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.hrls_prototype import passes, prototype, substitutions
from stream_hc import HAROW, HRLS, ApproxHBayes
from stream_hc.datasets import load
from stream_hc.evaluate import vectorize_dataset
from stream_hc.learners import workers

ROUNDS = 5
N = 7_775
DATA = Path(os.environ.get("STREAM_HC_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def main() -> None:
    """Measure and print."""
    data = load(DATA / "reuters21578", N)
    X, Y, taxonomy = vectorize_dataset(data), data.taxonomy.encode(data.labels), data.taxonomy
    exact, bounded = HRLS(taxonomy), HRLS(taxonomy, budget=500)
    prototype(taxonomy, X[:50], Y[:50])  # compiles
    solves = prototype(taxonomy, X, Y)
    timed: dict[str, Callable[[], object]] = {
        "prototype, nodes in Python": lambda: prototype(taxonomy, X, Y),
        "H-RLS": lambda: exact.clone().predict_then_learn(X, Y),
        "H-RLS, one thread": lambda: alone(lambda: exact.clone().predict_then_learn(X, Y)),
        "its solves, by substitution": substitutions(solves),
        "its solves, as it does them": passes(solves),
        "H-RLS, budget 500": lambda: bounded.clone().predict_then_learn(X, Y),
        "APPROX-H-BAYES": lambda: ApproxHBayes(taxonomy).predict_then_learn(X, Y),
        "H-AROW": lambda: HAROW(taxonomy).predict_then_learn(X, Y),
    }
    seconds = measure(timed)
    table = Table("what", "seconds", "documents/s", title=f"{N:,} documents, median of {ROUNDS} rounds")
    for name, times in seconds.items():
        median = statistics.median(times)
        table.add_row(name, f"{median:.2f}", "" if name.startswith("its") else f"{N / median:,.0f}")
    console = Console()
    console.print(table)
    whole, one = seconds["H-RLS"], seconds["H-RLS, one thread"]
    for what, slow, fast in (
        ("prototype ÷ H-RLS (required: 3 or more)", seconds["prototype, nodes in Python"], whole),
        ("prototype ÷ H-RLS on one thread", seconds["prototype, nodes in Python"], one),
        (
            "H-RLS on one thread ÷ solves by substitution (1.5 or less)",
            one,
            seconds["its solves, by substitution"],
        ),
        ("H-RLS on one thread ÷ its own passes", one, seconds["its solves, as it does them"]),
        ("one thread ÷ all threads", one, whole),
    ):
        ratio = statistics.median(a / b for a, b in zip(slow, fast, strict=True))
        console.print(f"{what}: {ratio:.2f}")
    exact.learn_many(X, Y)
    bounded.learn_many(X, Y)
    for name, model in (("exact", exact), ("budget 500", bounded)):
        node = int(model.n_stored.argmax())
        console.print(
            f"{name}: {model.n_updates.sum():,} stores, {model.n_stored.sum():,} held, "
            f"{model.nbytes / 2**20:.0f} MiB in all; the largest node, {taxonomy.nodes[node]!r}, "
            f"holds {model.n_stored[node]:,} documents in {model.node_nbytes[node] / 2**20:.2f} MiB"
        )


def measure(timed: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Run everyone in turn, round after round, after one run each that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for number in range(ROUNDS + 1):
        for name, run in timed.items():
            start = time.perf_counter()
            run()
            if number > 0:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def alone(run: Callable[[], object]) -> None:
    """Run without threads."""
    threads, workers.processors = workers.processors, lambda: 1
    try:
        run()
    finally:
        workers.processors = threads


if __name__ == "__main__":
    main()
