"""Looks on while a stream is at work, and tells Prometheus and people.

Counters begin at 0 with the process, and what is done again after a restart is not counted: to Prometheus a
counter that goes on from an earlier snapshot would look as if everything had happened once more. What people
see goes on: it comes from the state of the stream.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

import stream_hc
from stream_hc.learners import SecondOrderLearner
from stream_hc.runtime.events import Event
from stream_hc.runtime.outcome import Told
from stream_hc.runtime.pipeline import Processed
from stream_hc.runtime.refit.outcome import Finished
from stream_hc.runtime.telemetry.catalogue import Catalogue
from stream_hc.runtime.telemetry.history import History
from stream_hc.runtime.telemetry.mistakes import Mistakes
from stream_hc.runtime.telemetry.node_table import NodeTable
from stream_hc.runtime.telemetry.tallying import Tally
from stream_hc.runtime.telemetry.throughput import Throughput
from stream_hc.runtime.watcher import Watcher
from stream_hc.runtime.work import Work

__all__ = ["Telemetry"]

CATCH_UP = 0.25  # seconds: batches are counted several at a time, which takes a fraction of one by one


class _Noted(NamedTuple):
    """A batch that waits to be counted: whether it was new, and when it came by both clocks."""

    done: Processed
    is_live: bool
    now: float
    steady: float


class Telemetry(Watcher[Work], Collector):
    """Watches one stream. Every method may be called from any thread.

    Parameters
    ----------
    registry
        Where Prometheus asks; each telemetry needs its own.
    worst_nodes
        How many nodes Prometheus is told of by name.
    clock
        Seconds since 1970.
    steady
        Seconds that never go back.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        worst_nodes: int = 10,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.registry = registry
        self.catalogue = Catalogue()
        self.clock, self.steady = clock, steady
        self.lock = threading.RLock()
        self.job: Work | None = None
        self.nodes: NodeTable | None = None
        self.mistakes: Mistakes | None = None
        self.tally: Tally | None = None
        self.told: Told | None = None
        self.history = History()
        self.throughput = Throughput(steady())
        self.champion_since: int | None = None  # labelled documents, if it took over while we watched
        self.last_fit: Finished | None = None
        self.started = clock()
        self._worst_nodes = worst_nodes
        self._waiting: list[_Noted] = []  # batches that are not counted yet
        self._caught_up = -math.inf
        self._updates: dict[tuple[str, str], float] = {}  # before this process
        self.catalogue.build_info.set(1, stream_hc.__version__)
        self.set_ready(False)
        ProcessCollector(registry=registry)
        registry.register(self)

    # What a stream tells

    def begin(self, job: Work) -> None:
        """Get to know a stream; what its state has counted so far is not counted here."""
        processor = job.processor
        processor.is_watched = True
        costs = processor.config.model.costs
        with self.lock:
            self.job = job
            self.nodes = NodeTable(processor.taxonomy, processor.nodes, costs)
            self.mistakes = Mistakes(processor.taxonomy)
            standing, progress = processor.contest.standing(), processor.progress
            learners = list(processor.line_up.online)
            self.tally = Tally(self.catalogue, processor.taxonomy, costs, learners, standing)
            happened = dict(progress.happened)
            self.told = Told(standing, progress.previous, processor.line_up.candidates, happened)
            self.history.add(standing, self.clock())

    def live(self, job: Work) -> None:
        """Be ready: the snapshot is loaded, and what was behind it is done again."""
        with self.lock:
            self._updates = self._node_updates()
            self.set_ready(True)

    def processed(self, job: Work, done: Processed) -> None:
        """Take a batch, to be counted soon."""
        steady = self.steady()
        with self.lock:
            self._waiting.append(_Noted(done, job.is_live, self.clock(), steady))
            if steady - self._caught_up >= CATCH_UP:
                self.catch_up()

    def save(self, job: Work) -> None:
        """Count what was taken: there may be a long time, or nothing, before the next batch."""
        self.catch_up()

    def catch_up(self) -> None:
        """Count what was taken; whoever reads something here does that first."""
        with self.lock:
            waiting, self._waiting = self._waiting, []
            for noted in waiting:
                self._count(*noted)
            self._caught_up = self.steady()

    def _count(self, done: Processed, is_live: bool, now: float, steady: float) -> None:
        outcome = done.outcome
        assert self.tally is not None
        assert self.mistakes is not None
        if is_live:
            self.tally.count(done)
        else:
            self.tally.skip(outcome)
        self.throughput.add(sum(map(len, outcome.answers)), steady)
        for lessons in outcome.lessons:
            self.mistakes.add(lessons)
        for entry in outcome.log:
            if isinstance(entry, Event):
                self.history.note(entry, now)
                if entry.what in ("swap", "rollback", "promoted"):
                    self.champion_since = entry.labelled
            else:
                self.history.add(entry, now)
        if outcome.told is not None:
            self.told = outcome.told
            self.history.add(outcome.told.standing, now)

    def fitted(self, finished: Finished) -> None:
        """Count a fit that ended."""
        gap, objective = finished.duality_gap, finished.dual_objective
        with self.lock:
            self.last_fit = finished
            self.catalogue.refits.add(1, finished.outcome)
            self.catalogue.refit_duration.observe(finished.seconds)
            if gap is not None and objective is not None:
                self.catalogue.refit_gap.set(gap)
                self.catalogue.refit_gap_ratio.set(gap / objective if objective > 0 else 0.0)

    def saved(self, job: Work) -> None:
        """Note when a snapshot was saved."""
        with self.lock:
            self.catalogue.snapshots.add(1, "saved")
            self.catalogue.snapshot_time.set(self.clock())

    # What a transport tells

    def set_ready(self, is_ready: bool) -> None:
        """Say whether new records are processed."""
        with self.lock:
            self.catalogue.ready.set(float(is_ready))

    def set_lag(self, lag: dict[tuple[str, int], int]) -> None:
        """Say how many records of each topic and partition are still to be consumed."""
        with self.lock:
            values = {(topic, str(partition)): float(n) for (topic, partition), n in lag.items()}
            self.catalogue.consumer_lag.replace(values)

    def transaction(self, outcome: str, seconds: float | None = None) -> None:
        """Count a transaction, "committed" or "aborted", and how long its end took."""
        with self.lock:
            self.catalogue.transactions.add(1, outcome)
            if seconds is not None:
                self.catalogue.commit_duration.observe(seconds)

    def set_published(self, counts: Mapping[str, int]) -> None:
        """Say how many versions of the model were published, by outcome, since the process began."""
        with self.lock:
            self.catalogue.model_versions.values |= {(name,): float(n) for name, n in counts.items()}

    @property
    def is_ready(self) -> bool:
        """Whether new records are processed."""
        return bool(self.catalogue.ready.values[()])

    # What Prometheus asks

    def collect(self) -> Iterator[Metric]:
        """Yield everything, with what is read only when somebody asks."""
        with self.lock:
            self.catch_up()
            self._look()
            return iter(list(self.catalogue.collected()))

    def describe(self) -> Iterator[Metric]:
        """Yield the names: nothing is looked at for them."""
        return self.catalogue.collected()

    def _look(self) -> None:
        job, catalogue = self.job, self.catalogue
        if job is None or self.nodes is None or self.tally is None:
            return
        line_up = job.processor.line_up
        for name, model in line_up.online.items():
            catalogue.model_bytes.set(getattr(model.learner, "nbytes", 0), name)
            if isinstance(model.learner, SecondOrderLearner):
                catalogue.stored_instances.set(int(model.learner.n_stored.sum()), name)
        fitted = list(line_up.fitted.values())
        if fitted:
            catalogue.model_bytes.set(sum(each.fitted.nbytes for each in fitted), fitted[0].model)
        for labels, number in self._node_updates().items():
            catalogue.node_updates.values[labels] = number - self._updates.get(labels, 0.0)
        running = job.refitter is not None and job.refitter.running is not None
        catalogue.refit_running.set(float(running))
        failures = job.counts["snapshot_failures"]
        if failures:
            catalogue.snapshots.values["failed",] = float(failures)
        worst = self.nodes.worst(self._worst_nodes)
        catalogue.worst_hloss.replace({(node.name,): node.hloss for node in worst})
        catalogue.worst_error.replace({(node.name,): node.error for node in worst})
        catalogue.worst_documents.replace({(node.name,): node.documents for node in worst})

    def _node_updates(self) -> dict[tuple[str, str], float]:
        found: dict[tuple[str, str], float] = {}
        assert self.job is not None
        for name, model in self.job.processor.line_up.online.items():
            updates: Any = getattr(model.learner, "n_updates", 0)
            if isinstance(updates, np.ndarray):
                sums = np.bincount(self.job.processor.taxonomy.depth, updates)
                found |= {(name, str(depth)): float(number) for depth, number in enumerate(sums)}
            else:
                found[name, "all"] = float(updates)
        return found
