"""Linear learners at every node: margins, top-down decision, and four update rules.

Weights are feature-major: `table[slots[feature], 0]` holds the weights of one feature for all nodes, so that
a document costs one contiguous row for each of its features; `table[slots[feature], 1]`, right behind, holds
their variances where a learner has some. `slots` is 0 for a feature without a row, and row 0 is never
written: it holds the weights (0) and variances (1) of everything not seen yet.

Numba unpacks named tuples slowly, several microseconds a call, and every array costs a tenth of one: the
kernels that are called from outside take fields one by one (`stream_rows(*model, edges, ...)`) and put them
together again inside.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from stream_hc.kernels import Array, Bools, Doubles, Floats, Ints, Longs

__all__ = ["Model", "Rule", "learn_row", "margin_rows", "predict_row", "stream_rows"]

SMALLEST = float(np.finfo(np.float32).tiny)
BINS, PER_UNIT = 64, 16  # of the histograms: margins from −2 to 2, those beyond in the outermost bins
FEWEST, MEMORY = 16, 2**15  # documents in a histogram before it is halved for the first time, and at most
PERCEPTRON, NODE_PERCEPTRON, FLAT_PERCEPTRON, AROW, PASSIVE_AGGRESSIVE = 0, 1, 2, 3, 4


class Model(NamedTuple):
    """What is learned: `counts[0]` rows are in use, with row 0; node i was updated `counts[1 + i]` times."""

    slots: Ints
    counts: Longs
    table: Floats


class Graph(NamedTuple):
    """Parents and children of every node, in CSR form; the first `n_roots` nodes are the roots.

    Under `needs_all` a node is looked at below all its parents, else below any of them: the same in a forest.
    """

    parent_ptr: Ints
    parent_idx: Ints
    child_ptr: Ints
    child_idx: Ints
    n_roots: int
    needs_all: bool
    is_forest: bool


@njit(cache=True, nogil=True)
def graph_in(edges: Ints) -> Graph:
    """Return the graph behind the array that `edge_array` made: one argument of a call instead of five."""
    n_nodes, n_edges, n_roots, needs_all = edges[0], edges[1], edges[2], edges[3] != 0
    a = 4 + n_nodes + 1
    b = a + n_edges
    c = b + n_nodes + 1
    is_forest = n_edges == n_nodes - n_roots
    return Graph(edges[4:a], edges[a:b], edges[b:c], edges[c:], int(n_roots), needs_all, is_forest)


class Rule(NamedTuple):
    """How to update, and how to decide.

    `strength` is r of AROW or C of PA. A node is on where its margin exceeds its threshold, `cuts[node, 0]`;
    at a margin of exactly 0, which a node that knows nothing about a document has, `zero_is_on` decides
    instead. If `cuts` is wider, thresholds are learned from what the other columns hold (`move_cut`).
    """

    kind: int
    strength: float
    cuts: Doubles
    zero_is_on: bool


class Scratch(NamedTuple):
    """What is worked out about one document: margins, `n_on[0]` nodes `found` on, `steps` to take at `nodes`.

    `sums` holds two numbers for each node to update; `y_true` is False everywhere between two documents.
    """

    margins: Floats
    on: Bools
    found: Ints
    n_on: Longs
    y_true: Bools
    nodes: Ints
    steps: Doubles
    sums: Doubles


@njit(cache=True, nogil=True)
def margin_row(model: Model, features: Ints, values: Floats, margins: Floats) -> None:
    """Compute w·x at every node. Writes `margins`."""
    margins[:] = 0.0
    whole = features.size - features.size % 4
    # Four rows at a time: the margins are loaded and stored a quarter as often.
    for k in range(0, whole, 4):
        a, b = model.table[model.slots[features[k]], 0], model.table[model.slots[features[k + 1]], 0]
        c, d = model.table[model.slots[features[k + 2]], 0], model.table[model.slots[features[k + 3]], 0]
        for node in range(margins.size):
            margins[node] += (values[k] * a[node] + values[k + 1] * b[node]) + (
                values[k + 2] * c[node] + values[k + 3] * d[node]
            )
    for k in range(whole, features.size):
        row = model.table[model.slots[features[k]], 0]
        for node in range(margins.size):
            margins[node] += values[k] * row[node]


@njit(cache=True, nogil=True)
def is_on(rule: Rule, node: int, margin: float) -> bool:
    """Decide by a node's own margin."""
    return margin > rule.cuts[node, 0] if margin != 0.0 else rule.zero_is_on


