"""Lines -> a batch ready for the models: parsed, checked and vectorised. Only the vectorizer changes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np

from stream_hc.learners.base import LabelRows
from stream_hc.losses.mistakes import as_rows
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.preparing import Preparer
from stream_hc.runtime.records import MAX_LINE_BYTES, Document, Label, RecordError, Ts, parse_records
from stream_hc.vectorize import Rows

__all__ = ["LABELS", "REJECTED", "Arrivals", "RecordBatch", "arrivals_of", "label_rows", "prepare_batch"]

LABELS, REJECTED = -1, -2


class Arrivals(NamedTuple):
    """Records in their turn, as lists of the same length.

    A document has its row in the batch, labels have `LABELS`, and a record that cannot be used has `REJECTED`
    and the reason instead of an id. `nodes` are the labels (int32), closed upward, or None for a document
    without.
    """

    ids: list[str]
    rows: list[int]
    nodes: list[bytes | None]


class RecordBatch(NamedTuple):
    """The records of some lines: all of them in order, and what is wrong with some.

    `ids`, `stamps` (None if there are none) and `rows` are those of the documents.

    Where they are all documents with labels, `arrivals` is None and `labels` are theirs: most streams are
    such, and nobody has to look at each.
    """

    n_lines: int
    ids: list[str]
    stamps: list[Ts] | None
    rows: Rows
    rejects: list[tuple[Line, RecordError]]
    arrivals: Arrivals | None
    labels: LabelRows


def prepare_batch(preparer: Preparer, lines: Sequence[Line]) -> RecordBatch:
    """Parse, check and vectorise; the vectorizer learns the texts of sound documents."""
    items, kinds = _parsed(lines, preparer)
    labels = [item.labels for item in items if type(item) is Label] if Label in kinds else []
    are_documents = all(issubclass(kind, Document) for kind in kinds)
    given = items if are_documents else [item for item in items if isinstance(item, Document)]
    prepared = preparer.prepare(cast(list[Document], given))
    X, Y = prepared.X, LabelRows(*as_rows(prepared.Y))
    arrivals, rejects = None, list[tuple[Line, RecordError]]()
    if len(prepared.documents) < len(items) or not prepared.is_labelled.all():
        of_labels = _slices(*as_rows(preparer.taxonomy.encode(labels))) if labels else iter(())
        labelled = prepared.is_labelled.tolist()
        arrivals, rejects = _mixed(lines, items, prepared.errors, _slices(*Y), labelled, of_labels)
    ids = [document.id for document in prepared.documents]
    stamps = [document.ts for document in prepared.documents]
    known = None if stamps.count(None) == len(ids) else stamps
    return RecordBatch(len(lines), ids, known, Rows(*as_rows(X), X.data), rejects, arrivals, Y)


def arrivals_of(batch: RecordBatch) -> Arrivals:
    """Return the records in their turn, also where they are all alike."""
    if batch.arrivals is not None:
        return batch.arrivals
    return Arrivals(batch.ids, list(range(len(batch.ids))), list(_slices(*batch.labels)))


def _mixed(
    lines: Sequence[Line],
    items: Sequence[Document | Label | RecordError],
    errors: Mapping[int, RecordError],
    of_documents: Iterator[bytes],
    labelled: Sequence[bool],
    of_labels: Iterator[bytes],
) -> tuple[Arrivals, list[tuple[Line, RecordError]]]:
    """Put documents, labels and what cannot be used in their order."""
    ids, rows, nodes = list[str](), list[int](), list[bytes | None]()
    rejects = list[tuple[Line, RecordError]]()
    place = row = 0
    for number, item in enumerate(items):
        if type(item) is Label:
            ids.append(item.id)
            rows.append(LABELS)
            nodes.append(next(of_labels))
            continue
        error = item if isinstance(item, RecordError) else None
        if error is None and errors:
            error = errors.get(place)
        if error is None:
            assert isinstance(item, Document)
            own = next(of_documents)
            ids.append(item.id)
            rows.append(row)
            nodes.append(own if labelled[row] else None)
            row += 1
        else:
            rejects.append((lines[number], error))
            ids.append(error.reason)
            rows.append(REJECTED)
            nodes.append(None)
        place += error is not item
    return Arrivals(ids, rows, nodes), rejects


def label_rows(nodes: Sequence[bytes]) -> LabelRows:
    """Return raw label sets (int32) as rows."""
    indptr = np.cumsum([0, *(len(part) // 4 for part in nodes)], dtype=np.int64)
    # Not `bytes`: kernels would be compiled once more for arrays that cannot be written.
    return LabelRows(indptr, np.frombuffer(bytearray().join(nodes), np.int32))


def _parsed(
    lines: Sequence[Line], preparer: Preparer
) -> tuple[list[Document | Label | RecordError], set[type]]:
    """Return what the lines hold, and the types among it."""
    if not lines:
        return [], set()
    _, data, too_long = zip(*lines, strict=True)
    items = parse_records(data)
    if any(too_long):
        problem = f"more than {MAX_LINE_BYTES} bytes: split or shorten the document"
        for place in [place for place, is_too_long in enumerate(too_long) if is_too_long]:
            items[place] = RecordError("line_too_long", problem)
    if Label in {*map(type, items)}:
        for place, item in enumerate(items):
            if type(item) is Label:
                try:
                    preparer.check_labels(item.labels)
                except RecordError as error:
                    items[place] = error
    return items, {*map(type, items)}


def _slices(indptr: np.ndarray, nodes: np.ndarray) -> Iterator[bytes]:
    data, ends = nodes.tobytes(), (indptr * 4).tolist()
    return (data[begin:end] for begin, end in pairwise(ends))
