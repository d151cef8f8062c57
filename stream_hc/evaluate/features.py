"""The documents of a data set as rows that learners take."""

from collections.abc import Hashable
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from stream_hc.datasets import Dataset
from stream_hc.vectorize import SequenceVectorizer, TextVectorizer, from_dict

__all__ = ["vectorize_dataset"]


def vectorize_dataset(
    dataset: Dataset,
    n_features: int = 2**18,
    train: ArrayLike | None = None,
    sequences: SequenceVectorizer | None = None,
) -> csr_array:
    """Return the documents as float32 rows (n × n_features) of length 1.

    Parameters
    ----------
    dataset
        Texts, which go through `TextVectorizer`, or feature dicts, whose names are hashed.
    n_features
        Number of columns.
    train
        None weighs every text by what the stream has shown up to it (itself included): no look ahead. Row
        numbers count the document frequencies on those rows only and then weigh all texts by them. Feature
        dicts have no such weights.
    sequences
        Makes the rows, where the texts are sequences of letters, such as proteins; n_features is its own.

    Examples
    --------
    >>> from stream_hc.datasets import make_news
    >>> X = vectorize_dataset(make_news(3), n_features=1024)
    >>> X.shape
    (3, 1024)
    >>> X.power(2).sum(axis=1).round(3)
    array([1., 1., 1.], dtype=float32)
    """
    if dataset.kind == "features":
        return _unit_rows(cast(list[dict[Hashable, float]], dataset.documents), n_features)
    texts, vectorizer = cast(list[str], dataset.documents), TextVectorizer(n_features)
    if sequences is not None:
        return sequences.transform(texts)
    if train is None:
        return vectorizer.learn_transform(texts)
    vectorizer.learn([texts[row] for row in np.asarray(train).tolist()])
    return vectorizer.transform(texts)


def _unit_rows(documents: list[dict[Hashable, float]], n_features: int) -> csr_array:
    rows = [from_dict(document, n_features) for document in documents]
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([row.indices.size for row in rows], out=indptr[1:])
    # In double precision the squares of large float32 values do not overflow; empty rows stay empty.
    lengths = [np.linalg.norm(row.values.astype(np.float64)) for row in rows]
    values = [row.values / (length or 1.0) for row, length in zip(rows, lengths, strict=True)]
    matrix = csr_array(
        (np.concatenate(values).astype(np.float32), np.concatenate([row.indices for row in rows]), indptr),
        shape=(len(rows), n_features),
    )
    matrix.eliminate_zeros()  # a value next to nothing beside the others may have become 0
    return matrix
