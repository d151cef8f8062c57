"""Conditional subspace gradient ascent for H-M³: passes over the examples, on features or on a kernel.

`table` (columns × dual variables) holds the weight vectors, so that the margins of an example are those of
its features added up. With a kernel `gram` (n × n) it holds the margins of the examples themselves. Over
consistent multilabels an example has N dual variables (`marginals.py`), over all 2 N (`free_marginals.py`).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from stream_hc.kernels import Bools, Doubles, Floats, Ints, Longs

# Built on closed_sets.py as of 59ad0c7c: numba's cache does not notice edits in other files, but this line.
from stream_hc.kernels.closed_sets import Graph

# Built on free_marginals.py as of 11f1e363: as above.
from stream_hc.kernels.free_marginals import free_add_loss, free_gap_of, free_improve, free_times_m

# Built on marginals.py as of 41d18dc8: as above.
from stream_hc.kernels.marginals import Loss, Scratch, add_loss, gap_of, improve, new_scratch, times_m

__all__ = ["differences", "follow", "gaps_of", "linear_part", "node_rows", "quadratic_part", "visit"]


class Examples(NamedTuple):
    """Rows in CSR form, or a kernel matrix; squared lengths; true labels, closed upward."""

    x_ptr: Longs
    x_idx: Ints
    x_values: Floats
    gram: Doubles
    squares: Doubles
    true: Bools


@njit(cache=True, nogil=True)
def find_gradient(
    graph: Graph, loss: Loss, data: Examples, row: int, table: Doubles, scratch: Scratch
) -> None:
    """Compute the gradient of the dual objective in the variables of one example. Writes `scratch`."""
    total = scratch.margins
    if data.gram.size > 0:
        total[:] = table[row]
    else:
        begin, end = data.x_ptr[row], data.x_ptr[row + 1]
        add_rows(table, data.x_idx[begin:end], data.x_values[begin:end], total)
    if total.size > data.true.shape[1]:
        free_times_m(graph, total, scratch.gradient)
        free_add_loss(graph, loss, data.true[row], scratch.gradient)
    else:
        times_m(graph, scratch.diagonal, total, scratch.gradient)
        add_loss(graph, loss, data.true[row], scratch.gradient)


@njit(cache=True, nogil=True)
def add_rows(table: Doubles, columns: Ints, values: Floats, total: Doubles) -> None:
    """Compute the margins of an example. Writes `total`."""
    total[:] = 0.0
    n = columns.size
    # Four rows at a time: the margins are loaded and stored a quarter as often.
    for j in range(0, n - n % 4, 4):
        a, b, c, d = table[columns[j]], table[columns[j + 1]], table[columns[j + 2]], table[columns[j + 3]]
        u, v = np.float64(values[j]), np.float64(values[j + 1])
        w, x = np.float64(values[j + 2]), np.float64(values[j + 3])
        for k in range(total.size):
            total[k] = (((total[k] + u * a[k]) + v * b[k]) + w * c[k]) + x * d[k]
    for j in range(n - n % 4, n):
        a, u = table[columns[j]], np.float64(values[j])
        for k in range(total.size):
            total[k] += u * a[k]


@njit(cache=True, nogil=True)
def take_away(data: Examples, row: int, changed: Ints, change: Doubles, table: Doubles) -> None:
    """Let the table follow a change of some dual variables of an example. Writes `table`."""
    if data.gram.size > 0:
        for other in range(table.shape[0]):
            margins, value = table[other], data.gram[other, row]
            for k in range(changed.size):
                margins[changed[k]] -= value * change[k]
        return
    begin, end = data.x_ptr[row], data.x_ptr[row + 1]
    subtract(table, data.x_idx[begin:end], data.x_values[begin:end], changed, change)


@njit(cache=True, nogil=True)
def subtract(table: Doubles, columns: Ints, values: Floats, changed: Ints, change: Doubles) -> None:
    """Take x · change away from the weights of some dual variables. Writes `table`."""
    # Numbers without a sign are not looked at for being negative: half the time.
    weights, width = table.reshape(-1), np.uint64(table.shape[1])
    for j in range(columns.size):
        begin, value = np.uint64(columns[j]) * width, np.float64(values[j])
        for k in range(changed.size):
            weights[begin + np.uint64(changed[k])] -= value * change[k]


@njit(cache=True, nogil=True)
def follow(
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    rows: Ints,
    ptr: Longs,
    changed: Ints,
    change: Doubles,
    table: Doubles,
) -> None:
    """Let the table follow changes of the dual variables of several examples. Writes `table`.

    From `ptr[r]` to `ptr[r + 1]` - 1, `changed` are the dual variables of example `rows[r]` that changed, and
    `change` is by how much.
    """
    for r in range(rows.size):
        first, last = ptr[r], ptr[r + 1]
        if first < last:
            begin, end = x_ptr[rows[r]], x_ptr[rows[r] + 1]
            subtract(table, x_idx[begin:end], x_values[begin:end], changed[first:last], change[first:last])


@njit(cache=True, nogil=True)
def differences(before: Doubles, after: Doubles) -> tuple[Longs, Ints, Doubles, Doubles]:
    """Return where two tables differ, row by row: ends, columns, what is there now, and the change."""
    ptr = np.zeros(before.shape[0] + 1, np.int64)
    for row in range(before.shape[0]):
        ptr[row + 1] = ptr[row]
        for k in range(before.shape[1]):
            ptr[row + 1] += before[row, k] != after[row, k]
    columns, values, change = np.empty(ptr[-1], np.int32), np.empty(ptr[-1]), np.empty(ptr[-1])
    at = 0
    for row in range(before.shape[0]):
        for k in range(before.shape[1]):
            if before[row, k] != after[row, k]:
                columns[at], values[at], change[at] = k, after[row, k], after[row, k] - before[row, k]
                at += 1
    return ptr, columns, values, change


@njit(cache=True, nogil=True)
def visit(
    parent_ptr: Longs,
    parent_idx: Ints,
    child_ptr: Longs,
    child_idx: Ints,
    is_forest: bool,
    costs: Doubles,
    is_tilde: bool,
    C: float,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    gram: Doubles,
    squares: Doubles,
    true: Bools,
    order: Ints,
    most_steps: int,
    table: Doubles,
    marginals: Doubles,
    gaps: Doubles,
) -> float:
    """Improve the examples in an order; return what the dual objective gained. Writes the last three."""
    graph = Graph(parent_ptr, parent_idx, child_ptr, child_idx, is_forest)
    loss, data = Loss(costs, is_tilde), Examples(x_ptr, x_idx, x_values, gram, squares, true)
    size = table.shape[1]
    scratch, is_free = new_scratch(graph, size), size > true.shape[1]
    changed, before, gain = np.empty(size, np.int32), scratch.before, 0.0
    for row in order:
        find_gradient(graph, loss, data, row, table, scratch)
        a = marginals[row]
        before[:] = a
        if is_free:
            gaps[row], more = free_improve(graph, C, squares[row], a, scratch, most_steps)
        else:
            gaps[row], more = improve(graph, C, squares[row], a, scratch, most_steps)
        gain += more
        n_changed = 0
        for k in range(size):
            if a[k] != before[k]:
                changed[n_changed], before[n_changed] = k, a[k] - before[k]
                n_changed += 1
        take_away(data, row, changed[:n_changed], before[:n_changed], table)
    return gain


@njit(cache=True, nogil=True)
def gaps_of(
    parent_ptr: Longs,
    parent_idx: Ints,
    child_ptr: Longs,
    child_idx: Ints,
    is_forest: bool,
    costs: Doubles,
    is_tilde: bool,
    C: float,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    gram: Doubles,
    squares: Doubles,
    true: Bools,
    first: int,
    last: int,
    table: Doubles,
    marginals: Doubles,
    gaps: Doubles,
) -> None:
    """Compute the duality gaps of the examples from `first` to `last` - 1, all for the same weights.

    Writes `gaps`.
    """
    graph = Graph(parent_ptr, parent_idx, child_ptr, child_idx, is_forest)
    loss, data = Loss(costs, is_tilde), Examples(x_ptr, x_idx, x_values, gram, squares, true)
    scratch, is_free = new_scratch(graph, table.shape[1]), table.shape[1] > true.shape[1]
    for row in range(first, last):
        find_gradient(graph, loss, data, row, table, scratch)
        if is_free:
            gaps[row] = max(free_gap_of(graph, C, marginals[row], scratch), 0.0)
        else:
            gaps[row] = max(gap_of(graph, C, marginals[row], scratch), 0.0)


@njit(cache=True, nogil=True)
def linear_part(
    parent_ptr: Longs,
    parent_idx: Ints,
    child_ptr: Longs,
    child_idx: Ints,
    is_forest: bool,
    costs: Doubles,
    is_tilde: bool,
    true: Bools,
    change: Doubles,
) -> float:
    """Return Σ L·change over the examples: the expected loss, if `change` leads away from the true labels."""
    graph, loss = Graph(parent_ptr, parent_idx, child_ptr, child_idx, is_forest), Loss(costs, is_tilde)
    total, own = 0.0, np.zeros(change.shape[1])
    for row in range(change.shape[0]):
        own[:] = 0.0
        if own.size > true.shape[1]:
            free_add_loss(graph, loss, true[row], own)
        else:
            add_loss(graph, loss, true[row], own)
        for k in range(own.size):
            total += own[k] * change[row, k]
    return total


@njit(cache=True, nogil=True)
def quadratic_part(
    parent_ptr: Longs,
    parent_idx: Ints,
    child_ptr: Longs,
    child_idx: Ints,
    is_forest: bool,
    table: Doubles,
    other: Doubles,
) -> float:
    """Return Σ u·M v over the rows u of one table and v of another: twice the same one gives |w|²."""
    graph = Graph(parent_ptr, parent_idx, child_ptr, child_idx, is_forest)
    size, n_nodes = table.shape[1], parent_ptr.size - 1
    product, scratch, total = np.zeros(size), new_scratch(graph, size), 0.0
    for row in range(table.shape[0]):
        if size > n_nodes:
            free_times_m(graph, table[row], product)
        else:
            times_m(graph, scratch.diagonal, table[row], product)
        for k in range(size):
            total += product[k] * other[row, k]
    return total


@njit(cache=True, nogil=True)
def node_rows(
    parent_ptr: Longs,
    parent_idx: Ints,
    child_ptr: Longs,
    child_idx: Ints,
    is_forest: bool,
    table: Doubles,
    rows: Floats,
) -> None:
    """Compute U, a row for each of a table: the score of a consistent multilabel adds up U·x of its nodes.

    Writes `rows` (as many × N).
    """
    graph = Graph(parent_ptr, parent_idx, child_ptr, child_idx, is_forest)
    size, n_nodes = table.shape[1], rows.shape[1]
    product, scratch = np.zeros(size), new_scratch(graph, size)
    for row in range(table.shape[0]):
        if size > n_nodes:
            free_times_m(graph, table[row], product)
        else:
            times_m(graph, scratch.diagonal, table[row], product)
        for node in range(n_nodes):
            # A node is never on without its parent: what both are worth together counts for it.
            rows[row, node] = product[node] + (product[n_nodes + node] if size > n_nodes else 0.0)
