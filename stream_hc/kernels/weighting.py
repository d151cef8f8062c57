"""Columns of the tokens of documents -> weighted sparse rows."""

import math

import numpy as np
from numba import njit

from stream_hc.kernels import Floats, Ints, Longs

__all__ = ["MOST_SEEN", "weigh_rows"]

TF_RAW, TF_LOG, TF_BINARY = 0, 1, 2
LOGS = np.array([math.log(df + 0.5) for df in range(2**16)])
FEW, MANY = 24, 1024
BUCKETS = 256
MOST_SEEN = 2**31 - 1  # documents: counting stops there


@njit(cache=True, nogil=True)
def insert_all(columns: Ints) -> None:
    """Sort columns of which few are far from their place. Writes `columns`."""
    for k in range(1, columns.size):
        column, place = columns[k], k
        while place > 0 and columns[place - 1] > column:
            columns[place] = columns[place - 1]
            place -= 1
        columns[place] = column


@njit(cache=True, nogil=True)
def sort_columns(columns: Ints, spare: Ints, starts: Ints, shift: int) -> None:
    """Sort the columns of a document. Writes `columns`; `spare` and `starts` are room to work in.

    Hashes spread evenly: put into buckets by their upper bits, all but the lower `shift`, nearly all are in
    place, and insertion does the rest in a few steps each. Very long documents are sorted in the common
    way: insertion would take too long if somebody had chosen words of one bucket.
    """
    if columns.size > MANY:
        columns.sort()
        return
    if columns.size > FEW:
        starts[:] = 0
        for k in range(columns.size):
            starts[(columns[k] >> shift) + 1] += 1
        for bucket in range(BUCKETS):
            starts[bucket + 1] += starts[bucket]
        for k in range(columns.size):
            spare[k] = columns[k]
        for k in range(columns.size):
            bucket = spare[k] >> shift
            columns[starts[bucket]] = spare[k]
            starts[bucket] += 1
    insert_all(columns)


@njit(cache=True, nogil=True)
def weight_of(count: int, tf: int) -> float:
    """Return what the number of times a term occurs counts for."""
    if count == 1 or tf == TF_BINARY:
        return 1.0
    return 1.0 + math.log(count) if tf == TF_LOG else float(count)


@njit(cache=True, nogil=True)
def weigh_rows(
    token_ptr: Longs,
    columns: Ints,
    seen_in: Ints,
    n_documents: Longs,
    tf: int,
    flags: tuple[bool, bool, bool],
) -> tuple[Longs, Ints, Floats]:
    """Count, weigh and scale the tokens of each document, in order; return CSR arrays.

    `flags` are (learn, idf, norm). With `learn` a document first adds itself to the document frequencies
    `seen_in` and to `n_documents[0]`, then is weighed by them. Writes those two and sorts `columns`.
    """
    learn, use_idf, normalize = flags
    n_rows = token_ptr.size - 1
    row_ptr = np.zeros(n_rows + 1, np.int64)
    row_columns = np.empty(columns.size, np.int32)
    values = np.empty(columns.size, np.float32)
    spare, starts = np.empty(MANY, np.int32), np.empty(BUCKETS + 1, np.int32)
    shift = 0
    while (seen_in.size - 1) >> shift >= BUCKETS:
        shift += 1
    weights = np.empty(np.max(np.diff(token_ptr)) if n_rows > 0 else 0, np.float64)  # of one document
    size = 0
    for row in range(n_rows):
        first = size
        tokens = columns[token_ptr[row] : token_ptr[row + 1]]
        sort_columns(tokens, spare, starts, shift)
        n_documents[0] += learn
        log_documents = math.log(n_documents[0] + 1.0)
        squares = 0.0
        last = 0
        while last < tokens.size:
            column, begin = tokens[last], last
            while last < tokens.size and tokens[last] == column:
                last += 1
            weight = weight_of(last - begin, tf)
            seen_in[column] += learn and seen_in[column] < MOST_SEEN
            if use_idf:
                df = seen_in[column]
                # ln((n + 1) / (df + 1/2)): most terms are rare, and their logarithm is at hand
                weight *= log_documents - (LOGS[df] if df < LOGS.size else math.log(df + 0.5))
            squares += weight * weight
            row_columns[size] = column
            weights[size - first] = weight
            size += 1
        length = math.sqrt(squares) if normalize and squares > 0.0 else 1.0
        for k in range(first, size):
            values[k] = weights[k - first] / length
        row_ptr[row + 1] = size
    return row_ptr, row_columns[:size].copy(), values[:size].copy()
