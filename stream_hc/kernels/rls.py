"""Regularised least squares at every node: what to store, the margins, the factor behind both, and decisions.

At one node S holds the stored documents, K = I + SᵀS, k = Sᵀx. Kept are the coefficients α = K⁻¹y and M, the
inverse of the Cholesky factor of K: M is lower triangular and K⁻¹ = MᵀM. For a document x

    vᵀx = α·k,   z = Mk,   u = Mᵀz = K⁻¹k,   r = xᵀA⁻¹x = ‖x‖² − z·z,   m = vᵀx / (1 + r).

With the factor itself z and u would take two substitutions, in which each number waits for the one before;
with its inverse a single pass over the rows gives both. A new document appends the row (−u, 1) / √(1 + r), a
removed one is rotated out of the rows after it. The rows lie in blocks of 8, each as long as the last one of
its block and zero behind its own end, so that no loop has a remainder; where each block begins is listed, so
that a factor grows without being moved.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from stream_hc.kernels import Array, Bools, Doubles, Floats, Ints, Longs

__all__ = ["Answers", "Batch", "Documents", "Forest", "Graph", "Nodes", "Rule", "ask_nodes", "count_eligible"]
__all__ += ["margin_nodes", "stream_bayes", "stream_nodes"]

BLOCK = 8
OLDEST, COEFFICIENT, REDUNDANT, INFLUENCE = 0, 1, 2, 3
# Rounding keeps α·k within a sixteenth of `noise` of the exact value, however the sum is formed.
ROUNDING = 64 * 2.0**-53
TIE = 1e-9
LARGEST = float(np.finfo(np.float64).max)


class Documents(NamedTuple):
    """The stored documents in CSR form, with ‖x‖² of each."""

    ptr: Longs
    features: Ints
    values: Floats
    squares: Doubles


class Nodes(NamedTuple):
    """What is learned. Node i owns the numbers from `begin[i]` on.

    `ids` are documents in the order they were stored, `targets` ±1, `alpha` the coefficients, `spread` the
    diagonal of K⁻¹; `reach` is Σ |α_j| ‖x_j‖, which bounds the rounding errors of a margin. From
    `block_begin[i]` on, `blocks` says where in `factor` the blocks of its rows begin.
    """

    begin: Longs
    n_stored: Longs
    n_updates: Longs
    reach: Doubles
    ids: Ints
    targets: Array
    alpha: Doubles
    spread: Doubles
    block_begin: Longs
    blocks: Longs
    factor: Doubles


class Graph(NamedTuple):
    """The parents of every node, in CSR form, and whether a node needs them all or any one of them."""

    parent_ptr: Longs
    parent_idx: Ints
    needs_all: bool


class Forest(NamedTuple):
    """The parent of every node, -1 at a root, and what a mistake costs there."""

    parent: Ints
    costs: Doubles


class Rule(NamedTuple):
    """What a margin of 0 predicts, how many documents a node may store (0: any number), which one goes."""

    zero_is_on: bool
    budget: int
    eviction: int


class Row(NamedTuple):
    """One document, with ‖x‖²."""

    features: Ints
    values: Floats
    square: float


class Batch(NamedTuple):
    """Documents to predict and to learn, step by step.

    Step s predicts row `first` + s of `x`, whose products with all stored documents are `seen[s]`. All but
    the `silent` first steps then learn: the stored document `document` + s − `silent`, products `taught[s]`,
    labels `y_true[s]`, the (`t` + s − `silent`)-th one. Without `delay` it is the row just predicted. `on`
    and, unless it is empty, `scores` receive the answers and the margins of what is on.
    """

    x: Documents
    first: int
    seen: Doubles
    taught: Doubles
    y_true: Bools
    delay: int
    silent: int
    document: int
    t: int
    on: Bools
    scores: Doubles


class Answers(NamedTuple):
    """What is predicted, which nodes would store the document, and with which margin."""

    on: Bools
    asked: Bools
    margins: Doubles


class Scratch(NamedTuple):
    """Room for k, u and the row on its way out of the factor."""

    k: Doubles
    u: Doubles
    carry: Doubles


@njit(cache=True, nogil=True)
def padded(n: int) -> int:
    """Round up to whole blocks."""
    return (n + BLOCK - 1) // BLOCK * BLOCK


@njit(cache=True, nogil=True)
def row_begin(blocks: Longs, row: int) -> int:
    """Return where a row of the factor begins."""
    return int(blocks[row // BLOCK]) + row % BLOCK * padded(row + 1)


# Only with leave to reorder the sum does the compiler use vectors; every caller gets the same machine code.
@njit(cache=True, nogil=True, fastmath={"reassoc"})
def dot(a: Doubles, b: Doubles) -> float:
    """Return a·b, summed in an order that depends on the length alone."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def four_dots(
    a: Doubles, b: Doubles, c: Doubles, d: Doubles, k: Doubles
) -> tuple[float, float, float, float]:
    """Return the products of four rows with k, which is read once for all of them."""
    za, zb, zc, zd = 0.0, 0.0, 0.0, 0.0
    for j in range(a.size):
        za += a[j] * k[j]
        zb += b[j] * k[j]
        zc += c[j] * k[j]
        zd += d[j] * k[j]
    return za, zb, zc, zd


