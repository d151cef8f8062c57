"""What to call the columns of a document, and of a model."""

from collections.abc import Iterable, Sequence

from stream_hc.cli.finding import Vectorizer
from stream_hc.runtime.records import Document
from stream_hc.vectorize import SequenceVectorizer, TextVectorizer, hash_features

__all__ = ["names_in", "names_of"]

MOST_TOGETHER = 3  # names of one column
LONGEST_KNOWN = 60  # bytes: what the vectorizer remembers may have been cut behind them


def names_in(
    document: Document, columns: Sequence[int], vectorizer: Vectorizer | None, n_features: int
) -> dict[int, str]:
    """Return what the columns of a document stand for: its own words, features or places.

    Words that share a column stand together; where the model has learned a column from another word than
    those of the document, that word is added.
    """
    if document.vector is not None:
        return {place: f"[{place}]" for place in range(len(document.vector))}
    terms = _terms(document, vectorizer)
    found: dict[int, list[str]] = {}
    for term, hashed in zip(terms, hash_features(terms).tolist(), strict=True):
        of_column = found.setdefault(hashed % n_features, [])
        if term not in of_column:
            of_column.append(term)
    names = {}
    for column, known in zip(columns, names_of(columns, vectorizer), strict=True):
        words = found.get(column, [])
        name = " / ".join(words[:MOST_TOGETHER]) or f"#{column}"
        is_other = document.text is not None and known[0] != "#" and not _is_one_of(known, words)
        names[column] = f"{name} (shares a column with {known})" if is_other else name
    return names


def names_of(columns: Sequence[int], vectorizer: Vectorizer | None) -> list[str]:
    """Return the words that are remembered beside the hash, `#column` for the others."""
    known = vectorizer.names_of(columns) if columns and isinstance(vectorizer, TextVectorizer) else []
    words = known or [None] * len(columns)
    return [word or f"#{column}" for word, column in zip(words, columns, strict=True)]


def _terms(document: Document, vectorizer: Vectorizer | None) -> list[str]:
    if document.features is not None:
        return list(document.features)
    text = document.text or ""
    if isinstance(vectorizer, SequenceVectorizer):
        return vectorizer.kmers(text)
    return [] if vectorizer is None else vectorizer.tokens(text)


def _is_one_of(known: str, words: Iterable[str]) -> bool:
    size = len(known.encode())
    return any(word == known or (size > LONGEST_KNOWN and word.startswith(known)) for word in words)
