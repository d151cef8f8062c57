"""The dual variables of one example of H-M³ over consistent multilabels, and how to improve them.

The edge marginals follow from the node marginals a, which are all that is kept: 0 ≤ a_i ≤ a_p ≤ C for every
parent p of i; μ(1,1) = a_i, μ(1,0) = a_p − a_i, μ(0,0) = C − a_p. With v_i = Σ_n (C y_ni − a_ni) x_n the
weights of an edge (p, i) are v_i, v_p − v_i and −v_p, so that

    dual objective = Σ_n L_n·(a_n − C y_n) − ½ Σ_ij M_ij v_i·v_j

where M has 2 · (edges at i) on its diagonal, one from the virtual root to each root included, −1 for every
edge between two nodes, and 0 elsewhere. Its gradient in a is h = L + M m with the margins m_i = v_i·x, and
the best multilabel is the closed set of nodes with the largest sum of h.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from stream_hc.kernels import Bools, Doubles, Ints

# Built on closed_sets.py as of 59ad0c7c: numba's cache does not notice edits in other files, but this line.
from stream_hc.kernels.closed_sets import Graph, Room, best_set, new_room

__all__ = ["Loss"]

ENOUGH = 0.3  # of the gap an example came with: what is left is for the next visit
SWEEPS = 2  # over the nodes of an example, after each step toward its best multilabel
LEAST = 1e-13  # of C times the size of the gradient: what is less is rounding


class Loss(NamedTuple):
    """What a wrong node costs; under `is_tilde` only where the parent is right."""

    costs: Doubles
    is_tilde: bool


class Scratch(NamedTuple):
    """What is worked out about one example, a number for each of its dual variables; the diagonal of M."""

    margins: Doubles
    gradient: Doubles
    best: Doubles
    step: Doubles
    before: Doubles
    product: Doubles
    diagonal: Doubles
    room: Room


@njit(cache=True, nogil=True)
def new_scratch(graph: Graph, size: int) -> Scratch:
    """Return room to work in, for that many dual variables."""
    n_parents, n_children = np.diff(graph.parent_ptr), np.diff(graph.child_ptr)
    return Scratch(
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        2.0 * (np.maximum(n_parents, 1) + n_children),
        new_room(graph),
    )


@njit(cache=True, nogil=True)
def times_m(graph: Graph, diagonal: Doubles, vector: Doubles, product: Doubles) -> None:
    """Compute M · vector. Writes `product`."""
    parent_ptr, parent_idx = graph.parent_ptr, graph.parent_idx
    for node in range(diagonal.size):
        total = diagonal[node] * vector[node]
        for k in range(parent_ptr[node], parent_ptr[node + 1]):
            above = parent_idx[k]
            total -= vector[above]
            product[above] -= vector[node]
        product[node] = total


@njit(cache=True, nogil=True)
def add_loss(graph: Graph, loss: Loss, true: Bools, gradient: Doubles) -> None:
    """Add L, what it is worth to the loss to switch each node on. Writes `gradient`."""
    parent_ptr, parent_idx, costs = graph.parent_ptr, graph.parent_idx, loss.costs
    for node in range(true.size):
        begin, has_parent = parent_ptr[node], parent_ptr[node] < parent_ptr[node + 1]
        if not loss.is_tilde or not has_parent or true[parent_idx[begin]]:
            gradient[node] += -costs[node] if true[node] else costs[node]
            if loss.is_tilde and has_parent and true[node]:
                gradient[parent_idx[begin]] += costs[node]


@njit(cache=True, nogil=True)
def gap_of(graph: Graph, C: float, a: Doubles, scratch: Scratch) -> float:
    """Return the duality gap of an example whose gradient is known. Writes `best`, its best multilabel."""
    gap = C * best_set(graph, scratch.gradient, scratch.best, scratch.room)
    gradient = scratch.gradient
    for k in range(a.size):
        gap -= gradient[k] * a[k]
    return float(gap)


@njit(cache=True, nogil=True)
def improve(
    graph: Graph, C: float, square: float, a: Doubles, scratch: Scratch, most_steps: int
) -> tuple[float, float]:
    """Move the marginals of an example uphill; return its duality gap before, and the gain. Writes `a`.

    Steps toward the best multilabel, each followed by the best change of one node after the other.
    """
    gradient, best, step, product = scratch.gradient, scratch.best, scratch.step, scratch.product
    room = scratch.room
    first_gap = gain = 0.0
    for turn in range(most_steps + 1):
        gap = gap_of(graph, C, a, scratch)
        if turn == 0:
            first_gap = gap
        if turn == most_steps or gap <= LEAST * C * np.sum(np.abs(gradient)):
            break
        if turn > 0 and gap <= ENOUGH * first_gap:
            break
        for node in range(a.size):
            step[node] = C * best[node] - a[node]
        times_m(graph, scratch.diagonal, step, product)
        curvature = 0.0
        for node in range(a.size):
            curvature += step[node] * product[node]
        curvature *= square
        share = 1.0 if curvature <= gap else gap / curvature
        gain += share * (gap - share * curvature / 2.0)
        for node in range(a.size):
            # Each term grows with what it is made of: rounding never lifts a child above its parent.
            a[node] = min(C, (1.0 - share) * a[node] + share * C * best[node])
            gradient[node] -= share * square * product[node]
        for _ in range(SWEEPS if square > 0.0 else 0):
            gain += sweep(graph, scratch.diagonal, C, square, a, gradient, room.queue, room.reached)
    return max(first_gap, 0.0), gain


@njit(cache=True, nogil=True)
def sweep(
    graph: Graph,
    diagonal: Doubles,
    C: float,
    square: float,
    a: Doubles,
    gradient: Doubles,
    together: Ints,
    member: Ints,
) -> float:
    """Move one node after the other down, then up, as far as it pays; return the gain. Writes `a`.

    A node takes those along that would be in its way: descendants with the same number on the way down,
    ancestors with the same number on the way up. `together` and `member` are scratch.
    """
    parent_ptr, parent_idx, child_ptr, child_idx = graph[0], graph[1], graph[2], graph[3]
    gain = 0.0
    member[:] = 0
    for turn in range(2):
        up = turn == 1
        next_ptr, next_idx = (parent_ptr, parent_idx) if up else (child_ptr, child_idx)
        for k in range(a.size):
            node = k if up else a.size - 1 - k
            if (up and (gradient[node] <= 0.0 or a[node] >= C)) or (not up and a[node] <= 0.0):
                continue
            limit, level = C if up else 0.0, a[node]
            together[0], member[node] = node, 1
            size, at, slope, curvature = 1, 0, 0.0, 0.0
            while at < size:
                one = together[at]
                at += 1
                slope += gradient[one]
                curvature += diagonal[one]
                for j in range(next_ptr[one], next_ptr[one + 1]):
                    other = next_idx[j]
                    if a[other] == level:
                        curvature -= 2.0
                        if member[other] == 0:
                            member[other], together[size] = 1, other
                            size += 1
                    else:
                        limit = min(limit, a[other]) if up else max(limit, a[other])
            moved = level
            if slope > 0.0 and up:
                moved = min(level + slope / (square * curvature), limit)
            elif slope < 0.0 and not up:
                moved = max(level + slope / (square * curvature), limit)
            step = moved - level
            gain += step * (slope - square * curvature * step / 2.0)
            for m in range(size):
                one = together[m]
                member[one] = 0
                if step != 0.0:
                    a[one] = moved
                    gradient[one] -= square * diagonal[one] * step
                    for j in range(parent_ptr[one], parent_ptr[one + 1]):
                        gradient[parent_idx[j]] += square * step
                    for j in range(child_ptr[one], child_ptr[one + 1]):
                        gradient[child_idx[j]] += square * step
    return gain
