"""Sequences of letters, such as proteins -> unit sparse rows: k-mers, hash, counts, length 1."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
from river import base
from scipy.sparse import csr_array

from stream_hc.checks import one_of, whole_number
from stream_hc.kernels.tokens import kmer_columns
from stream_hc.kernels.weighting import weigh_rows
from stream_hc.vectorize.text import Tf
from stream_hc.vectorize.words import text_of, utf8

__all__ = ["SequenceVectorizer"]


class SequenceVectorizer(base.Transformer):
    """Hash the k-mers of a sequence into the columns of a sparse row.

    A k-mer is a run of k neighbouring letters; a gapped one leaves open a letter that is neither its first
    nor its last: `M.L` stands for `MEL`, `MKL` and so on. Nothing is learned: a row depends on its sequence
    alone.

    Parameters
    ----------
    n_features
        Number of columns.
    k
        Shortest and longest k-mer.
    gapped
        Whether to add gapped k-mers.
    tf
        What a count becomes: itself ("raw"), 1 + ln(count) ("log") or 1 ("binary").
    norm
        Whether rows get length 1.

    Examples
    --------
    >>> vectorizer = SequenceVectorizer(k=(3, 3))
    >>> vectorizer.kmers("MELP")
    ['MEL', 'M.L', 'ELP', 'E.P']
    >>> vectorizer.transform(["MELP", "MKLP"]).sum(axis=1)
    array([2., 2.], dtype=float32)
    """

    def __init__(
        self,
        n_features: int = 2**18,
        k: tuple[int, int] = (2, 4),
        gapped: bool = True,
        tf: Tf = "log",
        norm: bool = True,
    ) -> None:
        whole_number("n_features", n_features, 1, 2**31 - 1)
        if not isinstance(k, tuple) or len(k) != 2:
            raise ValueError(f"k must be a pair (shortest, longest), not {k!r}")
        whole_number("the longest of k", k[1], whole_number("the shortest of k", k[0], 1), 64)
        for name, flag in (("gapped", gapped), ("norm", norm)):
            if not isinstance(flag, bool):
                raise ValueError(f"{name} must be True or False, not {flag!r}")
        one_of("tf", tf, Tf)
        self.n_features = n_features
        self.k = k
        self.gapped = gapped
        self.tf: Tf = tf
        self.norm = norm
        # Nothing is counted over documents.
        self._nobody = (np.zeros(n_features, np.int32), np.zeros(1, np.int64))

    def kmers(self, sequence: str) -> list[str]:
        """Return the k-mers of a sequence, place by place, short ones first."""
        found = []
        for first in range(len(sequence)):
            for length in range(self.k[0], min(self.k[1], len(sequence) - first) + 1):
                kmer = sequence[first : first + length]
                found.append(kmer)
                if self.gapped:
                    found += [f"{kmer[:gap]}.{kmer[gap + 1 :]}" for gap in range(1, length - 1)]
        return found

    def transform(self, sequences: Sequence[str]) -> csr_array:
        """Return one row for each sequence."""
        buffer, bounds = utf8(sequences, lowercase=False)
        if buffer.max(initial=0) >= 0x80:
            row = next(row for row, sequence in enumerate(sequences) if not sequence.isascii())
            raise ValueError(f"row {row}: a sequence must be written in ASCII letters")
        ptr, columns = kmer_columns(buffer, bounds[1:], self.n_features, *self.k, self.gapped)
        tf = get_args(Tf).index(self.tf)
        indptr, indices, values = weigh_rows(ptr, columns, *self._nobody, tf, (False, False, self.norm))
        matrix = csr_array((values, indices, indptr), shape=(len(sequences), self.n_features))
        matrix.has_canonical_format = True
        return matrix

    def learn_transform(self, sequences: Sequence[str]) -> csr_array:
        """Do the same: there is nothing to learn. A stream may call either vectorizer like this."""
        return self.transform(sequences)

    def transform_one(self, x: str | Mapping[str, Any]) -> dict[int, float]:  # type: ignore[override]
        """Return the row of one sequence (or of the field `text` of a dict) as {column: weight}."""
        row = self.transform([text_of(x)])
        return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))

    def state(self) -> dict[str, Any]:
        """Return its settings."""
        shortest, longest = self.k
        return {
            "n_features": self.n_features,
            "shortest": shortest,
            "longest": longest,
            "gapped": self.gapped,
            "tf": self.tf,
            "norm": self.norm,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "SequenceVectorizer":
        """Return a vectorizer with these settings."""
        model = cls(
            state["n_features"],
            (state["shortest"], state["longest"]),
            state["gapped"],
            state["tf"],
            state["norm"],
        )
        if state.keys() != model.state().keys():
            raise ValueError(f"unknown entries: {sorted(state.keys() - model.state().keys())}")
        return model

    def _more_tags(self) -> set[str]:
        return {base.tags.TEXT_INPUT}
