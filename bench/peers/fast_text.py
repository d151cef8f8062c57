"""fastText: averaged word vectors and one logistic output for each label, one epoch."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fasttext
from scipy.sparse import csr_array

from bench.contest import Contestant, Entrant
from bench.labels import rows_of_labels
from bench.material import Material, Split
from bench.ours import RAW_GROUP
from bench.peers.quiet import quiet
from stream_hc import TextVectorizer

__all__ = ["OVA", "contestants", "deep_contestants", "entrants"]

OVA = "fastText ova"
PREFIX = "__label__"


def contestants(material: Material) -> list[Contestant]:
    """Learning alone, from a file."""
    path = _write(material, "fasttext.txt")
    return [Contestant(OVA, RAW_GROUP, len(material.stream.texts), lambda _: _train(path))]


def deep_contestants(material: Material) -> list[Contestant]:
    """Hierarchical softmax over the leaves: thousands of single outputs would be slow."""
    path = _write(material, "fasttext-leaves.txt", leaves_only=True)
    name, n = "fastText hierarchical softmax", len(material.stream.texts)
    return [Contestant(name, RAW_GROUP, n, lambda _: _train(path, loss="hs"))]


def entrants() -> list[Entrant]:
    """Return it as in `contestants`."""
    return [Entrant(OVA, _train_and_test)]


def _train(path: Path, **options: Any) -> Any:
    settings = {"loss": "ova", "epoch": 1, "lr": 2.0, "thread": 1, "verbose": 0} | options
    with quiet(), _zeroed_memory():
        return fasttext.train_supervised(str(path), **settings)


@contextmanager
def _zeroed_memory() -> Iterator[None]:
    """Let malloc hand out zeros: on one thread fastText 0.9.3 fills a tenth of its table and trusts the rest.

    In memory that was used before it would find NaN there. The setting is glibc's M_PERTURB; it costs nothing
    measurable. Where there is no `mallopt` fresh memory has to do.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        yield
        return
    mallopt(-6, 255)
    try:
        yield
    finally:
        mallopt(-6, 0)


def _train_and_test(split: Split, **options: Any) -> csr_array:
    model = _train(_write(split.train, "fasttext-train.txt"), **options)
    # `predict` of the Python wrapper fails under numpy 2; what it wraps does not.
    answers = model.f.multilinePredict([line + "\n" for line in _words(split.test)], -1, 0.5, "strict")
    lists = [[int(label.removeprefix(PREFIX)) for label in labels] for labels in answers[0]]
    return rows_of_labels(lists, split.train.stream.taxonomy)


def _write(material: Material, name: str, leaves_only: bool = False) -> Path:
    path, Y = material.folder / name, material.Y
    with path.open("w", encoding="utf-8") as file:
        for row, words in enumerate(_words(material)):
            # Nodes are sorted by depth: on a single path the last one is the leaf.
            first = Y.indptr[row + 1] - 1 if leaves_only else Y.indptr[row]
            nodes = Y.indices[first : Y.indptr[row + 1]].tolist()
            file.write(" ".join(f"{PREFIX}{node}" for node in nodes) + f" {words}\n")
    return path


def _words(material: Material) -> list[str]:
    tokens = TextVectorizer().tokens
    return [" ".join(tokens(text)) for text in material.stream.texts]