@njit(cache=True, nogil=True)
def solve(factor: Doubles, blocks: Longs, n: int, k: Doubles, u: Doubles, ceiling: float) -> float:
    """Compute u = K⁻¹k and return z·z, or give up as soon as that exceeds `ceiling`. Writes `u`."""
    u[: padded(n)] = 0.0
    total = 0.0
    for row in range(0, n, 4):
        width = padded(row + 1)
        a, b, c, d = four_rows(factor, blocks, row, width)
        za, zb, zc, zd = four_dots(a, b, c, d, k)
        total += (za * za + zb * zb) + (zc * zc + zd * zd)
        if total > ceiling:
            break
        for j in range(width):
            u[j] += (za * a[j] + zb * b[j]) + (zc * c[j] + zd * d[j])
    return total


@njit(cache=True, nogil=True)
def explained(factor: Doubles, blocks: Longs, n: int, k: Doubles) -> float:
    """Return z·z = ‖x‖² − r."""
    total = 0.0
    for row in range(0, n, 4):
        width = padded(row + 1)
        a, b, c, d = four_rows(factor, blocks, row, width)
        za, zb, zc, zd = four_dots(a, b, c, d, k)
        total += (za * za + zb * zb) + (zc * zc + zd * zd)
    return total


@njit(cache=True, nogil=True)
def four_rows(
    factor: Doubles, blocks: Longs, row: int, width: int
) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """Return four rows of one block; those not in use are zero."""
    at = row_begin(blocks, row)
    return (
        factor[at : at + width],
        factor[at + width : at + 2 * width],
        factor[at + 2 * width : at + 3 * width],
        factor[at + 3 * width : at + 4 * width],
    )


@njit(cache=True, nogil=True)
def append_row(factor: Doubles, blocks: Longs, n: int, u: Doubles, r: float) -> None:
    """Append (−u, 1) / √(1 + r) to the n rows of the factor. Writes `factor`."""
    width, at = padded(n + 1), row_begin(blocks, n)
    if n % BLOCK == 0:
        factor[at : at + BLOCK * width] = 0.0
    scale = 1.0 / np.sqrt(1.0 + r)
    for j in range(n):
        factor[at + j] = -scale * u[j]
    factor[at + n] = scale


@njit(cache=True, nogil=True)
def rotate(carry: Doubles, old: Doubles, new: Doubles, c: float, s: float) -> None:
    """Rotate two rows. Writes `carry`, and the other one to `new`."""
    for j in range(carry.size):
        before = carry[j]
        carry[j] = c * before + s * old[j]
        new[j] = c * old[j] - s * before


