"""A data set: documents in stream order, their labels, the taxonomy."""

import gzip
import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from stream_hc.taxonomy import Taxonomy

__all__ = ["Dataset", "DatasetError"]


class DatasetError(ValueError):
    """A data set that cannot be used, or a file that cannot be read as one."""


@dataclass(frozen=True)
class Dataset:
    """Labelled documents in stream order.

    Parameters
    ----------
    name
        For tables and messages.
    taxonomy
        Knows every label.
    ids, documents, labels
        One of each per document. The documents are all texts or all feature dictionaries. Labels are kept as
        given, with or without their ancestors; `taxonomy.encode` closes them.
    splits
        The split that came with the data, per document: "train", "valid", "test", or something else.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport")])
    >>> labels = [frozenset({"tennis"}), frozenset({"sport"})]
    >>> data = Dataset("two", tax, ["1", "2"], ["an ace", "a goal"], labels)
    >>> for x, y in data:
    ...     print(x, sorted(y))
    an ace ['tennis']
    a goal ['sport']
    """

    name: str
    taxonomy: Taxonomy
    ids: list[str]
    documents: list[str] | list[dict[str, float]]
    labels: list[frozenset[str]]
    splits: list[str] | None = None

    def __post_init__(self) -> None:
        n = len(self.ids)
        if n == 0:
            raise DatasetError(f"data set {self.name!r} has no documents")
        for field in ("documents", "labels", "splits"):
            values = getattr(self, field)
            if values is not None and len(values) != n:
                raise DatasetError(f"data set {self.name!r} has {n} ids but {len(values)} {field}")
        kind: type = str if self.kind == "text" else dict
        known = frozenset(self.taxonomy.nodes)
        for doc_id, document, labels in zip(self.ids, self.documents, self.labels, strict=True):
            if not isinstance(document, kind):
                raise DatasetError(
                    f"document {doc_id!r} is not of the same kind as the first: use all texts or all features"
                )
            if isinstance(document, dict) and not all(map(math.isfinite, document.values())):
                raise DatasetError(f"document {doc_id!r} has a feature that is not a finite number")
            if not labels <= known:
                raise DatasetError(
                    f"document {doc_id!r} has the label {min(labels - known)!r}, not in the taxonomy"
                )

    @property
    def kind(self) -> Literal["text", "features"]:
        """What a document is: "text", or "features" for a dictionary of numbers."""
        return "text" if isinstance(self.documents[0], str) else "features"

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[str | dict[str, float], frozenset[str]]]:
        return zip(self.documents, self.labels, strict=True)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield records for JSON: `id`, `text` or `features`, sorted `labels`, `split` if there is one."""
        kind = self.kind
        for row, (doc_id, (document, labels)) in enumerate(zip(self.ids, self, strict=True)):
            record: dict[str, Any] = {"id": doc_id, kind: document, "labels": sorted(labels)}
            if self.splits is not None:
                record["split"] = self.splits[row]
            yield record

    def take(self, n: int) -> "Dataset":
        """Return the first `n` documents (all, if there are fewer)."""
        if n < 1:
            raise DatasetError(f"cannot take {n} documents: take at least 1")
        splits = None if self.splits is None else self.splits[:n]
        return replace(
            self, ids=self.ids[:n], documents=self.documents[:n], labels=self.labels[:n], splits=splits
        )

    def split(self, fraction: float = 2 / 3) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first rows, that fraction of the stream rounded down, and the rest."""
        if not 0 < fraction < 1:
            raise DatasetError(f"the fraction is {fraction}: it must lie between 0 and 1")
        # As a ratio of small integers 2 / 3 is exactly that, and 3 documents give 2 rows on every machine.
        cut = int(len(self) * Fraction(fraction).limit_denominator(10_000))
        return np.arange(cut), np.arange(cut, len(self))

    def train_test(self, own: bool = False) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows to train on and the rows to test on.

        With `own` the split that came with the data ("train" and "valid" against "test", others left out),
        otherwise the first two thirds of the stream against the last third.
        """
        if not own:
            return self.split()
        if self.splits is None:
            raise DatasetError(
                f"data set {self.name!r} has no split of its own: use own=False for the stream order"
            )
        train = [row for row, split in enumerate(self.splits) if split in ("train", "valid")]
        test = [row for row, split in enumerate(self.splits) if split == "test"]
        if not train or not test:
            raise DatasetError(
                f"data set {self.name!r} has {len(train)} documents to train on and {len(test)} to test on: "
                "use own=False for the stream order"
            )
        return np.array(train, np.int64), np.array(test, np.int64)

    def write(self, folder: str | Path, gz: bool = False) -> None:
        """Write `docs.jsonl` (or `docs.jsonl.gz`, the same bytes every time) and `taxonomy.tsv`.

        A taxonomy with a tab or line break in a name goes to `taxonomy.json`. A data set that is already in
        the folder is replaced.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("docs.jsonl", "docs.jsonl.gz", "taxonomy.tsv", "taxonomy.json"):
            (folder / name).unlink(missing_ok=True)
        needs_json = any(mark in name for name in self.taxonomy.nodes for mark in "\t\n\r")
        self.taxonomy.write(folder / ("taxonomy.json" if needs_json else "taxonomy.tsv"))
        with (
            (folder / ("docs.jsonl.gz" if gz else "docs.jsonl")).open("wb") as raw,
            # Without a name and a time the header is always the same.
            gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if gz else nullcontext(raw) as file,
        ):
            file.writelines(msgspec.json.encode(record) + b"\n" for record in self.records())
