"""Margins -> probabilities by streaming Platt scaling: at every node a line from margins to log-odds.

The log-odds of node i given its parents are (a + a_i) z + (b + b_i). The line (a, b) is shared by all nodes
and learned from every eligible (document, node) pair; (a_i, b_i) is how the node differs from it, a priori
N(0, 1). So a node met twice borrows from the others, and one met often goes its own way. z is the margin in
units of the node's root mean square, so that learners of any scale are treated alike, and bent to stay below
LARGEST_Z: some labels are wrong however clear a document is, and a line through them would be too flat.

Beliefs are Gaussian and stored as one row a line: its mean, the three numbers of its precision matrix, and
the sum of squared margins with their number. Before a document is taken in, sums and precisions shrink by
the factor `keep`, the precisions never below that of the prior: old documents fade.
"""

import math

import numpy as np
from numba import njit

from stream_hc.kernels import Doubles, Ints, Longs

__all__ = ["learn_margins", "log_odds_rows", "marginal_rows"]

SLOPE, OFFSET, SLOPE_SLOPE, SLOPE_OFFSET, OFFSET_OFFSET, SQUARES, COUNT = 0, 1, 2, 3, 4, 5, 6
PRIOR_SLOPE, PRIOR_OFFSET = 2.0, -1.0  # of the shared line: large margins speak for a label, most are not one
PRIOR_PRECISION = 1.0
PRIOR_COUNT = 10.0  # so many margins of the shared scale are added to those of a node
LARGEST_Z = 2.0
LARGEST_LOG_ODDS = 30.0  # nothing is certain: 1 − p stays above 1e-14
MAX_ROUNDS, TOLERANCE = 100, 1e-12


@njit(cache=True, nogil=True)
def sigmoid(log_odds: float) -> float:
    """1 / (1 + e^−u) without overflow."""
    if log_odds >= 0.0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    e = math.exp(log_odds)
    return e / (1.0 + e)


@njit(cache=True, nogil=True)
def shared_square(shared: Doubles) -> float:
    """Return the mean squared margin over all nodes; 1 as long as nothing is known about it."""
    return shared[SQUARES] / shared[COUNT] if shared[SQUARES] > 0.0 else 1.0


@njit(cache=True, nogil=True)
def scaled(line: Doubles, square: float, margin: float) -> float:
    """Return a margin as z; `square` is the mean square of all nodes."""
    mean = (line[SQUARES] + PRIOR_COUNT * square) / (line[COUNT] + PRIOR_COUNT)
    z = margin / math.sqrt(mean)
    return z / math.hypot(1.0, z / LARGEST_Z)


@njit(cache=True, nogil=True)
def log_odds(shared: Doubles, line: Doubles, z: float) -> float:
    """Return the log-odds of a node at a scaled margin."""
    return float((shared[SLOPE] + line[SLOPE]) * z + shared[OFFSET] + line[OFFSET])


@njit(cache=True, nogil=True)
def fade(line: Doubles, keep: float) -> None:
    """Let everything learned so far count a little less. Writes `line`."""
    line[SLOPE_SLOPE] = keep * line[SLOPE_SLOPE] + (1.0 - keep) * PRIOR_PRECISION
    line[SLOPE_OFFSET] = keep * line[SLOPE_OFFSET]
    line[OFFSET_OFFSET] = keep * line[OFFSET_OFFSET] + (1.0 - keep) * PRIOR_PRECISION
    line[SQUARES] *= keep
    line[COUNT] *= keep


@njit(cache=True, nogil=True)
def settled(start: float, gain: float, y: float) -> float:
    """Return the u with u = start + gain (y − σ(u)), by Newton steps.

    The plain step start + gain (y − σ(start)) overshoots when a confident node is wrong. Here both sides
    differ by a function that bends once, at 0: from there Newton's steps reach the root without crossing it.
    """
    u = 0.0
    for _ in range(MAX_ROUNDS):
        p = sigmoid(u)
        step = (start + gain * (y - p) - u) / (1.0 + gain * p * (1.0 - p))
        u += step
        if abs(step) <= TOLERANCE * (1.0 + abs(u)):
            break
    return u


