"""The losses of the last documents, in a ring: written one after the other, and compared in pairs."""

import numpy as np
from numba import njit

from stream_hc.kernels import Doubles

__all__ = ["compare_losses", "put_losses"]


@njit(cache=True, nogil=True)
def put_losses(recent: Doubles, at: int, losses: Doubles, total: float) -> tuple[int, float]:
    """Write losses from place `at` of the ring on; NaN stands for none. Writes `recent`.

    Returns how many there were, and `total` with each of them added in turn.
    """
    count = 0
    for k in range(losses.size):
        recent[(at + k) % recent.size] = losses[k]
        if not np.isnan(losses[k]):
            count += 1
            total += losses[k]
    return count, total


@njit(cache=True, nogil=True)
def compare_losses(
    ours: Doubles, theirs: Doubles, first: int, n_last: int
) -> tuple[int, float, float, float]:
    """Compare the `n_last` documents from place `first` of two rings on, where neither has NaN.

    Returns how many there are, the mean of theirs, the mean of theirs − ours, and the standard error of that.
    """
    count, level, difference, squares = 0, 0.0, 0.0, 0.0
    for k in range(n_last):
        place = (first + k) % ours.size
        if not (np.isnan(ours[place]) or np.isnan(theirs[place])):
            count += 1
            level += theirs[place]
            difference += theirs[place] - ours[place]
    if count < 2:
        return count, level, difference, 0.0
    mean = difference / count
    for k in range(n_last):
        place = (first + k) % ours.size
        if not (np.isnan(ours[place]) or np.isnan(theirs[place])):
            squares += (theirs[place] - ours[place] - mean) ** 2
    return count, level / count, mean, np.sqrt(squares / (count - 1) / count)
