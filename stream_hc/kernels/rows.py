"""Features of one document in any order -> a sorted row."""

import numpy as np
from numba import njit

from stream_hc.kernels import Doubles, Floats, Ints, Longs

__all__ = ["sorted_row"]


@njit(cache=True, nogil=True)
def sorted_row(hashes: Longs, numbers: Doubles, n_features: int, largest: float) -> tuple[Ints, Floats, bool]:
    """Return columns (hash modulo n_features), ascending, their values, and whether all are within ±largest.

    Values that share a column are added, smallest first, so that the order of the features does not matter.
    Values that are 0 as float32 are left out.
    """
    columns = hashes % n_features
    order = np.argsort(columns)
    indices = np.empty(columns.size, np.int32)
    values = np.empty(columns.size, np.float32)
    size = 0
    k = 0
    while k < order.size:
        column = columns[order[k]]
        last = k + 1
        while last < order.size and columns[order[last]] == column:
            last += 1
        total = numbers[order[k]]
        if last - k > 1:
            shared = np.sort(numbers[order[k:last]])
            total = 0.0
            for j in range(shared.size):
                total += shared[j]
        if not abs(total) <= largest:  # neither is NaN
            return indices[:0], values[:0], False
        value = np.float32(total)
        if value != 0.0:
            indices[size] = column
            values[size] = value
            size += 1
        k = last
    return indices[:size], values[:size], True
