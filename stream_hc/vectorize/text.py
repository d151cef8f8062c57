"""Text -> unit sparse rows: tokens, hash, counts, log-tf, running idf, length 1."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from river import base
from scipy.sparse import csr_array

from stream_hc.checks import whole_number
from stream_hc.kernels import Ints, Longs
from stream_hc.kernels import weighting as kernels
from stream_hc.kernels.tokens import token_columns
from stream_hc.vectorize.words import TOKEN, word_characters

__all__ = ["TextVectorizer"]

Tf = Literal["raw", "log", "binary"]


class TextVectorizer(base.Transformer):
    """Hash the words of a text into the columns of a sparse row.

    A token is a maximal run of two or more word characters (as Python's `re` sees them). A term's weight is
    tf · idf with tf = 1 + ln(count) and idf = ln((n + 1) / (df + 1/2)), where n and df count the texts given
    to `learn` so far; it is positive even for the first text and for a term in every text. The row is then
    scaled to length 1.

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

    Examples
    --------
    >>> vectorizer = TextVectorizer(n_features=32)
    >>> vectorizer.transform(["Rates rise, rates fall", ""]).toarray().round(2).max(axis=1)
    array([0.77, 0.  ], dtype=float32)
    >>> sorted(vectorizer.transform_one("rates").values())
    [1.0]
    """

    def __init__(
        self,
        n_features: int = 2**18,
        lowercase: bool = True,
        ngrams: tuple[int, int] = (1, 1),
        tf: Tf = "log",
        idf: bool = True,
        norm: bool = True,
    ) -> None:
        whole_number("n_features", n_features, 1, 2**31 - 1)
        if not isinstance(ngrams, tuple) or len(ngrams) != 2:
            raise ValueError(f"ngrams must be a pair (shortest, longest), not {ngrams!r}")
        whole_number("the longest of ngrams", ngrams[1], whole_number("the shortest of ngrams", ngrams[0], 1))
        for name, flag in (("lowercase", lowercase), ("idf", idf), ("norm", norm)):
            if not isinstance(flag, bool):
                raise ValueError(f"{name} must be True or False, not {flag!r}")
        if tf not in get_args(Tf):
            raise ValueError(f"unknown tf {tf!r}: choose one of {', '.join(get_args(Tf))}")
        self.n_features = n_features
        self.lowercase = lowercase
        self.ngrams = ngrams
        self.tf: Tf = tf
        self.idf = idf
        self.norm = norm
        self._seen_in = np.zeros(n_features, np.int64)
        self._n_documents = np.zeros(1, np.int64)

    @property
    def n_documents(self) -> int:
        """How many texts were learned."""
        return int(self._n_documents[0])

    def tokens(self, text: str) -> list[str]:
        """Return the terms of a text in order: words, then longer n-grams."""
        words = TOKEN.findall(text.lower() if self.lowercase else text)
        shortest, longest = self.ngrams
        if longest == 1:
            return words
        return [
            " ".join(words[first : first + size])
            for size in range(shortest, longest + 1)
            for first in range(len(words) - size + 1)
        ]

    def learn(self, texts: Sequence[str]) -> None:
        """Count in how many texts each term occurs."""
        self._weigh(texts, learn=True)

    def transform(self, texts: Sequence[str]) -> csr_array:
        """Return one row for each text, weighted by what was learned so far."""
        return self._weigh(texts, learn=False)

    def learn_transform(self, texts: Sequence[str]) -> csr_array:
        """Learn and transform text by text, in order: the rows do not depend on the size of the batches."""
        return self._weigh(texts, learn=True)

    def learn_one(self, x: str | Mapping[str, Any]) -> None:  # type: ignore[override]
        """Count the terms of one text."""
        self.learn([_text_of(x)])

    def transform_one(self, x: str | Mapping[str, Any]) -> dict[int, float]:  # type: ignore[override]
        """Return the row of one text (or of the field `text` of a dict) as {column: weight}."""
        row = self.transform([_text_of(x)])
        return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))

    def _weigh(self, texts: Sequence[str], learn: bool) -> csr_array:
        token_ptr, token_columns = self._token_columns(texts)
        indptr, indices, values = kernels.weigh_rows(
            token_ptr,
            token_columns,
            self._seen_in,
            self._n_documents,
            get_args(Tf).index(self.tf),
            (learn, self.idf, self.norm),
        )
        matrix = csr_array((values, indices, indptr), shape=(len(texts), self.n_features))
        matrix.has_canonical_format = True
        return matrix

    def _token_columns(self, texts: Sequence[str]) -> tuple[Longs, Ints]:
        if isinstance(texts, str):
            raise ValueError("expected a list of texts, not a single str")
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise ValueError(f"row {row}: a text must be a str, not {type(text).__name__}")
        lowered = [text.lower() for text in texts] if self.lowercase else texts
        # A lone surrogate is no valid UTF-8; as three bytes it decodes to itself, which is no word character.
        encoded = [text.encode("utf-8", "surrogatepass") for text in lowered]
        buffer = np.frombuffer(b"".join(encoded), np.uint8)
        ends = np.cumsum([len(data) for data in encoded], dtype=np.int64)
        return token_columns(buffer, ends, word_characters(buffer), self.n_features, *self.ngrams)

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
            "n_documents": self.n_documents,
            "columns": used.astype(np.int32),
            "seen_in": self._seen_in[used],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "TextVectorizer":
        """Return a vectorizer that goes on where `state` was taken."""
        names = ("n_features", "lowercase", "tf", "idf", "norm")
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
        if not ((seen_in > 0) & (seen_in <= n_documents)).all():
            raise ValueError("document frequencies must lie between 1 and the number of documents")
        if state.keys() != model.state().keys():
            raise ValueError(f"unknown entries: {sorted(state.keys() - model.state().keys())}")
        model._seen_in[used] = seen_in
        model._n_documents[0] = n_documents
        return model

    def _more_tags(self) -> set[str]:
        return {base.tags.TEXT_INPUT}


def _text_of(x: str | Mapping[str, Any]) -> str:
    text = x.get("text") if isinstance(x, Mapping) else x
    if not isinstance(text, str):
        raise ValueError("expected a str, or a dict with a str under 'text'")
    return text
