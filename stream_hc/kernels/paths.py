"""Learners of whole paths: the sum of the scores along a path decides; weights are sparse by feature.

A feature keeps the weights of the nodes it ever touched, and no others, in a block of its own: 2^bits places
in one arena that all features share, of which the first `size` hold the numbers of owners, in the order they
came, and their weights. Owner node · concepts + concept is one concept of a node; HPA has one concept for each node,
LHPA several.

A feature that has touched many owners gets a dense block instead: place k is that of owner k, so that
numbers are added to numbers side by side, which takes a tenth of the time for each. Its `bits` are `DENSE`
and its `size` is the width of the block; its owners are not written.

Each score adds up the dense features of a document in their order, then the others in theirs. So answers
depend on which features are dense, and on nothing else about the blocks: a model that was saved, with the
dense ones marked, and loaded gives the same bits, now and later.

As in `kernels/linear.py`, what is called from outside takes the fields of the tuples one by one.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stream_hc.kernels import Array, Bools, Doubles, Floats, Ints, Longs

__all__ = ["LEARNED", "UPDATES", "Weights", "add_entries", "entries", "score_rows", "stream_paths"]

FEWEST_BITS = 1
DENSE = 64  # the bits of a dense block
ONE_IN = 4  # a block becomes dense when it would have places for one in so many owners,
MOST_DENSE = 2**26  # as long as the dense blocks do not have more places than this
LOW_32 = 0xFFFFFFFF
MIX = 0x45D9F3B
# `used` counts: places of the arena handed out, updates, documents learned, places in dense blocks.
PLACES, UPDATES, LEARNED, IN_DENSE = 0, 1, 2, 3


class Weights(NamedTuple):
    """The blocks: where each begins, 2^bits places, `size` of them taken (dense: all); and the arena.

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
    """Return the place of an owner in the sparse block of a feature, -1 if it has none."""
    begin = model.begin[feature]
    owners, wanted, found = model.owners[begin : begin + model.size[feature]], np.int32(owner), np.int32(-1)
    # Without a way out in the middle eight are compared at a time.
    for k in range(np.int32(owners.size)):
        found = max(found, np.int32(k) if owners[k] == wanted else np.int32(-1))
    return int(begin + found) if found >= 0 else -1


@njit(cache=True, nogil=True)
def places_in(model: Weights, feature: int) -> int:
    """Return how many places the block of a feature has."""
    bits = int(np.int64(model.bits[feature]))
    if bits == DENSE:
        return int(model.size[feature])
    return 1 << bits if bits > 0 else 0


@njit(cache=True, nogil=True)
def next_bits(model: Weights, bits: int, width: int) -> int:
    """Return the bits of the block that follows when one is full and there are `width` owners in all."""
    more = bits + 1 if bits > 0 else FEWEST_BITS
    worth_it = ONE_IN << more >= width and model.used[IN_DENSE] + width <= MOST_DENSE
    return DENSE if bits == DENSE or worth_it else more


@njit(cache=True, nogil=True)
def claim_block(model: Weights, bits: int) -> int:
    """Return a block of 2^bits places. Writes `model`."""
    begin = model.free[bits]
    if begin >= 0:
        model.free[bits] = model.owners[begin]
    else:
        begin = model.used[PLACES]
        model.used[PLACES] += 1 << bits
    return int(begin)


@njit(cache=True, nogil=True)
def claim_dense(model: Weights, width: int) -> int:
    """Return a dense block: numbers never used before, all 0. Writes `model`."""
    begin = model.used[PLACES]
    model.used[PLACES] += width
    model.used[IN_DENSE] += width
    return int(begin)


@njit(cache=True, nogil=True)
def grow_block(model: Weights, feature: int, width: int) -> None:
    """Give a feature a block, or one of twice the size, or a dense one for `width` owners. Writes `model`."""
    old_begin, old_bits = model.begin[feature], int(np.int64(model.bits[feature]))
    old_size = model.size[feature]
    bits = next_bits(model, old_bits, width)
    if bits == DENSE:
        width = max(width, 2 * old_size) if old_bits == DENSE else width
        begin = claim_dense(model, width)
        model.size[feature] = width
    else:
        begin = claim_block(model, bits)
    model.begin[feature], model.bits[feature] = begin, bits
    for k in range(old_size):
        place = begin + k
        if bits == DENSE and old_bits < DENSE:
            place = begin + model.owners[old_begin + k]
        elif bits < DENSE:
            model.owners[place] = model.owners[old_begin + k]
        model.weights[place] = model.weights[old_begin + k]
        if model.sums.size > 0:
            model.sums[place] = model.sums[old_begin + k]
    if 0 < old_bits < DENSE:
        model.owners[old_begin] = model.free[old_bits]
        model.free[old_bits] = old_begin


