"""UTF-8 text -> the hashed columns of its tokens, in one pass over one buffer for a whole batch.

A token is a maximal run of two or more word characters. Its hash is that of `kernels/hashing.py` (FNV-1a,
then the finaliser of MurmurHash3), carried on while its bytes are read; an n-gram goes on with a blank and
the bytes of the next token.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stream_hc.kernels import Bools, Ints, Longs

__all__ = ["token_columns"]

FNV_OFFSET = np.uint64(0x811C9DC5)
FNV_PRIME = np.uint64(0x01000193)
MIX_1 = np.uint64(0x85EBCA6B)
MIX_2 = np.uint64(0xC2B2AE35)
LOW_32 = np.uint64(0xFFFFFFFF)
BITS_13, BITS_16 = np.uint64(13), np.uint64(16)
BLANK = np.uint64(0x20)


@njit(cache=True, nogil=True)
def finish(h: np.uint64, n_features: int) -> int:
    """Mix the bits of an FNV hash and return its column."""
    h = ((h ^ (h >> BITS_16)) * MIX_1) & LOW_32
    h = ((h ^ (h >> BITS_13)) * MIX_2) & LOW_32
    return int(h ^ (h >> BITS_16)) % n_features


@njit(cache=True, nogil=True)
def code_point(buffer: NDArray[np.uint8], position: int) -> tuple[int, int]:
    """Decode the UTF-8 character that begins at `position`; return it and its length in bytes."""
    lead = int(buffer[position])
    if lead < 0x80:
        return lead, 1
    second = int(buffer[position + 1]) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second, 2
    third = int(buffer[position + 2]) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | third, 3
    return (lead & 0x07) << 18 | second << 12 | third << 6 | int(buffer[position + 3]) & 0x3F, 4


@njit(cache=True, nogil=True)
def token_columns(
    buffer: NDArray[np.uint8], ends: Longs, is_word: Bools, n_features: int, shortest: int, longest: int
) -> tuple[Longs, Ints]:
    """Return the columns of the terms of each text, as row pointers and one flat array.

    The texts lie one after another in `buffer`, valid UTF-8 (lone surrogates as three bytes), and end at
    `ends`; `is_word` tells for every code point whether it is a word character. Terms are the runs of
    `shortest` to `longest` neighbouring tokens.
    """
    sizes = longest - shortest + 1
    token_ptr = np.zeros(ends.size + 1, np.int64)
    # Two characters and something between: a token takes three bytes of a text, the last one two.
    columns = np.empty(sizes * (buffer.size // 3 + ends.size), np.int32)
    first = np.empty(buffer.size // 3 + 1 if longest > 1 else 0, np.int64)  # of each token in this text
    last = np.empty(first.size, np.int64)
    count = 0
    position = 0
    for text in range(ends.size):
        n_tokens = 0
        while position < ends[text]:
            h = FNV_OFFSET
            begin = position
            length = 0
            while position < ends[text]:
                character, n_bytes = code_point(buffer, position)
                if not is_word[character]:
                    break
                for k in range(position, position + n_bytes):
                    h = ((h ^ np.uint64(buffer[k])) * FNV_PRIME) & LOW_32
                position += n_bytes
                length += 1
            if length >= 2:
                if shortest == 1:
                    columns[count] = finish(h, n_features)
                    count += 1
                if longest > 1:
                    first[n_tokens], last[n_tokens] = begin, position
                    n_tokens += 1
            if position < ends[text]:
                position += n_bytes
        for token in range(n_tokens):
            h = FNV_OFFSET
            for size in range(1, min(longest, n_tokens - token) + 1):
                if size > 1:
                    h = ((h ^ BLANK) * FNV_PRIME) & LOW_32
                for k in range(first[token + size - 1], last[token + size - 1]):
                    h = ((h ^ np.uint64(buffer[k])) * FNV_PRIME) & LOW_32
                if size >= max(shortest, 2):
                    columns[count] = finish(h, n_features)
                    count += 1
        token_ptr[text + 1] = count
    return token_ptr, columns[:count].copy()
