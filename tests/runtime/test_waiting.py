"""The waiting room against plain lists, in any order of documents, labels, time and restarts."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stream_hc import snapshot
from stream_hc.runtime.config import LabelsConfig
from stream_hc.runtime.waiting import WaitingRoom
from tests.strategies import examples

NAMES = st.sampled_from([f"id {k}" for k in range(7)])
NODES = st.sampled_from([np.array(nodes, np.int32).tobytes() for nodes in ([], [0], [0, 2])])
SECONDS = 10.0


class Rooms(RuleBasedStateMachine):
    """A room beside a naive one: what waits, with when it came, in lists; what was learned, in another."""

    @initialize(
        documents=st.integers(1, 4),
        early=st.integers(1, 3),
        remembered=st.integers(1, 5),
        changed=st.sampled_from(["ignore", "learn"]),
    )
    def begin(self, documents, early, remembered, changed):
        self.config = LabelsConfig(documents=documents, early=early, seconds=SECONDS, changed=changed)
        self.remembered = remembered
        self.room = WaitingRoom(self.config, remembered)
        self.documents = []  # (name, since, mark), oldest first
        self.labels = []  # (name, since, nodes)
        self.learned = []  # (name, number, nodes)
        self.now = 0.0
        self.n_learned = 0
        self.outcomes = Counter()
        self.n_documents = self.n_labels = self.n_alone = 0

    def find(self, where, name):
        return next((entry for entry in where if entry[0] == name), None)

    def learn(self, name, nodes):
        self.learned = [entry for entry in self.learned if entry[0] != name]
        self.learned.append((name, self.n_learned, nodes))
        self.n_learned += 1
        self.learned = [entry for entry in self.learned if entry[1] >= self.n_learned - self.remembered]

    def crowd_out(self):
        while len(self.documents) > self.config.documents:
            self.documents.pop(0)
            self.outcomes["expired"] += 1
        while len(self.labels) > self.config.early:
            self.labels.pop(0)
            self.outcomes["orphan"] += 1

    @rule(name=NAMES)
    def a_document_comes(self, name):
        self.n_documents += 1
        found = self.find(self.labels, name)
        nodes = self.room.early(name)
        assert nodes == (None if found is None else found[2])
        if found is not None:
            self.labels.remove(found)
            self.outcomes["joined"] += 1
            return self.learn(name, nodes)
        before = self.find(self.documents, name)
        if before is not None:
            self.documents.remove(before)
            self.outcomes["superseded"] += 1
        document = self.room.wait(name)
        document.indices = np.array([self.n_documents], np.int32).tobytes()
        document.values = np.ones(1, np.float32).tobytes()
        document.lineup, document.served = ("a", "b"), "b"
        document.predicted = (b"", np.array([1], np.int32).tobytes())
        self.documents.append((name, self.now, document.indices))
        self.crowd_out()

    @rule(name=NAMES, nodes=NODES)
    def a_document_comes_with_its_labels(self, name, nodes):
        self.n_alone += 1
        self.room.learn(name, nodes)
        self.learn(name, nodes)

    @rule(name=NAMES, nodes=NODES)
    def labels_come(self, name, nodes):
        self.n_labels += 1
        matched = self.room.match(name, nodes)
        waiting, learned = self.find(self.documents, name), self.find(self.learned, name)
        early = self.find(self.labels, name)
        if waiting is not None:
            assert matched.document is not None
            assert matched.document.indices == waiting[2]
            assert matched.document.served == "b"
            self.documents.remove(waiting)
            self.outcomes["joined"] += 1
            return self.learn(name, nodes)
        assert matched.document is None
        if learned is not None:
            is_new = learned[2] != nodes
            self.outcomes["changed" if is_new else "duplicate"] += 1
            learns = is_new and self.config.changed == "learn"
            assert matched.again == (learned[1] if learns else None)
            if learns:
                self.learned[self.learned.index(learned)] = (*learned[:2], nodes)
            return None
        assert matched.again is None
        if early is not None:
            self.outcomes["changed" if early[2] != nodes else "duplicate"] += 1
            self.labels[self.labels.index(early)] = (*early[:2], nodes)
            return None
        self.labels.append((name, self.now, nodes))
        return self.crowd_out()

    @rule(step=st.sampled_from([-50.0, 0.0, 1.0, 4.0, SECONDS, 1000.0]))
    def time_passes(self, step):
        told = self.now + step
        is_due = any(told - since >= SECONDS for _, since, _ in [*self.documents, *self.labels])
        assert self.room.due(told) == is_due
        self.room.tick(told)
        self.now = max(self.now, told)
        for where, outcome in (("documents", "expired"), ("labels", "orphan")):
            there = getattr(self, where)
            kept = [entry for entry in there if self.now - entry[1] < SECONDS]
            self.outcomes[outcome] += len(there) - len(kept)
            setattr(self, where, kept)

    @rule()
    def a_restart_comes(self):
        before = snapshot.dump_bytes(self.room)
        self.room = snapshot.load_bytes(before)
        assert snapshot.dump_bytes(self.room) == before

    @invariant()
    def both_agree(self):
        room = self.room
        assert {k: v for k, v in room.outcomes.items() if v} == {k: v for k, v in self.outcomes.items() if v}
        assert (room.n_documents, room.n_labels) == (len(self.documents), len(self.labels))
        assert (room.now, room.n_learned) == (self.now, self.n_learned)
        state = room.state()
        assert state["since"].tolist() == [since for _, since, _ in self.documents]
        assert state["early_since"].tolist() == [since for _, since, _ in self.labels]
        assert room._learned == {name: (number, nodes) for name, number, nodes in self.learned}

    @invariant()
    def nobody_is_lost(self):
        """Every label and every document waits, or has exactly one outcome."""
        room, outcomes = self.room, self.room.outcomes
        ended = [outcomes[kind] for kind in ("joined", "duplicate", "changed", "orphan")]
        assert self.n_labels == sum(ended) + room.n_labels
        ended = [outcomes[kind] for kind in ("joined", "superseded", "expired")]
        assert self.n_documents == sum(ended) + room.n_documents
        assert self.n_learned == outcomes["joined"] + self.n_alone
        assert room.n_documents <= self.config.documents
        assert room.n_labels <= self.config.early

    @invariant()
    def nothing_waits_for_what_is_there(self):
        assert not {name for name, *_ in self.documents} & {name for name, *_ in self.labels}


TestRooms = Rooms.TestCase
TestRooms.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)


def test_bounds_that_became_smaller_hold_from_the_next_record_on():
    room = WaitingRoom(LabelsConfig(documents=9, early=9), remembered=5)
    for k in range(9):
        room.wait(f"document {k}")
        room.match(f"label {k}", b"")
    room.config = LabelsConfig(documents=2, early=3)
    room.wait("next")
    room.match("next label", b"")
    assert (room.n_documents, room.n_labels) == (2, 3)
    assert dict(room.outcomes) == {"expired": 8, "orphan": 7}


def test_a_state_that_does_not_fit_is_refused():
    room = WaitingRoom(LabelsConfig(), remembered=5)
    room.match("a", b"")
    state = room.state()
    with pytest.raises(ValueError, match="zip"):
        WaitingRoom.from_state(state | {"early_since": np.zeros(2)})
