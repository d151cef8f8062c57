"""Features in any order -> a sorted row; and whether rows from elsewhere can be used as they are."""

import numpy as np
from numba import njit

from stream_hc.kernels import Doubles, Floats, Ints, Longs

__all__ = ["are_sound", "sorted_row"]

LOW_32 = 0xFFFFFFFF


@njit(cache=True, nogil=True)
def are_sound(indptr: Longs, indices: Ints, values: Floats, n_columns: int, largest: float) -> bool:
    """Whether columns ascend within their shape and no value is 0, NaN or larger than `largest`."""
    if indptr[0] != 0 or indptr[-1] != indices.size or indices.size != values.size:
        return False
    for row in range(indptr.size - 1):
        if indptr[row] > indptr[row + 1] or indptr[row + 1] > indices.size:
            return False
        last = -1
        for k in range(indptr[row], indptr[row + 1]):
            if indices[k] <= last or values[k] == 0.0 or not abs(values[k]) <= largest:
                return False
            last = indices[k]
        if last >= n_columns:
            return False
    return True


@njit(cache=True, nogil=True)
def sum_up(numbers: Doubles, order: Longs) -> float:
    """Add up the numbers at the low halves of `order`, smallest first."""
    shared = np.empty(order.size, np.float64)
    for j in range(order.size):
        shared[j] = numbers[order[j] & LOW_32]
    shared.sort()
    total = 0.0
    for j in range(shared.size):
        total += shared[j]
    return total


@njit(cache=True, nogil=True)
def sorted_row(
    hashes: Longs, numbers: Doubles, n_features: int, largest: float
) -> tuple[Longs, Ints, Floats, bool]:
    """Return a CSR row: columns (hash modulo n_features) ascending; and whether all are within ±largest.

    Values that share a column are added, smallest first, so that the order of the features does not matter.
    Values that are 0 as float32 are left out.
    """
    # Column and position in one number: one plain sort brings both into order.
    order = np.empty(hashes.size, np.int64)
    for k in range(hashes.size):
        order[k] = (hashes[k] % n_features) << 32 | k
    order.sort()
    indptr = np.zeros(2, np.int64)
    indices = np.empty(order.size, np.int32)
    values = np.empty(order.size, np.float32)
    size = 0
    k = 0
    while k < order.size:
        column = order[k] >> 32
        last = k + 1
        while last < order.size and order[last] >> 32 == column:
            last += 1
        total = numbers[order[k] & LOW_32] if last - k == 1 else sum_up(numbers, order[k:last])
        if not abs(total) <= largest:  # neither is NaN
            return indptr, indices[:0], values[:0], False
        value = np.float32(total)
        if value != 0.0:
            indices[size] = column
            values[size] = value
            size += 1
        k = last
    indptr[1] = size
    return indptr, indices[:size], values[:size], True
