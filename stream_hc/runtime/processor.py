"""The stream as a state machine: lines in; predictions, rejected lines, requests and events out.

It reads no clock, no socket and no seed: the same records, ticks and finished fits in the same order give the
same answers and the same state, to the last bit, however the records are cut into batches.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Self

import numpy as np

from stream_hc.learners import OnlineLearner
from stream_hc.learners.base import LabelRows
from stream_hc.maxmargin import HM3
from stream_hc.runtime.batches import RecordBatch, label_rows, prepare_batch
from stream_hc.runtime.charging import Charges
from stream_hc.runtime.config import Config
from stream_hc.runtime.contenders import FittedModel
from stream_hc.runtime.contest import Contest, Fetch
from stream_hc.runtime.drift import DriftDetector
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.node_counts import NodeCounts
from stream_hc.runtime.outcome import Fitted, Lessons, Outcome, Told
from stream_hc.runtime.planning import Again, Cuts, Plan, plans
from stream_hc.runtime.preparing import Preparer
from stream_hc.runtime.progress import Progress
from stream_hc.runtime.publishing import Publisher
from stream_hc.runtime.scoring import SERVED, Scoreboard
from stream_hc.runtime.teaching import Taught, teach
from stream_hc.runtime.waiting import WaitingDocument, WaitingRoom
from stream_hc.runtime.window import Window, sliced_labels
from stream_hc.sharding import Shard, check_shardable
from stream_hc.snapshot import SnapshotError
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import SequenceVectorizer, TextVectorizer, sliced

__all__ = ["Processor"]

ONLINE, FITTED = "learner ", "fitted "  # how names of parts in a snapshot begin
REQUESTED = "requested"  # the window of the fit under way
SHARD = "shard"


class Processor:
    """Learners side by side on one stream of documents and labels; the champion among them answers.

    Every document is predicted by all models when it comes, and what the champion predicts is published. When
    its labels come, with it or later, the losses of those predictions are counted, and all learners learn.
    Models fitted to the window join in when they are ready.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    learners
        By name; the first one is the champion at the beginning.
    vectorizer
        With as many features as the learners; a fresh one if not given.
    config
        Its tables `model.costs`, `labels`, `refit`, `judge` and `stream.requests` are used.
    fetch
        Returns the model asked for some documents ago, where fits go in step with the stream.
    shard
        The part of the taxonomy that is trained here, if it was cut: the one learner, its answers and its
        losses know the nodes of the shard. Records may have any label of the whole taxonomy, so that all
        shards take the same ones and find the same pairs.

    Attributes
    ----------
    taxonomy, whole
        That of the learners; and that of the records, which is the same unless there is a shard.
    is_watched
        Whether outcomes also have what those who watch want to know; nothing else changes.

    Examples
    --------
    >>> from stream_hc import HAROW
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport")])
    >>> processor = Processor(tax, {"h-arow": HAROW(tax, n_features=64)})
    >>> text, label = '{"id": "a", "text": "ace"}', '{"id": "a", "labels": ["tennis"]}'
    >>> seen = [text, label, text.replace('"a"', '"b"')]
    >>> outcome = processor.process([Line(number, line.encode()) for number, line in enumerate(seen, 1)])
    >>> [(answer.id, answer.path_labels) for part in outcome.answers for answer in part.predictions()]
    [('a', []), ('b', ['sport', 'tennis'])]
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        learners: Mapping[str, OnlineLearner],
        vectorizer: TextVectorizer | SequenceVectorizer | None = None,
        config: Config | None = None,
        fetch: Fetch | None = None,
        shard: Shard | None = None,
    ) -> None:
        config = Config() if config is None else config
        first, n_features = next(iter(learners)), next(iter(learners.values())).n_features
        self.whole, self.config, self.shard = taxonomy, config, shard
        self.taxonomy = taxonomy if shard is None else shard.taxonomy
        if shard is not None:
            _check_sharded(shard, taxonomy, list(learners.values()), config)
        self.vectorizer = TextVectorizer(n_features=n_features) if vectorizer is None else vectorizer
        for name, learner in learners.items():
            if learner.taxonomy != self.taxonomy:
                raise ValueError(f"the learner {name} was made for another taxonomy")
            if learner.n_features != self.vectorizer.n_features:
                wanted = self.vectorizer.n_features
                raise ValueError(f"the vectorizer has n_features={wanted}, {name} {learner.n_features}")
        self._preparer = Preparer(taxonomy, self.vectorizer)
        self._charges = Charges(taxonomy, config.model.costs, shard)
        size = config.refit.window
        parts = (
            Progress(champion=first, costs=config.model.costs),
            Window(taxonomy, n_features, size),
            Scoreboard(config.judge.sample, self._charges.n_depths),
            DriftDetector(),
        )
        self._begin(dict(learners), WaitingRoom(config.labels, size), parts, fetch)
        self.nodes = NodeCounts(len(self.taxonomy), config.judge.sample)
        self.is_watched = False

    def _begin(
        self,
        learners: dict[str, OnlineLearner],
        room: WaitingRoom,
        parts: tuple[Progress, Window, Scoreboard, DriftDetector],
        fetch: Fetch | None,
    ) -> None:
        self.room = room
        self.contest = Contest(learners, self.config, parts, room, fetch)
        self.progress, self.line_up = self.contest.progress, self.contest.line_up
        self._publisher = Publisher(self.taxonomy)

    # Records

    def process(self, lines: Sequence[Line]) -> Outcome:
        """Answer the documents among some lines, in order, and learn from the labels."""
        return self.apply(self.prepare(lines))

    def prepare(self, lines: Sequence[Line]) -> RecordBatch:
        """Do the first half of `process`: only the vectorizer changes.

        A thread may prepare a batch while another applies the one before.
        """
        return prepare_batch(self._preparer, lines)

    def apply(self, batch: RecordBatch) -> Outcome:
        """Do the second half of `process`."""
        outcome = self.contest.outcome = Outcome(rejects=batch.rejects)
        config = self.config
        asks = config.stream.requests is not None
        cuts = Cuts(self.contest.until_look, self.contest.every, config.refit.in_step, asks)
        for plan in plans(batch, self.room, cuts):
            if isinstance(plan, Again):
                self._learn_again(plan)
            else:
                self._follow(plan, batch)
        self.progress.records += batch.n_lines
        return self._told(outcome)

    def _told(self, outcome: Outcome) -> Outcome:
        """Say where everything stands, if somebody wants to know."""
        if self.is_watched:
            progress, candidates = self.progress, self.line_up.candidates
            standing = self.contest.standing()
            outcome.told = Told(standing, progress.previous, candidates, dict(progress.happened))
        return outcome

    def _follow(self, plan: Plan, batch: RecordBatch) -> None:
        """Let all models follow the plan; publish answers and count losses from one look to the next."""
        rows = sliced(batch.rows, plan.first, plan.first + len(plan.waiting))
        if self.config.stream.requests is not None:
            self.contest.outcome.requests += self._publisher.requests(self.line_up, plan, batch, rows)
        online = self.line_up.online
        versions = {name: (self.line_up[name].version, name in online) for name in self.line_up.names}
        taught = teach(self.line_up, self._charges, plan, rows, self.shard)
        n_lessons, n_documents = len(plan.places), len(plan.waiting)
        looks = iter(plan.looks)
        lesson = document = 0
        pieces: list[tuple[str, int]] = []  # who answered, up to which document
        served: list[str] = []  # whose answer each lesson is about
        while lesson < n_lessons or document < n_documents:
            champion, until_look = self.line_up.champion, self.contest.until_look
            next_lesson = min(n_lessons, lesson + until_look)
            ends_with_look = next_lesson - lesson == until_look
            next_document = bisect_left(plan.until, next_lesson) if ends_with_look else n_documents
            for waiting in plan.waiting[document:next_document] if plan.labels is None else ():
                if waiting is not None:
                    waiting.served = champion
            pieces.append((champion, next_document))
            self.progress.documents += next_document - document
            if lesson < next_lesson:
                served += self._count(plan, taught, lesson, next_lesson, champion)
            if ends_with_look:
                self.contest.look(next(looks), n_lessons - next_lesson)
                self._forget_dropped(plan.waiting[next_document:] if plan.labels is None else ())
            lesson, document = next_lesson, next_document
        self.contest.outcome.answers += self._publisher.answers(pieces, plan, batch, taught, versions)
        if served:
            self._count_nodes(taught, served)
        if served and self.is_watched:
            self.contest.outcome.lessons.append(self._lessons(plan, taught, served))

    def _lessons(self, plan: Plan, taught: Taught, served: list[str]) -> Lessons:
        """Return what those who watch want to know about the lessons of a plan."""
        now, waited = self.room.now, plan.taught if plan.labels is None else ()
        delays = [now - document.since for document in waited if document is not None]
        return Lessons(plan.ids, taught.labels, taught.charged, served, delays)

    def _forget_dropped(self, waiting: Sequence[WaitingDocument | None]) -> None:
        """Take models that were dropped out of what later documents wait with, as if they had come later."""
        for document in waiting:
            if document is not None and not all(name in self.line_up for name in document.lineup):
                pairs = zip(document.lineup, document.predicted, strict=True)
                kept = [(name, nodes) for name, nodes in pairs if name in self.line_up]
                document.lineup = tuple(name for name, _ in kept)
                document.predicted = tuple(nodes for _, nodes in kept)

    def _count(self, plan: Plan, taught: Taught, first: int, last: int, champion: str) -> list[str]:
        """Count some lessons: the loss served is that of the model that answered; returns these models."""
        losses = {name: each.losses[first:last] for name, each in taught.charged.items()}
        served = [champion] * (last - first)
        if plan.labels is None:
            documents = plan.taught[first:last]
            served = [champion if document is None else document.served for document in documents]
        if served.count(served[0]) == len(served):
            losses[SERVED] = losses[served[0]]
            charged = self._charges.depths(taught.charged[served[0]], first, last)
        else:
            losses[SERVED] = np.array([losses[name][place] for place, name in enumerate(served)])
            each = [
                self._charges.depths(taught.charged[name], first + place, first + place + 1)
                for place, name in enumerate(served)
            ]
            charged = (
                np.concatenate([depths for depths, _ in each]),
                np.concatenate([costs for _, costs in each]),
            )
        rows, labels = sliced(taught.rows, first, last), sliced_labels(taught.given, first, last)
        self.contest.count(rows, labels, losses, charged)
        return served

    def _count_nodes(self, taught: Taught, served: list[str]) -> None:
        """Count the nodes of all lessons, by what was served."""
        is_one = served.count(served[0]) == len(served)
        runs = [len(served)] if is_one else [len(list(same)) for _, same in groupby(served)]
        last = 0
        for length in runs:
            first, last = last, last + length
            charged = taught.charged[served[first]]
            where = LabelRows(charged.indptr, charged.nodes)
            self.nodes.add(charged.predicted, taught.labels, where, first, last)

    def _learn_again(self, run: Again) -> None:
        """Learn a document with the labels it has now, if it is still there; its loss was counted before."""
        rows = self.contest.window.row(run.number)
        if rows is not None:
            given = label_rows([run.nodes])
            labels = given if self.shard is None else self.shard.project(given)
            for model in self.line_up.online.values():
                model.predict_then_learn(rows, labels)
            self.contest.window.relabel(run.number, given.nodes)

    # What comes beside records

    def tick(self, now: float) -> Outcome:
        """Let time pass: what has waited too long is forgotten, a fit may be due."""
        outcome = self.contest.outcome = Outcome()
        self.room.tick(now)
        if self.config.refit.seconds is not None:
            self.contest.ask_for_a_fit()
        return self._told(outcome)

    def finish_fit(self, fitted: Fitted) -> Outcome:
        """Take a model that was asked for, or the news that there is none."""
        outcome = self.contest.outcome = Outcome()
        self.contest.finish(fitted)
        return self._told(outcome)

    def resume(self) -> Outcome:
        """Ask once more for the fit that was under way when the state was saved."""
        outcome = self.contest.outcome = Outcome()
        if self.contest.request is not None:
            self.contest.renew_request(self.contest.request.window)
        return outcome

    def promote(self, name: str) -> Outcome:
        """Let a model answer from now on; `ValueError` if there is no such model."""
        outcome = self.contest.outcome = Outcome()
        self.contest.promote(name)
        return self._told(outcome)

    def rollback(self) -> Outcome:
        """Let the model before answer again; `ValueError` if there is none."""
        outcome = self.contest.outcome = Outcome()
        self.contest.rollback()
        return self._told(outcome)

    # All of it, for a snapshot

    def parts(self) -> dict[str, Any]:
        """Return what `stream_hc.snapshot.save` takes; `from_parts` goes on from there."""
        contest = self.contest
        fitted = self.line_up.fitted
        self.progress.fitted_versions = {name: model.version for name, model in fitted.items()}
        return {
            "progress": self.progress,
            "vectorizer": self.vectorizer,
            "waiting": self.room,
            "window": contest.window,
            "scores": contest.board,
            "drift": contest.drift,
            "nodes": self.nodes,
            **({} if self.shard is None else {SHARD: self.shard}),
            **({} if contest.request is None else {REQUESTED: contest.request.window}),
            **{ONLINE + name: model.learner for name, model in self.line_up.online.items()},
            **{FITTED + name: model.fitted for name, model in fitted.items()},
        }

    @classmethod
    def from_parts(
        cls,
        parts: Mapping[str, Any],
        config: Config,
        fetch: Fetch | None = None,
        shard: Shard | None = None,
    ) -> Self:
        """Go on with what `snapshot.load` returned; `SnapshotError` if that does not fit `config`.

        It must be the state of `shard`, or that of a whole taxonomy if there is none.
        """
        try:
            return cls._from_parts(parts, config, fetch, shard)
        except SnapshotError:
            raise
        except (ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
            raise SnapshotError(f"the parts of the snapshot do not fit together: {error}") from error

    @classmethod
    def _from_parts(
        cls, parts: Mapping[str, Any], config: Config, fetch: Fetch | None, shard: Shard | None
    ) -> Self:
        kept = {"progress", "vectorizer", "waiting", "window", "scores", "drift"}
        if not isinstance(parts, Mapping) or not kept <= parts.keys():
            raise SnapshotError("not the snapshot of a stream: expected " + ", ".join(sorted(kept)))
        if parts.get(SHARD) != shard:
            raise SnapshotError(f"the snapshot is that of {_named(parts.get(SHARD))}, not of {_named(shard)}")
        found = {name.removeprefix(ONLINE): part for name, part in parts.items() if name.startswith(ONLINE)}
        if set(found) != set(config.model.learners):
            held, wanted = ", ".join(sorted(found)), ", ".join(sorted(config.model.learners))
            raise SnapshotError(f"the snapshot has the learners {held}, the configuration {wanted}")
        learners = {name: found[name] for name in config.model.learners}
        window, board, room = parts["window"], parts["scores"], parts["waiting"]
        for key, here, there in (
            ("refit.window", config.refit.window, window.size),
            ("judge.sample", config.judge.sample, board.size),
        ):
            if here != there:
                raise SnapshotError(f"the snapshot was made with {key} = {there}, not {here}")
        processor = cls(window.taxonomy, learners, parts["vectorizer"], config, shard=shard)
        room.check(window.n_features, len(window.taxonomy), len(processor.taxonomy))
        room.config = config.labels
        progress = parts["progress"]
        if not progress.labelled == window.end == room.n_learned or room.remembered != window.size:
            raise SnapshotError("the parts of the snapshot are not of the same moment")
        processor._begin(learners, room, (progress, window, board, parts["drift"]), fetch)
        processor.nodes = parts.get("nodes", processor.nodes)  # earlier versions did not count them
        if (processor.nodes.n_nodes, processor.nodes.size) != (len(processor.taxonomy), board.size):
            raise SnapshotError("the parts of the snapshot do not fit together: other nodes are counted")
        for name, version in progress.fitted_versions.items():
            processor.line_up.fitted[name] = _fitted(parts, name, version)
        seats = {progress.champion, progress.previous or progress.champion}
        if not all(name in processor.line_up for name in seats):
            raise SnapshotError("the snapshot lacks the model that answers")
        if REQUESTED in parts:
            processor.contest.renew_request(parts[REQUESTED])
        return processor


def _check_sharded(
    shard: Shard, taxonomy: Taxonomy, learners: Sequence[OnlineLearner], config: Config
) -> None:
    """Raise `ValueError` if shards of such a processor would not join to what one processor becomes."""
    if shard.whole != taxonomy:
        raise ValueError("the shard is that of another taxonomy")
    if len(learners) != 1:
        raise ValueError(f"a shard has one learner, not {len(learners)}: leave one in model.learners")
    check_shardable(learners[0], taxonomy)
    if config.refit.enabled:
        raise ValueError("a shard is not fitted anew, since that takes all nodes: set refit.enabled = false")


def _named(shard: Shard | None) -> str:
    if shard is None:
        return "a whole taxonomy"
    return f"shard {shard.number} of {shard.n_shards} (plan {shard.digest})"


def _fitted(parts: Mapping[str, Any], name: str, version: int) -> FittedModel:
    model = parts.get(FITTED + name)
    if not isinstance(model, HM3):
        raise SnapshotError(f"the snapshot lacks the model {name}")
    return FittedModel(model, version)
