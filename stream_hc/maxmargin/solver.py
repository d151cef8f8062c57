"""Ascent to a duality gap: epochs of passes over the examples that have most to gain."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Literal, NamedTuple

import numpy as np

from stream_hc.kernels import Doubles, Ints
from stream_hc.maxmargin.passes import Map, join, local_pass, run, shards_of
from stream_hc.maxmargin.problem import Problem

__all__ = ["Epoch", "Limits", "Solution", "Stopped", "ascend"]

PASSES = 3  # over examples drawn by their gaps, between two looks at all of them
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
    """The dual variables and what belongs to them, and why it stopped."""

    marginals: Doubles
    table: Doubles
    history: list[Epoch]
    stopped: Stopped


OnEpoch = Callable[[Epoch, Doubles], bool]


def ascend(
    problem: Problem,
    marginals: Doubles,
    limits: Limits,
    seed: int,
    n_jobs: int = 1,
    on_epoch: OnEpoch = lambda epoch, table: False,
    clock: Callable[[], float] = time.perf_counter,
) -> Solution:
    """Improve dual variables, in place, until the gap is small enough or a limit is reached.

    An epoch begins with the gaps of all examples under the same weights: their sum certifies how far the
    optimum is. Then examples are drawn in proportion to their gaps, for several passes. `on_epoch` is told
    about each epoch, with the table, and may stop it by returning True. Ctrl-C stops it, too.
    """
    began, rng = clock(), np.random.default_rng(seed)
    table, gaps = problem.table(marginals), np.zeros(problem.n_rows)
    objective = problem.objective(table, marginals)
    rounding = ROUNDING * problem.C * problem.n_rows * float(problem.costs.sum())
    history: list[Epoch] = []
    stopped: Stopped | None = None
    with ExitStack() as stack:
        workers = stack.enter_context(ThreadPoolExecutor(n_jobs)).map if n_jobs > 1 else map
        while True:
            _all_gaps(problem, table, marginals, gaps, n_jobs, workers)
            epoch = Epoch(len(history), clock() - began, objective, float(gaps.sum()))
            history.append(epoch)
            wants_stop = on_epoch(epoch, table)
            stopped = stopped or _reason(epoch, limits, wants_stop, rounding)
            if stopped is not None:
                return Solution(marginals, table, history, stopped)
            try:
                for _ in range(PASSES):
                    if clock() - began >= limits.max_seconds:
                        break
                    rows = _drawn(gaps, rng)
                    objective += _pass(problem, rows, table, marginals, gaps, n_jobs, workers)
            except KeyboardInterrupt:
                stopped = "interrupted"  # between two passes all numbers belong together


def _reason(epoch: Epoch, limits: Limits, wants_stop: bool, rounding: float) -> Stopped | None:
    if epoch.duality_gap <= max(limits.tol * epoch.dual_objective, rounding):
        return "gap"
    if wants_stop:
        return "callback"
    if epoch.epoch >= limits.max_epochs:
        return "epochs"
    return "seconds" if epoch.seconds >= limits.max_seconds else None


def _drawn(gaps: Doubles, rng: np.random.Generator) -> Ints:
    """Return rows in random order: all with more than the mean gap, of the others a share of it."""
    rows = np.flatnonzero(gaps > rng.random(gaps.size) * gaps.mean()).astype(np.int32)
    rng.shuffle(rows)
    return rows


def _all_gaps(
    problem: Problem, table: Doubles, marginals: Doubles, gaps: Doubles, n_jobs: int, workers: Map
) -> None:
    ends = np.linspace(0, problem.n_rows, n_jobs + 1).astype(int)
    list(workers(lambda a, b: problem.gaps(table, marginals, a, b, gaps), ends[:-1], ends[1:]))


def _pass(
    problem: Problem,
    rows: Ints,
    table: Doubles,
    marginals: Doubles,
    gaps: Doubles,
    n_jobs: int,
    workers: Map,
) -> float:
    if n_jobs == 1:
        return run(problem, rows, table, marginals, gaps)
    shards = shards_of(rows, n_jobs)
    passes = list(workers(lambda shard: local_pass(problem, shard, table, marginals[shard]), shards))
    return join(problem, passes, table, marginals, gaps)