@njit(cache=True, nogil=True)
def learn_node(shared: Doubles, line: Doubles, z: float, y: float) -> None:
    """Move a node's line to the mode of its posterior after one more document. Writes `line`.

    With the prior precision Q and x = (z, 1) the mode is θ + Q⁻¹x (y − p) where p is the probability at the
    mode itself; the log-odds there solve one equation in one unknown.
    """
    a, b, c = line[SLOPE_SLOPE], line[SLOPE_OFFSET], line[OFFSET_OFFSET]
    determinant = a * c - b * b
    towards_slope, towards_offset = (c * z - b) / determinant, (a - b * z) / determinant
    p = sigmoid(settled(log_odds(shared, line, z), towards_slope * z + towards_offset, y))
    line[SLOPE] += towards_slope * (y - p)
    line[OFFSET] += towards_offset * (y - p)
    weight = p * (1.0 - p)
    line[SLOPE_SLOPE] += weight * z * z
    line[SLOPE_OFFSET] += weight * z
    line[OFFSET_OFFSET] += weight


@njit(cache=True, nogil=True)
def learn_margins(
    shared: Doubles,
    lines: Doubles,
    parent_ptr: Longs,
    parent_idx: Ints,
    margins: Doubles,
    labels: Ints,
    keep: float,
) -> None:
    """Learn from the margins of one document, of before the learner saw its labels. Writes the lines.

    Only eligible nodes count: those whose parents are all among `labels`, which are closed upward. The
    shared line makes one Newton step for the whole document, so that the order of the nodes does not matter.
    """
    y_true = np.zeros(lines.shape[0], np.bool_)
    for k in range(labels.size):
        y_true[labels[k]] = True
    square = shared_square(shared)
    slope_gradient, offset_gradient = 0.0, 0.0
    fresh = np.zeros(7)
    for node in range(lines.shape[0]):
        eligible = True
        for j in range(parent_ptr[node], parent_ptr[node + 1]):
            eligible = eligible and y_true[parent_idx[j]]
        if not eligible:
            continue
        z, y = scaled(lines[node], square, margins[node]), 1.0 if y_true[node] else 0.0
        p = sigmoid(shared[SLOPE] * z + shared[OFFSET])
        slope_gradient += (y - p) * z
        offset_gradient += y - p
        weight = p * (1.0 - p)
        fresh[SLOPE_SLOPE] += weight * z * z
        fresh[SLOPE_OFFSET] += weight * z
        fresh[OFFSET_OFFSET] += weight
        fresh[SQUARES] += margins[node] * margins[node]
        fresh[COUNT] += 1.0
        fade(lines[node], keep)
        learn_node(shared, lines[node], z, y)
        lines[node, SQUARES] += margins[node] * margins[node]
        lines[node, COUNT] += 1.0
    fade(shared, keep)
    shared[:] += fresh
    a, b, c = shared[SLOPE_SLOPE], shared[SLOPE_OFFSET], shared[OFFSET_OFFSET]
    determinant = a * c - b * b
    shared[SLOPE] += (c * slope_gradient - b * offset_gradient) / determinant
    shared[OFFSET] += (a * offset_gradient - b * slope_gradient) / determinant


@njit(cache=True, nogil=True)
def log_odds_rows(shared: Doubles, lines: Doubles, margins: Doubles, odds: Doubles) -> None:
    """Turn the margins of every document into log-odds given the parents. Writes `odds` (n × N)."""
    square = shared_square(shared)
    for row in range(odds.shape[0]):
        for node in range(odds.shape[1]):
            u = log_odds(shared, lines[node], scaled(lines[node], square, margins[row, node]))
            odds[row, node] = min(max(u, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS)


@njit(cache=True, nogil=True)
def marginal_rows(p: Doubles, parent_ptr: Longs, parent_idx: Ints) -> None:
    """Turn probabilities given the parents into probabilities of the nodes themselves. Writes `p`.

    In a forest they are multiplied along the path. In a DAG the least likely parent stands for all of them:
    P(y_i) = p_i P(all parents) ≤ p_i min P(parent).
    """
    for row in range(p.shape[0]):
        for node in range(p.shape[1]):
            above = 1.0
            for j in range(parent_ptr[node], parent_ptr[node + 1]):
                above = min(above, p[row, parent_idx[j]])
            p[row, node] *= above