@njit(cache=True, nogil=True)
def is_open(graph: Graph, node: int, marked: Bools) -> bool:
    """Whether a node with a marked parent may be looked at: always, unless it needs all its parents."""
    open_ = True
    if graph.needs_all:
        for j in range(graph.parent_ptr[node], graph.parent_ptr[node + 1]):
            open_ = open_ and marked[graph.parent_idx[j]]
    return open_


@njit(cache=True, nogil=True)
def decide_row(graph: Graph, rule: Rule, margins: Floats, on: Bools, found: Ints) -> int:
    """Switch on each node whose margin says so below nodes that are on; then all their ancestors.

    Writes `on`, which must be all False, and lists the nodes in `found`, ascending; returns their number.
    """
    size = 0
    for node in range(graph.n_roots):
        if is_on(rule, node, margins[node]):
            on[node] = True
            found[size] = node
            size += 1
    k = 0
    while k < size:
        for j in range(graph.child_ptr[found[k]], graph.child_ptr[found[k] + 1]):
            node = graph.child_idx[j]
            if not on[node] and is_on(rule, node, margins[node]) and is_open(graph, node, on):
                on[node] = True
                found[size] = node
                size += 1
        k += 1
    return size if graph.is_forest else close_row(graph, on, found, size)


@njit(cache=True, nogil=True)
def close_row(graph: Graph, on: Bools, found: Ints, size: int) -> int:
    """Switch on the ancestors of all nodes `found`: in a DAG some may be off; sort; return the number."""
    k = 0
    while k < size:
        for j in range(graph.parent_ptr[found[k]], graph.parent_ptr[found[k] + 1]):
            parent = graph.parent_idx[j]
            if not on[parent]:
                on[parent] = True
                found[size] = parent
                size += 1
        k += 1
    found[:size].sort()
    return size


@njit(cache=True, nogil=True)
def step_of(rule: Rule, node: int, margin: float, on: bool, is_true: bool, square: float) -> float:
    """Return how far to move a node: ±1 (perceptron), ±α (passive-aggressive), 0 where all is well.

    For AROW it is ±(1 − y m), still to be divided by s + r.
    """
    sign = 1.0 if is_true else -1.0
    if rule.kind == PERCEPTRON:
        return sign if on != is_true else 0.0
    if rule.kind == NODE_PERCEPTRON or rule.kind == FLAT_PERCEPTRON:
        return sign if is_on(rule, node, margin) != is_true else 0.0
    missing = 1.0 - sign * np.float64(margin)
    if missing <= 0.0:
        return 0.0
    if rule.kind == AROW:
        return sign * missing
    # min(C, missing / ‖x‖²) without dividing by a square that may have underflowed to 0
    return sign * (rule.strength if rule.strength * square <= missing else missing / square)


@njit(cache=True, nogil=True)
def move_cut(rule: Rule, node: int, margin: float, is_true: bool) -> None:
    """Count a document in the histogram of a node's margins and set the threshold where it errs least.

    `cuts[node, 1]` is the number of documents, `cuts[node, 2:]` how many more true than false ones have
    their margin in each bin. Documents predicted by a younger model fade: all counts are halved each time
    their number has doubled, at the latest after `MEMORY / 2` more. Writes `rule.cuts`.
    """
    if margin == 0.0:
        return  # no threshold decides about it
    cut = rule.cuts[node]
    bins, half = cut[2:], (cut.size - 2) // 2
    which = int(min(max(np.floor(np.float64(margin) * PER_UNIT) + half, 0.0), bins.size - 1.0))
    bins[which] += 1.0 if is_true else -1.0
    cut[1] += 1.0
    n = int(cut[1])
    if n >= FEWEST and n & (n - 1) == 0:
        bins *= 0.5
        if n == MEMORY:
            cut[1] = MEMORY // 2
    # Where the threshold is right about a document, the others have lost: it is the best one still.
    if (which >= cut[0] * PER_UNIT + half) != is_true:
        cut[0] = least_errors(bins)