@njit(cache=True, nogil=True)
def has_room(model: Weights, features: Ints, n_owners: int, width: int) -> bool:
    """Whether the arena can take `n_owners` more of the `width` owners for each feature, at worst."""
    room = model.owners.size - model.used[PLACES]
    for feature in features:
        bits = int(np.int64(model.bits[feature]))
        if bits == DENSE:
            room -= max(width, 2 * model.size[feature]) if model.size[feature] < width else 0
            continue
        places = 1 << bits if bits > 0 else 0
        while bits < DENSE and places < model.size[feature] + n_owners:
            bits = next_bits(model, bits, width)
            places = width if bits == DENSE else 1 << bits
            # By the time it comes to it, the dense blocks may be full.
            room -= max(places, 2 << bits if bits < DENSE else 2 * (model.size[feature] + n_owners))
    return bool(room >= 0)


@njit(cache=True, nogil=True)
def add(model: Weights, feature: int, owner: int, step: float, width: int) -> None:
    """Add to the weight of one of `width` owners. Writes `model`."""
    if int(np.int64(model.bits[feature])) == DENSE and owner < model.size[feature]:
        place = int(model.begin[feature] + owner)
    else:
        place = insert(model, feature, owner, width)
    model.weights[place] += np.float32(step)
    if model.sums.size > 0:
        model.sums[place] += model.used[LEARNED] * np.float64(np.float32(step))


@njit(cache=True, nogil=True)
def insert(model: Weights, feature: int, owner: int, width: int) -> int:
    """Return the place of an owner, a new one with the weight 0 if it has none. Writes `model`."""
    if int(np.int64(model.bits[feature])) < DENSE:
        place = place_of(model, feature, owner)
        if place >= 0:
            return place
    if model.size[feature] == places_in(model, feature):
        grow_block(model, feature, width)
    if int(np.int64(model.bits[feature])) == DENSE:
        return int(model.begin[feature] + owner)
    place = model.begin[feature] + model.size[feature]
    model.owners[place], model.weights[place] = owner, 0.0
    if model.sums.size > 0:
        model.sums[place] = 0.0
    model.size[feature] += 1
    return int(place)


@njit(cache=True, nogil=True)
def add_to_all(model: Weights, feature: int, owners: Ints, step: float, width: int) -> None:
    """Add the same to the weights of several of `width` owners. Writes `model`."""
    if int(np.int64(model.bits[feature])) < DENSE or model.size[feature] < width or model.sums.size > 0:
        for owner in owners:
            add(model, feature, owner, step, width)
    else:  # nothing to look for
        begin, step_32 = model.begin[feature], np.float32(step)
        for owner in owners:
            model.weights[begin + owner] += step_32


@njit(cache=True, nogil=True)
def score_dense(model: Weights, numbers: Array, features: Ints, values: Floats, scores: Doubles) -> None:
    """Add what the dense blocks of `numbers` (weights or sums) say about a document. Writes `scores`."""
    # Four rows at a time: the scores are loaded and stored a quarter as often.
    a = b = c = 0
    u = v = w = 0.0
    waiting = 0
    for j in range(features.size):
        feature = features[j]
        if int(np.int64(model.bits[feature])) != DENSE:
            continue
        begin, value = model.begin[feature], np.float64(values[j])
        if model.size[feature] < scores.size:  # labels were added since: by itself, after those before it
            add_waiting(numbers, (a, b, c), (u, v, w), waiting, scores)
            add_one(value, numbers[begin : begin + model.size[feature]], scores)
            waiting = 0
        elif waiting == 0:
            a, u, waiting = begin, value, 1
        elif waiting == 1:
            b, v, waiting = begin, value, 2
        elif waiting == 2:
            c, w, waiting = begin, value, 3
        else:
            add_four(numbers, (a, b, c, begin), (u, v, w, value), scores)
            waiting = 0
    add_waiting(numbers, (a, b, c), (u, v, w), waiting, scores)


