"""The ranking perceptron of Cai and Hofmann: every category above every other that is not a label.

An end is a category that may be a label by itself: a leaf, or the miscellaneous terminal under an inner
node. It is numbered by that node. `above_ptr` and `above_idx` list the owners that an end is made of,
ascending: those of its node and of all ancestors, 1 + 2 · node, and 2 + 2 · node for the terminal of an inner
node. Its score is F = t · (sum of w·x over them). Owner 0 does not rank: its w·x says how many labels a
document has more than the others.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stream_hc.kernels import Bools, Doubles, Floats, Ints, Longs

# Built on sparse.py as of 9546da73: numba's cache does not notice edits in other files, but this line.
from stream_hc.kernels.sparse import LEARNED, UPDATES, Weights, add_to_all, has_room, score, twice_as_long

__all__ = ["add_pairs", "least_margins", "rank_rows", "stream_ranks"]

# `counts` of labels: their sum, and of how many documents.
LABELS, DOCUMENTS = 0, 1
NEAR_ENOUGH = 0.25  # how far off an expected number of labels may be: it is rounded
SIZE_STEP = 0.1  # the largest step of the weights behind it


class Ends(NamedTuple):
    """The ends: what they are made of, the parents of the nodes, and which ends count (`seen`).

    A leaf always counts, the terminal of an inner node from the first time that node is a label by itself.
    """

    above_ptr: Longs
    above_idx: Ints
    parent_ptr: Longs
    parent_idx: Ints
    seen: Bools


class Rule(NamedTuple):
    """How to rank: t, the margin c wanted, and whether a mistake weighs as much as it is far off.

    With `by_size` a document gets as many labels as are expected, else every end with a positive score.
    """

    scale: float
    wanted: float
    by_distance: bool
    by_size: bool


@njit(cache=True, nogil=True)
def end_scores(ends: Ends, scale: float, scores: Doubles, totals: Doubles) -> None:
    """Compute F of every end. Writes `totals`."""
    for end in range(totals.size):
        total = 0.0
        for j in range(ends.above_ptr[end], ends.above_ptr[end + 1]):
            total += scores[ends.above_idx[j]]
        totals[end] = scale * total


@njit(cache=True, nogil=True)
def expected_size(counts: Doubles, scores: Doubles) -> float:
    """Return the number of labels to expect: the mean so far, and what the words of the document add."""
    return float(counts[LABELS] / max(counts[DOCUMENTS], 1.0) + scores[0])


@njit(cache=True, nogil=True)
def worst_pair(totals: Doubles, seen: Bools, is_true: Bools) -> tuple[int, int]:
    """Return the label with the lowest score and the other end with the highest; -1 where there is none.

    Among equals it is the first one.
    """
    right, wrong = -1, -1
    for end in range(totals.size):
        if is_true[end]:
            if right < 0 or totals[end] < totals[right]:
                right = end
        elif seen[end] and (wrong < 0 or totals[end] > totals[wrong]):
            wrong = end
    return right, wrong


@njit(cache=True, nogil=True)
def split_pair(ends: Ends, right: int, wrong: int, plus: Ints, minus: Ints) -> tuple[int, int]:
    """List the owners that only one of two ends is made of; return how many there are of each."""
    n_plus = n_minus = 0
    j, stop_j = ends.above_ptr[right], ends.above_ptr[right + 1]
    k, stop_k = ends.above_ptr[wrong], ends.above_ptr[wrong + 1]
    while j < stop_j or k < stop_k:
        if k == stop_k or (j < stop_j and ends.above_idx[j] < ends.above_idx[k]):
            plus[n_plus] = ends.above_idx[j]
            n_plus += 1
            j += 1
        elif j == stop_j or ends.above_idx[k] < ends.above_idx[j]:
            minus[n_minus] = ends.above_idx[k]
            n_minus += 1
            k += 1
        else:
            j += 1
            k += 1
    return n_plus, n_minus


@njit(cache=True, nogil=True)
def move_apart(
    model: Weights,
    ends: Ends,
    rule: Rule,
    features: Ints,
    values: Floats,
    right: int,
    wrong: int,
    owners: Ints,
    width: int,
) -> None:
    """Move an end up and another down: w ± Δ t x, where Δ is 1 or the distance of the two. Writes `model`."""
    half = owners.size // 2
    n_plus, n_minus = split_pair(ends, right, wrong, owners[:half], owners[half:])
    step = rule.scale * (n_plus + n_minus if rule.by_distance else 1)
    for j in range(features.size):
        move = step * np.float64(values[j])
        add_to_all(model, features[j], owners[:n_plus], move, width)
        add_to_all(model, features[j], owners[half : half + n_minus], -move, width)
    model.used[UPDATES] += 1


@njit(cache=True, nogil=True)
def learn_size(
    model: Weights, counts: Doubles, features: Ints, values: Floats, n_labels: int, scores: Doubles
) -> None:
    """Learn how many labels a document has: PA-I for a number that may be off a little. Writes both."""
    if counts[DOCUMENTS] > 0.0:
        off = n_labels - expected_size(counts, scores)
        square = 0.0
        for value in values:
            square += np.float64(value) * np.float64(value)
        missing = abs(off) - NEAR_ENOUGH
        if missing > 0.0 and square > 0.0:
            step = SIZE_STEP if SIZE_STEP * square <= missing else missing / square
            owner = np.zeros(1, np.int32)
            for j in range(features.size):
                move = np.sign(off) * step * np.float64(values[j])
                add_to_all(model, features[j], owner, move, scores.size)
    counts[LABELS] += n_labels
    counts[DOCUMENTS] += 1.0


@njit(cache=True, nogil=True)
def choose(ends: Ends, rule: Rule, totals: Doubles, size: float, on: Bools) -> None:
    """Switch on the ends that are predicted, and all nodes above them. Writes `on`."""
    on[:] = False
    if rule.by_size:
        left = int(np.floor(min(max(size, 0.0), totals.size) + 0.5))
        while left > 0:
            best = -1
            for end in range(totals.size):
                if ends.seen[end] and not on[end] and (best < 0 or totals[end] > totals[best]):
                    best = end
            if best < 0:
                break
            on[best] = True
            left -= 1
    else:
        for end in range(totals.size):
            on[end] = ends.seen[end] and totals[end] > 0.0
    for node in range(on.size - 1, -1, -1):
        if on[node]:
            for j in range(ends.parent_ptr[node], ends.parent_ptr[node + 1]):
                on[ends.parent_idx[j]] = True


@njit(cache=True, nogil=True)
def stream_ranks(
    begin: Longs,
    bits: NDArray[np.int8],
    size: Ints,
    owners: Ints,
    weights: Floats,
    sums: Doubles,
    free: Longs,
    used: Longs,
    above_ptr: Longs,
    above_idx: Ints,
    parent_ptr: Longs,
    parent_idx: Ints,
    seen: Bools,
    counts: Doubles,
    scale: float,
    wanted: float,
    by_distance: bool,
    by_size: bool,
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

    `y_idx` lists the ends that are labels of each document. A document without features, and any before the
    first update, gets no label. Returns the row reached, and the predicted nodes in CSR form: pointers, nodes
    and their F. It stops before `stop` where the arena might run out of room: make some and call again from
    the row reached. Writes the model, `seen` and `counts`.
    """
    model = Weights(begin, bits, size, owners, weights, sums, free, used)
    ends = Ends(above_ptr, above_idx, parent_ptr, parent_idx, seen)
    rule = Rule(scale, wanted, by_distance, by_size)
    n_nodes = seen.size
    scores, averages, totals = np.zeros(1 + 2 * n_nodes), np.zeros(0), np.zeros(n_nodes)
    on, is_true = np.zeros(n_nodes, np.bool_), np.zeros(n_nodes, np.bool_)
    longest = int(np.max(np.diff(above_ptr))) if n_nodes > 0 else 0
    apart = np.empty(2 * longest, np.int32)
    predicted_ptr = np.zeros(stop - start + 1, np.int64)
    predicted = np.empty(8 * (stop - start) + n_nodes, np.int32)
    margins = np.empty(predicted.size, np.float32)
    n_found = 0
    row = start
    while row < stop:
        learned = row - delay if delay >= 0 else -1
        if learned >= 0 and not has_room(
            model, x_idx[x_ptr[learned] : x_ptr[learned + 1]], 2 * longest + 1, scores.size
        ):
            break
        part = slice(x_ptr[row], x_ptr[row + 1])
        score(model, x_idx[part], x_values[part], scores, averages)
        end_scores(ends, rule.scale, scores, totals)
        if model.used[UPDATES] > 0 and x_ptr[row] < x_ptr[row + 1]:
            choose(ends, rule, totals, expected_size(counts, scores), on)
            while n_found + n_nodes > predicted.size:
                predicted, margins = twice_as_long(predicted), twice_as_long(margins)
            for node in range(n_nodes):
                if on[node]:
                    predicted[n_found], margins[n_found] = node, totals[node]
                    n_found += 1
        row += 1
        predicted_ptr[row - start] = n_found
        if learned < 0:
            continue
        part = slice(x_ptr[learned], x_ptr[learned + 1])
        features, values = x_idx[part], x_values[part]
        if delay > 0:
            score(model, features, values, scores, averages)
            end_scores(ends, rule.scale, scores, totals)
        labels = y_idx[y_ptr[learned] : y_ptr[learned + 1]]
        for label in labels:
            is_true[label], seen[label] = True, True
        if features.size > 0:
            right, wrong = worst_pair(totals, seen, is_true)
            if right >= 0 and wrong >= 0 and totals[right] - totals[wrong] <= rule.wanted:
                move_apart(model, ends, rule, features, values, right, wrong, apart, scores.size)
            learn_size(model, counts, features, values, labels.size, scores)
        for label in labels:
            is_true[label] = False
        model.used[LEARNED] += 1
    return row, predicted_ptr[: row - start + 1].copy(), predicted[:n_found].copy(), margins[:n_found].copy()


