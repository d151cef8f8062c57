"""Passes over the examples of a problem, by one worker or by several at a time.

Threads share the weights while each improves its shard of the examples; processes, or machines, work on
copies of them. Either way the weights are then worked out anew from the dual variables of all, and one joined
step goes from where they began toward where they ended, as far as the dual objective rises. So the objective
never falls, and the duality gap is that of the joined model.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from stream_hc.kernels import Doubles, Ints
from stream_hc.kernels import csga as kernels
from stream_hc.maxmargin.problem import Problem

__all__ = ["Pass", "Point", "joined_step", "local_passes", "passes", "visit"]

MOST_STEPS = 5  # toward the best multilabel of one example, in one visit
VISITS, MOST_PASSES = 2.2, 12  # between two looks at all examples: so many visits an example, on average
AT_A_TIME = 256  # visits, between two looks at the clock; Ctrl-C has to wait for as many
SURE = 0.5  # times the mean gap: an example with more is never left out


class Point(NamedTuple):
    """Where the ascent is: dual variables, and the table and the objective that belong to them."""

    marginals: Doubles
    table: Doubles
    objective: float


class Pass(NamedTuple):
    """What a worker elsewhere found for its rows."""

    marginals: Doubles
    gaps: Doubles


def passes(
    problem: Problem,
    rows: Ints,
    table: Doubles,
    marginals: Doubles,
    gaps: Doubles,
    seed: Sequence[int],
    time_is_up: Callable[[], bool] = lambda: False,
) -> float:
    """Visit rows several times, in proportion to their gaps; return the gain. Writes the three arrays."""
    rng, gain, n_visits = np.random.default_rng(seed), 0.0, 0
    for _ in range(MOST_PASSES):
        own = gaps[rows]
        drawn = rows[own > rng.random(rows.size) * SURE * own.mean()]
        rng.shuffle(drawn)
        for first in range(0, drawn.size, AT_A_TIME):
            gain += visit(problem, drawn[first : first + AT_A_TIME], table, marginals, gaps)
            if time_is_up():
                return gain
        n_visits += drawn.size
        if n_visits >= VISITS * rows.size:
            break
    return gain


def visit(problem: Problem, rows: Ints, table: Doubles, marginals: Doubles, gaps: Doubles) -> float:
    """Visit rows once, in their order; return the gain. Writes the last three."""
    arguments = (*problem.arguments, rows, MOST_STEPS, table, marginals, gaps)
    return float(kernels.visit(*arguments))


def local_passes(
    problem: Problem, rows: Ints, table: Doubles, marginals: Doubles, gaps: Doubles, seed: Sequence[int]
) -> Pass:
    """Improve a shard on copies; dual variables and gaps are given, and returned, for its rows alone."""
    # What came from another process can be written to: for numba another type, compiled anew.
    for array in problem.graph[:4]:
        array.setflags(write=False)
    moved, left = np.zeros((problem.n_rows, problem.n_variables)), np.zeros(problem.n_rows)
    moved[rows], left[rows] = marginals, gaps
    passes(problem, rows, table.copy(), moved, left, seed)
    return Pass(moved[rows], left[rows])


def joined_step(problem: Problem, here: Point, moved: Doubles) -> Point:
    """Return the highest point on the way from here to other dual variables.

    Along it the objective is a parabola with the curvature |Δw|², and its height at both ends is known. What
    lies between allowed dual variables is allowed.
    """
    table = problem.table(moved)
    change = table - here.table
    rise = problem.objective(table, moved) - here.objective
    curvature = problem.square(change, here.marginals - moved)
    slope = rise + curvature / 2.0
    if slope >= curvature:
        return Point(moved, table, here.objective + rise)
    share = max(0.0, slope / curvature)
    marginals = (1.0 - share) * here.marginals + share * moved
    gain = share * (slope - share * curvature / 2.0)
    return Point(marginals, here.table + share * change, here.objective + gain)