@njit(cache=True, nogil=True)
def add_waiting(
    numbers: Array,
    begins: tuple[int, int, int],
    values: tuple[float, float, float],
    waiting: int,
    scores: Doubles,
) -> None:
    """Add the first `waiting` of three dense blocks. Writes `scores`."""
    for k in range(waiting):
        add_one(values[k], numbers[begins[k] : begins[k] + scores.size], scores)


@njit(cache=True, nogil=True)
def add_four(
    numbers: Array,
    begins: tuple[int, int, int, int],
    values: tuple[float, float, float, float],
    scores: Doubles,
) -> None:
    """Add four dense blocks, one after the other. Writes `scores`."""
    size = scores.size
    a, b = numbers[begins[0] : begins[0] + size], numbers[begins[1] : begins[1] + size]
    c, d = numbers[begins[2] : begins[2] + size], numbers[begins[3] : begins[3] + size]
    u, v, w, x = values
    for k in range(size):
        scores[k] = (((scores[k] + u * a[k]) + v * b[k]) + w * c[k]) + x * d[k]


@njit(cache=True, nogil=True)
def add_one(value: float, numbers: Array, scores: Doubles) -> None:
    """Add value · numbers to the first scores. Writes `scores`."""
    for k in range(numbers.size):
        scores[k] += value * numbers[k]


@njit(cache=True, nogil=True)
def score(model: Weights, features: Ints, values: Floats, scores: Doubles, averages: Doubles) -> None:
    """Compute w·x of every owner, and that of the averaged weights if wanted. Writes both."""
    scores[:] = 0.0
    with_averages = model.sums.size > 0
    if with_averages:
        averages[:] = 0.0
        score_dense(model, model.sums, features, values, averages)
    score_dense(model, model.weights, features, values, scores)
    for j in range(features.size):
        feature, value = features[j], np.float64(values[j])
        bits = int(np.int64(model.bits[feature]))
        if bits == DENSE:
            continue
        begin = model.begin[feature]
        for k in range(begin, begin + model.size[feature]):
            scores[model.owners[k]] += value * model.weights[k]
        if with_averages:
            for k in range(begin, begin + model.size[feature]):
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
def sum_paths(parent: Ints, scores: Doubles, rule: Rule, time: int, scratch: Scratch) -> None:
    """Compute the best concept of every node and the total of the path to it. Writes `scratch`."""
    if rule.concepts == 1 and not rule.flat:  # what the loop below does, in half the time
        for node in range(parent.size):
            above = parent[node]
            scratch.totals[node] = scores[node] + (scratch.totals[above] if above >= 0 else 0.0)
        return
    for node in range(parent.size):
        concept = best_concept(scores, node, rule, time) if rule.concepts > 1 else 0
        own = scores[node * rule.concepts + concept]
        above = parent[node]
        scratch.concept[node] = concept
        scratch.totals[node] = own if rule.flat or above < 0 else scratch.totals[above] + own


@njit(cache=True, nogil=True)
def best_end(totals: Doubles, ends: Ints) -> int:
    """Return the end with the highest total, the first among equals; -1 if there is none."""
    best, highest = -1, -np.inf
    for end in ends:
        if totals[end] > highest:
            best, highest = end, totals[end]
    return best


@njit(cache=True, nogil=True)
def best_wrong_end(totals: Doubles, ends: Ints, is_true: Bools) -> int:
    """Return the end with the highest total that is not true, the first among equals; -1 if there is none."""
    best, highest = -1, -np.inf
    for end in ends:
        if totals[end] > highest and not is_true[end]:
            best, highest = end, totals[end]
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
    best: int,
    scratch: Scratch,
) -> None:
    """Move the worst right path above the best wrong one, if it is not far enough above. Writes `model`.

    `scratch` holds the totals; `best` is the end with the highest one, -1 if it is not known yet.
    """
    for end in true_ends:
        scratch.is_true[end] = True
    wrong = best
    if best < 0 or scratch.is_true[best]:
        wrong = best_wrong_end(scratch.totals, ends, scratch.is_true)
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
def twice_as_long(array: Array) -> Array:
    """Return a copy with as much room again."""
    longer = np.empty(2 * array.size, array.dtype)
    longer[: array.size] = array
    return longer


