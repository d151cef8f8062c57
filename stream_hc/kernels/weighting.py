"""Columns of the tokens of documents -> weighted sparse rows."""

import math

import numpy as np
from numba import njit

from stream_hc.kernels import Floats, Ints, Longs

__all__ = ["weigh_rows"]

TF_RAW, TF_LOG, TF_BINARY = 0, 1, 2
LOGS = np.array([math.log(df + 0.5) for df in range(1024)])


@njit(cache=True, nogil=True)
def weigh_rows(
    token_ptr: Longs,
    columns: Ints,
    seen_in: Longs,
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
    values = np.empty(columns.size, np.float64)
    size = 0
    for row in range(n_rows):
        first = size
        tokens = columns[token_ptr[row] : token_ptr[row + 1]]
        tokens.sort()
        for k in range(tokens.size):
            if k > 0 and tokens[k] == tokens[k - 1]:
                values[size - 1] += 1.0
            else:
                row_columns[size] = tokens[k]
                values[size] = 1.0
                size += 1
        if learn:
            n_documents[0] += 1
            for k in range(first, size):
                seen_in[row_columns[k]] += 1
        squares = 0.0
        log_documents = math.log(n_documents[0] + 1.0)
        for k in range(first, size):
            if tf == TF_LOG and values[k] > 1.0:
                values[k] = 1.0 + math.log(values[k])
            elif tf == TF_BINARY:
                values[k] = 1.0
            if use_idf:
                df = seen_in[row_columns[k]]
                # ln((n + 1) / (df + 1/2)): most terms are rare, and their logarithm is at hand
                log_df = LOGS[df] if df < LOGS.size else math.log(df + 0.5)
                values[k] *= log_documents - log_df
            squares += values[k] * values[k]
        if normalize and squares > 0.0:
            length = math.sqrt(squares)
            for k in range(first, size):
                values[k] /= length
        row_ptr[row + 1] = size
    return row_ptr, row_columns[:size].copy(), values[:size].astype(np.float32)
