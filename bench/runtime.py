"""The runtime: where the time of a document goes, and how long the stream waits for snapshots and fits.

`make bench-runtime` writes `docs/runtime-speed.md`.
"""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import msgspec
from rich.console import Console

from bench.machine import machine
from bench.required import Verdict
from bench.streams import Stream, news_like
from stream_hc import HAROW, HPerceptron, NodePA
from stream_hc.runtime import Config, Job, Line, Processor, batches, build_processor
from stream_hc.runtime.collector import spare_what_stays
from stream_hc.runtime.config import ModelConfig, RefitConfig, StateConfig, StreamConfig
from stream_hc.runtime.disk import StateFolder
from stream_hc.runtime.refit import Refitter

__all__ = ["main"]

N, ROUNDS, BATCH, DELAY = 20_000, 5, 2_000, 500
LONG = 80_000  # documents: the fits have to keep up
MOST_OUTSIDE, MOST_WAIT, MOST_PAUSE, STATE_BYTES = 0.25, 5.0, 50.0, 100e6
KINDS = {"h-perceptron": HPerceptron, "h-arow": HAROW, "node-pa": NodePA}
CASES = {
    "H-PERC, labels at once": (["h-perceptron"], False),
    "H-AROW, labels at once": (["h-arow"], False),
    "three learners, labels at once": (list(KINDS), False),
    f"H-AROW, labels {DELAY} documents later": (["h-arow"], True),
    f"three learners, labels {DELAY} documents later": (list(KINDS), True),
}
MEASURED = "H-PERC, labels at once"  # what `make bench` measures from JSON to JSON
WAITS = (
    (Refitter, "start"),
    (Refitter, "poll"),
    (Refitter, "forget"),
    (Processor, "finish_fit"),
    (StateFolder, "save_in_background"),
)
PAGE = Path(__file__).with_name("runtime.md")
WRITTEN = Path(__file__).resolve().parent.parent / "docs" / "runtime-speed.md"

Spent = dict[str, float]


def main() -> None:
    """Measure, print, write; exit with 1 where a requirement is missed."""
    stream = news_like(N)
    spare_what_stays()  # as `stream-hc run` does
    shares = {name: _shares(stream, *case) for name, case in CASES.items()}
    with tempfile.TemporaryDirectory(prefix="stream-hc-bench-") as folder:
        waits, state_bytes, pauses, fits = _waits(news_like(LONG), Path(folder))
    verdicts = [
        Verdict(
            f"share outside vectorise + learn, {MEASURED}",
            shares[MEASURED]["outside"],
            MOST_OUTSIDE,
            at_least=False,
        ),
        Verdict("longest wait for a fit, ms", waits, MOST_WAIT, at_least=False),
        Verdict(
            f"longest pause for a snapshot of {state_bytes / 1e6:.0f} MB, ms",
            pauses,
            MOST_PAUSE,
            at_least=False,
        ),
    ]
    page = PAGE.read_text(encoding="utf-8").format(
        machine=machine(),
        n=N,
        rounds=ROUNDS,
        batch=BATCH,
        shares="\n".join(_row(name, spent) for name, spent in shares.items()),
        fits=fits,
        required="\n".join(f"- {verdict}" for verdict in verdicts),
    )
    WRITTEN.write_text(page, encoding="utf-8")
    Console().print(page, markup=False, highlight=False)
    sys.exit(0 if all(verdict.met for verdict in verdicts) else 1)


def _row(name: str, spent: Spent) -> str:
    parts = ("parse", "vectorise", "learn", "rest", "write")
    numbers = " | ".join(f"{spent[part] / N * 1e6:.1f}" for part in parts)
    return f"| {name} | {numbers} | {N / spent['total']:,.0f} | {100 * spent['outside']:.0f} % |"


def _lines(stream: Stream, delayed: bool) -> list[Line]:
    records: list[dict[str, Any]] = []
    for row, (text, labels) in enumerate(zip(stream.texts, stream.labels, strict=True)):
        document = {"id": f"d{row}", "text": text}
        records.append(document if delayed else {**document, "labels": sorted(labels)})
        if delayed and row >= DELAY:
            records.append({"id": f"d{row - DELAY}", "labels": sorted(stream.labels[row - DELAY])})
    return [Line(number, msgspec.json.encode(record)) for number, record in enumerate(records, 1)]


