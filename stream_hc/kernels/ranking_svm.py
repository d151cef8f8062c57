"""The max-margin ranking of Cai and Hofmann: ascent in the dual variables of one document after the other.

An end is a category that may be a label by itself, numbered by its node; `above_ptr` and `above_idx` list the
owners of weights that it is made of: its node, all ancestors, and a terminal if the node is an inner one. Its
score is F = t · (sum of w·x over them), and `is_end` says which ends count. A pair is a label y of a document
and an end ȳ that is none; Δ is the number of owners that only one of the two has.

The dual variable of a pair is kept as its `share` = α / Δ: the shares of a document are not negative and add
up to at most C, and Σ α − ½|w|² rises along a share by G = Δ (1 − F(y) + F(ȳ)). Only pairs with a share are
stored: those of a document are `size[row]` ones from `begin[row]` on, in an arena that has `room[row]`.
"""

import numpy as np
from numba import njit

from stream_hc.kernels import Array, Bools, Doubles, Floats, Ints, Longs

__all__ = ["gaps_of", "table_of", "visit"]

MOST_STEPS = 10  # of pairwise ascent in the working set of a document, in one visit
ENOUGH = 1e-9  # of the steepest slope: two that differ less are equal
NOTHING = 1e-14  # of C: a share as small as that is rounding
SMALLEST_ROOM = 4


@njit(cache=True, nogil=True)
def row_scores(table: Doubles, columns: Ints, values: Floats, scores: Doubles) -> None:
    """Compute w·x of every owner. Writes `scores`."""
    scores[:] = 0.0
    for k in range(columns.size):
        value, weights = np.float64(values[k]), table[columns[k]]
        for owner in range(scores.size):
            scores[owner] += value * weights[owner]


@njit(cache=True, nogil=True)
def worst_pair(
    above_ptr: Longs,
    above_idx: Ints,
    is_end: Bools,
    scale: float,
    scores: Doubles,
    labels: Ints,
    totals: Doubles,
    is_true: Bools,
    is_above: Bools,
) -> tuple[int, int, float]:
    """Return the pair with the largest G, and this G; -1 and 0 where none is positive.

    Among equals it is the first one. The last three are for notes; the two of bools are all False again.
    """
    right = wrong = -1
    highest = 0.0
    for end in range(totals.size):
        total = 0.0
        for j in range(above_ptr[end], above_ptr[end + 1]):
            total += scores[above_idx[j]]
        totals[end] = scale * total
    for label in labels:
        is_true[label] = True
    for label in labels:
        n_label = above_ptr[label + 1] - above_ptr[label]
        for j in range(above_ptr[label], above_ptr[label + 1]):
            is_above[above_idx[j]] = True
        for end in range(totals.size):
            missing = 1.0 - totals[label] + totals[end]
            n_both = n_label + above_ptr[end + 1] - above_ptr[end]
            # Most ends are far enough down: what they share with the label need not be counted.
            if missing * n_both <= highest or is_true[end] or not is_end[end]:
                continue
            for j in range(above_ptr[end], above_ptr[end + 1]):
                if is_above[above_idx[j]]:
                    n_both -= 2
            if missing * n_both > highest:
                right, wrong, highest = label, end, missing * n_both
        for j in range(above_ptr[label], above_ptr[label + 1]):
            is_above[above_idx[j]] = False
    for label in labels:
        is_true[label] = False
    return int(right), int(wrong), highest


