"""Learners of whole paths: the sum of the scores along a path decides; weights are sparse by feature.

A feature keeps the weights of the nodes it ever touched, and no others, in a small hash table of its own: a
block of 2^bits places in one arena that all features share. Place k holds the number of an owner and its
weight. Owner 0 is nobody: an empty place, whose weight is 0. So a block is read from end to end without a
question asked, into scores of which the first is thrown away. Owner 1 + node · concepts + concept is one
concept of a node; HPA has one concept for each node, LHPA several.

Each score adds up the features of a document in their order, so the answers do not depend on how a block
happens to be laid out: a model that was saved and loaded gives the same bits.

As in `kernels/linear.py`, what is called from outside takes the fields of the tuples one by one.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stream_hc.kernels import Array, Bools, Doubles, Floats, Ints, Longs

__all__ = ["LEARNED", "UPDATES", "Weights", "add_entries", "entries", "score_rows", "stream_paths"]

FEWEST_BITS = 2
LOW_32 = 0xFFFFFFFF
SPREAD = 0x9E3779B1  # times a number below 2^31 it fits in 63 bits
MIX = 0x45D9F3B
# `used` counts: places of the arena handed out, updates, documents learned.
PLACES, UPDATES, LEARNED = 0, 1, 2


class Weights(NamedTuple):
    """The blocks: where each begins, 2^bits places, `size` of them taken; and the arena.

    `sums[k]` is the sum of t · step over all steps t of a weight, for averages; one empty array without them.
    `free[bits]` is the first block of that size that is no longer used, -1 for none; its first place holds
    the next one.
    """

    begin: Longs
    bits: NDArray[np.int8]
    size: Ints
    owners: Ints
    weights: Floats
    sums: Doubles
    free: Longs
    used: Longs


class Rule(NamedTuple):
    """How to judge and update: `flat` scores each end by itself, `strength` is C, `seed` breaks ties."""

    flat: bool
    concepts: int
    strength: float
    seed: int


class Scratch(NamedTuple):
    """What is worked out about one document: scores of owners, best concept and total of each node."""

    scores: Doubles
    averages: Doubles
    concept: Ints
    totals: Doubles
    is_true: Bools
    plus: Ints
    minus: Ints


@njit(cache=True, nogil=True)
def place_of(model: Weights, feature: int, owner: int) -> int:
    """Return the place of an owner in the block of a feature, or the empty place where it belongs."""
    bits = int(np.int64(model.bits[feature]))
    begin, last = model.begin[feature], (1 << bits) - 1
    k = ((int(owner) * SPREAD) & LOW_32) >> (32 - bits)
    while model.owners[begin + k] != owner and model.owners[begin + k] != 0:
        k = (k + 1) & last
    return int(begin + k)


@njit(cache=True, nogil=True)
def claim_block(model: Weights, bits: int) -> int:
    """Return an empty block of 2^bits places. Writes `model`."""
    begin = model.free[bits]
    if begin >= 0:
        model.free[bits] = model.owners[begin]
        model.owners[begin] = 0
    else:
        begin = model.used[PLACES]
        model.used[PLACES] += 1 << bits
    return int(begin)


@njit(cache=True, nogil=True)
def grow_block(model: Weights, feature: int) -> None:
    """Give a feature a block, or one of twice the size. Writes `model`."""
    old_begin, old_bits = model.begin[feature], int(np.int64(model.bits[feature]))
    bits = old_bits + 1 if old_bits > 0 else FEWEST_BITS
    model.begin[feature], model.bits[feature] = claim_block(model, bits), bits
    if old_bits == 0:
        return
    for k in range(old_begin, old_begin + (1 << old_bits)):
        if model.owners[k] != 0:
            place = place_of(model, feature, int(model.owners[k]))
            model.owners[place], model.weights[place] = model.owners[k], model.weights[k]
            model.owners[k], model.weights[k] = 0, 0.0
            if model.sums.size > 0:
                model.sums[place], model.sums[k] = model.sums[k], 0.0
    model.owners[old_begin] = model.free[old_bits]
    model.free[old_bits] = old_begin


@njit(cache=True, nogil=True)
def has_room(model: Weights, features: Ints, n_owners: int) -> bool:
    """Whether the arena can take `n_owners` more owners for each of the features, at worst."""
    room = model.owners.size - model.used[PLACES]
    for feature in features:
        bits, size = int(np.int64(model.bits[feature])), model.size[feature] + n_owners
        while is_full(size, bits):
            bits = bits + 1 if bits > 0 else FEWEST_BITS
            room -= 1 << bits
    return bool(room >= 0)


@njit(cache=True, nogil=True)
def is_full(size: int, bits: int) -> bool:
    """Whether so many owners are too many: more than three in four places."""
    return 4 * size > 3 * (1 << bits) or bits == 0


@njit(cache=True, nogil=True)
def add(model: Weights, feature: int, owner: int, step: float) -> None:
    """Add to the weight of an owner. Writes `model`."""
    if is_full(model.size[feature] + 1, int(np.int64(model.bits[feature]))):
        grow_block(model, feature)
    place = place_of(model, feature, owner)
    if model.owners[place] == 0:
        model.owners[place] = owner
        model.size[feature] += 1
    model.weights[place] += np.float32(step)
    if model.sums.size > 0:
        model.sums[place] += model.used[LEARNED] * np.float64(np.float32(step))


@njit(cache=True, nogil=True)
def score(model: Weights, features: Ints, values: Floats, scores: Doubles, averages: Doubles) -> None:
    """Compute w·x of every owner, and that of the averaged weights if wanted. Writes both."""
    scores[:] = 0.0
    with_averages = model.sums.size > 0
    if with_averages:
        averages[:] = 0.0
    for j in range(features.size):
        feature, value = features[j], np.float64(values[j])
        bits = int(np.int64(model.bits[feature]))
        if bits == 0:
            continue
        begin = model.begin[feature]
        for k in range(begin, begin + (1 << bits)):
            scores[model.owners[k]] += value * model.weights[k]
        if with_averages:
            for k in range(begin, begin + (1 << bits)):
                averages[model.owners[k]] += value * model.sums[k]
    if with_averages:
        # The mean of the weights after each of the documents learned: w - Σ t · step / T, t counted from 0.
        learned = max(1, model.used[LEARNED])
        for owner in range(scores.size):
            averages[owner] = scores[owner] - averages[owner] / learned


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
def best_concept(scores: Doubles, node: int, rule: Rule, time: int) -> int:
    """Return the concept of a node with the highest score; among equals one by chance."""
    first = 1 + node * rule.concepts
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
def sum_paths(parent: Ints, scores: Doubles, rule: Rule, time: int, scratch: Scratch) -> None:
    """Compute the best concept of every node and the total of the path to it. Writes `scratch`."""
    for node in range(parent.size):
        concept = best_concept(scores, node, rule, time) if rule.concepts > 1 else 0
        own = scores[1 + node * rule.concepts + concept]
        above = parent[node]
        scratch.concept[node] = concept
        scratch.totals[node] = own if rule.flat or above < 0 else scratch.totals[above] + own


@njit(cache=True, nogil=True)
def best_end(totals: Doubles, ends: Ints, skip: Bools) -> int:
    """Return the end with the highest total, the first among equals, but none to skip; -1 if none is left."""
    best = -1
    for end in ends:
        if not skip[end] and (best < 0 or totals[end] > totals[best]):
            best = end
    return best


@njit(cache=True, nogil=True)
def worst_end(totals: Doubles, ends: Ints) -> int:
    """Return the end with the lowest total, the first among equals."""
    worst = ends[0]
    for end in ends:
        if totals[end] < totals[worst]:
            worst = end
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
    ends: Ints,
    rule: Rule,
    features: Ints,
    values: Floats,
    true_ends: Ints,
    scratch: Scratch,
) -> None:
    """Move the worst right path above the best wrong one, if it is not far enough above. Writes `model`."""
    time = model.used[LEARNED]
    sum_paths(parent, scratch.scores, rule, time, scratch)
    for end in true_ends:
        scratch.is_true[end] = True
    wrong = best_end(scratch.totals, ends, scratch.is_true)
    for end in true_ends:
        scratch.is_true[end] = False
    if wrong < 0:
        return
    right = worst_end(scratch.totals, true_ends)
    if rule.flat:
        scratch.plus[0], scratch.minus[0] = right, wrong
        n_plus = n_minus = 1
        distance = 1.0
    else:
        n_plus, n_minus = split_paths(parent, right, wrong, scratch.plus, scratch.minus)
        distance = float(n_plus + n_minus)
    missing = distance - (scratch.totals[right] - scratch.totals[wrong])
    if missing <= 0.0:
        return
    square = 0.0
    for value in values:
        square += np.float64(value) * np.float64(value)
    square *= n_plus + n_minus
    # min(C, missing / square) without dividing by a square that may have underflowed to 0
    step = rule.strength if rule.strength * square <= missing else missing / square
    for j in range(features.size):
        move = step * np.float64(values[j])
        for k in range(n_plus):
            node = scratch.plus[k]
            add(model, features[j], 1 + node * rule.concepts + scratch.concept[node], move)
        for k in range(n_minus):
            node = scratch.minus[k]
            add(model, features[j], 1 + node * rule.concepts + scratch.concept[node], -move)
    model.used[UPDATES] += 1


@njit(cache=True, nogil=True)
def twice_as_long(array: Array) -> Array:
    """Return a copy with as much room again."""
    longer = np.empty(2 * array.size, array.dtype)
    longer[: array.size] = array
    return longer


@njit(cache=True, nogil=True)
def new_scratch(n_nodes: int, concepts: int) -> Scratch:
    """Return room to work in."""
    n_owners = 1 + n_nodes * concepts
    return Scratch(
        np.zeros(n_owners),
        np.zeros(n_owners),
        np.zeros(n_nodes, np.int32),
        np.zeros(n_nodes),
        np.zeros(n_nodes, np.bool_),
        np.zeros(n_nodes, np.int32),
        np.zeros(n_nodes, np.int32),
    )


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
    scratch = new_scratch(parent.size, concepts)
    skip_none = np.zeros(parent.size, np.bool_)
    longest = int(np.max(depth)) + 1 if depth.size > 0 else 0
    most_owners = 2 if rule.flat else 2 * longest
    predicted_ptr = np.zeros(stop - start + 1, np.int64)
    predicted = np.empty(4 * (stop - start) + longest, np.int32)
    margins = np.empty(predicted.size, np.float32)
    n_found = 0
    row = start
    while row < stop:
        learned = row - delay if delay >= 0 else -1
        n_true = y_ptr[learned + 1] - y_ptr[learned] if learned >= 0 else 0
        if n_true > 0 and not has_room(model, x_idx[x_ptr[learned] : x_ptr[learned + 1]], most_owners):
            break
        part = slice(x_ptr[row], x_ptr[row + 1])
        score(model, x_idx[part], x_values[part], scratch.scores, scratch.averages)
        if model.used[UPDATES] > 0 and x_ptr[row] < x_ptr[row + 1]:
            scores = scratch.averages if model.sums.size > 0 else scratch.scores
            sum_paths(parent, scores, rule, model.used[LEARNED], scratch)
            node = best_end(scratch.totals, ends, skip_none)
            if node >= 0:
                n_found += depth[node] + 1
                while n_found > predicted.size:
                    predicted, margins = twice_as_long(predicted), twice_as_long(margins)
                place = n_found
                while node >= 0:
                    place -= 1
                    predicted[place] = node
                    margins[place] = scores[1 + node * rule.concepts + scratch.concept[node]]
                    node = parent[node]
        row += 1
        predicted_ptr[row - start] = n_found
        if learned < 0:
            continue
        part = slice(x_ptr[learned], x_ptr[learned + 1])
        if n_true > 0 and x_ptr[learned] < x_ptr[learned + 1]:
            if delay > 0:
                score(model, x_idx[part], x_values[part], scratch.scores, scratch.averages)
            true_ends = y_idx[y_ptr[learned] : y_ptr[learned + 1]]
            learn(model, parent, ends, rule, x_idx[part], x_values[part], true_ends, scratch)
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
    scores, averages = np.zeros(1 + margins.shape[1] * concepts), np.zeros(1 + margins.shape[1] * concepts)
    for row in range(margins.shape[0]):
        part = slice(x_ptr[row], x_ptr[row + 1])
        score(model, x_idx[part], x_values[part], scores, averages)
        chosen = averages if model.sums.size > 0 else scores
        for node in range(margins.shape[1]):
            first = 1 + node * concepts
            margins[row, node] = np.max(chosen[first : first + concepts])


@njit(cache=True, nogil=True)
def entries(
    begin: Longs,
    bits: NDArray[np.int8],
    size: Ints,
    owners: Ints,
    weights: Floats,
    sums: Doubles,
    free: Longs,
    used: Longs,
    features: Ints,
) -> tuple[Longs, Ints, Floats, Doubles]:
    """Return the owners of each feature, ascending, in CSR form, with their weights and sums."""
    ptr = np.zeros(features.size + 1, np.int64)
    for j in range(features.size):
        ptr[j + 1] = ptr[j] + size[features[j]]
    found_owners, found_weights = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.float32)
    found_sums = np.empty(ptr[-1] if sums.size > 0 else 0, np.float64)
    for j in range(features.size):
        first = begin[features[j]]
        places = first + np.flatnonzero(owners[first : first + (1 << int(bits[features[j]]))])
        places = places[np.argsort(owners[places])]
        for k in range(places.size):
            found_owners[ptr[j] + k], found_weights[ptr[j] + k] = owners[places[k]], weights[places[k]]
            if sums.size > 0:
                found_sums[ptr[j] + k] = sums[places[k]]
    return ptr, found_owners, found_weights, found_sums


@njit(cache=True, nogil=True)
def add_entries(
    begin: Longs,
    bits: NDArray[np.int8],
    size: Ints,
    owners: Ints,
    weights: Floats,
    sums: Doubles,
    free: Longs,
    used: Longs,
    features: Ints,
    given_ptr: Longs,
    given_owners: Ints,
    given_weights: Floats,
    given_sums: Doubles,
) -> None:
    """Take back what `entries` returned, into an empty model with room enough. Writes the model."""
    model = Weights(begin, bits, size, owners, weights, sums, free, used)
    for j in range(features.size):
        for k in range(given_ptr[j], given_ptr[j + 1]):
            add(model, features[j], given_owners[k], 0.0)
            place = place_of(model, features[j], given_owners[k])
            weights[place] = given_weights[k]
            if sums.size > 0:
                sums[place] = given_sums[k]
