"""Interleaved rounds: everyone runs once, then everyone again, so that a slow minute hits all of them."""

import ctypes
import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.contest import Contestant

__all__ = ["Timing", "keep_memory", "measure", "progress", "ratio"]

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of mallopt, see malloc.h


@dataclass(frozen=True)
class Timing:
    """Documents a second of one contestant, a number for each round."""

    contestant: Contestant
    rates: list[float]

    @property
    def median(self) -> float:
        """The median over the rounds."""
        return statistics.median(self.rates)


def measure(
    contestants: Sequence[Contestant],
    rounds: int = 5,
    title: str = "measuring",
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Time all contestants `rounds` times in turn, after one run each that does not count."""
    timings = {contestant.name: Timing(contestant, []) for contestant in contestants}
    if len(timings) != len(contestants):
        raise ValueError("two contestants have the same name")
    keep_memory()
    with progress() as bar:
        task = bar.add_task(title, total=(rounds + 1) * len(contestants))
        for number in range(rounds + 1):
            for name, timing in timings.items():
                bar.update(task, description=f"{title}: {name}", refresh=True)
                rate = _rate(timing.contestant, clock)
                if number > 0:  # the first run compiles, and warms the caches
                    timing.rates.append(rate)
                bar.advance(task)
    return timings


def keep_memory() -> None:
    """Let the C library keep what is freed, and take it again for the next one who needs as much.

    Otherwise it goes back to the system after every run, and to get it back can take longer than what is
    measured. Where there is no such switch, nothing happens.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def ratio(timings: dict[str, Timing], ours: str, other: str) -> float:
    """Return how many times as fast `ours` is: the median of the ratios of the rounds."""
    pairs = zip(timings[ours].rates, timings[other].rates, strict=True)
    return statistics.median(a / b for a, b in pairs)


@contextmanager
def progress() -> Iterator[Progress]:
    """Show a progress bar that draws only when told to, never while a clock runs."""
    columns = (TextColumn("{task.description:60}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # A copy of the descriptor: the other one is muted while native peers work.
    with (
        os.fdopen(os.dup(2), "w") as stderr,
        Progress(*columns, console=Console(file=stderr), auto_refresh=False, transient=True) as bar,
    ):
        yield bar


def _rate(contestant: Contestant, clock: Callable[[], float]) -> float:
    prepared = contestant.prepare()
    gc.collect()
    start = clock()
    answer = contestant.run(prepared)
    seconds = clock() - start
    del answer  # alive until here: nothing is freed inside the clock
    return contestant.documents / seconds
