"""Jobs that die: at a chosen step, in this process, with the disk as it was at that moment.

Every step is a point that is counted: the functions a job calls, before and after, and whatever reaches the
disk, with writes also half done. At the chosen one, and at every point behind it, `Crash` is raised: clean-up
code that would touch the disk does not, as after `kill -9`.
"""

import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.sparse import csr_array

from stream_hc import HM3, Taxonomy, snapshot
from stream_hc.runtime import commands
from stream_hc.runtime import job as job_module
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import (
    Config,
    JudgeConfig,
    LabelsConfig,
    ModelConfig,
    RefitConfig,
    StateConfig,
    StreamConfig,
)
from stream_hc.runtime.contenders import LineUp
from stream_hc.runtime.contest import Contest
from stream_hc.runtime.folder import StateFolder
from stream_hc.runtime.job import Job, Watcher
from stream_hc.runtime.journal import Journal
from stream_hc.runtime.keeper import Keeper
from stream_hc.runtime.outcome import FitRequest, Fitted
from stream_hc.runtime.outlets import Outlets
from stream_hc.runtime.pipeline import Processed
from stream_hc.runtime.processor import Processor
from stream_hc.runtime.sources import Source
from tests.runtime.streams import jumbled, lines_of, news

__all__ = [
    "Crash",
    "Points",
    "SteppedJob",
    "configured",
    "fit_here",
    "results",
    "run_with_crashes",
    "running",
    "write_stream",
]

FILES = ("output.jsonl", "rejects.jsonl", "requests.jsonl", "state/log.jsonl")
STEPS: list[tuple[type, str]] = [
    (Contest, "finish"),
    (Contest, "look"),
    (Job, "_open"),
    (Job, "_save"),
    (Journal, "append"),
    (Journal, "trim"),
    (Keeper, "load_newest"),
    (Keeper, "save"),
    (LineUp, "add"),
    (LineUp, "put"),
    (Outlets, "write"),
    (Processor, "apply"),
    (Processor, "parts"),
    (Processor, "prepare"),
    (Processor, "promote"),
    (Processor, "tick"),
    (Source, "read"),
    (StateFolder, "_saved"),
]


class Crash(BaseException):
    """The end, at the point of that name."""


