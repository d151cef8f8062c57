"""Text -> unit sparse rows: tokens, hash, counts, log-tf, running idf, length 1."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from river import base
from scipy.sparse import csr_array

from stream_hc.checks import one_of, whole_number
from stream_hc.kernels import Floats, Ints, Longs
from stream_hc.kernels.tokens import token_columns
from stream_hc.kernels.weighting import MOST_SEEN, weigh_rows
from stream_hc.vectorize.names import NameTable
from stream_hc.vectorize.rows import joined
from stream_hc.vectorize.words import terms, text_of, utf8, word_characters

__all__ = ["TextVectorizer"]

Tf = Literal["raw", "log", "binary"]
BLOCK = 1024  # texts: what lies between two passes stays in the cache, and in memory that is already there


class TextVectorizer(base.Transformer):
    """Hash the words of a text into the columns of a sparse row.

    A token is a maximal run of two or more word characters (as Python's `re` sees them). A term's weight is
    tf · idf with tf = 1 + ln(count) and idf = ln((n + 1) / (df + 1/2)), where n and df count the texts given
    to `learn` so far; it is positive even for the first text and for a term in every text. The row is then
    scaled to length 1. A term is counted in 2³¹ − 1 texts at most.

    Parameters
    ----------
    n_features
        Number of columns.
    lowercase
        Whether to lower the case first.
    ngrams
        Shortest and longest run of neighbouring tokens that makes a term.
    tf
        What a count becomes: itself ("raw"), 1 + ln(count) ("log") or 1 ("binary").
    idf
        Whether rare terms weigh more.
    norm
        Whether rows get length 1.
    names
        Of how many columns at most `names_of` knows the term; 0 for none. The most frequent ones are kept.

    Examples
    --------
    >>> vectorizer = TextVectorizer(n_features=32)
    >>> vectorizer.transform(["Rates rise, rates fall", ""]).toarray().round(2).max(axis=1)
    array([0.77, 0.  ], dtype=float32)
    >>> sorted(vectorizer.transform_one("rates").values())
    [1.0]
    >>> vectorizer.learn(["Rates rise, rates fall"])
    >>> vectorizer.names_of(vectorizer.transform(["falling rates"]).indices)
    ['rates', None]
    """

    def __init__(
        self,
        n_features: int = 2**18,
        lowercase: bool = True,
        ngrams: tuple[int, int] = (1, 1),
        tf: Tf = "log",
        idf: bool = True,
        norm: bool = True,
        names: int = 2**16,
    ) -> None:
        whole_number("n_features", n_features, 1, 2**31 - 1)
        whole_number("names", names, 0, 2**31 - 1)
        if not isinstance(ngrams, tuple) or len(ngrams) != 2:
            raise ValueError(f"ngrams must be a pair (shortest, longest), not {ngrams!r}")
        whole_number("the longest of ngrams", ngrams[1], whole_number("the shortest of ngrams", ngrams[0], 1))
        for name, flag in (("lowercase", lowercase), ("idf", idf), ("norm", norm)):
            if not isinstance(flag, bool):
                raise ValueError(f"{name} must be True or False, not {flag!r}")
        one_of("tf", tf, Tf)
        self.n_features = n_features
        self.lowercase = lowercase
        self.ngrams = ngrams
        self.tf: Tf = tf
        self.idf = idf
        self.norm = norm
        self.names = names
        self._seen_in = np.zeros(n_features, np.int32)  # half the size of int64: a cache holds twice as many
        self._n_documents = np.zeros(1, np.int64)
        self._names = NameTable(names, n_features)

    @property
    def n_documents(self) -> int:
        """How many texts were learned."""
        return int(self._n_documents[0])

    def tokens(self, text: str) -> list[str]:
        """Return the terms of a text in order: words, then longer n-grams."""
        return terms(text.lower() if self.lowercase else text, *self.ngrams)

    def names_of(self, columns: Sequence[int] | NDArray[np.integer[Any]]) -> list[str | None]:
        """Return the term that each column stands for, None where none is known.

        Terms become known by `learn`. Of several terms that share a column it is the one seen first; a long
        one is cut to 64 bytes of UTF-8.
        """
        return self._names.of(np.asarray(columns))

    def learn(self, texts: Sequence[str]) -> None:
        """Count in how many texts each term occurs, and remember its name."""
        self._weigh(texts, learn=True)

    def transform(self, texts: Sequence[str]) -> csr_array:
        """Return one row for each text, weighted by what was learned so far."""
        return self._weigh(texts, learn=False)

    def learn_transform(self, texts: Sequence[str]) -> csr_array:
        """Learn and transform text by text, in order: the rows do not depend on the size of the batches."""
        return self._weigh(texts, learn=True)

    def learn_one(self, x: str | Mapping[str, Any]) -> None:  # type: ignore[override]
        """Count the terms of one text."""
        self.learn([text_of(x)])

    def transform_one(self, x: str | Mapping[str, Any]) -> dict[int, float]:  # type: ignore[override]
        """Return the row of one text (or of the field `text` of a dict) as {column: weight}."""
        row = self.transform([text_of(x)])
        return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))

    def _weigh(self, texts: Sequence[str], learn: bool) -> csr_array:
        buffer, bounds = utf8(texts, self.lowercase)
        is_word = word_characters(buffer)
        names = self._names.arrays if learn and self.names else None
        tf, flags = get_args(Tf).index(self.tf), (learn, self.idf, self.norm)
        parts: list[tuple[Longs, Ints, Floats]] = []
        done, n = 0, bounds.size - 1
        while done < n or not parts:
            stop = min(done + BLOCK, n)
            block, ends = buffer[bounds[done] : bounds[stop]], bounds[done + 1 : stop + 1] - bounds[done]
            ptr, columns = token_columns(block, ends, is_word, self.n_features, *self.ngrams, names)
            parts.append(weigh_rows(ptr, columns, self._seen_in, self._n_documents, tf, flags))
            done += ptr.size - 1
            if done < stop:
                # No room for further names. The frequencies are those at this text, wherever a batch ends.
                self._names.forget_rare(self._seen_in)
        rows = joined(parts)
        # scikit-learn takes no pointers of 64 bits.
        indptr = rows.indptr.astype(np.int32) if rows.values.size < 2**31 else rows.indptr
        matrix = csr_array((rows.values, rows.indices, indptr), shape=(n, self.n_features))
        matrix.has_canonical_format = True
        return matrix

    def state(self) -> dict[str, Any]:
        """Return everything it knows as plain numbers, strings and copied arrays."""
        used = np.flatnonzero(self._seen_in)
        return {
            "n_features": self.n_features,
            "lowercase": self.lowercase,
            "ngrams": np.array(self.ngrams, np.int64),
            "tf": self.tf,
            "idf": self.idf,
            "norm": self.norm,
            "names": self.names,
            "n_documents": self.n_documents,
            "columns": used.astype(np.int32),
            "seen_in": self._seen_in[used].astype(np.int64),
            **self._names.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "TextVectorizer":
        """Return a vectorizer that goes on where `state` was taken."""
        names = ("n_features", "lowercase", "tf", "idf", "norm", "names")
        shortest, longest = state["ngrams"].tolist()
        model = cls(ngrams=(shortest, longest), **{name: state[name] for name in names})
        used, seen_in = state["columns"], state["seen_in"]
        n_documents = whole_number("n_documents", state["n_documents"], 0, 2**62)
        if (
            (used.dtype, seen_in.dtype) != (np.int32, np.int64)
            or used.shape != seen_in.shape
            or used.ndim != 1
        ):
            raise ValueError("columns and their document frequencies do not fit together")
        if used.size and not (
            used.min() >= 0 and used.max() < model.n_features and (np.diff(used) > 0).all()
        ):
            raise ValueError(f"columns must ascend and lie below n_features={model.n_features}")
        if not ((seen_in > 0) & (seen_in <= min(n_documents, MOST_SEEN))).all():
            raise ValueError("document frequencies must lie between 1 and the number of documents")
        if state.keys() != model.state().keys():
            raise ValueError(f"unknown entries: {sorted(state.keys() - model.state().keys())}")
        model._seen_in[used] = seen_in
        model._n_documents[0] = n_documents
        model._names.restore(state, model._seen_in)
        return model

    def _more_tags(self) -> set[str]:
        return {base.tags.TEXT_INPUT}
