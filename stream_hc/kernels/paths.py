"""Learners of whole paths: the sum of the scores along a path decides.

Owner node · concepts + concept of the weights is one concept of a node; HPA has one concept for each node,
LHPA several. As in `kernels/linear.py`, what is called from outside takes the fields of tuples one by one.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stream_hc.kernels import Doubles, Floats, Ints, Longs

# Built on sparse.py as of 9546da73: numba's cache does not notice edits in other files, but this line.
from stream_hc.kernels.sparse import LEARNED, UPDATES, Weights, add_to_all, has_room, score, twice_as_long

__all__ = ["score_rows", "stream_paths"]

LOW_32 = 0xFFFFFFFF
MIX = 0x45D9F3B
NEAR = 2.0**-22  # more than rounding to single precision can change, relatively


class Rule(NamedTuple):
    """How to judge and update: `flat` scores each end by itself, `strength` is C, `seed` breaks ties."""

    flat: bool
    concepts: int
    strength: float
    seed: int


class Ends(NamedTuple):
    """Where paths may end: in runs of nodes from `first` to `last` - 1, all of them under the same parent.

    `inner` are the nodes that have children.
    """

    first: Ints
    last: Ints
    inner: Ints


class Scratch(NamedTuple):
    """What is worked out about one document.

    Scores of owners; score and concept of the best one of each node (the former only if there are several);
    total of the path to each inner node, 0 where paths do not count.
    """

    scores: Floats
    averages: Floats
    own: Floats
    concept: Ints
    totals: Doubles
    plus: Ints
    minus: Ints


@njit(cache=True, nogil=True)
def mixed(h: int) -> int:
    """Let every bit of a number of 32 depend on every other."""
    h = (((h >> 16) ^ h) * MIX) & LOW_32
    h = (((h >> 16) ^ h) * MIX) & LOW_32
    return (h >> 16) ^ h


@njit(cache=True, nogil=True)
def chance(seed: int, time: int, node: int) -> int:
    """Return a number that looks drawn at random, the same for the same arguments."""
    h = mixed((seed & LOW_32) ^ mixed(seed >> 32))
    return mixed(mixed(h ^ (time & LOW_32)) ^ node)


@njit(cache=True, nogil=True)
def best_concept(scores: Floats, node: int, rule: Rule, time: int) -> int:
    """Return the concept of a node with the highest score; among equals one by chance."""
    first = node * rule.concepts
    best, ties = 0, 1
    for concept in range(1, rule.concepts):
        if scores[first + concept] > scores[first + best]:
            best, ties = concept, 1
        elif scores[first + concept] == scores[first + best]:
            ties += 1
    if ties == 1:
        return best
    wanted = chance(rule.seed, time, node) % ties
    for concept in range(best, rule.concepts):
        if scores[first + concept] == scores[first + best]:
            if wanted == 0:
                return concept
            wanted -= 1
    return best


@njit(cache=True, nogil=True)
def sum_paths(parent: Ints, inner: Ints, scores: Floats, rule: Rule, time: int, scratch: Scratch) -> Floats:
    """Return the score of every node, that of its best concept, and sum them up. Writes `scratch`."""
    own = scratch.own if rule.concepts > 1 else scores
    if rule.concepts > 1:
        for node in range(parent.size):
            concept = best_concept(scores, node, rule, time)
            scratch.concept[node], own[node] = concept, scores[node * rule.concepts + concept]
    if not rule.flat:
        totals = scratch.totals
        for node in inner:
            above = parent[node]
            totals[node] = own[node] + (totals[above] if above >= 0 else 0.0)
    return own


@njit(cache=True, nogil=True)
def total_of(parent: Ints, node: int, own: Floats, totals: Doubles) -> float:
    """Return the total of the path to a node."""
    return float(own[node] + (totals[parent[node]] if parent[node] >= 0 else 0.0))


@njit(cache=True, nogil=True)
def best_end(parent: Ints, ends: Ends, own: Floats, totals: Doubles) -> int:
    """Return the end with the highest total, the first among equals; -1 if there is none."""
    best, highest = -1, -np.inf
    for run in range(ends.first.size):
        first = int(ends.first[run])
        above = totals[parent[first]] if parent[first] >= 0 else 0.0
        # Mostly no node of a run is the best so far: to find that out, eight are compared at a time.
        enough = np.float32(highest - above - NEAR * (abs(highest) + abs(above)))
        scores, any_may_be = own[first : ends.last[run]], False
        for k in range(scores.size):
            any_may_be |= scores[k] > enough
        if any_may_be:
            for k in range(scores.size):
                if scores[k] + above > highest:
                    best, highest = first + k, scores[k] + above
    return best


@njit(cache=True, nogil=True)
def best_wrong_end(parent: Ints, ends: Ends, own: Floats, totals: Doubles, true_ends: Ints) -> int:
    """Return the end with the highest total that is not true, the first among equals; -1 if there is none."""
    kept = own[true_ends]
    own[true_ends] = -np.inf
    wrong = best_end(parent, ends, own, totals)
    own[true_ends] = kept
    return wrong


@njit(cache=True, nogil=True)
def worst_end(parent: Ints, true_ends: Ints, own: Floats, totals: Doubles) -> int:
    """Return the end with the lowest total, the first among equals."""
    worst, lowest = true_ends[0], np.inf
    for end in true_ends:
        total = total_of(parent, end, own, totals)
        if total < lowest:
            worst, lowest = end, total
    return int(worst)


@njit(cache=True, nogil=True)
def split_paths(parent: Ints, right: int, wrong: int, plus: Ints, minus: Ints) -> tuple[int, int]:
    """List the nodes on only one of the paths to two nodes; return how many there are of each."""
    n_plus = n_minus = 0
    while right != wrong:
        # A parent has a smaller number than its children, so the larger one is above neither.
        if right > wrong:
            plus[n_plus] = right
            n_plus += 1
            right = parent[right]
        else:
            minus[n_minus] = wrong
            n_minus += 1
            wrong = parent[wrong]
    return n_plus, n_minus


@njit(cache=True, nogil=True)
def learn(
    model: Weights,
    parent: Ints,
    ends: Ends,
    rule: Rule,
    features: Ints,
    values: Floats,
    true_ends: Ints,
    best: int,
    own: Floats,
    scratch: Scratch,
) -> None:
    """Move the worst right path above the best wrong one, if it is not far enough above. Writes `model`.

    `own` and `scratch` hold scores and totals; `best` is the end with the highest one, -1 if it is not known.
    """
    wrong = best
    if best < 0 or np.any(true_ends == best):
        wrong = best_wrong_end(parent, ends, own, scratch.totals, true_ends)
    if wrong < 0:
        return
    right = worst_end(parent, true_ends, own, scratch.totals)
    if rule.flat:
        scratch.plus[0], scratch.minus[0] = right, wrong
        n_plus = n_minus = 1
        distance = 1.0
    else:
        n_plus, n_minus = split_paths(parent, right, wrong, scratch.plus, scratch.minus)
        distance = float(n_plus + n_minus)
    margin = total_of(parent, right, own, scratch.totals) - total_of(parent, wrong, own, scratch.totals)
    missing = distance - margin
    if missing <= 0.0:
        return
    square = 0.0
    for value in values:
        square += np.float64(value) * np.float64(value)
    square *= n_plus + n_minus
    # min(C, missing / square) without dividing by a square that may have underflowed to 0
    step = rule.strength if rule.strength * square <= missing else missing / square
    plus, minus = scratch.plus[:n_plus], scratch.minus[:n_minus]
    for nodes in (plus, minus):
        for k in range(nodes.size):
            nodes[k] = nodes[k] * rule.concepts + scratch.concept[nodes[k]]
    for j in range(features.size):
        move = step * np.float64(values[j])
        add_to_all(model, features[j], plus, move, scratch.scores.size)
        add_to_all(model, features[j], minus, -move, scratch.scores.size)
    model.used[UPDATES] += 1


@njit(cache=True, nogil=True)
def new_scratch(n_nodes: int, concepts: int) -> Scratch:
    """Return room to work in."""
    n_owners = n_nodes * concepts
    return Scratch(
        np.zeros(n_owners, np.float32),
        np.zeros(n_owners, np.float32),
        np.zeros(n_nodes if concepts > 1 else 0, np.float32),
        np.zeros(n_nodes, np.int32),
        np.zeros(n_nodes),
        np.zeros(n_nodes, np.int32),
        np.zeros(n_nodes, np.int32),
    )


@njit(cache=True, nogil=True)
def runs_of(parent: Ints, ends: Ints) -> Ends:
    """Return the runs that ascending ends make."""
    first, last = np.empty(ends.size, np.int32), np.empty(ends.size, np.int32)
    n_runs = 0
    for end in ends:
        if n_runs > 0 and last[n_runs - 1] == end and parent[end] == parent[end - 1]:
            last[n_runs - 1] += 1
        else:
            first[n_runs], last[n_runs] = end, end + 1
            n_runs += 1
    has_children = np.zeros(parent.size, np.bool_)
    for above in parent:
        if above >= 0:
            has_children[above] = True
    return Ends(first[:n_runs], last[:n_runs], np.flatnonzero(has_children).astype(np.int32))


@njit(cache=True, nogil=True)
def stream_paths(
    begin: Longs,
    bits: NDArray[np.int8],
    size: Ints,
    owners: Ints,
    weights: Floats,
    sums: Doubles,
    free: Longs,
    used: Longs,
    parent: Ints,
    depth: Ints,
    ends: Ints,
    flat: bool,
    concepts: int,
    strength: float,
    seed: int,
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

    `ends` are the nodes where a path may end; `y_idx` lists the ends of the true paths of each document. A
    document without features, and any before the first update, has no path. Returns the row reached, and the
    predicted paths in CSR form: pointers, nodes and their own scores. It stops before `stop` where the arena
    might run out of room: make some and call again from the row reached. Writes the model.
    """
    model = Weights(begin, bits, size, owners, weights, sums, free, used)
    rule = Rule(flat, concepts, strength, seed)
    scratch, runs = new_scratch(parent.size, concepts), runs_of(parent, ends)
    longest = int(np.max(depth)) + 1 if depth.size > 0 else 0
    width = scratch.scores.size
    most_owners = 2 if rule.flat else 2 * longest
    predicted_ptr = np.zeros(stop - start + 1, np.int64)
    predicted = np.empty(4 * (stop - start) + longest, np.int32)
    margins = np.empty(predicted.size, np.float32)
    n_found = 0
    row = start
    while row < stop:
        learned = row - delay if delay >= 0 else -1
        n_true = y_ptr[learned + 1] - y_ptr[learned] if learned >= 0 else 0
        if n_true > 0 and not has_room(model, x_idx[x_ptr[learned] : x_ptr[learned + 1]], most_owners, width):
            break
        part = slice(x_ptr[row], x_ptr[row + 1])
        score(model, x_idx[part], x_values[part], scratch.scores, scratch.averages)
        best, own = -1, scratch.scores
        if model.used[UPDATES] > 0 and x_ptr[row] < x_ptr[row + 1]:
            scores = scratch.averages if model.sums.size > 0 else scratch.scores
            own = sum_paths(parent, runs.inner, scores, rule, model.used[LEARNED], scratch)
            best = best_end(parent, runs, own, scratch.totals)
            if best >= 0:
                node = best
                n_found += depth[node] + 1
                while n_found > predicted.size:
                    predicted, margins = twice_as_long(predicted), twice_as_long(margins)
                place = n_found
                while node >= 0:
                    place -= 1
                    predicted[place] = node
                    margins[place] = own[node]
                    node = parent[node]
        row += 1
        predicted_ptr[row - start] = n_found
        if learned < 0:
            continue
        part = slice(x_ptr[learned], x_ptr[learned + 1])
        if n_true > 0 and x_ptr[learned] < x_ptr[learned + 1]:
            if delay > 0:  # the model has moved on since this document was predicted
                score(model, x_idx[part], x_values[part], scratch.scores, scratch.averages)
            if delay > 0 or best < 0 or model.sums.size > 0:  # or it was predicted by averages, or not at all
                own = sum_paths(parent, runs.inner, scratch.scores, rule, model.used[LEARNED], scratch)
                best = -1
            true_ends = y_idx[y_ptr[learned] : y_ptr[learned + 1]]
            learn(model, parent, runs, rule, x_idx[part], x_values[part], true_ends, best, own, scratch)
        model.used[LEARNED] += 1
    return row, predicted_ptr[: row - start + 1].copy(), predicted[:n_found].copy(), margins[:n_found].copy()


@njit(cache=True, nogil=True)
def score_rows(
    begin: Longs,
    bits: NDArray[np.int8],
    size: Ints,
    owners: Ints,
    weights: Floats,
    sums: Doubles,
    free: Longs,
    used: Longs,
    concepts: int,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    margins: Floats,
) -> None:
    """Compute the score of every document at every node, that of its best concept. Writes `margins`."""
    model = Weights(begin, bits, size, owners, weights, sums, free, used)
    width = margins.shape[1] * concepts
    scores, averages = np.zeros(width, np.float32), np.zeros(width, np.float32)
    for row in range(margins.shape[0]):
        part = slice(x_ptr[row], x_ptr[row + 1])
        score(model, x_idx[part], x_values[part], scores, averages)
        chosen = averages if model.sums.size > 0 else scores
        for node in range(margins.shape[1]):
            first = node * concepts
            margins[row, node] = np.max(chosen[first : first + concepts])
