"""Weights of features × owners, sparse by feature: what learners of very large taxonomies are made of.

An owner is whoever has a weight for each feature: a node, or one of several concepts of a node.

A feature keeps the weights of the owners it ever touched, and no others, in a block of its own: 2^bits places
in one arena that all features share, of which the first `size` hold the numbers of owners, in the order they
came, and their weights.

A feature that has touched many owners gets a dense block instead: place k is that of owner k, so that
numbers are added to numbers side by side, which takes a tenth of the time for each. Its `bits` are `DENSE`
and its `size` is the width of the block; its owners are not written.

Each score adds up the dense features of a document in their order, then the others in theirs. So answers
depend on which features are dense, and on nothing else about the blocks: a model that was saved, with the
dense ones marked, and loaded gives the same bits, now and later.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stream_hc.kernels import Array, Bools, Doubles, Floats, Ints, Longs

__all__ = [
    "DENSE",
    "IN_DENSE",
    "LEARNED",
    "MOST_DENSE",
    "PLACES",
    "UPDATES",
    "Weights",
    "add_entries",
    "entries",
]

FEWEST_BITS = 1
DENSE = 64  # the bits of a dense block
ONE_IN = 8  # a block becomes dense when it would have places for one in so many owners,
MOST_DENSE = 2**26  # as long as the dense blocks do not have more places than this
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


@njit(cache=True, nogil=True)
def place_of(model: Weights, feature: int, owner: int) -> int:
    """Return the place of an owner in the sparse block of a feature, -1 if it has none."""
    begin = model.begin[feature]
    found = position(model.owners[begin : begin + model.size[feature]], owner)
    return int(begin + found) if found >= 0 else -1


@njit(cache=True, nogil=True)
def position(owners: Ints, owner: int) -> int:
    """Return where an owner stands among others, -1 if it does not."""
    wanted, found = np.int32(owner), np.int32(-1)
    # Without a way out in the middle eight are compared at a time.
    for k in range(np.int32(owners.size)):
        found = max(found, np.int32(k) if owners[k] == wanted else np.int32(-1))
    return int(np.int64(found))


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
    # No block takes more than four times as many places as there are owners: mostly there is plenty of room.
    if room >= 4 * width * features.size:
        return True
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
    is_dense = int(np.int64(model.bits[feature])) == DENSE
    begin, size, step_32 = model.begin[feature], model.size[feature], np.float32(step)
    if model.sums.size > 0 or (is_dense and size < width):
        for owner in owners:
            add(model, feature, owner, step, width)
    elif is_dense:  # nothing to look for
        weights = model.weights[begin : begin + size]
        for owner in owners:
            weights[owner] += step_32
    else:
        places = places_in(model, feature)
        taken, weights = model.owners[begin : begin + places], model.weights[begin : begin + places]
        for k in range(owners.size):
            place = position(taken[:size], owners[k])
            if place >= 0:
                weights[place] += step_32
            elif size < places:
                taken[size], weights[size] = owners[k], step_32
                size += 1
                model.size[feature] = size
            else:  # the block will move
                for owner in owners[k:]:
                    add(model, feature, owner, step, width)
                break


@njit(cache=True, nogil=True)
def score_dense(model: Weights, numbers: Array, features: Ints, values: Floats, scores: Array) -> None:
    """Add what the dense blocks of `numbers` (weights or sums) say about a document. Writes `scores`."""
    # Four rows at a time: the scores are loaded and stored a quarter as often.
    a = b = c = 0
    u = v = w = scores.dtype.type(0.0)
    waiting = 0
    for j in range(features.size):
        feature = features[j]
        if int(np.int64(model.bits[feature])) != DENSE:
            continue
        begin, value = model.begin[feature], scores.dtype.type(values[j])
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
    scores: Array,
) -> None:
    """Add the first `waiting` of three dense blocks. Writes `scores`."""
    for k in range(waiting):
        add_one(values[k], numbers[begins[k] : begins[k] + scores.size], scores)


@njit(cache=True, nogil=True)
def add_four(
    numbers: Array,
    begins: tuple[int, int, int, int],
    values: tuple[float, float, float, float],
    scores: Array,
) -> None:
    """Add four dense blocks, one after the other. Writes `scores`."""
    size = scores.size
    a, b = numbers[begins[0] : begins[0] + size], numbers[begins[1] : begins[1] + size]
    c, d = numbers[begins[2] : begins[2] + size], numbers[begins[3] : begins[3] + size]
    u, v, w, x = values
    for k in range(size):
        scores[k] = (((scores[k] + u * a[k]) + v * b[k]) + w * c[k]) + x * d[k]


@njit(cache=True, nogil=True)
def add_one(value: float, numbers: Array, scores: Array) -> None:
    """Add value · numbers to the first scores. Writes `scores`."""
    for k in range(numbers.size):
        scores[k] += value * numbers[k]


@njit(cache=True, nogil=True)
def score(model: Weights, features: Ints, values: Floats, scores: Array, averages: Array) -> None:
    """Compute w·x of every owner, and that of the averaged weights if wanted. Writes both.

    Sums run in the precision of `scores`: in single precision twice as many are added at a time.
    """
    scores[:] = 0.0
    with_averages = model.sums.size > 0
    if with_averages:
        averages[:] = 0.0
        score_dense(model, model.sums, features, values, averages)
    score_dense(model, model.weights, features, values, scores)
    for j in range(features.size):
        feature, value = features[j], scores.dtype.type(values[j])
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
def twice_as_long(array: Array) -> Array:
    """Return a copy with as much room again."""
    longer = np.empty(2 * array.size, array.dtype)
    longer[: array.size] = array
    return longer


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
