"""A plan, followed by all models: they predict its documents and learn its lessons, each for itself.

Who answers plays no part here: learners learn the same whoever does, so a whole plan is one call for each.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import Longs
from stream_hc.learners.base import LabelRows, Predicted
from stream_hc.runtime.batches import label_rows
from stream_hc.runtime.charging import Charged, Charges
from stream_hc.runtime.contenders import LineUp
from stream_hc.runtime.planning import Plan
from stream_hc.runtime.waiting import WaitingDocument
from stream_hc.sharding import Shard
from stream_hc.vectorize import Rows

__all__ = ["Taught", "teach"]


class Taught(NamedTuple):
    """What the models made of a plan: predictions of its documents, and the losses of its lessons.

    A lesson is charged what was predicted when its document came, by each model that was there. `labels` are
    those the models learn; `given` has the nodes of all shards, where these are those of one.
    """

    predicted: dict[str, Predicted]
    rows: Rows  # of the lessons
    labels: LabelRows
    charged: dict[str, Charged]
    given: LabelRows


def teach(line_up: LineUp, charges: Charges, plan: Plan, rows: Rows, shard: Shard | None = None) -> Taught:
    """Let all models follow the plan. Writes the learners and the entries of the documents that wait."""
    given = label_rows(plan.nodes) if plan.labels is None else plan.labels
    labels = given if shard is None else shard.project(given)
    predicted = {name: model.predict(rows) for name, model in line_up.fitted.items()}
    if plan.labels is not None:
        for name, model in line_up.online.items():
            predicted[name] = model.predict_then_learn(rows, labels)
        charged = {name: charges.charge(each, labels) for name, each in predicted.items()}
        return Taught(predicted, rows, labels, charged, given)
    indices, values = _cut(rows.indptr, rows.indices), _cut(rows.indptr, rows.values)
    for place, document in enumerate(plan.waiting):
        if document is not None:
            document.indices, document.values = indices[place], values[place]
    taught = _lesson_rows(plan, indices, values)
    until = np.array(plan.until, np.int64)
    for name, model in line_up.online.items():
        predicted[name] = model.follow(rows, taught, labels, until)
    nodes = {name: _cut(each.indptr, each.nodes) for name, each in predicted.items()}
    lineup, answers = tuple(nodes), list(zip(*nodes.values(), strict=True))
    for place, document in enumerate(plan.waiting):
        if document is not None:
            document.lineup, document.predicted = lineup, answers[place]
    return Taught(predicted, taught, labels, _charged(charges, plan, labels, nodes), given)


def _lesson_rows(plan: Plan, indices: list[bytes], values: list[bytes]) -> Rows:
    """Return the features of the lessons: documents of the plan, or those that waited."""
    lessons = list(zip(plan.places, plan.taught, strict=True))
    columns = [indices[place] if document is None else document.indices for place, document in lessons]
    numbers = [values[place] if document is None else document.values for place, document in lessons]
    indptr, flat = label_rows(columns)
    return Rows(indptr, flat, np.frombuffer(bytearray().join(numbers), np.float32))


def _charged(
    charges: Charges, plan: Plan, labels: LabelRows, nodes: dict[str, list[bytes]]
) -> dict[str, Charged]:
    """Charge each model that is there, and those that answered and are gone, with their predictions."""
    # What was predicted in this very plan is served by one of those that are there.
    served = (document.served for document in plan.taught if document is not None)
    charged: dict[str, Charged] = {}
    for name in dict.fromkeys([*nodes, *filter(None, served)]):
        own = nodes.get(name)
        found = [
            _stored(document, name) if document is not None else None if own is None else own[place]
            for place, document in zip(plan.places, plan.taught, strict=True)
        ]
        is_known = np.array([each is not None for each in found], np.bool_)
        charged[name] = charges.charge(label_rows([each or b"" for each in found]), labels, is_known)
    return charged


def _stored(document: WaitingDocument, name: str) -> bytes | None:
    return document.predicted[document.lineup.index(name)] if name in document.lineup else None


def _cut(indptr: Longs, values: NDArray[Any]) -> list[bytes]:
    """Return the entries of each row, of four bytes each."""
    data = values.tobytes()
    return [data[begin:end] for begin, end in pairwise((indptr * 4).tolist())]
