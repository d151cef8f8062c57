"""H-M³: how long it takes beside liblinear, how that grows, how much memory, what a warm start saves.

`make bench-maxmargin` writes `docs/max-margin-speed.md`.
"""

import resource
import sys
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from scipy.sparse import csr_array

from bench.contest import Contestant
from bench.machine import machine
from bench.required import Verdict
from bench.rounds import Timing, measure, progress, ratio
from bench.streams import Stream, news_like
from stream_hc import HM3, HSVM, Taxonomy, TextVectorizer

N, ROUNDS = 5_000, 5
SIZES = (2_500, 5_000, 10_000, 20_000)
LARGE = (20_000, (6, 30, 80, 25))  # documents, nodes on each level: 141
CHAPTER = (1_372, (8, 40, 140))  # as many as in the chapter of 2006: 188
SVM, HM = "H-SVM, liblinear", "H-M³"
LOSSES: dict[str, dict[str, Any]] = {
    "ℓ_H̃, uniform": {},
    "ℓ_H̃, sibling": {"costs": "sibling"},
    "ℓ_H̃, subtree": {"costs": "subtree"},
    "ℓ_Δ": {"loss": "symmetric_difference"},
}
TWO, ALL = f"{HM}, two threads", f"{HM}, over all multilabels"
MOST_TIME, LEAST_SAVED, MOST_MEMORY, MOST_GROWTH = 1.5, 3.0, 2.0, 1.5
PAGE = Path(__file__).with_name("maxmargin.md")
WRITTEN = Path(__file__).resolve().parent.parent / "docs" / "max-margin-speed.md"

Data = tuple[Taxonomy, csr_array, csr_array]


def main() -> None:
    """Measure, print, write; exit with 1 where a requirement is missed."""
    tax, X, Y = _rows(news_like(N + N // 10))
    timings = measure(_contestants(tax, X[:N], Y[:N]), ROUNDS, "training")
    saved = {name: _saved(tax, X, Y, how) for name, how in LOSSES.items()}
    sizes = _growth()
    memory = _apart(_large)
    chapter = _chapter()
    growth = max(sizes[n][1] for n in SIZES) / min(sizes[n][1] for n in SIZES)
    default = f"{HM}, {next(iter(LOSSES))}"
    verdicts = [
        # A ratio of speeds the other way round is one of times.
        Verdict(f"seconds, {default} ÷ {SVM}", ratio(timings, SVM, default), MOST_TIME, at_least=False),
        *[
            Verdict(f"seconds from nothing ÷ warm, {name}", value, LEAST_SAVED)
            for name, value in saved.items()
        ],
        Verdict("time for a document and epoch, largest ÷ smallest", growth, MOST_GROWTH, at_least=False),
        Verdict("GiB, 20,000 documents × 141 nodes", memory / 2**30, MOST_MEMORY, at_least=False),
    ]
    page = PAGE.read_text(encoding="utf-8").format(
        machine=machine(),
        rounds=ROUNDS,
        n=N,
        speed=_speed_table(timings),
        growth="\n".join(f"| {n:,} | {s:.2f} | {us:.1f} |" for n, (s, us) in sizes.items()),
        chapter=f"{chapter:.2f}",
        required=_required(verdicts),
    )
    WRITTEN.write_text(page, encoding="utf-8")
    Console().print(page, markup=False, highlight=False)
    sys.exit(0 if all(verdict.met for verdict in verdicts) else 1)


def _rows(stream: Stream) -> Data:
    return (
        stream.taxonomy,
        TextVectorizer().learn_transform(stream.texts),
        stream.taxonomy.encode(stream.labels),
    )


def _contestants(tax: Taxonomy, X: csr_array, Y: csr_array) -> list[Contestant]:
    settings = {f"{HM}, {name}": how for name, how in LOSSES.items()}
    settings |= {TWO: {"n_jobs": 2}, ALL: {"label_set": "all"}}

    def ours(name: str, how: dict[str, Any]) -> Contestant:
        return Contestant(name, "", N, lambda _: HM3(tax, **how).fit(X, Y), ours=True)

    svm = Contestant(SVM, "", N, lambda _: HSVM(tax).fit(X, Y))
    return [svm, *(ours(name, how) for name, how in settings.items())]


def _seconds(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def _saved(tax: Taxonomy, X: csr_array, Y: csr_array, how: dict[str, Any]) -> float:
    """Return how many times as long it takes from nothing, after a tenth of the documents were replaced."""
    gone = X.shape[0] - N
    duals, ids = HM3(tax, **how).fit(X[:N], Y[:N]).duals_, np.arange(N) - gone
    ratios = []
    for _ in range(ROUNDS):
        cold = _seconds(lambda: HM3(tax, **how).fit(X[gone:], Y[gone:]))
        warm = _seconds(lambda: HM3(tax, **how).fit(X[gone:], Y[gone:], warm_start=(duals, ids)))
        ratios.append(cold / warm)
    return median(ratios)


def _growth() -> dict[int, tuple[float, float]]:
    """Return for each number of documents the seconds, and the µs for a document and an epoch."""
    tax, X, Y = _rows(news_like(max(SIZES)))
    found = {}
    with progress() as bar:
        task = bar.add_task("more documents", total=len(SIZES))
        for n in SIZES:
            # As many epochs for all: how fast they come to an end is another matter.
            model = HM3(tax, tol=1e-12, max_epochs=3)
            seconds = min(_seconds(lambda n=n, model=model: model.fit(X[:n], Y[:n])) for _ in range(3))
            found[n] = (seconds, 1e6 * seconds / 3 / n)
            bar.advance(task)
            bar.refresh()
    return found


def _large() -> float:
    """Return the bytes that training on many documents took at most, beside what was there before."""
    n, levels = LARGE
    tax, X, Y = _rows(news_like(n, levels=levels))
    model = HM3(tax, costs="subtree", max_memory=int(MOST_MEMORY * 2**30)).fit(X, Y)
    assert model.stopped_ == "gap"
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def _chapter() -> float:
    """Return the seconds to a gap of 2 % for as many documents and nodes as the chapter of 2006 has."""
    n, levels = CHAPTER
    tax, X, Y = _rows(news_like(n, levels=levels))
    return min(_seconds(lambda: HM3(tax, tol=0.02).fit(X, Y)) for _ in range(3))


def _apart(work: Callable[[], float]) -> float:
    """Return what some work returns in a process of its own."""
    ours, theirs = get_context("spawn").Pipe()
    worker = get_context("spawn").Process(target=_send, args=(work, theirs))
    worker.start()
    theirs.close()
    found: float = ours.recv()
    worker.join()
    return found


def _send(work: Callable[[], float], to: Connection) -> None:
    to.send(work())


def _speed_table(timings: dict[str, Timing]) -> str:
    lines = ["| who | seconds | ÷ H-SVM |", "| --- | ---: | ---: |"]
    for name, timing in timings.items():
        lines.append(f"| {name} | {N / timing.median:.2f} | {ratio(timings, SVM, name):.2f} |")
    return "\n".join(lines)


def _required(verdicts: list[Verdict]) -> str:
    lines = [f"| {v.what} | {v.measured} | {v.required} | {'yes' if v.met else 'NO'} |" for v in verdicts]
    return "\n".join(["| what | measured | required | met |", "| --- | ---: | ---: | --- |", *lines])


if __name__ == "__main__":
    main()