@njit(cache=True, nogil=True)
def pair_slopes(
    above_ptr: Longs,
    above_idx: Ints,
    scale: float,
    scores: Doubles,
    rights: Ints,
    wrongs: Ints,
    distances: Doubles,
    slopes: Doubles,
) -> None:
    """Compute G of some pairs, and their Δ. Writes the last two."""
    for k in range(rights.size):
        j, stop_j = above_ptr[rights[k]], above_ptr[rights[k] + 1]
        i, stop_i = above_ptr[wrongs[k]], above_ptr[wrongs[k] + 1]
        n_apart, margin = 0, 0.0
        while j < stop_j or i < stop_i:  # both lists ascend
            if i == stop_i or (j < stop_j and above_idx[j] < above_idx[i]):
                margin += scores[above_idx[j]]
                n_apart += 1
                j += 1
            elif j == stop_j or above_idx[i] < above_idx[j]:
                margin -= scores[above_idx[i]]
                n_apart += 1
                i += 1
            else:
                j += 1
                i += 1
        distances[k] = n_apart
        slopes[k] = n_apart * (1.0 - scale * margin)


@njit(cache=True, nogil=True)
def ascend(
    above_ptr: Longs,
    above_idx: Ints,
    scale: float,
    C: float,
    square: float,
    scores: Doubles,
    rights: Ints,
    wrongs: Ints,
    shares: Doubles,
    distances: Doubles,
    slopes: Doubles,
    moves: Doubles,
    direction: Doubles,
) -> float:
    """Take some steps toward the best shares of a working set; return what the objective has gained.

    Each step moves what it can from the pair with a share and the lowest slope to the one with the highest.
    What is left of C takes part, with the slope 0. `square` is |x|², `moves` collects by how much x is added
    to the weights of each owner, `direction` is for notes and all zeros again. Writes the other arrays from
    `scores` on.
    """
    left, gain = C - shares.sum(), 0.0
    ends, signs = np.zeros(4, np.int64), np.zeros(4)
    for _ in range(MOST_STEPS):
        pair_slopes(above_ptr, above_idx, scale, scores, rights, wrongs, distances, slopes)
        up = down = -1
        high, low = 0.0, 0.0 if left > NOTHING * C else np.inf
        for k in range(shares.size):
            if slopes[k] > high:
                up, high = k, slopes[k]
            if shares[k] > 0.0 and slopes[k] < low:
                down, low = k, slopes[k]
        if up == down or high - low <= ENOUGH * max(abs(high), abs(low)):
            break
        n = 0
        if up >= 0:
            ends[0], ends[1] = rights[up], wrongs[up]
            signs[0], signs[1] = distances[up], -distances[up]
            n = 2
        if down >= 0:
            ends[n], ends[n + 1] = rights[down], wrongs[down]
            signs[n], signs[n + 1] = -distances[down], distances[down]
            n += 2
        for i in range(n):
            for j in range(above_ptr[ends[i]], above_ptr[ends[i] + 1]):
                direction[above_idx[j]] += signs[i]
        length = 0.0  # |direction|², each of the lists multiplied with all
        for i in range(n):
            for j in range(above_ptr[ends[i]], above_ptr[ends[i] + 1]):
                length += signs[i] * direction[above_idx[j]]
        curvature = scale * scale * square * length
        most = left if down < 0 else shares[down]
        step = most if most * curvature <= high - low else (high - low) / curvature
        for i in range(n):
            move = step * scale * signs[i]
            for j in range(above_ptr[ends[i]], above_ptr[ends[i] + 1]):
                moves[above_idx[j]] += move
                scores[above_idx[j]] += move * square
                direction[above_idx[j]] = 0.0
        if up >= 0:
            shares[up] += step
        if down >= 0:
            shares[down] = 0.0 if step == most else shares[down] - step
        left = C - shares.sum()
        gain += step * (high - low - step * curvature / 2.0)
    return gain


@njit(cache=True, nogil=True)
def longer(array: Array, size: int) -> Array:
    """Return the array with more room behind it."""
    larger = np.zeros(size, array.dtype)
    larger[: array.size] = array
    return larger