class Points:
    """Counts the points that were reached, and ends the job at number `at`."""

    def __init__(self, at: int | None = None) -> None:
        self.names: Counter[str] = Counter()
        self.at = at
        self.count = 0
        self.is_dead = False
        self._lock = threading.Lock()  # batches are applied in a thread

    def reach(self, name: str, last_breath: Callable[[], object] = lambda: None) -> None:
        with self._lock:
            if not self.is_dead:
                self.count += 1
                self.names[name] += 1
                if self.count != self.at:
                    return
                last_breath()
                self.is_dead = True
            raise Crash(name)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Make points of the steps of a job and of whatever reaches the disk."""
        write = os.write

        def writing(descriptor: int, data: Any) -> int:
            half = memoryview(data)[: len(data) // 2]
            self.reach("write")
            self.reach("half a write", lambda: write(descriptor, half))
            written = write(descriptor, data)
            self.reach("written")
            return written

        with mock.patch.object(os, "write", writing):
            # No power is cut here, so nothing need reach the disk itself.
            patches = [mock.patch.object(os, "fsync", self._around("fsync", lambda _: None))]
            patches += [
                mock.patch.object(os, name, self._around(name, getattr(os, name)))
                for name in ("replace", "unlink", "ftruncate")
            ]
            patches += [
                mock.patch.object(kind, name, self._around(f"{kind.__name__}.{name}", getattr(kind, name)))
                for kind, name in STEPS
            ]
            for patch in patches:
                patch.start()
            try:
                yield
            finally:
                for patch in patches:
                    patch.stop()

    def _around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(*arguments: Any, **named: Any) -> Any:
            self.reach(f"before {name}")
            result = function(*arguments, **named)
            self.reach(f"after {name}")
            return result

        return wrapped


def fit_here(request: FitRequest, taxonomy: Taxonomy) -> Fitted:
    """Fit in this process, quickly: the same request gives the same model."""
    rows, n_features = request.window.arrays(), request.window.n_features
    X = csr_array((rows.values, rows.indices, rows.indptr), shape=(rows.numbers.size, n_features))
    on = np.ones(rows.label_nodes.size, np.bool_)
    Y = csr_array((on, rows.label_nodes, rows.label_ptr), shape=(rows.numbers.size, len(taxonomy)))
    model = HM3(taxonomy, n_features=n_features, tol=0.5, max_epochs=3, seed=request.number)
    return Fitted(request.number, model.fit(X, Y))


class SteppedJob(Job):
    """A job in small steps that looks around at each, whose time is told by the records."""

    step = 11

    def __init__(self, config: Config, taxonomy: Taxonomy, **named: Any) -> None:
        named.setdefault("clock", lambda: 1000.0 + self._taken // 40 * 30)
        super().__init__(config, partial(build_processor, config, taxonomy), **named)
        self.tree = taxonomy

    def _most(self) -> int | None:
        most = super()._most()
        return self.step if most is None else min(self.step, most)

    def _fetch(self, request: FitRequest) -> Fitted:
        return fit_here(request, self.tree)


class Poster(Watcher):
    """Asks for a model now and then, each time once, however often the job dies."""

    def __init__(self, folder: Path, at: dict[int, str]) -> None:
        self.folder, self.at = folder, dict(at)

    def processed(self, job: Job, done: Processed) -> None:
        for records in [records for records in self.at if job._taken >= records]:
            commands.post(self.folder, "promote", self.at.pop(records))


def configured(folder: Path, **tables: Any) -> Config:
    """Return a job with everything in it."""
    stream = StreamConfig(
        documents=str(folder / "stream.jsonl"),
        output=str(folder / "output.jsonl"),
        rejects=str(folder / "rejects.jsonl"),
        requests=str(folder / "requests.jsonl"),
    )
    given = {
        "stream": stream,
        "model": ModelConfig(learners=["h-rls", "node-pa"], n_features=2**10),
        "labels": LabelsConfig(documents=60, early=9, seconds=100.0, changed="learn"),
        "refit": RefitConfig(enabled=True, window=60, least=30, every=40, lag=10, in_step=True),
        "judge": JudgeConfig(sample=40, least=10, every=5, margin=0.0, sureness=0.0),
        "state": StateConfig(folder=str(folder / "state"), keep=2, every=37, seconds=None),
    }
    return Config(**(given | tables))


def write_stream(folder: Path, n_documents: int = 150, split: bool = False) -> Taxonomy:
    """Write a jumbled stream, on demand with the labels in a file of their own; return its taxonomy."""
    folder.mkdir(exist_ok=True)
    data = news(n_documents, seed=5)
    lines = [line.data for line in lines_of(jumbled(data, seed=5))]
    apart = [split and b'"text"' not in line for line in lines]
    for name, wanted in (("stream.jsonl", False), ("labels.jsonl", True)):
        chosen = [line + b"\n" for line, is_apart in zip(lines, apart, strict=True) if is_apart == wanted]
        (folder / name).write_bytes(b"".join(chosen))
    return data.taxonomy


def results(folder: Path) -> dict[str, bytes]:
    """Return all that came out of a job, and the parts of its newest snapshot, as bytes."""
    found = {name: (folder / name).read_bytes() for name in FILES}
    newest = max((folder / "state").glob("snapshot-*.snap"))
    return found | {"parts": snapshot.dump_bytes(snapshot.load(newest))}


@contextmanager
def running() -> Iterator[None]:
    """Let jobs look around at every step and save their snapshots here and now."""

    def save_here(keeper: Keeper, parts: Callable[[], Any], extra: Any) -> None:
        keeper._last += 1
        keeper._result = keeper._save_here(parts, extra)

    with (
        mock.patch.object(job_module, "LOOK_AROUND", 0.0),
        mock.patch.object(Keeper, "save_in_background", save_here),
    ):
        yield


def run_with_crashes(make: Callable[[], Job], crashes: list[int]) -> tuple[Job, list[str]]:
    """Run a job to its end through crashes, each at that point after the restart; return where they were."""
    died = []
    for at in [*crashes, None]:
        points, before = Points(at), _locks()
        job = make()
        try:
            with running(), points.installed():
                job.run()
            return job, died
        except Crash as crash:
            died.append(str(crash))
        for descriptor in _locks() - before:  # a process that dies leaves no lock
            with suppress(OSError):
                os.close(descriptor)
    raise AssertionError("the last run has nothing to die of")


def _locks() -> set[int]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").endswith("/state/lock"):
                found.add(int(name))
    return found


def draws(seed: int, n: int, most: int) -> list[int]:
    """Return n different numbers from 1 to `most`."""
    return random.Random(seed).sample(range(1, most + 1), n)