@njit(cache=True, nogil=True)
def least_errors(bins: Doubles) -> float:
    """Return the edge of a bin below which the fewest are true and above which the fewest are false.

    Of several equal ones it is the one nearest to 0, the lower one of two.
    """
    half = bins.size // 2
    best, errors, fewest, nearest = half, 0.0, np.inf, bins.size
    for edge in range(bins.size + 1):
        distance = abs(edge - half)
        if errors < fewest or (errors == fewest and distance < nearest):
            best, fewest, nearest = edge, errors, distance
        if edge < bins.size:
            errors += bins[edge]
    return (best - half) / PER_UNIT


@njit(cache=True, nogil=True)
def find_eligible(graph: Graph, labels: Ints, y_true: Bools, nodes: Ints) -> int:
    """List the roots and the nodes open below true labels; return their number."""
    count = graph.n_roots
    for node in range(count):
        nodes[node] = node
    for label in labels:
        for j in range(graph.child_ptr[label], graph.child_ptr[label + 1]):
            node = graph.child_idx[j]
            if is_first(graph, node, label, y_true) and is_open(graph, node, y_true):
                nodes[count] = node
                count += 1
    return count


@njit(cache=True, nogil=True)
def is_first(graph: Graph, node: int, parent: int, marked: Bools) -> bool:
    """Whether a parent is the first one of a node that is marked: in a DAG a node is met under each."""
    j = graph.parent_ptr[node]
    while graph.parent_idx[j] != parent and not marked[graph.parent_idx[j]]:
        j += 1
    return bool(graph.parent_idx[j] == parent)


@njit(cache=True, nogil=True)
def find_steps(graph: Graph, rule: Rule, labels: Ints, square: float, scratch: Scratch) -> int:
    """List the nodes to update in `scratch.nodes` and how far in `scratch.steps`; return their number."""
    nodes, count = scratch.nodes, scratch.nodes.size
    if rule.kind == FLAT_PERCEPTRON:
        for node in range(count):
            nodes[node] = node
    else:
        count = find_eligible(graph, labels, scratch.y_true, nodes)
    n_steps = 0
    for k in range(count):
        node = nodes[k]
        is_true, margin = scratch.y_true[node], scratch.margins[node]
        if rule.cuts.shape[1] > 1:
            move_cut(rule, node, margin, is_true)
        step = step_of(rule, node, margin, scratch.on[node], is_true, square)
        if step != 0.0:
            nodes[n_steps], scratch.steps[n_steps] = node, step
            n_steps += 1
    return n_steps


@njit(cache=True, nogil=True)
def has_room(model: Model, features: Ints) -> bool:
    """Whether there are rows left for those of the features that have none yet."""
    room = model.table.shape[0] - model.counts[0]
    if features.size <= room:
        return True
    count = 0
    for feature in features:
        count += model.slots[feature] == 0
    return bool(count <= room)


@njit(cache=True, nogil=True)
def claim_row(model: Model, feature: int) -> int:
    """Return the row of a feature, a fresh one if it has none. Writes `model`."""
    if model.slots[feature] == 0:
        model.slots[feature] = model.counts[0]
        if model.table.shape[1] > 1:
            model.table[model.counts[0], 1] = 1.0
        model.counts[0] += 1
    return int(model.slots[feature])


@njit(cache=True, nogil=True)
def add_steps(model: Model, features: Ints, values: Floats, nodes: Ints, steps: Doubles) -> None:
    """Add step · x to the weights of each listed node. Writes `model`."""
    for k in range(features.size):
        weights = model.table[claim_row(model, features[k]), 0]
        for i in range(nodes.size):
            weights[nodes[i]] += steps[i] * values[k]
    for i in range(nodes.size):
        model.counts[1 + nodes[i]] += 1