@njit(cache=True, nogil=True)
def visit(
    above_ptr: Longs,
    above_idx: Ints,
    is_end: Bools,
    scale: float,
    C: float,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    squares: Doubles,
    y_ptr: Longs,
    y_idx: Ints,
    rows: Ints,
    table: Doubles,
    gaps: Doubles,
    begin: Longs,
    size: Longs,
    room: Longs,
    used: Longs,
    right: Ints,
    wrong: Ints,
    share: Doubles,
) -> tuple[float, Ints, Ints, Doubles]:
    """Visit documents in the order of `rows`; return the gain, and the arena, which may be a longer one.

    In a visit the most violated pair joins the working set of the document, whose shares then rise; pairs
    without a share leave. `gaps` tells what was missing before. Writes all arrays from `table` on.
    """
    n_ends, n_owners = is_end.size, table.shape[1]
    scores, totals = np.empty(n_owners), np.empty(n_ends)
    is_true, is_above = np.zeros(n_ends, np.bool_), np.zeros(n_owners, np.bool_)
    moves, direction = np.zeros(n_owners), np.zeros(n_owners)
    touched = np.empty(n_owners, np.int32)
    rights, wrongs = np.zeros(0, np.int32), np.zeros(0, np.int32)
    shares, distances, slopes = np.zeros(0), np.zeros(0), np.zeros(0)
    gain = 0.0
    for row in rows:
        labels = y_idx[y_ptr[row] : y_ptr[row + 1]]
        columns, values = x_idx[x_ptr[row] : x_ptr[row + 1]], x_values[x_ptr[row] : x_ptr[row + 1]]
        if labels.size == 0:
            continue
        n, first = size[row], begin[row]
        if n >= shares.size:
            room_for = 2 * n + SMALLEST_ROOM
            rights, wrongs = np.zeros(room_for, np.int32), np.zeros(room_for, np.int32)
            shares, distances, slopes = np.zeros(room_for), np.zeros(room_for), np.zeros(room_for)
        for k in range(n):
            rights[k], wrongs[k], shares[k] = right[first + k], wrong[first + k], share[first + k]
        row_scores(table, columns, values, scores)
        one, other, high = worst_pair(
            above_ptr, above_idx, is_end, scale, scores, labels, totals, is_true, is_above
        )
        part = slice(0, n)
        pair_slopes(
            above_ptr, above_idx, scale, scores, rights[part], wrongs[part], distances[part], slopes[part]
        )
        gap, is_new = C * high, one >= 0
        for k in range(n):
            gap -= shares[k] * slopes[k]
            is_new = is_new and (rights[k] != one or wrongs[k] != other)
        gaps[row] = max(gap, 0.0)
        if is_new:
            rights[n], wrongs[n], shares[n] = one, other, 0.0
            n += 1
        part = slice(0, n)
        gain += ascend(
            above_ptr,
            above_idx,
            scale,
            C,
            squares[row],
            scores,
            rights[part],
            wrongs[part],
            shares[part],
            distances[part],
            slopes[part],
            moves,
            direction,
        )
        n_touched = 0
        for owner in range(n_owners):
            if moves[owner] != 0.0:
                touched[n_touched] = owner
                n_touched += 1
        for k in range(columns.size):
            value, weights = np.float64(values[k]), table[columns[k]]
            for i in range(n_touched):
                weights[touched[i]] += value * moves[touched[i]]
        for i in range(n_touched):
            moves[touched[i]] = 0.0
        n_left = 0
        for k in range(n):
            if shares[k] > 0.0:
                rights[n_left], wrongs[n_left], shares[n_left] = rights[k], wrongs[k], shares[k]
                n_left += 1
        if n_left > room[row]:  # it moves to the end; each time to twice the room, so that little is wasted
            room[row] = max(SMALLEST_ROOM, 2 * room[row], n_left)
            begin[row] = used[0]
            used[0] += room[row]
            if used[0] > share.size:
                right, wrong = longer(right, 2 * used[0]), longer(wrong, 2 * used[0])
                share = longer(share, 2 * used[0])
        size[row], first = n_left, begin[row]
        for k in range(n_left):
            right[first + k], wrong[first + k], share[first + k] = rights[k], wrongs[k], shares[k]
    return gain, right, wrong, share