@njit(cache=True, nogil=True)
def rank_rows(
    begin: Longs,
    bits: NDArray[np.int8],
    size: Ints,
    owners: Ints,
    weights: Floats,
    sums: Doubles,
    free: Longs,
    used: Longs,
    above_ptr: Longs,
    above_idx: Ints,
    counts: Doubles,
    scale: float,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    totals: Doubles,
    sizes: Doubles,
) -> None:
    """Compute F of every document at every end, and its number of labels. Writes `totals` and `sizes`."""
    model = Weights(begin, bits, size, owners, weights, sums, free, used)
    nothing = np.zeros(0, np.int32)
    ends = Ends(above_ptr, above_idx, above_ptr, nothing, np.zeros(0, np.bool_))
    scores, averages = np.zeros(1 + 2 * totals.shape[1]), np.zeros(0)
    for row in range(totals.shape[0]):
        part = slice(x_ptr[row], x_ptr[row + 1])
        score(model, x_idx[part], x_values[part], scores, averages)
        end_scores(ends, scale, scores, totals[row])
        sizes[row] = expected_size(counts, scores)


@njit(cache=True, nogil=True)
def least_margins(
    above_ptr: Longs,
    above_idx: Ints,
    seen: Bools,
    scale: float,
    wanted: float,
    by_distance: bool,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    y_ptr: Longs,
    y_idx: Ints,
    totals: Doubles,
    n_features: int,
    most_visits: int,
    pairs: Ints,
) -> int:
    """Take the Minover order: at every step move the pair with the least margin of all documents apart.

    Documents that contradict each other would be taken for ever: none is taken more than `most_visits` times.

    `totals` holds F of every document at every end and follows the weights without them: a step at x changes
    F of another document x' by Δ t² (x·x') for each owner its end shares with one of the pair. `pairs` lists
    (document, right, wrong) of the steps taken. Returns how many there are: fewer than there is room for if
    the margin wanted is reached everywhere. Writes `totals` and `pairs`.
    """
    ends = Ends(above_ptr, above_idx, above_ptr, above_idx, seen)
    n_rows, n_nodes = totals.shape
    is_true, dense = np.zeros(n_nodes, np.bool_), np.zeros(n_features)
    longest = int(np.max(np.diff(above_ptr))) if n_nodes > 0 else 0
    plus, minus = np.empty(longest, np.int32), np.empty(longest, np.int32)
    change, by_owner = np.zeros(n_nodes), np.zeros(1 + 2 * n_nodes)
    margins, rights, wrongs = np.empty(n_rows), np.empty(n_rows, np.int32), np.empty(n_rows, np.int32)
    similarity, visits, n_done = np.ones(n_rows), np.zeros(n_rows, np.int64), 0
    while n_done < pairs.shape[0] and n_rows > 0:
        for row in range(n_rows):
            if similarity[row] == 0.0:
                continue  # nothing has changed for it
            labels = y_idx[y_ptr[row] : y_ptr[row + 1]]
            for label in labels:
                is_true[label] = True
            right, wrong = worst_pair(totals[row], seen, is_true)
            for label in labels:
                is_true[label] = False
            ranked = right >= 0 and wrong >= 0 and x_ptr[row] < x_ptr[row + 1] and visits[row] < most_visits
            rights[row], wrongs[row] = right, wrong
            margins[row] = totals[row, right] - totals[row, wrong] if ranked else np.inf
        worst = int(np.argmin(margins))
        if margins[worst] > wanted:
            break
        pairs[n_done, 0], pairs[n_done, 1], pairs[n_done, 2] = worst, rights[worst], wrongs[worst]
        n_done += 1
        visits[worst] += 1
        n_plus, n_minus = split_pair(ends, int(rights[worst]), int(wrongs[worst]), plus, minus)
        by_owner[:] = 0.0
        step = scale * scale * (n_plus + n_minus if by_distance else 1)
        for k in range(n_plus):
            by_owner[plus[k]] = step
        for k in range(n_minus):
            by_owner[minus[k]] = -step
        for end in range(n_nodes):
            change[end] = 0.0
            for j in range(above_ptr[end], above_ptr[end + 1]):
                change[end] += by_owner[above_idx[j]]
        for k in range(x_ptr[worst], x_ptr[worst + 1]):
            dense[x_idx[k]] = x_values[k]
        for row in range(n_rows):
            similarity[row] = 0.0
            for k in range(x_ptr[row], x_ptr[row + 1]):
                similarity[row] += dense[x_idx[k]] * np.float64(x_values[k])
            if similarity[row] != 0.0:
                for end in range(n_nodes):
                    totals[row, end] += similarity[row] * change[end]
        for k in range(x_ptr[worst], x_ptr[worst + 1]):
            dense[x_idx[k]] = 0.0
    return n_done


