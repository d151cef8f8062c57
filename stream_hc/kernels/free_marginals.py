"""The dual variables of one example of H-M³ over all multilabels, consistent or not, in a forest.

Beside a_i = Σ μ(·,1) there is b_i = μ(1,1) of the edge to i, so an example has 2 N numbers, first all a, then
all b (0 at roots): max(0, a_p + a_i − C) ≤ b_i ≤ min(a_p, a_i) and 0 ≤ a ≤ C. Their vectors v_i and p_i give
the weights p_i for (1,1), v_p − p_i for (1,0), v_i − p_i for (0,1) and p_i − v_p − v_i for (0,0).
"""

import numpy as np
from numba import njit

from stream_hc.kernels import Bools, Doubles

# Built on closed_sets.py as of 59ad0c7c: numba's cache does not notice edits in other files, but this line.
from stream_hc.kernels.closed_sets import Graph

# Built on marginals.py as of 41d18dc8: as above.
from stream_hc.kernels.marginals import ENOUGH, LEAST, SWEEPS, Loss, Scratch

__all__: list[str] = []


@njit(cache=True, nogil=True)
def free_times_m(graph: Graph, vector: Doubles, product: Doubles) -> None:
    """Compute M · vector, M belonging to the 2 N numbers. Writes `product`."""
    n_nodes = vector.size // 2
    product[:] = 0.0
    for node in range(n_nodes):
        if graph.parent_ptr[node] == graph.parent_ptr[node + 1]:
            product[node] += 2.0 * vector[node]
            continue
        above, pair = graph.parent_idx[graph.parent_ptr[node]], n_nodes + node
        up, own, both = vector[above], vector[node], vector[pair]
        product[node] += 2.0 * own + up - 2.0 * both
        product[above] += 2.0 * up + own - 2.0 * both
        product[pair] += 4.0 * both - 2.0 * up - 2.0 * own


@njit(cache=True, nogil=True)
def free_add_loss(graph: Graph, loss: Loss, true: Bools, gradient: Doubles) -> None:
    """Add L, what each number is worth to the loss. Writes `gradient`."""
    n_nodes = true.size
    for node in range(n_nodes):
        cost = -loss.costs[node] if true[node] else loss.costs[node]
        if not loss.is_tilde or graph.parent_ptr[node] == graph.parent_ptr[node + 1]:
            gradient[node] += cost
            continue
        above, pair = graph.parent_idx[graph.parent_ptr[node]], n_nodes + node
        if true[above]:  # only where the parent is on, a mistake counts: c at (1,0) if true, at (1,1) if not
            gradient[above] += loss.costs[node] if true[node] else 0.0
            gradient[pair] += cost
        else:  # only where it is off: c at (0,1)
            gradient[node] += cost
            gradient[pair] -= cost


@njit(cache=True, nogil=True)
def best_free(graph: Graph, numbers: Doubles, best: Doubles, totals: Doubles) -> float:
    """Find the multilabel with the largest sum; return the sum. Writes `best`, and `totals` as scratch.

    Nodes that add nothing stay off.
    """
    n_nodes = totals.size
    # `totals` is what a node gains if it is on and its parent off; `best` what the nodes below it have then
    # if it is off.
    off = best
    for node in range(n_nodes):
        totals[node], off[node] = numbers[node], 0.0
    total = 0.0
    for node in range(n_nodes - 1, -1, -1):
        on_alone = totals[node]
        if graph.parent_ptr[node] == graph.parent_ptr[node + 1]:
            total += max(on_alone, off[node])
        else:
            above = graph.parent_idx[graph.parent_ptr[node]]
            totals[above] += max(on_alone + numbers[n_nodes + node], off[node])
            off[above] += max(on_alone, off[node])
    for node in range(n_nodes):
        if graph.parent_ptr[node] == graph.parent_ptr[node + 1]:
            best[node] = 1.0 if totals[node] > off[node] else 0.0
            best[n_nodes + node] = 0.0
            continue
        up = best[graph.parent_idx[graph.parent_ptr[node]]]
        on = totals[node] + up * numbers[n_nodes + node] > off[node]
        best[node] = 1.0 if on else 0.0
        best[n_nodes + node] = up if on else 0.0
    return total


