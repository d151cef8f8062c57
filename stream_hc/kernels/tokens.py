"""UTF-8 text -> the hashed columns of its terms, in one pass over one buffer for a whole batch.

A token is a maximal run of two or more word characters. Its hash is that of `kernels/rows.py` (FNV-1a,
then the finaliser of MurmurHash3), carried on while its bytes are read; an n-gram goes on with a blank and
the bytes of the next token. On the way the pass can write down which term a column stands for.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stream_hc.kernels import Bools, Bytes, Ints, Longs

__all__ = ["Names", "kmer_columns", "token_columns"]

FNV_OFFSET = np.uint64(0x811C9DC5)
FNV_PRIME = np.uint64(0x01000193)
MIX_1 = np.uint64(0x85EBCA6B)
MIX_2 = np.uint64(0xC2B2AE35)
LOW_32 = np.uint64(0xFFFFFFFF)
BITS_13, BITS_16 = np.uint64(13), np.uint64(16)
BLANK, OPEN = 0x20, 0x2E  # between the tokens of an n-gram; for a letter of a k-mer that may be any
LONGEST_NAME = 64  # bytes
Bounds = NDArray[np.int64]  # a row for each token: where it begins and ends in the buffer


class Names(NamedTuple):
    """Which term a column stands for; the terms lie one after another in `texts`, in UTF-8, long ones cut."""

    known: Bools  # of every column: whether it has a name. Apart from the rows, so that a cache can hold it
    row_of: Ints  # of every column that has one: the row of its name
    column_of: Ints  # of every row
    ends: Longs  # of every row, after a leading 0
    texts: Bytes
    size: Longs  # [0]: how many rows are taken


@njit(cache=True, nogil=True)
def carry_on(h: np.uint64, byte: int) -> np.uint64:
    """Take one more byte into an FNV hash."""
    return ((h ^ np.uint64(byte)) * FNV_PRIME) & LOW_32


@njit(cache=True, nogil=True)
def finish(h: np.uint64, n_features: int) -> int:
    """Mix the bits of an FNV hash and return its column."""
    h = ((h ^ (h >> BITS_16)) * MIX_1) & LOW_32
    h = ((h ^ (h >> BITS_13)) * MIX_2) & LOW_32
    mixed = int(h ^ (h >> BITS_16))
    # A power of two, the usual case, needs no division.
    return mixed & (n_features - 1) if n_features & (n_features - 1) == 0 else mixed % n_features


@njit(cache=True, nogil=True)
def code_point(buffer: Bytes, position: int) -> tuple[int, int]:
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
def add_name(names: Names, column: int, buffer: Bytes, bounds: Bounds, first: int, last: int) -> None:
    """Write down the term made of the tokens `first` to `last` - 1, if there is room. Writes `names`."""
    row = names.size[0]
    if row == names.column_of.size:
        return
    end = names.ends[row]
    most = end + LONGEST_NAME
    for token in range(first, last):
        if token > first and end < most:
            names.texts[end] = BLANK
            end += 1
        begin = bounds[token, 0]
        for k in range(begin, min(bounds[token, 1], begin + most - end)):
            names.texts[end] = buffer[k]
            end += 1
    names.ends[row + 1] = end
    names.size[0] = row + 1
    names.column_of[row] = column
    names.row_of[column] = row
    names.known[column] = True


@njit(cache=True, nogil=True)
def add_names(
    names: Names, columns: Ints, buffer: Bytes, bounds: Bounds, shortest: int, longest: int
) -> None:
    """Name the columns of the terms of a text that have no name yet. Writes `names`."""
    term = 0
    for size in range(shortest, longest + 1):
        for token in range(len(bounds) - size + 1):
            if not names.known[columns[term]]:
                add_name(names, columns[term], buffer, bounds, token, token + size)
            term += 1


@njit(cache=True, nogil=True)
def token_columns(
    buffer: Bytes,
    ends: Longs,
    is_word: Bools,
    n_features: int,
    shortest: int,
    longest: int,
    names: Names | None = None,
) -> tuple[Longs, Ints]:
    """Return the columns of the terms of each text, as row pointers and one flat array.

    The texts lie one after another in `buffer`, valid UTF-8 (lone surrogates as three bytes), and end at
    `ends`; `is_word` tells for every code point whether it is a word character. Terms are the runs of
    `shortest` to `longest` neighbouring tokens, short runs first.

    With `names` a column without a name is named by the term that leads to it (writes `names`). A pass that
    finds no room for names at the beginning of a text ends there: fewer rows come back than texts were given.
    """
    token_ptr = np.zeros(ends.size + 1, np.int64)
    # Two characters and something between: a token takes three bytes of a text, the last one two.
    most = buffer.size // 3 + 1
    columns = np.empty((longest - shortest + 1) * (most + ends.size), np.int32)
    bounds, hashes = np.empty((most, 2), np.int64), np.empty(most, np.uint64)  # of the tokens of a text
    count = 0
    position = 0
    for text in range(ends.size):
        if names is not None and names.size[0] == names.column_of.size:
            return token_ptr[: text + 1], columns[:count].copy()
        n_tokens = 0
        end = ends[text]
        while position < end:
            h = FNV_OFFSET
            begin = position
            length = 0
            n_bytes = 1
            while position < end:
                byte = buffer[position]
                if byte < 0x80:  # by far the most frequent: nothing to decode, one byte to hash
                    n_bytes = 1
                    if not is_word[byte]:
                        break
                    h = carry_on(h, byte)
                else:
                    character, n_bytes = code_point(buffer, position)
                    if not is_word[character]:
                        break
                    for k in range(position, position + n_bytes):
                        h = carry_on(h, buffer[k])
                position += n_bytes
                length += 1
            if length >= 2:
                hashes[n_tokens], bounds[n_tokens, 0], bounds[n_tokens, 1] = h, begin, position
                if shortest == 1:
                    columns[count] = finish(h, n_features)
                    count += 1
                n_tokens += 1
            if position < end:
                position += n_bytes
        for size in range(2, longest + 1):
            for token in range(n_tokens - size + 1):
                added = token + size - 1
                h = carry_on(hashes[token], BLANK)
                for k in range(bounds[added, 0], bounds[added, 1]):
                    h = carry_on(h, buffer[k])
                hashes[token] = h
                if size >= shortest:
                    columns[count] = finish(h, n_features)
                    count += 1
        token_ptr[text + 1] = count
        if names is not None:
            # After the text, not while it is read: in that loop every further variable costs speed.
            add_names(names, columns[token_ptr[text] : count], buffer, bounds[:n_tokens], shortest, longest)
    return token_ptr, columns[:count].copy()


@njit(cache=True, nogil=True)
def kmer_columns(
    buffer: Bytes, ends: Longs, n_features: int, shortest: int, longest: int, gapped: bool
) -> tuple[Longs, Ints]:
    """Return the columns of the k-mers of each sequence, as row pointers and one flat array.

    A k-mer is a run of `shortest` to `longest` bytes. With `gapped` each is followed by those in which one
    byte between its first and its last is left open.
    """
    per_place = 0
    for length in range(shortest, longest + 1):
        per_place += 1 + (max(0, length - 2) if gapped else 0)
    kmer_ptr = np.zeros(ends.size + 1, np.int64)
    columns = np.empty(per_place * buffer.size, np.int32)
    count = 0
    begin = 0
    for sequence in range(ends.size):
        for first in range(begin, ends[sequence]):
            for length in range(shortest, min(longest, ends[sequence] - first) + 1):
                for gap in range(max(1, length - 1) if gapped else 1):  # 0 leaves nothing open
                    h = FNV_OFFSET
                    for k in range(length):
                        h = carry_on(h, OPEN if 0 < gap == k else buffer[first + k])
                    columns[count] = finish(h, n_features)
                    count += 1
        begin = ends[sequence]
        kmer_ptr[sequence + 1] = count
    return kmer_ptr, columns[:count].copy()