@njit(cache=True, nogil=True)
def gaps_of(
    above_ptr: Longs,
    above_idx: Ints,
    is_end: Bools,
    scale: float,
    C: float,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    y_ptr: Longs,
    y_idx: Ints,
    table: Doubles,
    begin: Longs,
    size: Longs,
    right: Ints,
    wrong: Ints,
    share: Doubles,
    gaps: Doubles,
    slacks: Doubles,
) -> float:
    """Compute what each document adds to the duality gap, and its ξ, under fixed weights; return Σ α.

    With weights that belong to the dual variables the gaps add up to ½|w|² + C Σ ξ − (Σ α − ½|w|²). Writes
    `gaps` and `slacks`.
    """
    n_ends, n_owners = is_end.size, table.shape[1]
    scores, totals = np.empty(n_owners), np.empty(n_ends)
    is_true, is_above = np.zeros(n_ends, np.bool_), np.zeros(n_owners, np.bool_)
    longest = int(size.max()) if size.size > 0 else 0
    distances, slopes = np.empty(longest), np.empty(longest)
    total = 0.0
    for row in range(gaps.size):
        gaps[row] = slacks[row] = 0.0
        labels = y_idx[y_ptr[row] : y_ptr[row + 1]]
        if labels.size == 0:
            continue
        part = slice(x_ptr[row], x_ptr[row + 1])
        row_scores(table, x_idx[part], x_values[part], scores)
        _, _, slacks[row] = worst_pair(
            above_ptr, above_idx, is_end, scale, scores, labels, totals, is_true, is_above
        )
        n, first = size[row], begin[row]
        part = slice(first, first + n)
        pair_slopes(above_ptr, above_idx, scale, scores, right[part], wrong[part], distances[:n], slopes[:n])
        gap = C * slacks[row]
        for k in range(n):
            total += distances[k] * share[first + k]
            gap -= slopes[k] * share[first + k]
        gaps[row] = max(gap, 0.0)
    return total


@njit(cache=True, nogil=True)
def table_of(
    above_ptr: Longs,
    above_idx: Ints,
    scale: float,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    begin: Longs,
    size: Longs,
    right: Ints,
    wrong: Ints,
    share: Doubles,
    table: Doubles,
) -> float:
    """Compute the weights that belong to the dual variables; return |w|². Writes `table`."""
    table[:] = 0.0
    n_owners = table.shape[1]
    scores, moves, touched = np.zeros(n_owners), np.zeros(n_owners), np.empty(n_owners, np.int32)
    longest = int(size.max()) if size.size > 0 else 0
    distances, slopes = np.empty(longest), np.empty(longest)
    for row in range(size.size):
        n, first = size[row], begin[row]
        part = slice(first, first + n)
        pair_slopes(above_ptr, above_idx, scale, scores, right[part], wrong[part], distances[:n], slopes[:n])
        for k in range(n):
            alpha = scale * distances[k] * share[first + k]
            for j in range(above_ptr[right[first + k]], above_ptr[right[first + k] + 1]):
                moves[above_idx[j]] += alpha
            for j in range(above_ptr[wrong[first + k]], above_ptr[wrong[first + k] + 1]):
                moves[above_idx[j]] -= alpha
        n_touched = 0
        for owner in range(n_owners):
            if moves[owner] != 0.0:
                touched[n_touched] = owner
                n_touched += 1
        for k in range(x_ptr[row], x_ptr[row + 1]):
            value, weights = np.float64(x_values[k]), table[x_idx[k]]
            for i in range(n_touched):
                weights[touched[i]] += value * moves[touched[i]]
        for i in range(n_touched):
            moves[touched[i]] = 0.0
    total = 0.0
    for column in range(table.shape[0]):
        for owner in range(n_owners):
            total += table[column, owner] * table[column, owner]
    return total
