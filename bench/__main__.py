"""Documents a second of every learner, beside river: `make bench`, or `python -m bench [documents]`.

All contestants take turns in one process, five rounds; the median counts, and ratios more than times.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.peers import RiverTopDown
from stream_hc import TextVectorizer
from stream_hc.datasets import make_news
from stream_hc.learners import LEARNERS

ROUNDS = 5
ONE_BY_ONE = 1000
PEER_DOCUMENTS = 100
RESULTS = Path(__file__).parent / "results"


def contestants(n: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """Return name -> (documents, what to time)."""
    news = make_news(n)
    X, Y = TextVectorizer().learn_transform(news.documents), news.taxonomy.encode(news.labels)
    words = TextVectorizer()
    dicts = [dict.fromkeys(words.tokens(text), 0.1) for text in news.documents[:ONE_BY_ONE]]

    def one_by_one(name: str) -> None:
        model = LEARNERS[name](news.taxonomy)
        for x, y in zip(dicts, news.labels, strict=False):
            model.predict_one(x)
            model.learn_one(x, y)

    def peer() -> None:
        model = RiverTopDown(news.taxonomy)
        for x, y in zip(dicts[:PEER_DOCUMENTS], news.labels, strict=False):
            model.predict_then_learn_one(x, y)

    timed: dict[str, tuple[int, Callable[[], object]]] = {
        f"{name}, sparse rows": (n, lambda kind=kind: kind(news.taxonomy).predict_then_learn(X, Y))
        for name, kind in LEARNERS.items()
    }
    timed["TextVectorizer"] = (n, lambda: TextVectorizer().learn_transform(news.documents))
    timed["h-perceptron, river interface"] = (len(dicts), lambda: one_by_one("h-perceptron"))
    timed["river, perceptron per node"] = (PEER_DOCUMENTS, peer)
    return timed


def main() -> None:
    """Measure, print a table, write bench/results/bench.json."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    timed = contestants(n)
    rates: dict[str, list[float]] = {name: [] for name in timed}
    for _, run in timed.values():
        run()  # compiles, and warms the caches
    for _ in range(ROUNDS):
        for name, (documents, run) in timed.items():
            start = time.perf_counter()
            run()
            rates[name].append(documents / (time.perf_counter() - start))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    slowest = medians["river, perceptron per node"]
    table = Table(
        "what", "documents/s", "× river's perceptrons", title=f"{n:,} documents, median of {ROUNDS}"
    )
    for name, rate in medians.items():
        table.add_row(name, f"{rate:,.0f}", f"{rate / slowest:,.1f}")
    Console().print(table)
    RESULTS.mkdir(exist_ok=True)
    ratios = {name: rate / slowest for name, rate in medians.items()}
    (RESULTS / "bench.json").write_text(
        json.dumps({"documents": n, "rates": medians, "ratios": ratios}, indent=2)
    )


if __name__ == "__main__":
    main()