@njit(cache=True, nogil=True)
def remove_row(factor: Doubles, blocks: Longs, n: int, out: int, carry: Doubles) -> None:
    """Turn the factor of n documents into that of the others. Writes `factor`, `carry`.

    Rotations gather column `out` in one row, which then leaves with it: K⁻¹ loses carryᵀcarry.
    """
    carry[: padded(n)] = 0.0
    at = row_begin(blocks, out)
    carry[: out + 1] = factor[at : at + out + 1]
    for row in range(out + 1, n):
        at, to = row_begin(blocks, row), row_begin(blocks, row - 1)
        old, new = factor[at : at + row + 1], factor[to : to + row]
        length = np.sqrt(carry[out] * carry[out] + old[out] * old[out])
        c, s = carry[out] / length, old[out] / length
        rotate(carry[:out], old[:out], new[:out], c, s)
        carry[out] = length
        rotate(carry[out + 1 : row + 1], old[out + 1 :], new[out:], c, s)
    at = row_begin(blocks, n - 1)
    factor[at : at + padded(n)] = 0.0


@njit(cache=True, nogil=True)
def row_of(x: Documents, row: int) -> Row:
    """Return one document."""
    part = slice(x.ptr[row], x.ptr[row + 1])
    return Row(x.features[part], x.values[part], x.squares[row])


@njit(cache=True, nogil=True)
def gather(nodes: Nodes, node: int, products: Doubles, k: Doubles) -> float:
    """Collect k from the products of a document with all stored ones and return vᵀx. Writes `k`."""
    n, begin = nodes.n_stored[node], nodes.begin[node]
    ids = nodes.ids[begin : begin + n]
    for j in range(n):
        k[j] = products[ids[j]]
    k[n : padded(n)] = 0.0
    return dot(nodes.alpha[begin : begin + n], k[:n])


@njit(cache=True, nogil=True)
def by_weights(docs: Documents, nodes: Nodes, node: int, x: Row) -> float:
    """Return vᵀx as prediction by the weights v computes it, number for number."""
    features, weights = x.features, np.zeros(x.features.size)
    begin = nodes.begin[node]
    for j in range(begin, begin + nodes.n_stored[node]):
        p, last = docs.ptr[nodes.ids[j]], docs.ptr[nodes.ids[j] + 1]
        for f in range(features.size):
            while p < last and docs.features[p] < features[f]:
                p += 1
            if p < last and docs.features[p] == features[f]:
                weights[f] += nodes.alpha[j] * docs.values[p]
    total = 0.0
    for f in range(features.size):
        total += x.values[f] * weights[f]
    return total


@njit(cache=True, nogil=True)
def settled(docs: Documents, nodes: Nodes, node: int, x: Row, vx: float) -> float:
    """Return vᵀx, or 0 where it is 0 up to rounding: the sign must not be left to the last bit."""
    noise = ROUNDING * (nodes.n_stored[node] + x.features.size) * nodes.reach[node] * np.sqrt(x.square)
    if abs(vx) <= 0.5 * noise:
        return 0.0
    if abs(vx) < 2.0 * noise and abs(by_weights(docs, nodes, node, x)) <= noise:
        return 0.0
    return vx


@njit(cache=True, nogil=True)
def margin(nodes: Nodes, node: int, square: float, vx: float, k: Doubles) -> float:
    """Return m = vᵀx / (1 + r)."""
    if vx == 0.0:
        return 0.0
    blocks = nodes.blocks[nodes.block_begin[node] :]
    r = square - explained(nodes.factor, blocks, nodes.n_stored[node], k)
    return vx / (1.0 + min(max(r, 0.0), square))


@njit(cache=True, nogil=True)
def choose(nodes: Nodes, node: int, eviction: int) -> int:
    """Return which of the stored documents goes; the older one where two are equal up to rounding."""
    begin = nodes.begin[node]
    best, least = 0, LARGEST
    for j in range(nodes.n_stored[node]):
        alpha, spread = nodes.alpha[begin + j], nodes.spread[begin + j]
        if eviction == OLDEST:
            score = 0.0
        elif eviction == COEFFICIENT:
            score = abs(alpha)
        elif eviction == REDUNDANT:
            score = -spread
        else:
            score = alpha * alpha / spread
        if score < least - TIE * abs(least):
            best, least = j, score
    return best


