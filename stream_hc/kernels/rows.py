"""Features of one document -> a sorted row: hash the names, sort the columns, add up what shares one.

The feature hash is 32-bit FNV-1a over UTF-8 bytes, then the finaliser of MurmurHash3. FNV-1a can be carried
on while a token is being read, and from a token to an n-gram; its low bits alone are weak, so the finaliser
lets every bit depend on every other before the column is taken modulo n_features. Columns of stored models
depend on this function: it must never change (see the golden test).
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stream_hc.kernels import Bytes, Doubles, Floats, Ints, Longs

__all__ = ["are_sound", "hash_tokens", "packed_row", "sorted_row"]

FNV_OFFSET = np.uint64(0x811C9DC5)
FNV_PRIME = np.uint64(0x01000193)
MIX_1 = np.uint64(0x85EBCA6B)
MIX_2 = np.uint64(0xC2B2AE35)
LOW_32 = np.uint64(0xFFFFFFFF)
BITS_13, BITS_16 = np.uint64(13), np.uint64(16)

FINE, OUT_OF_RANGE, UNKNOWN = 0, 1, 2
BUCKETS, MANY = 64, 1024


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
def hash_bytes(buffer: Bytes, begin: int, end: int) -> int:
    """Hash a part of the buffer."""
    h = FNV_OFFSET
    for position in range(begin, end):
        # 64-bit arithmetic masked to 32 bits: the product of two 32-bit numbers cannot overflow it.
        h = ((h ^ np.uint64(buffer[position])) * FNV_PRIME) & LOW_32
    h = ((h ^ (h >> BITS_16)) * MIX_1) & LOW_32
    h = ((h ^ (h >> BITS_13)) * MIX_2) & LOW_32
    # Signed like every other number here: of a signed and an unsigned one numba would make a float.
    return int(np.int64(h ^ (h >> BITS_16)))


@njit(cache=True, nogil=True)
def hash_tokens(buffer: Bytes, ends: Longs) -> NDArray[np.uint32]:
    """Hash the tokens that lie one after another in `buffer`; `ends` holds the end of each."""
    hashes = np.empty(ends.size, np.uint32)
    begin = 0
    for token in range(ends.size):
        hashes[token] = hash_bytes(buffer, begin, ends[token])
        begin = ends[token]
    return hashes


@njit(cache=True, nogil=True)
def sum_up(numbers: Doubles, order: Longs) -> float:
    """Add up the numbers at the low halves of `order`, smallest first."""
    shared = np.empty(order.size, np.float64)
    for j in range(order.size):
        shared[j] = numbers[order[j] & 0xFFFFFFFF]
    shared.sort()
    total = 0.0
    for j in range(shared.size):
        total += shared[j]
    return total


@njit(cache=True, nogil=True)
def sort_order(order: Longs, n_features: int) -> Longs:
    """Return the numbers in ascending order; their upper halves are columns, spread evenly by a hash.

    In buckets by the upper bits of the column nearly all are in place, and insertion does the rest. Very long
    documents are sorted in the common way: somebody might have chosen names of one bucket.
    """
    if order.size > MANY:
        order.sort()
        return order
    shift = 32
    while (n_features - 1) >> (shift - 32) >= BUCKETS:
        shift += 1
    starts = np.zeros(BUCKETS + 1, np.int32)
    for number in order:
        starts[(number >> shift) + 1] += 1
    for bucket in range(BUCKETS):
        starts[bucket + 1] += starts[bucket]
    placed = np.empty(order.size, np.int64)
    for number in order:
        bucket = number >> shift
        placed[starts[bucket]] = number
        starts[bucket] += 1
    for k in range(1, placed.size):
        number, place = placed[k], k
        while place > 0 and placed[place - 1] > number:
            placed[place] = placed[place - 1]
            place -= 1
        placed[place] = number
    return placed


@njit(cache=True, nogil=True)
def sorted_row(
    hashes: Longs, numbers: Doubles, n_features: int, largest: float
) -> tuple[int, Longs, Ints, Floats]:
    """Return `FINE` and a CSR row, columns (hash modulo n_features) ascending.

    Values that share a column are added, smallest first, so that the order of the features does not matter.
    Values that are 0 as float32 are left out. `OUT_OF_RANGE` means that a value is NaN or beyond ±largest.
    """
    # Column and position in one number: one sort brings both into order.
    order = np.empty(hashes.size, np.int64)
    for k in range(hashes.size):
        order[k] = (hashes[k] % n_features) << 32 | k
    order = sort_order(order, n_features)
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
        total = numbers[order[k] & 0xFFFFFFFF] if last - k == 1 else sum_up(numbers, order[k:last])
        if not abs(total) <= largest:  # neither is NaN
            return OUT_OF_RANGE, indptr, indices[:0], values[:0]
        value = np.float32(total)
        if value != 0.0:
            indices[size] = column
            values[size] = value
            size += 1
        k = last
    indptr[1] = size
    return FINE, indptr, indices[:size], values[:size]


@njit(cache=True, nogil=True)
def read_bytes(buffer: Bytes, begin: int, n_bytes: int, signed: bool) -> int:
    """Read a number of 1 to 8 bytes, the highest first."""
    number = int(np.int64(buffer[begin]))
    if signed and number >= 0x80:
        number -= 0x100
    for position in range(begin + 1, begin + n_bytes):
        number = number * 0x100 + int(np.int64(buffer[position]))
    return number


@njit(cache=True, nogil=True)
def read_whole(buffer: Bytes, position: int) -> tuple[int, int]:
    """Read a whole number of MessagePack; return it and where it ends, or 0 and -1 if it is none."""
    lead = int(np.int64(buffer[position]))
    if lead < 0x80:
        return lead, position + 1
    if lead >= 0xE0:
        return lead - 0x100, position + 1
    too_large = lead == 0xCF and buffer[position + 1] >= 0x80  # 2^63 or more
    if 0xCC <= lead <= 0xD3 and not too_large:
        n_bytes = 1 << (lead & 3)
        return read_bytes(buffer, position + 1, n_bytes, lead >= 0xD0), position + 1 + n_bytes
    return 0, -1


@njit(cache=True, nogil=True)
def read_name(buffer: Bytes, position: int) -> tuple[int, int]:
    """Read a text, which becomes its hash, or a whole number; and where it ends, -1 if it is neither."""
    lead = int(np.int64(buffer[position]))
    if 0xA0 <= lead < 0xC0:
        n_bytes, length = 0, lead & 0x1F
    elif 0xD9 <= lead <= 0xDB:
        n_bytes = 1 << (lead - 0xD9)
        length = read_bytes(buffer, position + 1, n_bytes, False)
    else:
        return read_whole(buffer, position)
    begin = position + 1 + n_bytes
    return hash_bytes(buffer, begin, begin + length), begin + length


@njit(cache=True, nogil=True)
def packed_row(buffer: Bytes, n_features: int, largest: float) -> tuple[int, Longs, Ints, Floats]:
    """Read a dict of features from MessagePack; return what `sorted_row` returns.

    Names are texts, which are hashed, or whole numbers below 2^63; values are floats, whole numbers or
    booleans. `UNKNOWN` means that something else is among them.
    """
    lead, position = int(np.int64(buffer[0])), 1
    count = lead & 0x0F
    if lead >= 0xDE:  # a dict of more than 15 features
        position = 3 if lead == 0xDE else 5
        count = read_bytes(buffer, 1, position - 1, False)
    hashes, numbers = np.empty(count, np.int64), np.empty(count, np.float64)
    bits = numbers.view(np.int64)
    for k in range(count):
        hashes[k], position = read_name(buffer, position)
        if position > 0:
            lead = int(np.int64(buffer[position]))
            if lead == 0xCB:
                bits[k] = read_bytes(buffer, position + 1, 8, True)
                position += 9
            elif lead == 0xC2 or lead == 0xC3:
                numbers[k] = lead - 0xC2
                position += 1
            else:
                numbers[k], position = read_whole(buffer, position)
        if position < 0:
            return UNKNOWN, hashes[:0], np.empty(0, np.int32), np.empty(0, np.float32)
    return sorted_row(hashes, numbers, n_features, largest)