@njit(cache=True, nogil=True)
def add_confident_steps(
    model: Model,
    strength: float,
    features: Ints,
    values: Floats,
    nodes: Ints,
    steps: Doubles,
    scratch: Doubles,
) -> None:
    """AROW: add α y σ x to the weights of each listed node, take β σ² x² from its variances.

    Writes `model`, `steps` (1 − y m becomes α) and `scratch` (s and β of each node).
    """
    spreads, betas = scratch[0], scratch[1]
    spreads[: nodes.size] = 0.0
    for k in range(features.size):
        variances = model.table[model.slots[features[k]], 1]
        square = np.float64(values[k]) * np.float64(values[k])
        for i in range(nodes.size):
            spreads[i] += variances[nodes[i]] * square
    for i in range(nodes.size):
        betas[i] = 1.0 / (spreads[i] + strength)
        steps[i] *= betas[i]
        model.counts[1 + nodes[i]] += 1
    for k in range(features.size):
        row = claim_row(model, features[k])
        weights, variances = model.table[row, 0], model.table[row, 1]
        value = np.float64(values[k])
        square = value * value
        for i in range(nodes.size):
            node = nodes[i]
            variance = np.float64(variances[node])
            weights[node] += steps[i] * variance * value
            # σ − β σ² x² = σ β (r + what the other features add to s): positive however large x is
            others = max(spreads[i] - variance * square, 0.0)
            variances[node] = max(variance * betas[i] * (strength + others), SMALLEST)


@njit(cache=True, nogil=True)
def twice_as_long(array: Array) -> Array:
    """Return a copy with as much room again."""
    longer = np.empty(2 * array.size, array.dtype)
    longer[: array.size] = array
    return longer


@njit(cache=True, nogil=True)
def judge(model: Model, graph: Graph, rule: Rule, features: Ints, values: Floats, scratch: Scratch) -> int:
    """Compute margins and decisions of a document; return the number of nodes that are on."""
    for k in range(scratch.n_on[0]):
        scratch.on[scratch.found[k]] = False
    margin_row(model, features, values, scratch.margins)
    scratch.n_on[0] = decide_row(graph, rule, scratch.margins, scratch.on, scratch.found)
    return int(scratch.n_on[0])


@njit(cache=True, nogil=True)
def update(
    model: Model, graph: Graph, rule: Rule, features: Ints, values: Floats, labels: Ints, scratch: Scratch
) -> None:
    """Update the nodes that need it, by what `judge` found out. Writes `model`."""
    square = 0.0
    if rule.kind == PASSIVE_AGGRESSIVE:
        for k in range(features.size):
            square += np.float64(values[k]) * np.float64(values[k])
    for label in labels:
        scratch.y_true[label] = True
    n_steps = find_steps(graph, rule, labels, square, scratch)
    for label in labels:
        scratch.y_true[label] = False
    if n_steps == 0:
        return
    nodes, steps = scratch.nodes[:n_steps], scratch.steps[:n_steps]
    if rule.kind == AROW:
        add_confident_steps(model, rule.strength, features, values, nodes, steps, scratch.sums)
    else:
        add_steps(model, features, values, nodes, steps)


@njit(cache=True, nogil=True)
def new_scratch(n_nodes: int, margins: Floats) -> Scratch:
    """Return room to work in, in few pieces: each costs as much as a small document."""
    doubles, bools = np.empty((3, n_nodes), np.float64), np.zeros(2 * n_nodes, np.bool_)
    return Scratch(
        margins,
        bools[:n_nodes],
        np.empty(n_nodes, np.int32),
        np.zeros(1, np.int64),
        bools[n_nodes:],
        np.empty(n_nodes, np.uint32),
        doubles[0],
        doubles[1:],
    )


@njit(cache=True, nogil=True)
def margin_rows(
    slots: Ints, table: Floats, indptr: Longs, indices: Ints, values: Floats, margins: Floats
) -> None:
    """Compute the margins of every document at every node. Writes `margins` (n × width)."""
    model = Model(slots, np.zeros(0, np.int64), table)
    for row in range(margins.shape[0]):
        part = slice(indptr[row], indptr[row + 1])
        margin_row(model, indices[part], values[part], margins[row])