@njit(cache=True, nogil=True)
def evict(docs: Documents, nodes: Nodes, node: int, out: int, work: Scratch) -> None:
    """Forget one document of a node; u and k lose its place. Writes `nodes`, `work`."""
    begin, n = nodes.begin[node], nodes.n_stored[node]
    carry, k, u = work.carry, work.k, work.u
    remove_row(nodes.factor, nodes.blocks[nodes.block_begin[node] :], n, out, carry)
    ids, targets = nodes.ids[begin : begin + n], nodes.targets[begin : begin + n]
    alpha, spread = nodes.alpha[begin : begin + n], nodes.spread[begin : begin + n]
    alpha_step, u_step = alpha[out] / carry[out], u[out] / carry[out]
    for j in range(n):
        alpha[j] -= alpha_step * carry[j]
        u[j] -= u_step * carry[j]
        # (K⁻¹)_jj is at least 1 / K_jj
        spread[j] = max(spread[j] - carry[j] * carry[j], 1.0 / (1.0 + docs.squares[ids[j]]))
    for j in range(out, n - 1):
        ids[j], targets[j] = ids[j + 1], targets[j + 1]
        alpha[j], spread[j] = alpha[j + 1], spread[j + 1]
        u[j], k[j] = u[j + 1], k[j + 1]
    u[n - 1], k[n - 1] = 0.0, 0.0
    nodes.n_stored[node] = n - 1


@njit(cache=True, nogil=True)
def shorten(vector: Doubles, largest: float) -> None:
    """Scale a vector down to the length that exact arithmetic allows it. Writes `vector`.

    It is never longer unless features are so large that float64 cannot hold K: then the numbers stay finite.
    """
    square = dot(vector, vector)
    if square > 1.01 * largest * largest:
        vector *= largest / np.sqrt(square)


@njit(cache=True, nogil=True)
def store(
    docs: Documents, nodes: Nodes, node: int, document: int, target: int, r: float, work: Scratch
) -> None:
    """Store a document at a node, given u and k. Writes `nodes`."""
    begin, n = nodes.begin[node], nodes.n_stored[node]
    alpha, spread, u = nodes.alpha[begin : begin + n + 1], nodes.spread[begin : begin + n + 1], work.u
    shorten(u[:n], 0.5 * np.sqrt(docs.squares[document]))
    append_row(nodes.factor, nodes.blocks[nodes.block_begin[node] :], n, u, r)
    step = (target - dot(alpha[:n], work.k[:n])) / (1.0 + r)
    for j in range(n):
        alpha[j] -= step * u[j]
        spread[j] += u[j] * u[j] / (1.0 + r)
    alpha[n], spread[n] = step, 1.0 / (1.0 + r)
    shorten(alpha, np.sqrt(n + 1.0))
    nodes.ids[begin + n], nodes.targets[begin + n] = document, target
    nodes.n_stored[node] = n + 1
    nodes.n_updates[node] += 1
    nodes.reach[node] = 0.0
    for j in range(n + 1):
        nodes.reach[node] += abs(alpha[j]) * np.sqrt(docs.squares[nodes.ids[begin + j]])


@njit(cache=True, nogil=True)
def band(n_updates: int, t: int) -> float:
    """Return how small a margin must be for its document to be stored, after so many that were.

    With a budget, too, all that were ever stored count. Counting what is left would keep the band wide for
    ever, and most of what it lets in would be forgotten soon.
    """
    return float(np.sqrt(5.0 * np.log(t) / n_updates)) if n_updates > 0 else np.inf


@njit(cache=True, nogil=True)
def learn_node(
    docs: Documents,
    nodes: Nodes,
    rule: Rule,
    node: int,
    document: int,
    target: int,
    t: int,
    vx: float,
    work: Scratch,
) -> None:
    """Store the document at an eligible node if its margin is within the band, given k. Writes `nodes`.

    r is between 0 and ‖x‖²: it is worked out only where that leaves open what to do, or to store.
    """
    n, square, limit = nodes.n_stored[node], docs.squares[document], band(nodes.n_updates[node], t)
    if abs(vx) > limit * (1.0 + square):
        return
    ceiling = np.inf if abs(vx) <= limit else 1.0 + square - abs(vx) / limit
    blocks = nodes.blocks[nodes.block_begin[node] :]
    z_square = solve(nodes.factor, blocks, n, work.k, work.u, ceiling)
    if z_square > ceiling:
        return
    r = min(max(square - z_square, 0.0), square)
    if abs(vx) > limit * (1.0 + r):
        return
    if 0 < rule.budget <= n:
        evict(docs, nodes, node, choose(nodes, node, rule.eviction), work)
        r = min(max(square - dot(work.k[: n - 1], work.u[: n - 1]), 0.0), square)
    store(docs, nodes, node, document, target, r, work)


