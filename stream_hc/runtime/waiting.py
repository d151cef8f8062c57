"""Documents that wait for their labels, and labels that wait for their documents, by id.

Only dictionaries and counters: what is learned from a pair is decided here, how is the processor's business.
Time is that of the last tick and never goes back, so the same records and ticks give the same pairs.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self

import msgspec
import numpy as np

from stream_hc.learners.base import LabelRows
from stream_hc.runtime.config import LabelsConfig
from stream_hc.runtime.packing import packed_arrays, packed_texts, unpacked_arrays, unpacked_texts
from stream_hc.snapshot import register
from stream_hc.vectorize import LARGEST_FEATURE

__all__ = ["Census", "Early", "Matched", "WaitingDocument", "WaitingRoom"]

Outcome = Literal["joined", "expired", "orphan", "duplicate", "changed", "superseded"]


class WaitingDocument:
    """A document that was answered: its row, and what each model of the line-up predicted, as raw arrays.

    `served` is the model whose answer was published.
    """

    __slots__ = ("indices", "lineup", "predicted", "served", "since", "values")

    def __init__(self, since: float) -> None:
        self.since = since
        self.served = ""

    # Filled in when all models have predicted it.
    indices: bytes  # int32
    values: bytes  # float32
    lineup: tuple[str, ...]
    predicted: tuple[bytes, ...]  # int32 each


class Early(NamedTuple):
    """Labels without a document so far: since when, and their nodes (int32), closed upward."""

    since: float
    nodes: bytes


class Census(NamedTuple):
    """How many documents and labels wait, what became of others, and what was rejected, by reason."""

    waiting_documents: int
    waiting_labels: int
    outcomes: dict[str, int]
    rejected: dict[str, int]


class Matched(NamedTuple):
    """What became of labels: the document to learn, or the number of one to learn again, or neither."""

    document: WaitingDocument | None = None
    again: int | None = None


UNMATCHED = Matched()


@register
class WaitingRoom:
    """Brings documents and labels together, within bounds of number and age.

    Parameters
    ----------
    config
        How many wait, for how long, and what happens to labels that change.
    remembered
        How many of the documents learned last are known by id, to tell labels that come twice.

    Examples
    --------
    >>> room = WaitingRoom(LabelsConfig(), remembered=10)
    >>> document = room.wait("a")
    >>> room.match("a", b"nodes").document is document
    True
    >>> room.match("a", b"nodes"), dict(room.outcomes)
    (Matched(document=None, again=None), {'joined': 1, 'duplicate': 1})
    """

    def __init__(self, config: LabelsConfig, remembered: int) -> None:
        self.config = config
        self.remembered = remembered
        self.now = 0.0
        self.outcomes: Counter[Outcome] = Counter()
        self.rejected: Counter[str] = Counter()
        self.n_learned = 0
        self._documents: OrderedDict[str, WaitingDocument] = OrderedDict()
        self._early: OrderedDict[str, Early] = OrderedDict()
        # Number and nodes of the documents learned last, and their ids in that order; an ordered dictionary
        # would take three times as long.
        self._learned: dict[str, tuple[int, bytes]] = {}
        self._order: deque[str] = deque()
        self._unnoted: deque[tuple[int, Sequence[str], LabelRows]] = deque()  # learned after them

    def census(self) -> Census:
        """Return who is here, and what has become of the others."""
        outcomes, rejected = sorted(self.outcomes.items()), sorted(self.rejected.items())
        return Census(len(self._documents), len(self._early), dict(outcomes), dict(rejected))

    @property
    def n_documents(self) -> int:
        """How many documents wait for labels."""
        return len(self._documents)

    @property
    def n_labels(self) -> int:
        """How many labels wait for documents."""
        return len(self._early)

    def early(self, name: str) -> bytes | None:
        """Return the labels that came before this document, if any did, and count the document as learned."""
        found = self._early.pop(name, None)
        if found is None:
            return None
        self.outcomes["joined"] += 1
        self.learn(name, found.nodes)
        return found.nodes

    def wait(self, name: str) -> WaitingDocument:
        """Let a document wait; one of the same id that waits already is forgotten."""
        if self._documents.pop(name, None) is not None:
            self.outcomes["superseded"] += 1
        document = self._documents[name] = WaitingDocument(self.now)
        while len(self._documents) > self.config.documents:  # they may be fewer than before a restart
            self._documents.popitem(last=False)
            self.outcomes["expired"] += 1
        return document

    def match(self, name: str, nodes: bytes) -> Matched:
        """Find the document of some labels; without one they wait."""
        document = self._documents.pop(name, None)
        if document is not None:
            self.outcomes["joined"] += 1
            self.learn(name, nodes)
            return Matched(document)
        self._note_all()
        learned = self._learned.get(name)
        if learned is not None:
            number, before = learned
            self.outcomes["duplicate" if before == nodes else "changed"] += 1
            if before == nodes or self.config.changed == "ignore":
                return UNMATCHED
            self._learned[name] = number, nodes
            return Matched(again=number)
        if name in self._early:
            self.outcomes["duplicate" if self._early[name].nodes == nodes else "changed"] += 1
            self._early[name] = self._early[name]._replace(nodes=nodes)
            return UNMATCHED
        self._early[name] = Early(self.now, nodes)
        while len(self._early) > self.config.early:
            self._early.popitem(last=False)
            self.outcomes["orphan"] += 1
        return UNMATCHED

    def learn(self, name: str, nodes: bytes) -> None:
        """Remember a document as learned."""
        self._note_all()
        self._note(name, nodes, self.n_learned)
        self.n_learned += 1

    def learn_all(self, names: Sequence[str], labels: LabelRows) -> None:
        """Remember documents as learned; they are looked at one by one only when labels come on their own."""
        self._unnoted.append((self.n_learned, names, labels))
        self.n_learned += len(names)
        # If so many came later, nothing older counts any more.
        while self.n_learned - self._unnoted[0][0] - len(self._unnoted[0][1]) >= self.remembered:
            self._unnoted.popleft()
            self._learned.clear()
            self._order.clear()

    def _note_all(self) -> None:
        while self._unnoted:
            number, names, labels = self._unnoted.popleft()
            data, ends = labels.nodes.tobytes(), (labels.indptr * 4).tolist()
            for name, (begin, end) in zip(names, pairwise(ends), strict=True):
                self._note(name, data[begin:end], number)
                number += 1

    def _note(self, name: str, nodes: bytes, number: int) -> None:
        self._learned[name] = number, nodes
        self._order.append(name)
        if len(self._order) > self.remembered:
            oldest = self._order.popleft()
            # It may have been learned anew since, under the same id.
            if self._learned[oldest][0] <= number - self.remembered:
                del self._learned[oldest]

    def due(self, now: float) -> bool:
        """Tell whether something has waited too long by then."""
        oldest = now - self.config.seconds
        queues: tuple[Mapping[str, WaitingDocument | Early], ...] = (self._documents, self._early)
        return any(queue and next(iter(queue.values())).since <= oldest for queue in queues)

    def tick(self, now: float) -> None:
        """Let time pass, and forget what has waited too long; a clock that goes back is not believed."""
        self.now = max(self.now, now)
        oldest = self.now - self.config.seconds
        while self._documents and next(iter(self._documents.values())).since <= oldest:
            self._documents.popitem(last=False)
            self.outcomes["expired"] += 1
        while self._early and next(iter(self._early.values())).since <= oldest:
            self._early.popitem(last=False)
            self.outcomes["orphan"] += 1

    def check(self, n_features: int, n_nodes: int, n_predicted: int | None = None) -> None:
        """Raise `ValueError` if something here does not fit: kernels trust what they are given.

        Labels are below `n_nodes`, and so are predictions, unless those are of a shard with fewer nodes.
        """
        waiting = self._documents.values()
        for document in waiting:
            if len(document.indices) != len(document.values) or document.served not in document.lineup:
                raise ValueError("a document that waits has lost some of its parts")
        _check_rows([document.indices for document in waiting], n_features)
        below = n_nodes if n_predicted is None else n_predicted
        _check_rows([nodes for document in waiting for nodes in document.predicted], below)
        _check_rows([labels.nodes for labels in self._early.values()], n_nodes)
        _check_rows([nodes for _, nodes in self._learned.values()], n_nodes)
        values = np.frombuffer(b"".join(document.values for document in waiting), np.float32)
        if not (np.abs(values) <= LARGEST_FEATURE).all():
            raise ValueError("a document that waits has a number that is not finite")

    # As arrays

    def state(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings and arrays."""
        self._note_all()
        waiting, early = self._documents.values(), self._early.values()
        first = self.n_learned - len(self._order)
        # Of an id that was learned twice only the last time counts.
        learned = [
            self._learned[name][1] if self._learned[name][0] == first + place else None
            for place, name in enumerate(self._order)
        ]
        lineups = list(dict.fromkeys(document.lineup for document in waiting))
        place = {lineup: number for number, lineup in enumerate(lineups)}
        return {
            "config": msgspec.json.encode(self.config).decode(),
            "remembered": self.remembered,
            "now": self.now,
            "outcomes": msgspec.json.encode(dict(sorted(self.outcomes.items()))).decode(),
            "rejected": msgspec.json.encode(dict(sorted(self.rejected.items()))).decode(),
            "n_learned": self.n_learned,
            "lineups": msgspec.json.encode(lineups).decode(),
            **packed_texts("ids", self._documents),
            "since": np.array([document.since for document in waiting], np.float64),
            "lineup": np.array([place[document.lineup] for document in waiting], np.int64),
            "served": np.array([document.lineup.index(document.served) for document in waiting], np.int64),
            **packed_arrays("indices", [document.indices for document in waiting], np.int32),
            **packed_arrays("values", [document.values for document in waiting], np.float32),
            **packed_arrays(
                "predicted", [nodes for document in waiting for nodes in document.predicted], np.int32
            ),
            **packed_texts("early_ids", self._early),
            "early_since": np.array([labels.since for labels in early], np.float64),
            **packed_arrays("early_nodes", [labels.nodes for labels in early], np.int32),
            **packed_texts("learned_ids", self._order),
            "learned_counts": np.array([nodes is not None for nodes in learned], np.bool_),
            **packed_arrays("learned_nodes", [nodes or b"" for nodes in learned], np.int32),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a room that goes on where `state` was taken, or raise `ValueError`."""
        room = cls(msgspec.json.decode(state["config"], type=LabelsConfig), int(state["remembered"]))
        room.now, room.n_learned = float(state["now"]), int(state["n_learned"])
        room.outcomes.update(msgspec.json.decode(state["outcomes"], type=dict[Outcome, int]))
        room.rejected.update(msgspec.json.decode(state["rejected"], type=dict[str, int]))
        lineups = msgspec.json.decode(state["lineups"], type=list[tuple[str, ...]])
        predicted = iter(unpacked_arrays("predicted", state, np.int32))
        rows = (
            unpacked_texts("ids", state),
            state["since"].tolist(),
            state["lineup"].tolist(),
            state["served"].tolist(),
            unpacked_arrays("indices", state, np.int32),
            unpacked_arrays("values", state, np.float32),
        )
        for name, since, place, served, indices, values in zip(*rows, strict=True):
            document = room._documents[name] = WaitingDocument(since)
            document.indices, document.values, document.lineup = indices, values, lineups[place]
            document.served = document.lineup[served]
            document.predicted = tuple(next(predicted) for _ in document.lineup)
        early = unpacked_texts("early_ids", state), state["early_since"].tolist()
        for name, since, nodes in zip(*early, unpacked_arrays("early_nodes", state, np.int32), strict=True):
            room._early[name] = Early(since, nodes)
        room._order.extend(unpacked_texts("learned_ids", state))
        counts, first = state["learned_counts"].tolist(), room.n_learned - len(room._order)
        learned = zip(room._order, counts, unpacked_arrays("learned_nodes", state, np.int32), strict=True)
        for place, (name, is_last, nodes) in enumerate(learned):
            if is_last:
                room._learned[name] = first + place, nodes
        return room


def _check_rows(rows: list[bytes], below: int) -> None:
    """Check that the numbers of each row (int32) ascend from 0 on and stay below a bound."""
    flat = np.frombuffer(b"".join(rows), np.int32)
    ends = np.cumsum([len(row) // 4 for row in rows], dtype=np.int64)
    rises = np.diff(flat, prepend=-1) > 0
    rises[ends[ends < flat.size]] = True  # a new row may begin anywhere
    if flat.size and not (rises.all() and flat.min() >= 0 and flat.max() < below):
        raise ValueError(f"what waits has numbers that do not ascend, or are not below {below}")