@njit(cache=True, nogil=True)
def free_gap_of(graph: Graph, C: float, z: Doubles, scratch: Scratch) -> float:
    """Return the duality gap of an example whose gradient is known. Writes `best`, its best multilabel."""
    gap = C * best_free(graph, scratch.gradient, scratch.best, scratch.room.totals)
    for k in range(z.size):
        gap -= scratch.gradient[k] * z[k]
    return float(gap)


@njit(cache=True, nogil=True)
def free_improve(
    graph: Graph, C: float, square: float, z: Doubles, scratch: Scratch, most_steps: int
) -> tuple[float, float]:
    """Move the numbers of an example uphill; return its duality gap before, and the gain. Writes `z`."""
    gradient, best, step, product = scratch.gradient, scratch.best, scratch.step, scratch.product
    first_gap = gain = 0.0
    for turn in range(most_steps + 1):
        gap = free_gap_of(graph, C, z, scratch)
        if turn == 0:
            first_gap = gap
        if turn == most_steps or gap <= LEAST * C * np.sum(np.abs(gradient)):
            break
        if turn > 0 and gap <= ENOUGH * first_gap:
            break
        for k in range(z.size):
            step[k] = C * best[k] - z[k]
        free_times_m(graph, step, product)
        curvature = 0.0
        for k in range(z.size):
            curvature += step[k] * product[k]
        curvature *= square
        share = 1.0 if curvature <= gap else gap / curvature
        gain += share * (gap - share * curvature / 2.0)
        for k in range(z.size):
            z[k] = min(C, (1.0 - share) * z[k] + share * C * best[k])
            gradient[k] -= share * square * product[k]
        for _ in range(SWEEPS if square > 0.0 else 0):
            gain += free_sweep(graph, scratch.diagonal, C, square, z, gradient)
    return max(first_gap, 0.0), gain


@njit(cache=True, nogil=True)
def free_sweep(
    graph: Graph, diagonal: Doubles, C: float, square: float, z: Doubles, gradient: Doubles
) -> float:
    """Give one number after the other its best value within its bounds; return the gain. Writes `z`."""
    parent_ptr, parent_idx, child_ptr, child_idx = graph[0], graph[1], graph[2], graph[3]
    n_nodes, gain = z.size // 2, 0.0
    for k in range(z.size):
        node = k if k < n_nodes else k - n_nodes
        is_root = parent_ptr[node] == parent_ptr[node + 1]
        above = -1 if is_root else parent_idx[parent_ptr[node]]
        if k >= n_nodes:
            if is_root:
                continue
            lowest, highest = max(0.0, z[above] + z[node] - C), min(z[above], z[node])
            curvature = 4.0
        else:
            lowest, highest, curvature = 0.0, C, diagonal[node]
            if not is_root:
                both = z[n_nodes + node]
                lowest, highest = both, min(C, C + both - z[above])
            for j in range(child_ptr[node], child_ptr[node + 1]):
                both = z[n_nodes + child_idx[j]]
                lowest, highest = max(lowest, both), min(highest, C + both - z[child_idx[j]])
        wanted = z[k] + gradient[k] / (square * curvature)
        step = min(max(wanted, lowest), highest) - z[k]
        # Bounds that rounding has crossed leave a number where it is.
        if lowest > highest or step * gradient[k] <= 0.0:
            continue
        gain += step * (gradient[k] - square * curvature * step / 2.0)
        z[k] += step
        change = square * step
        gradient[k] -= curvature * change
        if k >= n_nodes:
            gradient[node] += 2.0 * change
            gradient[above] += 2.0 * change
            continue
        if not is_root:
            gradient[above] -= change
            gradient[n_nodes + node] += 2.0 * change
        for j in range(child_ptr[node], child_ptr[node + 1]):
            gradient[child_idx[j]] -= change
            gradient[n_nodes + child_idx[j]] += 2.0 * change
    return gain