@njit(cache=True, nogil=True)
def is_open(graph: Graph, node: int, labels: Bools) -> bool:
    """Whether as many parents of a node are on as it needs; a root has none and is open."""
    first, end = graph.parent_ptr[node], graph.parent_ptr[node + 1]
    n_on = 0
    for j in range(first, end):
        n_on += labels[graph.parent_idx[j]]
    return bool(n_on >= (end - first if graph.needs_all else min(end - first, 1)))


@njit(cache=True, nogil=True)
def scratch_for(sizes: Longs, order: Ints) -> Scratch:
    """Return what the largest of these nodes needs, if it stores as many documents as `sizes` says."""
    most = 0
    for i in range(order.size):
        most = max(most, sizes[order[i]])
    size = padded(most)
    return Scratch(np.zeros(size), np.zeros(size), np.zeros(size))


@njit(cache=True, nogil=True)
def look(
    docs: Documents, nodes: Nodes, node: int, x: Row, products: Doubles, k: Doubles
) -> tuple[float, float]:
    """Return vᵀx as it was computed, and settled. Writes `k`."""
    if nodes.n_stored[node] == 0:
        return 0.0, 0.0
    vx = gather(nodes, node, products, k)
    return vx, settled(docs, nodes, node, x, vx)


@njit(cache=True, nogil=True)
def stream_nodes(
    docs: Documents,
    nodes: Nodes,
    graph: Graph,
    rule: Rule,
    order: Ints,
    batch: Batch,
    room: Longs,
    reached: Longs,
) -> int:
    """Let the nodes in `order` predict and learn a batch, node after node: none depends on another.

    Only a prediction asks the parents, so they must come first in `order` or have been done before. Returns
    how many nodes are done: it stops where a node may need more than its `room`, having `reached` a step;
    make room and go on from there. Writes `nodes`, `reached` and the answers in `batch`.
    """
    work = scratch_for(room, order)
    on, silent = batch.on, batch.silent
    for i in range(order.size):
        node = order[i]
        for step in range(reached[node], on.shape[0]):
            if nodes.n_stored[node] == room[node] and nodes.n_stored[node] != rule.budget:
                reached[node] = step
                return i
            below, vx = is_open(graph, node, on[step]), 0.0
            # A node that is off may still be switched on by one below it, in a DAG: its score is wanted, too.
            looked = below or (batch.scores.size > 0 and not graph.needs_all)
            if looked:
                x = row_of(batch.x, batch.first + step)
                vx, value = look(docs, nodes, node, x, batch.seen[step], work.k)
                on[step, node] = below and (value > 0.0 or (value == 0.0 and rule.zero_is_on))
                if batch.scores.size > 0 and (on[step, node] or not graph.needs_all):
                    batch.scores[step, node] = margin(nodes, node, x.square, value, work.k)
            learned = batch.document + step - silent
            if step < silent or docs.ptr[learned] == docs.ptr[learned + 1]:
                continue
            if is_open(graph, node, batch.y_true[step]):
                if batch.delay > 0 or not looked:
                    vx = gather(nodes, node, batch.taught[step], work.k)
                target = 1 if batch.y_true[step, node] else -1
                learn_node(docs, nodes, rule, node, learned, target, batch.t + step - silent, vx, work)
    return int(order.size)


@njit(cache=True, nogil=True)
def estimate(m: float, zero_is_on: bool) -> float:
    """Return p = (1 + m) / 2, between 0 and 1; where m is 0 nothing is known, and `zero_is_on` decides."""
    if m == 0.0:
        return 0.5 if zero_is_on else 0.0
    return min(max(0.5 * (1.0 + m), 0.0), 1.0)