@njit(cache=True, nogil=True)
def add_pairs(
    begin: Longs,
    bits: NDArray[np.int8],
    size: Ints,
    owners: Ints,
    weights: Floats,
    sums: Doubles,
    free: Longs,
    used: Longs,
    above_ptr: Longs,
    above_idx: Ints,
    seen: Bools,
    scale: float,
    by_distance: bool,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    pairs: Ints,
    n_done: int,
) -> int:
    """Take the steps that `least_margins` found, from the `n_done`-th one; return how many are done.

    It stops early where the arena might run out of room. Writes the model.
    """
    model = Weights(begin, bits, size, owners, weights, sums, free, used)
    ends = Ends(above_ptr, above_idx, above_ptr, above_idx, seen)
    rule = Rule(scale, 0.0, by_distance, False)
    longest = int(np.max(np.diff(above_ptr))) if seen.size > 0 else 0
    apart, width = np.empty(2 * longest, np.int32), 1 + 2 * seen.size
    while n_done < pairs.shape[0]:
        row, right, wrong = pairs[n_done, 0], pairs[n_done, 1], pairs[n_done, 2]
        part = slice(x_ptr[row], x_ptr[row + 1])
        if not has_room(model, x_idx[part], 2 * longest, width):
            break
        move_apart(model, ends, rule, x_idx[part], x_values[part], int(right), int(wrong), apart, width)
        n_done += 1
    return n_done