@njit(cache=True, nogil=True)
def predict_row(
    slots: Ints,
    table: Floats,
    edges: Ints,
    cuts: Doubles,
    zero_is_on: bool,
    features: Ints,
    values: Floats,
    margins: Floats,
) -> Ints:
    """Return the nodes that are on for one document. Writes `margins`."""
    graph, n_nodes = graph_in(edges), edges[0]
    found = np.empty(n_nodes, np.int32)
    margin_row(Model(slots, np.zeros(0, np.int64), table), features, values, margins)
    on = np.zeros(n_nodes, np.bool_)
    return found[: decide_row(graph, Rule(0, 0.0, cuts, zero_is_on), margins, on, found)]


@njit(cache=True, nogil=True)
def learn_row(
    slots: Ints,
    counts: Longs,
    table: Floats,
    edges: Ints,
    kind: int,
    strength: float,
    cuts: Doubles,
    zero_is_on: bool,
    features: Ints,
    values: Floats,
    labels: Ints,
    margins: Floats,
    known: bool,
) -> bool:
    """Learn one document; False where the weights might run out of rows. Writes the model and `margins`.

    They may be `known` already, from predicting it.
    """
    model, rule = Model(slots, counts, table), Rule(kind, strength, cuts, zero_is_on)
    if not has_room(model, features):
        return False
    graph, scratch = graph_in(edges), new_scratch(edges[0], margins)
    if not known:
        margin_row(model, features, values, margins)
    decide_row(graph, rule, margins, scratch.on, scratch.found)
    if features.size > 0:
        update(model, graph, rule, features, values, labels, scratch)
    return True


@njit(cache=True, nogil=True)
def stream_rows(
    slots: Ints,
    counts: Longs,
    table: Floats,
    edges: Ints,
    kind: int,
    strength: float,
    cuts: Doubles,
    zero_is_on: bool,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    y_ptr: Longs,
    y_idx: Ints,
    start: int,
    stop: int,
    delay: int,
) -> tuple[int, Longs, Ints, Floats]:
    """Predict document after document and learn each `delay` documents later; never, if `delay` is negative.

    The arguments are the fields of Model, the graph as an array, the fields of Rule, then documents and
    labels in CSR form, the labels closed upward. Returns the row reached, and the predictions of the rows
    before it in CSR form: pointers, nodes and their margins. It stops before `stop` where the weights might
    run out of rows: make room and call again from the row reached. Writes the model.
    """
    model, rule = Model(slots, counts, table), Rule(kind, strength, cuts, zero_is_on)
    graph, n_nodes = graph_in(edges), int(edges[0])
    scratch = new_scratch(n_nodes, np.empty(table.shape[2], np.float32))
    predicted_ptr = np.zeros(stop - start + 1, np.int64)
    predicted = np.empty(4 * (stop - start) + n_nodes, np.int32)
    scores = np.empty(predicted.size, np.float32)
    size = 0
    row = start
    while row < stop:
        learned = row - delay if delay >= 0 else -1
        n_features = x_ptr[learned + 1] - x_ptr[learned] if learned >= 0 else 0
        if n_features > 0 and not has_room(model, x_idx[x_ptr[learned] : x_ptr[learned + 1]]):
            break
        part = slice(x_ptr[row], x_ptr[row + 1])
        n_on = judge(model, graph, rule, x_idx[part], x_values[part], scratch)
        if size + n_on > predicted.size:
            predicted, scores = twice_as_long(predicted), twice_as_long(scores)
        for k in range(n_on):
            predicted[size] = scratch.found[k]
            scores[size] = scratch.margins[scratch.found[k]]
            size += 1
        row += 1
        predicted_ptr[row - start] = size
        if n_features == 0:
            continue
        part = slice(x_ptr[learned], x_ptr[learned + 1])
        if delay > 0:  # the model has moved on since this document was predicted
            judge(model, graph, rule, x_idx[part], x_values[part], scratch)
        labels = y_idx[y_ptr[learned] : y_ptr[learned + 1]]
        update(model, graph, rule, x_idx[part], x_values[part], labels, scratch)
    return row, predicted_ptr[: row - start + 1].copy(), predicted[:size].copy(), scores[:size].copy()
