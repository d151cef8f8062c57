"""Ascent to a duality gap: epochs of passes over the examples that have most to gain."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from stream_hc.interrupts import plain_interrupts
from stream_hc.kernels import Doubles, Ints
from stream_hc.maxmargin.passes import Point, joined_step, passes
from stream_hc.maxmargin.problem import Problem

__all__ = ["Epoch", "Limits", "OnEpoch", "Solution", "Stopped", "ascend", "least_gap", "reason"]

ROUNDING = 1e-13  # of the largest loss there could be
Stopped = Literal["gap", "epochs", "seconds", "callback", "interrupted"]


class Limits(NamedTuple):
    """When to stop: relative gap, epochs, seconds."""

    tol: float
    max_epochs: int
    max_seconds: float


class Epoch(NamedTuple):
    """How far it has come: the gap is that of all examples for the same weights."""

    epoch: int
    seconds: float
    dual_objective: float
    duality_gap: float


class Solution(NamedTuple):
    """Where it ended, how it got there, and why it stopped."""

    point: Point
    history: list[Epoch]
    stopped: Stopped


OnEpoch = Callable[[Epoch, Callable[[], Point]], bool]
Map = Callable[..., Iterable[Any]]


def ascend(
    problem: Problem,
    marginals: Doubles,
    limits: Limits,
    seed: int,
    n_jobs: int = 1,
    on_epoch: OnEpoch = lambda epoch, point: False,
    clock: Callable[[], float] = time.perf_counter,
) -> Solution:
    """Improve dual variables, in place, until the gap is small enough or a limit is reached.

    An epoch begins with the gaps of all examples under the same weights: their sum certifies how far the
    optimum is. Then examples are drawn in proportion to their gaps, for several passes. `on_epoch` is told
    about each epoch, with what gives the point, and may stop it by returning True. Ctrl-C stops it, too.
    """
    began = clock()
    table, gaps = problem.table(marginals), np.zeros(problem.n_rows)
    here = Point(marginals, table, problem.objective(table, marginals))
    rounding = least_gap(problem)
    history: list[Epoch] = []
    stopped: Stopped | None = None

    def time_is_up() -> bool:
        return clock() - began >= limits.max_seconds

    with ExitStack() as stack:
        workers = stack.enter_context(ThreadPoolExecutor(n_jobs)).map if n_jobs > 1 else map
        while True:
            try:
                with plain_interrupts():
                    _all_gaps(problem, here, gaps, n_jobs, workers)
            except KeyboardInterrupt:  # once more, since the gap is what the model says of itself
                stopped = "interrupted"
                _all_gaps(problem, here, gaps, n_jobs, workers)
            epoch = Epoch(len(history), clock() - began, here.objective, float(gaps.sum()))
            history.append(epoch)
            try:
                with plain_interrupts():
                    wants_stop = on_epoch(epoch, partial(Point, *here))
            except KeyboardInterrupt:
                stopped, wants_stop = "interrupted", True
            stopped = stopped or reason(epoch, limits, wants_stop, rounding)
            if stopped is not None:
                return Solution(here, history, stopped)
            try:
                with plain_interrupts():
                    here = _improved(problem, here, gaps, (seed, epoch.epoch), n_jobs, workers, time_is_up)
            except KeyboardInterrupt:
                # Dual variables and table belong together at any time, but for the objective.
                stopped = "interrupted"
                here = here._replace(objective=problem.objective(here.table, here.marginals))


def least_gap(problem: Problem) -> float:
    """Return what is rounding: a gap of less is none."""
    return ROUNDING * problem.C * problem.n_rows * float(problem.costs.sum())


def reason(epoch: Epoch, limits: Limits, wants_stop: bool, rounding: float) -> Stopped | None:
    """Return why it should stop after an epoch, or None."""
    if epoch.duality_gap <= max(limits.tol * epoch.dual_objective, rounding):
        return "gap"
    if wants_stop:
        return "callback"
    if epoch.epoch >= limits.max_epochs:
        return "epochs"
    return "seconds" if epoch.seconds >= limits.max_seconds else None


def _all_gaps(problem: Problem, here: Point, gaps: Doubles, n_jobs: int, workers: Map) -> None:
    ends = np.linspace(0, problem.n_rows, n_jobs + 1).astype(int)
    list(workers(lambda a, b: problem.gaps(here.table, here.marginals, a, b, gaps), ends[:-1], ends[1:]))


def _improved(
    problem: Problem,
    here: Point,
    gaps: Doubles,
    seed: tuple[int, ...],
    n_jobs: int,
    workers: Map,
    time_is_up: Callable[[], bool],
) -> Point:
    every_row: Ints = np.arange(problem.n_rows, dtype=np.int32)
    if n_jobs == 1:
        gain = passes(problem, every_row, here.table, here.marginals, gaps, seed, time_is_up)
        return here._replace(objective=here.objective + gain)
    table, marginals = here.table.copy(), here.marginals.copy()

    def work(shard: Ints) -> float:
        return passes(problem, shard, table, marginals, gaps, (*seed, int(shard[0])), time_is_up)

    list(workers(work, [every_row[first::n_jobs] for first in range(min(n_jobs, problem.n_rows))]))
    return joined_step(problem, here, marginals)
