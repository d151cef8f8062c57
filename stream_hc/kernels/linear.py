"""Linear learners at every node: margins, top-down decision, and four update rules.

Weights are feature-major: `weights[slots[feature]]` holds the weights of one feature for all nodes, so that a
document costs one contiguous row for each of its features. `slots` is 0 for a feature without a row, and row
0 is never written: it holds the weights (0) and variances (1) of everything not seen yet.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from stream_hc.kernels import Bools, Doubles, Floats, Ints, Longs

__all__ = ["Documents", "Graph", "Labels", "Model", "Rule", "margin_rows", "stream_rows"]

SMALLEST = float(np.finfo(np.float32).tiny)
PERCEPTRON, NODE_PERCEPTRON, FLAT_PERCEPTRON, AROW, PASSIVE_AGGRESSIVE = 0, 1, 2, 3, 4


class Model(NamedTuple):
    """What is learned: `n_rows[0]` rows are in use, row 0 included."""

    slots: Ints
    n_rows: Longs
    weights: Floats
    variances: Floats
    n_updates: Longs


class Graph(NamedTuple):
    """The parents of every node, in CSR form."""

    parent_ptr: Longs
    parent_idx: Ints


class Rule(NamedTuple):
    """How to update; `strength` is r of AROW or C of PA; `zero_is_on` decides a margin of exactly 0."""

    kind: int
    strength: float
    zero_is_on: bool


class Documents(NamedTuple):
    """Documents in CSR form."""

    indptr: Longs
    indices: Ints
    values: Floats


class Labels(NamedTuple):
    """True labels in CSR form, closed upward."""

    indptr: Longs
    indices: Ints


@njit(cache=True, nogil=True)
def margin_row(model: Model, features: Ints, values: Floats, margins: Floats) -> None:
    """Compute w·x at every node. Writes `margins`."""
    margins[:] = 0.0
    for k in range(features.size):
        row = model.slots[features[k]]
        if row > 0:
            for node in range(margins.size):
                margins[node] += values[k] * model.weights[row, node]


@njit(cache=True, nogil=True)
def decide_row(graph: Graph, zero_is_on: bool, margins: Floats, on: Bools) -> None:
    """Switch on each node with a positive margin whose parents are all on. Writes `on`."""
    for node in range(on.size):
        on[node] = margins[node] > 0.0 or (zero_is_on and margins[node] == 0.0)
        for j in range(graph.parent_ptr[node], graph.parent_ptr[node + 1]):
            on[node] = on[node] and on[graph.parent_idx[j]]


@njit(cache=True, nogil=True)
def find_steps(
    graph: Graph,
    rule: Rule,
    margins: Floats,
    on: Bools,
    y_true: Bools,
    square: float,
    nodes: Ints,
    steps: Doubles,
) -> int:
    """List the nodes to update and how far, and return their number. Writes `nodes`, `steps`.

    A step is ±1 (perceptron), ±α (passive-aggressive) or ±(1 − y m), which AROW still divides by s + r.
    """
    n_steps = 0
    for node in range(on.size):
        eligible = True
        if rule.kind != FLAT_PERCEPTRON:
            for j in range(graph.parent_ptr[node], graph.parent_ptr[node + 1]):
                eligible = eligible and y_true[graph.parent_idx[j]]
        if not eligible:
            continue
        sign = 1.0 if y_true[node] else -1.0
        step = 0.0
        if rule.kind == PERCEPTRON:
            step = sign if on[node] != y_true[node] else 0.0
        elif rule.kind == NODE_PERCEPTRON or rule.kind == FLAT_PERCEPTRON:
            own = margins[node] > 0.0 or (rule.zero_is_on and margins[node] == 0.0)
            step = sign if own != y_true[node] else 0.0
        else:
            missing = 1.0 - sign * np.float64(margins[node])
            if missing > 0.0 and rule.kind == AROW:
                step = sign * missing
            elif missing > 0.0:
                # min(C, missing / ‖x‖²) without dividing by a square that may have underflowed to 0
                step = sign * (rule.strength if rule.strength * square <= missing else missing / square)
        if step != 0.0:
            nodes[n_steps] = node
            steps[n_steps] = step
            n_steps += 1
    return n_steps


@njit(cache=True, nogil=True)
def claim_row(model: Model, feature: int) -> int:
    """Return the row of a feature, a fresh one if it has none. Writes `model`."""
    if model.slots[feature] == 0:
        model.slots[feature] = model.n_rows[0]
        model.n_rows[0] += 1
    return int(model.slots[feature])


@njit(cache=True, nogil=True)
def add_steps(model: Model, features: Ints, values: Floats, nodes: Ints, steps: Doubles) -> None:
    """Add step · x to the weights of each listed node. Writes `model`."""
    for k in range(features.size):
        row = claim_row(model, features[k])
        for i in range(nodes.size):
            model.weights[row, nodes[i]] += steps[i] * values[k]
    for i in range(nodes.size):
        model.n_updates[nodes[i]] += 1


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
    spreads[:] = 0.0
    for k in range(features.size):
        row = model.slots[features[k]]
        square = np.float64(values[k]) * np.float64(values[k])
        for i in range(nodes.size):
            spreads[i] += model.variances[row, nodes[i]] * square
    for i in range(nodes.size):
        betas[i] = 1.0 / (spreads[i] + strength)
        steps[i] *= betas[i]
        model.n_updates[nodes[i]] += 1
    for k in range(features.size):
        row = claim_row(model, features[k])
        square = np.float64(values[k]) * np.float64(values[k])
        for i in range(nodes.size):
            variance = np.float64(model.variances[row, nodes[i]])
            model.weights[row, nodes[i]] += steps[i] * variance * values[k]
            # σ − β σ² x² = σ β (r + what the other features add to s): positive however large x is
            others = max(spreads[i] - variance * square, 0.0)
            model.variances[row, nodes[i]] = max(variance * betas[i] * (strength + others), SMALLEST)


@njit(cache=True, nogil=True)
def margin_rows(model: Model, X: Documents, margins: Floats) -> None:
    """Compute the margins of every document at every node. Writes `margins` (n × width)."""
    for row in range(margins.shape[0]):
        part = slice(X.indptr[row], X.indptr[row + 1])
        margin_row(model, X.indices[part], X.values[part], margins[row])


@njit(cache=True, nogil=True)
def stream_rows(
    model: Model, graph: Graph, rule: Rule, X: Documents, Y: Labels, start: int, stop: int, delay: int
) -> tuple[int, Longs, Ints, Floats]:
    """Predict document after document and learn each `delay` documents later; never, if `delay` is negative.

    Returns the row reached, and the predictions of the rows before it in CSR form: pointers, nodes and their
    margins. It stops before `stop` where the weights might run out of rows: make room and call again from the
    row reached. Writes `model`.
    """
    n_nodes = model.n_updates.size
    margins = np.zeros(model.weights.shape[1], np.float32)
    on, y_true = np.zeros(n_nodes, np.bool_), np.zeros(n_nodes, np.bool_)
    nodes = np.empty(n_nodes, np.int32)
    steps, scratch = np.empty(n_nodes, np.float64), np.empty((2, n_nodes), np.float64)
    predicted_ptr = np.zeros(stop - start + 1, np.int64)
    predicted = np.empty(4 * (stop - start) + n_nodes, np.int32)
    scores = np.empty(predicted.size, np.float32)
    size = 0
    for row in range(start, stop):
        learned = row - delay if delay >= 0 else -1
        if learned >= 0:
            n_features = X.indptr[learned + 1] - X.indptr[learned]
            if model.n_rows[0] + n_features > model.weights.shape[0]:
                return (
                    row,
                    predicted_ptr[: row - start + 1].copy(),
                    predicted[:size].copy(),
                    scores[:size].copy(),
                )
        part = slice(X.indptr[row], X.indptr[row + 1])
        margin_row(model, X.indices[part], X.values[part], margins)
        decide_row(graph, rule.zero_is_on, margins, on)
        if size + n_nodes > predicted.size:
            more_nodes, more_scores = (
                np.empty(2 * predicted.size, np.int32),
                np.empty(2 * predicted.size, np.float32),
            )
            more_nodes[:size], more_scores[:size] = predicted[:size], scores[:size]
            predicted, scores = more_nodes, more_scores
        for node in range(n_nodes):
            if on[node]:
                predicted[size], scores[size] = node, margins[node]
                size += 1
        predicted_ptr[row - start + 1] = size
        if learned < 0 or n_features == 0:
            continue
        part = slice(X.indptr[learned], X.indptr[learned + 1])
        features, values = X.indices[part], X.values[part]
        if delay > 0:  # the model has moved on since this document was predicted
            margin_row(model, features, values, margins)
            decide_row(graph, rule.zero_is_on, margins, on)
        y_true[:] = False
        for k in range(Y.indptr[learned], Y.indptr[learned + 1]):
            y_true[Y.indices[k]] = True
        square = 0.0
        for k in range(features.size):
            square += np.float64(values[k]) * np.float64(values[k])
        n_steps = find_steps(graph, rule, margins, on, y_true, square, nodes, steps)
        if n_steps > 0 and rule.kind == AROW:
            add_confident_steps(
                model, rule.strength, features, values, nodes[:n_steps], steps[:n_steps], scratch
            )
        elif n_steps > 0:
            add_steps(model, features, values, nodes[:n_steps], steps[:n_steps])
    return stop, predicted_ptr, predicted[:size].copy(), scores[:size].copy()
