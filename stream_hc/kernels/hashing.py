"""The feature hash: 32-bit FNV-1a over UTF-8 bytes, then the finaliser of MurmurHash3.

FNV-1a can be carried on while a token is being read, and from a token to an n-gram; its low bits alone are
weak, so the finaliser lets every bit depend on every other before the column is taken modulo n_features.
Columns of stored models depend on this function: it must never change (see the golden test).
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stream_hc.kernels import Longs

__all__ = ["hash_tokens"]

FNV_OFFSET = np.uint64(0x811C9DC5)
FNV_PRIME = np.uint64(0x01000193)
MIX_1 = np.uint64(0x85EBCA6B)
MIX_2 = np.uint64(0xC2B2AE35)
LOW_32 = np.uint64(0xFFFFFFFF)
BITS_13, BITS_16 = np.uint64(13), np.uint64(16)


@njit(cache=True, nogil=True)
def hash_tokens(buffer: NDArray[np.uint8], ends: Longs) -> NDArray[np.uint32]:
    """Hash the tokens that lie one after another in `buffer`; `ends` holds the end of each."""
    hashes = np.empty(ends.size, np.uint32)
    position = 0
    for token in range(ends.size):
        h = FNV_OFFSET
        while position < ends[token]:
            # 64-bit arithmetic masked to 32 bits: the product of two 32-bit numbers cannot overflow it.
            h = ((h ^ np.uint64(buffer[position])) * FNV_PRIME) & LOW_32
            position += 1
        h = ((h ^ (h >> BITS_16)) * MIX_1) & LOW_32
        h = ((h ^ (h >> BITS_13)) * MIX_2) & LOW_32
        hashes[token] = np.uint32(h ^ (h >> BITS_16))
    return hashes
