"""Records -> a plan: which documents are answered, which are learned, and in which order.

Documents and labels find each other here, record by record; the models then work on the whole plan at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stream_hc.runtime.batches import LABELS, REJECTED, Arrival
from stream_hc.runtime.waiting import Census, WaitingDocument, WaitingRoom

__all__ = ["Again", "Cuts", "Lesson", "Plan", "plans"]


class Lesson(NamedTuple):
    """A document to learn with its labels (int32 nodes): one of the plan, by place, or one that waited."""

    place: int
    document: WaitingDocument | None
    nodes: bytes


@dataclass
class Plan:
    """Documents of a batch, from row `first` on, and the lessons between them.

    `waiting` has the entry of each document that waits for its labels, None for one that has them; `until`
    says how many lessons come before each document; `looks` tells who was waiting at each look.
    """

    first: int
    waiting: list[WaitingDocument | None] = field(default_factory=list)
    lessons: list[Lesson] = field(default_factory=list)
    until: list[int] = field(default_factory=list)
    looks: list[Census] = field(default_factory=list)

    @property
    def all_taught(self) -> bool:
        """Whether there is nothing but documents that have their labels."""
        return len(self.lessons) == len(self.waiting) and not any(self.waiting) and self._own_lessons()

    def _own_lessons(self) -> bool:
        return all(lesson.place == place for place, lesson in enumerate(self.lessons))


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


def plans(arrivals: Sequence[Arrival], room: WaitingRoom, cuts: Cuts) -> Iterator[Plan | Again]:
    """Let the records meet in the room, and return what is to be done. Writes `room`.

    A plan also ends where a document is learned again.
    """
    plan, next_row, until_look = Plan(0), 0, cuts.until_look
    for name, row, nodes in arrivals:
        if row == REJECTED:
            room.rejected[name] += 1
            continue
        if row == LABELS:
            assert nodes is not None
            matched = room.match(name, nodes)
            if matched.again is not None:
                yield plan
                yield Again(matched.again, nodes)
                plan = Plan(next_row)
            if matched.document is None:
                continue
            plan.lessons.append(Lesson(-1, matched.document, nodes))
        else:
            if cuts.at_lessons and plan.lessons:
                yield plan
                plan = Plan(row)
            next_row = row + 1
            if nodes is None:
                nodes = room.early(name)
            else:
                room.learn(name, nodes)
            plan.until.append(len(plan.lessons))
            if nodes is None:
                plan.waiting.append(room.wait(name))
                continue
            plan.waiting.append(None)
            plan.lessons.append(Lesson(row - plan.first, None, nodes))
        until_look -= 1
        if until_look == 0:
            until_look = cuts.every
            plan.looks.append(room.census())
            if cuts.at_looks:
                yield plan
                plan = Plan(next_row)
    yield plan
