"""The closed set of nodes with the largest sum: how a multilabel is read off a number for every node.

A set is closed if it holds the parents of all its nodes. Nodes that add nothing stay out: among equal sets
the smallest one wins.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from stream_hc.kernels import Doubles, Ints, Longs

__all__ = ["Graph", "best_rows", "chances", "preferences"]

LEAST = 1e-12  # of the sum of all numbers: what is less is rounding


class Graph(NamedTuple):
    """Parents and children of every node in CSR form; whether there is at most one parent."""

    parent_ptr: Longs
    parent_idx: Ints
    child_ptr: Longs
    child_idx: Ints
    is_forest: bool


class Room(NamedTuple):
    """Scratch: what flows along each edge to a parent, what is left of each number, who leads to whom."""

    totals: Doubles
    flow: Doubles
    spare: Doubles
    queue: Ints
    reached: Ints


@njit(cache=True, nogil=True)
def new_room(graph: Graph) -> Room:
    """Return room to work in."""
    n_nodes = graph.parent_ptr.size - 1
    return Room(
        np.zeros(n_nodes),
        np.zeros(graph.parent_idx.size),
        np.zeros(n_nodes),
        np.zeros(n_nodes, np.int32),
        np.zeros(n_nodes, np.int32),
    )


@njit(cache=True, nogil=True)
def best_set(graph: Graph, numbers: Doubles, best: Doubles, room: Room) -> float:
    """Find the closed set with the largest sum: 1 in `best`, the others 0; return the sum. Writes `best`."""
    if not graph.is_forest:
        return best_cut(graph, numbers, best, room)
    parent_ptr, parent_idx, totals, total = graph.parent_ptr, graph.parent_idx, room.totals, 0.0
    for node in range(best.size):
        totals[node] = numbers[node]
    for node in range(best.size - 1, -1, -1):
        if totals[node] > 0.0:
            if parent_ptr[node] < parent_ptr[node + 1]:
                totals[parent_idx[parent_ptr[node]]] += totals[node]
            else:
                total += totals[node]
    for node in range(best.size):
        on = totals[node] > 0.0
        if on and parent_ptr[node] < parent_ptr[node + 1]:
            on = best[parent_idx[parent_ptr[node]]] > 0.0
        best[node] = 1.0 if on else 0.0
    return total


@njit(cache=True, nogil=True)
def best_cut(graph: Graph, numbers: Doubles, best: Doubles, room: Room) -> float:
    """Do what `best_set` does, in any DAG: what nodes gain flows to those ancestors that cost something.

    A node whose gain cannot all be spent on its ancestors is worth having, with them. That is a minimum cut;
    the flow is found along shortest paths.
    """
    flow, spare, reached = room.flow, room.spare, room.reached
    flow[:] = 0.0
    for node in range(best.size):
        spare[node] = abs(numbers[node])
    tiny = LEAST * np.sum(spare)
    goal = path_to_cost(graph, numbers, room, tiny)
    while goal >= 0:
        amount, node = spare[goal], goal
        while reached[node] != node:
            if (
                reached[node] < node
            ):  # down, as a parent has the smaller number: some of the flow is taken back
                amount = min(amount, flow[edge_between(graph, node, reached[node])])
            node = reached[node]
        amount = min(amount, spare[node])
        spare[node] -= amount
        spare[goal] -= amount
        node = goal
        while reached[node] != node:
            if reached[node] < node:
                flow[edge_between(graph, node, reached[node])] -= amount
            else:
                flow[edge_between(graph, reached[node], node)] += amount
            node = reached[node]
        goal = path_to_cost(graph, numbers, room, tiny)
    total = 0.0
    for node in range(best.size):
        best[node] = 1.0 if reached[node] >= 0 else 0.0
        total += best[node] * numbers[node]
    return total


@njit(cache=True, nogil=True)
def path_to_cost(graph: Graph, numbers: Doubles, room: Room, tiny: float) -> int:
    """Return a node with a cost that some gain left can still pay, -1 if there is none. Writes `room`.

    `reached` leads back from it: up along any edge, down where something flows up; a gain leads to itself.
    """
    queue, reached, spare, flow = room.queue, room.reached, room.spare, room.flow
    reached[:] = -1
    n_queue = at = 0
    for node in range(spare.size):
        if numbers[node] > 0.0 and spare[node] > tiny:
            reached[node], queue[n_queue] = node, node
            n_queue += 1
    while at < n_queue:
        node = queue[at]
        at += 1
        if numbers[node] < 0.0 and spare[node] > tiny:
            return int(node)
        for k in range(graph.parent_ptr[node], graph.parent_ptr[node + 1]):
            above = graph.parent_idx[k]
            if reached[above] < 0:
                reached[above], queue[n_queue] = node, above
                n_queue += 1
        for k in range(graph.child_ptr[node], graph.child_ptr[node + 1]):
            below = graph.child_idx[k]
            if reached[below] < 0 and flow[edge_between(graph, below, node)] > tiny:
                reached[below], queue[n_queue] = node, below
                n_queue += 1
    return -1


@njit(cache=True, nogil=True)
def edge_between(graph: Graph, node: int, above: int) -> int:
    """Return the number of the edge from a node to one of its parents."""
    k = int(graph.parent_ptr[node])
    while graph.parent_idx[k] != above:
        k += 1
    return k


@njit(cache=True, nogil=True)
def best_rows(
    parent_ptr: Longs, parent_idx: Ints, child_ptr: Longs, child_idx: Ints, is_forest: bool, numbers: Doubles
) -> tuple[Longs, Ints]:
    """Return the best closed set for each row of numbers (n × N), in CSR form."""
    graph = Graph(parent_ptr, parent_idx, child_ptr, child_idx, is_forest)
    n_rows, n_nodes = numbers.shape
    best, room = np.zeros(n_nodes), new_room(graph)
    ptr = np.zeros(n_rows + 1, np.int64)
    nodes = np.empty(16 * n_rows + n_nodes, np.int32)
    n_found = 0
    for row in range(n_rows):
        best_set(graph, numbers[row], best, room)
        if n_found + n_nodes > nodes.size:
            longer = np.empty(2 * nodes.size, np.int32)
            longer[: nodes.size] = nodes
            nodes = longer
        for node in range(n_nodes):
            if best[node] > 0.0:
                nodes[n_found] = node
                n_found += 1
        ptr[row + 1] = n_found
    return ptr, nodes[:n_found].copy()


@njit(cache=True, nogil=True)
def preferences(
    parent_ptr: Longs,
    parent_idx: Ints,
    child_ptr: Longs,
    child_idx: Ints,
    is_forest: bool,
    numbers: Doubles,
    margins: Doubles,
) -> None:
    """Compute, for each row and node, the best sum with the node less the best without it. Writes `margins`.

    In a DAG that takes two cuts for every node.
    """
    graph = Graph(parent_ptr, parent_idx, child_ptr, child_idx, is_forest)
    n_nodes = numbers.shape[1]
    best, room = np.zeros(n_nodes), new_room(graph)
    have, lack = np.zeros(n_nodes), np.zeros(n_nodes)
    for row in range(numbers.shape[0]):
        if not is_forest:
            forced = numbers[row].copy()
            much = 1.0 + 2.0 * np.sum(np.abs(forced))
            for node in range(n_nodes):
                forced[node] = numbers[row, node] + much
                margins[row, node] = best_cut(graph, forced, best, room) - much
                forced[node] = numbers[row, node] - much
                margins[row, node] -= best_cut(graph, forced, best, room)
                forced[node] = numbers[row, node]
            continue
        total = best_set(graph, numbers[row], best, room)
        for node in range(n_nodes):
            own = max(room.totals[node], 0.0)
            if parent_ptr[node] == parent_ptr[node + 1]:
                lack[node] = total - own
                have[node] = lack[node] + room.totals[node]
            else:
                above = parent_idx[parent_ptr[node]]
                lack[node] = max(lack[above], have[above] - own)
                have[node] = have[above] - own + room.totals[node]
            margins[row, node] = have[node] - lack[node]


@njit(cache=True, nogil=True)
def chances(parent_ptr: Longs, parent_idx: Ints, numbers: Doubles, p: Doubles) -> None:
    """Compute P(node) where closed sets have the chances exp(sum) / Z, in a forest. Writes `p`."""
    for row in range(numbers.shape[0]):
        p[row] = numbers[row]
        for node in range(p.shape[1] - 1, -1, -1):
            if parent_ptr[node] < parent_ptr[node + 1]:
                # log(1 + e^s) without overflow
                s = p[row, node]
                p[row, parent_idx[parent_ptr[node]]] += max(s, 0.0) + np.log1p(np.exp(-abs(s)))
        for node in range(p.shape[1]):
            p[row, node] = 1.0 / (1.0 + np.exp(-p[row, node])) if p[row, node] > -700.0 else 0.0
            if parent_ptr[node] < parent_ptr[node + 1]:
                p[row, node] *= p[row, parent_idx[parent_ptr[node]]]
