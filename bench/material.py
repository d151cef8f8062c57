"""A stream in the forms the contestants want it in, made once and outside the clock."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
from scipy.sparse import csr_array

from bench.streams import Stream
from stream_hc import TextVectorizer

__all__ = ["Material", "Split", "split"]


@dataclass(frozen=True)
class Material:
    """A stream with its rows; `folder` is where peers may keep their files."""

    stream: Stream
    folder: Path

    @cached_property
    def X(self) -> csr_array:  # noqa: N802
        """Unit tf-idf rows, n × 2^18, each weighted by the documents up to it."""
        return TextVectorizer().learn_transform(self.stream.texts)

    @cached_property
    def Y(self) -> csr_array:  # noqa: N802
        """Labels closed upward, n × N."""
        return self.stream.taxonomy.encode(self.stream.labels)

    @cached_property
    def lines(self) -> list[bytes]:
        """The documents as `stream-hc run` reads them."""
        encode = msgspec.json.encode
        pairs = zip(self.stream.texts, self.stream.labels, strict=True)
        return [
            encode({"id": str(k), "text": text, "labels": sorted(labels)})
            for k, (text, labels) in enumerate(pairs)
        ]

    @cached_property
    def dicts(self) -> list[dict[str, float]]:
        """The rows as river takes them: {word: weight}."""
        vectorizer = TextVectorizer(idf=False)
        words = sorted({word for text in self.stream.texts for word in vectorizer.tokens(text)})
        names = np.empty(self.X.shape[1], dtype=object)
        names[vectorizer.transform(words).indices] = words
        keys, values, ends = names[self.X.indices].tolist(), self.X.data.tolist(), self.X.indptr.tolist()
        return [dict(zip(keys[begin:end], values[begin:end], strict=True)) for begin, end in pairwise(ends)]

    def first(self, n: int) -> "Material":
        """Return the material of the first `n` documents."""
        stream = self.stream
        return Material(stream._replace(texts=stream.texts[:n], labels=stream.labels[:n]), self.folder)


@dataclass(frozen=True)
class Split:
    """Documents to learn from in one pass, and documents to predict afterwards."""

    train: Material
    test: Material
    X_train: csr_array
    X_test: csr_array

    @property
    def folder(self) -> Path:
        """Where peers may keep their files."""
        return self.train.folder


def split(stream: Stream, cut: int, folder: Path) -> Split:
    """Cut a stream in two; the weights of the words are those known after the first part."""
    head, tail = (
        stream._replace(texts=stream.texts[part], labels=stream.labels[part])
        for part in (slice(cut), slice(cut, None))
    )
    vectorizer = TextVectorizer()
    X_train = vectorizer.learn_transform(head.texts)
    return Split(Material(head, folder), Material(tail, folder), X_train, vectorizer.transform(tail.texts))
