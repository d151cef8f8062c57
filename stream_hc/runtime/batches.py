"""Lines -> a batch ready for the models: parsed, checked and vectorised. Only the vectorizer changes."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from stream_hc.learners.base import LabelRows
from stream_hc.losses.mistakes import as_rows
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.preparing import Preparer
from stream_hc.runtime.records import MAX_LINE_BYTES, Document, Label, RecordError, parse_record
from stream_hc.vectorize import Rows

__all__ = ["LABELS", "REJECTED", "Arrival", "RecordBatch", "label_rows", "prepare_batch"]

LABELS, REJECTED = -1, -2


class Arrival(NamedTuple):
    """A record in its turn.

    A document has its row in the batch, labels have `LABELS`, and a record that cannot be used has `REJECTED`
    and the reason instead of an id. `nodes` are the labels (int32), closed upward, or None for a document
    without.
    """

    id: str
    row: int
    nodes: bytes | None


class RecordBatch(NamedTuple):
    """The records of some lines: all of them in order, and what is wrong with some."""

    n_lines: int
    arrivals: list[Arrival]
    documents: Sequence[Document]
    rows: Rows
    rejects: list[tuple[Line, RecordError]]


def prepare_batch(preparer: Preparer, lines: Sequence[Line]) -> RecordBatch:
    """Parse, check and vectorise; the vectorizer learns the texts of sound documents."""
    items = [_parsed(line, preparer) for line in lines]
    given = [item for item in items if isinstance(item, Document)]
    prepared = preparer.prepare(given)
    of_documents = _slices(*as_rows(prepared.Y))
    labelled = prepared.is_labelled.tolist()
    labels = [item.labels for item in items if isinstance(item, Label)]
    of_labels = _slices(*as_rows(preparer.taxonomy.encode(labels))) if labels else iter(())
    arrivals: list[Arrival] = []
    rejects: list[tuple[Line, RecordError]] = []
    place = row = 0
    for line, item in zip(lines, items, strict=True):
        if isinstance(item, RecordError):
            rejects.append((line, item))
            arrivals.append(Arrival(item.reason, REJECTED, None))
        elif isinstance(item, Label):
            arrivals.append(Arrival(item.id, LABELS, next(of_labels)))
        else:
            error = prepared.errors.get(place)
            place += 1
            if error is not None:
                rejects.append((line, error))
                arrivals.append(Arrival(error.reason, REJECTED, None))
                continue
            nodes = next(of_documents)
            arrivals.append(Arrival(item.id, row, nodes if labelled[row] else None))
            row += 1
    X = prepared.X
    rows = Rows(*as_rows(X), X.data)
    return RecordBatch(len(lines), arrivals, prepared.documents, rows, rejects)


def label_rows(nodes: Sequence[bytes]) -> LabelRows:
    """Return raw label sets (int32) as rows."""
    indptr = np.cumsum([0, *(len(part) // 4 for part in nodes)], dtype=np.int64)
    return LabelRows(indptr, np.frombuffer(b"".join(nodes), np.int32))


def _parsed(line: Line, preparer: Preparer) -> Document | Label | RecordError:
    try:
        if line.too_long:
            raise RecordError(
                "line_too_long", f"more than {MAX_LINE_BYTES} bytes: split or shorten the document"
            )
        item = parse_record(line.data)
        if isinstance(item, Label):
            preparer.check_labels(item.labels)
        return item
    except RecordError as error:
        return error


def _slices(indptr: np.ndarray, nodes: np.ndarray) -> Iterator[bytes]:
    data, ends = nodes.tobytes(), (indptr * 4).tolist()
    return (data[begin:end] for begin, end in pairwise(ends))
