"""Passes over the examples of a problem, by one worker or by several at a time.

Several workers each improve a shard of the examples for the same weights, on copies; then one joined step
goes from where they began toward where they all ended, as far as the dual objective rises. What a worker
needs and returns are arrays: it may as well be another process, or another machine.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stream_hc.kernels import Doubles, Ints
from stream_hc.kernels import csga as kernels
from stream_hc.maxmargin.problem import Problem

__all__ = ["Map", "Pass", "join", "local_pass", "run", "shards_of"]

MOST_STEPS = 5  # toward the best multilabel of one example, in one visit
Map = Callable[..., Iterable[Any]]


class Pass(NamedTuple):
    """What a worker found: its rows with their new dual variables and gaps, how the table changed."""

    rows: Ints
    marginals: Doubles
    gaps: Doubles
    change: Doubles
    slope: float


def local_pass(problem: Problem, rows: Ints, table: Doubles, marginals: Doubles) -> Pass:
    """Improve a shard: rows in their order, from the given table and the dual variables of these rows."""
    own, gaps = table.copy(), np.zeros(problem.n_rows)
    moved = np.zeros((problem.n_rows, problem.n_variables))
    moved[rows] = marginals
    gain = run(problem, rows, own, moved, gaps)
    own -= table
    # The gain is slope − |Δw|² / 2, so this is how fast the objective rose where it began.
    slope = gain + problem.square(own, rows, marginals - moved[rows]) / 2.0
    return Pass(rows, moved[rows], gaps[rows], own, slope)


def run(problem: Problem, rows: Ints, table: Doubles, marginals: Doubles, gaps: Doubles) -> float:
    """Improve rows in their order, in place; return what the dual objective gained."""
    arguments = (*problem.arguments, rows, MOST_STEPS, table, marginals, gaps)
    return float(kernels.visit(*arguments))


def join(
    problem: Problem, passes: Sequence[Pass], table: Doubles, marginals: Doubles, gaps: Doubles
) -> float:
    """Take the joined step; return what the dual objective gained. Writes the last three.

    Along the direction that all passes give together the objective is a parabola: its slope is the sum of
    theirs, its curvature |ΣΔw|². Halfway toward good dual variables they are still allowed ones.
    """
    rows = np.concatenate([done.rows for done in passes])
    moved = np.concatenate([done.marginals for done in passes])
    change = np.sum([done.change for done in passes], axis=0)
    slope = sum(done.slope for done in passes)
    curvature = problem.square(change, rows, marginals[rows] - moved)
    share = 1.0 if curvature <= slope else max(0.0, slope / curvature)
    table += share * change
    marginals[rows] = (1.0 - share) * marginals[rows] + share * moved
    gaps[rows] = np.concatenate([done.gaps for done in passes])
    return float(share * (slope - share * curvature / 2.0))


def shards_of(rows: Ints, n_shards: int) -> list[Ints]:
    """Share rows out: every n-th one."""
    return [rows[first::n_shards] for first in range(min(n_shards, rows.size))]