def _shares(stream: Stream, learners: list[str], delayed: bool) -> Spent:
    """Return the median over some rounds of the seconds of each step."""
    lines = _lines(stream, delayed)
    rounds = [_once(stream, learners, lines) for _ in range(ROUNDS + 1)][1:]
    for spent in rounds:
        # From the text on: what it takes to read JSON depends on where the documents come from.
        from_text = spent["total"] - spent["parse"]
        spent["outside"] = 1.0 - (spent["vectorise"] + spent["learn"]) / from_text
    return {part: median(each[part] for each in rounds) for part in rounds[0]}


def _once(stream: Stream, learners: list[str], lines: list[Line]) -> Spent:
    processor = Processor(stream.taxonomy, {name: KINDS[name](stream.taxonomy) for name in learners})
    spent: Spent = defaultdict(float)
    with ExitStack() as stack:
        stack.enter_context(_timed(spent, "parse", batches, "parse_records"))
        _time(spent, "vectorise", processor.vectorizer, "learn_transform")
        for model in processor.line_up.online.values():
            _time(spent, "learn", model.learner, "file_rows")
            _time(spent, "learn", model.learner, "file_in_turn")
        began = perf_counter()
        for first in range(0, len(lines), BATCH):
            outcome = processor.process(lines[first : first + BATCH])
            written = perf_counter()
            for answers in outcome.answers:
                answers.json_lines()
            spent["write"] += perf_counter() - written
        spent["total"] = perf_counter() - began
    known = sum(spent[part] for part in ("parse", "vectorise", "learn", "write"))
    return dict(spent) | {"rest": spent["total"] - known}


def _time(spent: Spent, part: str, owner: Any, name: str) -> None:
    """Let a method add the time it takes to `spent`; calls within calls count once."""
    work, depth = getattr(owner, name), [0]

    def timed(*args: Any, **kwargs: Any) -> Any:
        depth[0] += 1
        began = perf_counter()
        try:
            return work(*args, **kwargs)
        finally:
            depth[0] -= 1
            if not depth[0]:
                spent[part] += perf_counter() - began

    setattr(owner, name, timed)


@contextmanager
def _timed(spent: Spent, part: str, owner: Any, name: str) -> Iterator[None]:
    work = getattr(owner, name)
    _time(spent, part, owner, name)
    try:
        yield
    finally:
        setattr(owner, name, work)


def _waits(stream: Stream, folder: Path) -> tuple[float, float, float, int]:
    """Run a job with fits and snapshots; return what it waited (ms), the bytes of its state, its fits."""
    records = folder / "stream.jsonl"
    records.write_bytes(b"".join(line.data + b"\n" for line in _lines(stream, delayed=True)))
    config = Config(
        stream=StreamConfig(documents=str(records), output=str(folder / "predictions.jsonl")),
        model=ModelConfig(learners=["h-arow", "node-pa", "h-perceptron", "perceptron"]),
        refit=RefitConfig(enabled=True, window=5_000, least=1_000, every=1_000, max_seconds=3.0),
        state=StateConfig(folder=str(folder / "state"), every=20_000),
    )
    job = Job(config, lambda fetch: build_processor(config, stream.taxonomy, fetch))
    waits: dict[str, list[float]] = defaultdict(list)
    with ExitStack() as stack:
        # Not the batch that is finished before: it would have taken as long without.
        for owner, name in WAITS:
            stack.enter_context(_noted(owner, name, waits[name]))
        job.run()
    fits = sum(count for name, count in job.counts.items() if name.startswith("refits_"))
    newest = max((folder / "state").glob("snapshot-*.snap"))
    pause = max(waits.pop("save_in_background"))
    return max(max(each) for each in waits.values()), newest.stat().st_size, pause, fits


@contextmanager
def _noted(owner: Any, name: str, taken: list[float]) -> Iterator[None]:
    """Let a method of a class note how many ms each call took."""
    work: Callable[..., Any] = getattr(owner, name)

    def noted(*args: Any) -> Any:
        began = perf_counter()
        try:
            return work(*args)
        finally:
            taken.append(1000 * (perf_counter() - began))

    setattr(owner, name, noted)
    try:
        yield
    finally:
        setattr(owner, name, work)


if __name__ == "__main__":
    main()