@njit(cache=True, nogil=True)
def new_scratch(n_nodes: int, concepts: int) -> Scratch:
    """Return room to work in."""
    n_owners = n_nodes * concepts
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
        best = -1
        if model.used[UPDATES] > 0 and x_ptr[row] < x_ptr[row + 1]:
            scores = scratch.averages if model.sums.size > 0 else scratch.scores
            sum_paths(parent, scores, rule, model.used[LEARNED], scratch)
            best = best_end(scratch.totals, ends)
            if best >= 0:
                node = best
                n_found += depth[node] + 1
                while n_found > predicted.size:
                    predicted, margins = twice_as_long(predicted), twice_as_long(margins)
                place = n_found
                while node >= 0:
                    place -= 1
                    predicted[place] = node
                    margins[place] = scores[node * rule.concepts + scratch.concept[node]]
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
                sum_paths(parent, scratch.scores, rule, model.used[LEARNED], scratch)
                best = -1
            true_ends = y_idx[y_ptr[learned] : y_ptr[learned + 1]]
            learn(model, parent, ends, rule, x_idx[part], x_values[part], true_ends, best, scratch)
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
    scores, averages = np.zeros(width), np.zeros(width)
    for row in range(margins.shape[0]):
        part = slice(x_ptr[row], x_ptr[row + 1])
        score(model, x_idx[part], x_values[part], scores, averages)
        chosen = averages if model.sums.size > 0 else scores
        for node in range(margins.shape[1]):
            first = node * concepts
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
    """Return the owners of each feature, ascending from 0, in CSR form, with their weights and sums."""
    model = Weights(begin, bits, size, owners, weights, sums, free, used)
    ptr = np.zeros(features.size + 1, np.int64)
    for j in range(features.size):
        ptr[j + 1] = ptr[j]
        for k in range(size[features[j]]):
            ptr[j + 1] += is_taken(model, features[j], begin[features[j]] + k)
    found_owners, found_weights = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.float32)
    found_sums = np.empty(ptr[-1] if sums.size > 0 else 0, np.float64)
    n = 0
    for feature in features:
        order = np.arange(size[feature])
        if bits[feature] < DENSE:
            order = np.argsort(owners[begin[feature] : begin[feature] + size[feature]])
        for k in order:
            place = begin[feature] + k
            if is_taken(model, feature, place):
                found_owners[n] = k if bits[feature] == DENSE else owners[place]
                found_weights[n] = weights[place]
                if sums.size > 0:
                    found_sums[n] = sums[place]
                n += 1
    return ptr, found_owners, found_weights, found_sums


@njit(cache=True, nogil=True)
def is_taken(model: Weights, feature: int, place: int) -> bool:
    """Whether a place has an owner; in a dense block only those count that have a weight."""
    if int(np.int64(model.bits[feature])) < DENSE:
        return True
    return bool(model.weights[place] != 0.0 or (model.sums.size > 0 and model.sums[place] != 0.0))


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
    dense: Bools,
    width: int,
) -> None:
    """Take back what `entries` returned, into an empty model with room enough. Writes it.

    The features marked get a dense block for `width` owners, the others the smallest they fit in.
    """
    model = Weights(begin, bits, size, owners, weights, sums, free, used)
    for j in range(features.size):
        feature, n = features[j], given_ptr[j + 1] - given_ptr[j]
        if dense[j]:
            bits[feature], begin[feature], size[feature] = DENSE, claim_dense(model, width), width
        else:
            needed = FEWEST_BITS
            while 1 << needed < n:
                needed += 1
            bits[feature], begin[feature], size[feature] = needed, claim_block(model, needed), n
        for k in range(n):
            place = begin[feature] + (given_owners[given_ptr[j] + k] if dense[j] else k)
            if not dense[j]:
                owners[place] = given_owners[given_ptr[j] + k]
            weights[place] = given_weights[given_ptr[j] + k]
            if sums.size > 0:
                sums[place] = given_sums[given_ptr[j] + k]
