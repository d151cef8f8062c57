"""What telemetry costs: `python -m bench.telemetry` fails if it is more than a fiftieth of the processing.

Every batch is processed with somebody watching; what only happens for those who watch is timed by itself, and
compared with the rest of the same run; to that comes what it takes to be asked for all numbers once a second.
The clock counts the time of this thread alone: what else the machine does plays no part.
"""

import sys
from statistics import median
from time import thread_time
from typing import Any, cast

from prometheus_client import CollectorRegistry, generate_latest

from bench.required import Verdict
from bench.runtime import BATCH, CASES, KINDS, ROUNDS, N, _lines
from bench.streams import Stream, news_like
from stream_hc.runtime import Line, Processor
from stream_hc.runtime.collector import spare_what_stays
from stream_hc.runtime.pipeline import Processed, Took
from stream_hc.runtime.telemetry import Telemetry

__all__ = ["main"]

MOST = 0.02  # of the processing time
SCRAPE_EVERY = 1.0  # seconds


class _Watched:
    """As much of a job as a telemetry looks at."""

    def __init__(self, processor: Processor) -> None:
        self.processor, self.refitter, self.is_live = processor, None, True
        self.counts: dict[str, int] = {"snapshot_failures": 0}


def main() -> None:
    """Measure and print; exit with 1 where it costs too much."""
    stream = news_like(N)
    spare_what_stays()  # as `stream-hc run` does
    verdicts = []
    for name, (learners, delayed) in CASES.items():
        lines = _lines(stream, delayed)
        shares = [_share(stream, learners, lines) for _ in range(ROUNDS + 1)][1:]
        verdicts.append(Verdict(f"telemetry, {name}", median(shares), MOST, at_least=False))
        print(f"- {verdicts[-1]}")
    sys.exit(0 if all(verdict.met for verdict in verdicts) else 1)


def _share(stream: Stream, learners: list[str], lines: list[Line]) -> float:
    """Return the time for telemetry as a share of that for all the rest, in one run."""
    processor = Processor(stream.taxonomy, {name: KINDS[name](stream.taxonomy) for name in learners})
    telemetry = Telemetry(CollectorRegistry())
    job = cast(Any, _Watched(processor))
    telemetry.begin(job)
    telemetry.live(job)
    spent = 0.0

    def timed(work: Any) -> Any:
        def call(*arguments: Any) -> Any:
            nonlocal spent
            began = thread_time()
            found = work(*arguments)
            spent += thread_time() - began
            return found

        return call

    processor.nodes.add = timed(processor.nodes.add)  # type: ignore[method-assign]
    processor._told = timed(processor._told)  # type: ignore[method-assign]  # noqa: SLF001
    processor._lessons = timed(processor._lessons)  # type: ignore[method-assign]  # noqa: SLF001
    processed = timed(telemetry.processed)
    began = thread_time()
    for first in range(0, len(lines), BATCH):
        outcome = processor.process(lines[first : first + BATCH])
        for answers in outcome.answers:
            answers.json_lines()
        processed(job, Processed("documents", outcome, None, Took(0.01, 0.01)))
    timed(telemetry.catch_up)()  # what was put off counts, too
    rest = thread_time() - began - spent
    generate_latest(
        telemetry.registry
    )  # once before: what is looked up the first time is not looked up again
    began = thread_time()
    generate_latest(telemetry.registry)
    return spent / rest + (thread_time() - began) / SCRAPE_EVERY


if __name__ == "__main__":
    main()