@njit(cache=True, nogil=True)
def least_risk(p: float, below: float, cost: float) -> float:
    """Return H, the least expected loss at a node and below it, given that its parent is a label."""
    if p * (2.0 - below / cost) >= 1.0:
        return cost * (1.0 - p) + p * below
    return cost * p


@njit(cache=True, nogil=True)
def risk_interval(p: Doubles, below: Doubles, cost: float) -> tuple[float, float]:
    """Return bounds of H for p and Σ H_k in their intervals.

    H = min(c p, c + p (Σ H_k − c)) grows with Σ H_k and is concave in p: it is least at an end of the
    interval of p, and largest at an end or where both lines meet.
    """
    low = min(least_risk(p[0], below[0], cost), least_risk(p[1], below[0], cost))
    high = max(least_risk(p[0], below[1], cost), least_risk(p[1], below[1], cost))
    if below[1] < cost:
        meet = cost / (2.0 * cost - below[1])
        if p[0] < meet < p[1]:
            high = max(high, cost * meet)
    return low, high


@njit(cache=True, nogil=True)
def add_risks(forest: Forest, p: Doubles, below: Doubles, inside: Bools) -> None:
    """Sum up the risks of the children of each node `inside`, from the leaves upward. Writes `below`."""
    parent = forest.parent
    for node in range(parent.size):
        if inside[node]:
            below[node] = 0.0
    for node in range(parent.size - 1, -1, -1):
        if parent[node] >= 0 and inside[parent[node]]:
            low, high = risk_interval(p[node], below[node], forest.costs[node])
            below[parent[node], 0] += low
            below[parent[node], 1] += high


@njit(cache=True, nogil=True)
def verdict(p: Doubles, below: Doubles, cost: float) -> int:
    """Return 1 or 0 if that is the decision for all values in the intervals, else -1."""
    if p[0] == p[1] and below[0] == below[1]:
        return 1 if p[0] * (2.0 - below[0] / cost) >= 1.0 else 0
    if p[1] * (2.0 - below[0] / cost) < 1.0 - TIE:
        return 0
    if p[0] * (2.0 - below[1] / cost) > 1.0 + TIE:
        return 1
    return -1


@njit(cache=True, nogil=True)
def decide_row(
    docs: Documents,
    nodes: Nodes,
    forest: Forest,
    zero_is_on: bool,
    x: Row,
    products: Doubles,
    k: Doubles,
    on: Bools,
) -> None:
    """Find the multilabel of least expected H-loss. Writes `k`, `on`.

    The interval [0, ‖x‖²] of r gives one for every p and every risk. Only where they leave a decision open
    the node's own r is worked out, and if that is not enough, those of all nodes below it.
    """
    parent, costs = forest.parent, forest.costs
    p, below = np.empty((parent.size, 2)), np.zeros((parent.size, 2))
    values = np.empty(parent.size)
    for node in range(parent.size):
        _, values[node] = look(docs, nodes, node, x, products, k)
        one, other = estimate(values[node], zero_is_on), estimate(values[node] / (1.0 + x.square), zero_is_on)
        p[node, 0], p[node, 1] = min(one, other), max(one, other)
    inside = np.ones(parent.size, np.bool_)
    add_risks(forest, p, below, inside)
    for node in range(parent.size):
        on[node] = False
        if parent[node] >= 0 and not on[parent[node]]:
            continue
        answer = verdict(p[node], below[node], costs[node])
        if answer < 0:
            settle(nodes, node, values[node], zero_is_on, x.square, products, k, p[node])
            answer = verdict(p[node], below[node], costs[node])
        if answer < 0:
            for other in range(parent.size):
                inside[other] = other == node or (
                    other > node and parent[other] >= 0 and inside[parent[other]]
                )
                if inside[other]:
                    settle(nodes, other, values[other], zero_is_on, x.square, products, k, p[other])
            add_risks(forest, p, below, inside)
            answer = verdict(p[node], below[node], costs[node])
        on[node] = answer == 1


