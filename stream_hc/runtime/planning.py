"""Records -> a plan: which documents are answered, which are learned, and in which order.

Documents and labels find each other here, record by record; the models then work on the whole plan at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stream_hc.learners.base import LabelRows
from stream_hc.runtime.batches import LABELS, REJECTED, RecordBatch, arrivals_of
from stream_hc.runtime.waiting import Census, WaitingDocument, WaitingRoom

__all__ = ["Again", "Cuts", "Plan", "plans"]


@dataclass
class Plan:
    """Documents of a batch, from row `first` on, and the lessons between them.

    Attributes
    ----------
    waiting
        The entry of each document that waits for its labels, None for one that has them.
    until
        How many lessons come before each document.
    places, taught, nodes
        Of each lesson: its document in the plan, by place, or the entry of one that waited (then the place is
        negative); and its labels (int32).
    looks
        Who was waiting at each look.
    ids
        Of the document of each lesson.
    labels
        Given where every document has its labels and there is nothing else; `nodes` is empty then.
    """

    first: int
    waiting: list[WaitingDocument | None] = field(default_factory=list)
    until: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    taught: list[WaitingDocument | None] = field(default_factory=list)
    nodes: list[bytes] = field(default_factory=list)
    looks: list[Census] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    labels: LabelRows | None = None


class Again(NamedTuple):
    """A document of earlier that is learned again, with other labels."""

    number: int
    nodes: bytes


class Cuts(NamedTuple):
    """Where plans end and looks fall: after `until_look` lessons, then after every `every`.

    With `at_looks` a plan ends at a look, since a new model may join in there. With `at_lessons` it ends
    where a document follows a lesson: all its documents then meet the models as they are before it.
    """

    until_look: int
    every: int
    at_looks: bool = False
    at_lessons: bool = False

    @property
    def allow_one_plan(self) -> bool:
        """Whether a batch may be one plan."""
        return not (self.at_looks or self.at_lessons)


def plans(batch: RecordBatch, room: WaitingRoom, cuts: Cuts) -> Iterator[Plan | Again]:
    """Let the records meet in the room, and return what is to be done. Writes `room`.

    A plan also ends where a document is learned again.
    """
    if cuts.allow_one_plan and not room.n_labels and batch.arrivals is None:
        yield _all_taught(batch, room, cuts)
        return
    plan, next_row, until_look = Plan(0), 0, cuts.until_look
    for name, row, nodes in zip(*arrivals_of(batch), strict=True):
        if row == REJECTED:
            room.rejected[name] += 1
            continue
        if row == LABELS:
            assert nodes is not None
            document, again = room.match(name, nodes)
            if again is not None:
                yield plan
                yield Again(again, nodes)
                plan = Plan(next_row)
            if document is None:
                continue
            plan.places.append(-1)
            plan.taught.append(document)
        else:
            if cuts.at_lessons and plan.places:
                yield plan
                plan = Plan(row)
            next_row = row + 1
            if nodes is None:
                nodes = room.early(name)
            else:
                room.learn(name, nodes)
            plan.until.append(len(plan.places))
            if nodes is None:
                plan.waiting.append(room.wait(name))
                continue
            plan.waiting.append(None)
            plan.places.append(row - plan.first)
            plan.taught.append(None)
        plan.nodes.append(nodes)
        plan.ids.append(name)
        until_look -= 1
        if until_look == 0:
            until_look = cuts.every
            plan.looks.append(room.census())
            if cuts.at_looks:
                yield plan
                plan = Plan(next_row)
    yield plan


def _all_taught(batch: RecordBatch, room: WaitingRoom, cuts: Cuts) -> Plan:
    """Return the plan of documents that all have their labels: nobody meets anybody."""
    n_documents = len(batch.ids)
    room.learn_all(batch.ids, batch.labels)
    n_looks = (n_documents - cuts.until_look) // cuts.every + 1
    nobody: list[WaitingDocument | None] = [None] * n_documents
    order = list(range(n_documents))
    looks = [room.census()] * n_looks
    return Plan(0, nobody, order, order, nobody, looks=looks, ids=batch.ids, labels=batch.labels)
