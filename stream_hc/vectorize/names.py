"""A bounded dictionary from columns back to terms: no hash can be inverted, but what was read can be kept."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import Bytes, Ints, Longs
from stream_hc.kernels.tokens import LONGEST_NAME, Names
from stream_hc.vectorize.hashing import hash_features

__all__ = ["NameTable"]

MOST_BYTES_OF_A_CHARACTER = 4
FREQUENT = 2**31  # columns seen in more texts than this count as equally frequent


class NameTable:
    """The names of at most `limit` columns; `arrays` is what the kernel reads and writes.

    A name is the first term that led to its column, cut to 64 bytes. When the table is full, the rarer half
    is forgotten before the next text: those with the lower document frequency, of equal ones those with the
    higher column. So its content depends on the texts and their order, never on the size of the batches. It
    takes at most 76 bytes for each of `limit` names and 5 for each column, and of that only what was used.
    """

    def __init__(self, limit: int, n_features: int) -> None:
        self.limit = limit
        self.arrays = Names(
            known=np.zeros(n_features, np.bool_),
            row_of=np.zeros(n_features, np.int32),
            column_of=np.zeros(limit, np.int32),
            ends=np.zeros(limit + 1, np.int64),
            texts=np.zeros(limit * LONGEST_NAME, np.uint8),
            size=np.zeros(1, np.int64),
        )

    def __len__(self) -> int:
        return int(self.arrays.size[0])

    def of(self, columns: NDArray[Any]) -> list[str | None]:
        """Return the name of each column, None where it has none."""
        if columns.size == 0:
            return []
        if columns.dtype.kind not in "iu" or columns.ndim != 1:
            raise ValueError("columns must be a list of whole numbers")
        if not 0 <= columns.min() <= columns.max() < self.arrays.row_of.size:
            raise ValueError(f"columns must lie below n_features={self.arrays.row_of.size} and not below 0")
        names = iter(self._decoded(columns[self.arrays.known[columns]]))
        return [next(names) if known else None for known in self.arrays.known[columns].tolist()]

    def forget_rare(self, seen_in: Ints) -> None:
        """Make room in a full table; `seen_in` holds the document frequency of every column."""
        columns, ends, texts = self.arrays.column_of, self.arrays.ends, self.arrays.texts
        # One number to compare by: the frequency, then the column. No two are equal.
        rank = np.minimum(seen_in[columns].astype(np.int64), FREQUENT) * FREQUENT - columns
        n_forgotten = self.limit - self.limit // 2
        kept = rank > np.partition(rank, n_forgotten - 1)[n_forgotten - 1]
        sizes = np.diff(ends)
        self.arrays.known[columns] = False
        self._fill(columns[kept], sizes[kept], texts[: ends[-1]][np.repeat(kept, sizes)])

    def state(self) -> dict[str, Any]:
        """Return the named columns in order and their names: UTF-8, a line for each."""
        named = np.sort(self.arrays.column_of[: len(self)])
        lines = "\n".join(self._decoded(named))
        return {"named": named, "terms": np.frombuffer(lines.encode(), np.uint8).copy()}

    def restore(self, state: Mapping[str, Any], seen_in: Ints) -> None:
        """Take over the names of a state, or raise a `ValueError` that says what is wrong with it."""
        named, terms = state["named"], state["terms"]
        if (named.dtype, terms.dtype) != (np.int32, np.uint8) or (named.ndim, terms.ndim) != (1, 1):
            raise ValueError("names must be a list of int32 columns and one of bytes")
        n_features = seen_in.size
        if named.size > self.limit:
            raise ValueError(f"there are {named.size} names, but at most names={self.limit} are allowed")
        if named.size and not (named[0] >= 0 and named[-1] < n_features and (np.diff(named) > 0).all()):
            raise ValueError(f"named columns must ascend and lie below n_features={n_features}")
        if not seen_in[named].all():
            raise ValueError("a column has a name, but no text had a term in it")
        encoded = terms.tobytes().split(b"\n") if terms.size else []
        if len(encoded) != named.size or not all(0 < len(name) <= LONGEST_NAME for name in encoded):
            raise ValueError(f"there must be a name of 1 to {LONGEST_NAME} bytes for every named column")
        names = [name.decode() for name in encoded]  # a UnicodeDecodeError is a ValueError
        if not all(re.fullmatch(r"[\w ]+", name) for name in names):
            raise ValueError("a name may hold word characters and blanks only")
        # A name that may have been cut tells nothing about its column.
        whole = np.array([len(name) <= LONGEST_NAME - MOST_BYTES_OF_A_CHARACTER for name in encoded], bool)
        if ((hash_features(names) % n_features != named) & whole).any():
            raise ValueError("a name does not belong to its column")
        self._fill(named, np.array([len(name) for name in encoded], np.int64), terms[terms != ord("\n")])

    def _fill(self, columns: Ints, sizes: Longs, texts: Bytes) -> None:
        n = columns.size
        self.arrays.column_of[:n] = columns
        self.arrays.ends[1 : n + 1] = np.cumsum(sizes)
        self.arrays.texts[: texts.size] = texts
        self.arrays.row_of[columns] = np.arange(n)
        self.arrays.known[columns] = True
        self.arrays.size[0] = n

    def _decoded(self, columns: Ints) -> list[str]:
        rows, ends, data = self.arrays.row_of[columns], self.arrays.ends, self.arrays.texts.data
        bounds = zip(ends[rows].tolist(), ends[rows + 1].tolist(), strict=True)
        # Where a long term was cut through a character, the rest of that character is ignored.
        return [str(data[begin:end], "utf-8", "ignore") for begin, end in bounds]
