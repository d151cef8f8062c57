"""Read RCV1-v2, the newswire collection of Lewis, Yang, Rose and Li (2004), from its public files.

`lyrl2004_vectors_*.dat` has a line `did term:weight term:weight ...` for each document,
`rcv1-v2.topics.qrels` has lines `topic did 1`, and `rcv1.topics.hier.orig` has lines
`parent: P child: C child-description: D`. Each file may be gzipped.

References
----------
D. D. Lewis, Y. Yang, T. G. Rose, F. Li. RCV1: A new benchmark collection for text categorization research.
Journal of Machine Learning Research 5, 2004.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path

from stream_hc.datasets.dataset import Dataset, DatasetError
from stream_hc.datasets.files import check_limit, find_file, numbered_lines
from stream_hc.taxonomy import Taxonomy, TaxonomyError

__all__ = ["load_rcv1"]

HIERARCHY = "rcv1.topics.hier.orig"
QRELS = "rcv1-v2.topics.qrels"
HIERARCHY_LINE = re.compile(r"\s*parent:\s*(\S+)\s+child:\s*(\S+)(?:\s+child-description:.*)?\s*")


def load_rcv1(
    folder: str | Path, vectors: Sequence[str] = ("lyrl2004_vectors_train.dat",), limit: int | None = None
) -> Dataset:
    """Read the documents in some of the vector files, in their order, with the term ids as feature names.

    Parameters
    ----------
    folder
        Holds the vector files, `rcv1-v2.topics.qrels` and `rcv1.topics.hier.orig`, each also as `.gz`.
    vectors
        Names of the vector files, without `.gz`. Their documents form the split "test" if the name says test,
        otherwise "train".
    limit
        Read only so many documents.
    """
    folder = Path(folder)
    check_limit(limit)
    if isinstance(vectors, str) or not vectors:
        raise DatasetError(f"vectors is {vectors!r}: give a list of file names")
    taxonomy = _read_hierarchy(_find(folder, HIERARCHY))
    documents: dict[str, dict[str, float]] = {}
    splits: list[str] = []
    for name in vectors:
        _read_vectors(_find(folder, name), documents, limit)
        splits += ["test" if "test" in name else "train"] * (len(documents) - len(splits))
    if not documents:
        raise DatasetError(f"{folder}: no documents in {', '.join(vectors)}")
    labels = _read_topics(_find(folder, QRELS), taxonomy, documents)
    return Dataset("rcv1", taxonomy, list(documents), list(documents.values()), labels, splits)


def _find(folder: Path, name: str) -> Path:
    return find_file(folder, name, f"{name}.gz")


def _read_hierarchy(path: Path) -> Taxonomy:
    """Read the topics; the children of Root become the roots."""
    edges: list[tuple[str, str | None]] = []
    for number, line in numbered_lines(path):
        match = HIERARCHY_LINE.fullmatch(line.decode("latin-1"))
        if match is None:
            raise DatasetError(f"{path}, line {number}: expected parent: P child: C child-description: D")
        parent, child = match.groups()
        if child != "Root":
            edges.append((child, None if parent in ("Root", "None") else parent))
    try:
        return Taxonomy(edges)
    except TaxonomyError as error:
        raise DatasetError(f"{path}: {error}") from None


def _read_vectors(path: Path, documents: dict[str, dict[str, float]], limit: int | None) -> None:
    """Add the documents of a vector file."""
    for number, line in numbered_lines(path):
        if limit is not None and len(documents) >= limit:
            return
        did, *pairs = line.decode("latin-1").split()
        where = f"{path}, line {number}"
        if not did.isdecimal():
            raise DatasetError(
                f"{where}: expected a document number and term:weight pairs, found {did[:40]!r}"
            )
        if did in documents:
            raise DatasetError(f"{where}: document {did} comes a second time: name each vector file once")
        features: dict[str, float] = {}
        for pair in pairs:
            term, _, weight = pair.partition(":")
            try:
                features[term] = float(weight)
            except ValueError:
                raise DatasetError(f"{where}: expected term:weight, found {pair[:40]!r}") from None
        if len(features) < len(pairs) or "" in features:
            raise DatasetError(f"{where}: document {did} has a term twice or without a number")
        if not all(map(math.isfinite, features.values())):
            raise DatasetError(f"{where}: document {did} has a weight that is not a finite number")
        documents[did] = features


def _read_topics(
    path: Path, taxonomy: Taxonomy, documents: dict[str, dict[str, float]]
) -> list[frozenset[str]]:
    """Return the topics of each document."""
    topics: dict[str, set[str]] = {did: set() for did in documents}
    for number, line in numbered_lines(path):
        fields = line.decode("latin-1").split()
        if len(fields) != 3 or fields[2] != "1":
            raise DatasetError(f"{path}, line {number}: expected topic, document number and 1")
        topic, did, _ = fields
        if did in topics:
            if topic not in taxonomy:
                raise DatasetError(f"{path}, line {number}: topic {topic!r} is not in {HIERARCHY}")
            topics[did].add(topic)
    for did, found in topics.items():
        if not found:
            raise DatasetError(f"{path}: document {did} has no topic: is the file complete?")
    return [frozenset(found) for found in topics.values()]