@njit(cache=True, nogil=True)
def settle(
    nodes: Nodes,
    node: int,
    value: float,
    zero_is_on: bool,
    square: float,
    products: Doubles,
    k: Doubles,
    p: Doubles,
) -> None:
    """Work out p exactly, unless it is known. Writes `k`, `p`."""
    if p[0] != p[1]:
        gather(nodes, node, products, k)
        p[:] = estimate(margin(nodes, node, square, value, k), zero_is_on)


@njit(cache=True, nogil=True)
def stream_bayes(
    docs: Documents, nodes: Nodes, forest: Forest, rule: Rule, batch: Batch, room: Longs, step: int
) -> int:
    """Do what `stream_nodes` does, but decide as H-BAYES does, and so document after document.

    A decision looks at all nodes of a forest at once. Returns the step reached: it stops where a node may
    need more than its `room`; make room and go on from there. Writes `nodes` and the answers in `batch`.
    """
    parent, on, y_true, silent = forest.parent, batch.on, batch.y_true, batch.silent
    work = scratch_for(room, np.arange(parent.size).astype(np.int32))
    eligible = np.zeros(parent.size, np.bool_)
    while step < on.shape[0]:
        learned = batch.document + step - silent
        learns = step >= silent and docs.ptr[learned] < docs.ptr[learned + 1]
        for node in range(parent.size):
            eligible[node] = learns and (parent[node] < 0 or y_true[step, parent[node]])
            n_stored = nodes.n_stored[node]
            if eligible[node] and n_stored == room[node] and n_stored != rule.budget:
                return step
        x = row_of(batch.x, batch.first + step)
        decide_row(docs, nodes, forest, rule.zero_is_on, x, batch.seen[step], work.k, on[step])
        for node in range(parent.size):
            if batch.scores.size > 0 and on[step, node]:
                _, value = look(docs, nodes, node, x, batch.seen[step], work.k)
                batch.scores[step, node] = margin(nodes, node, x.square, value, work.k)
            if eligible[node]:
                vx = gather(nodes, node, batch.taught[step], work.k)
                target = 1 if y_true[step, node] else -1
                learn_node(docs, nodes, rule, node, learned, target, batch.t + step - silent, vx, work)
        step += 1
    return step


@njit(cache=True, nogil=True)
def margin_nodes(
    docs: Documents, nodes: Nodes, order: Ints, x: Documents, first: int, products: Doubles, margins: Doubles
) -> None:
    """Compute m at every node in `order` for the rows from `first` on. Writes `margins`, a row each."""
    work = scratch_for(nodes.n_stored, order)
    for i in range(order.size):
        for step in range(margins.shape[0]):
            row = row_of(x, first + step)
            _, value = look(docs, nodes, order[i], row, products[step], work.k)
            margins[step, order[i]] = margin(nodes, order[i], row.square, value, work.k)


@njit(cache=True, nogil=True)
def ask_nodes(
    docs: Documents,
    nodes: Nodes,
    graph: Graph,
    x: Documents,
    first: int,
    products: Doubles,
    t: int,
    answers: Answers,
) -> None:
    """Find the nodes under predicted parents that would store a row as the t-th one. Writes `answers`."""
    on = answers.on
    work = scratch_for(nodes.n_stored, np.arange(on.shape[1]).astype(np.int32))
    for step in range(on.shape[0]):
        row = row_of(x, first + step)
        for node in range(on.shape[1]):
            if row.features.size == 0 or not is_open(graph, node, on[step]):
                continue
            vx, value = look(docs, nodes, node, row, products[step], work.k)
            limit = band(nodes.n_updates[node], t)
            if abs(vx) <= limit * (1.0 + row.square):
                m = margin(nodes, node, row.square, value, work.k)
                answers.asked[step, node], answers.margins[step, node] = abs(m) <= limit, m


@njit(cache=True, nogil=True)
def count_eligible(graph: Graph, y_true: Bools) -> Longs:
    """Return at how many rows of labels each node is eligible, below the parents among them."""
    counts = np.zeros(y_true.shape[1], np.int64)
    for row in range(y_true.shape[0]):
        for node in range(y_true.shape[1]):
            if is_open(graph, node, y_true[row]):
                counts[node] += 1
    return counts
