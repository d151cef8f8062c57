"""Jobs that die: at a chosen step, in this process, with the disk as it was at that moment.

Every step is a point that is counted: the functions a job calls, before and after, and whatever reaches the
disk, with writes also half done. At the chosen one, and at every point behind it, `Crash` is raised: clean-up
code that would touch the disk does not, as after `kill -9`.
"""

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import msgspec

from stream_hc import Taxonomy, snapshot
from stream_hc.runtime import job as job_module
from stream_hc.runtime import work as work_module
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
from stream_hc.runtime.disk import Journal, Keeper, Outlets, Source, StateFolder, commands
from stream_hc.runtime.job import Job
from stream_hc.runtime.processor import Processor
from stream_hc.runtime.refit import Finished, Refitter, worker
from stream_hc.runtime.refit.files import FitFiles, Task
from tests.runtime.streams import jumbled, lines_of, news

__all__ = [
    "Crash",
    "Points",
    "RefitterHere",
    "SteppedJob",
    "configured",
    "results",
    "run_with_crashes",
    "running",
    "serve",
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
    """Counts the points that were reached; ends the job at number `at`, or the how many-th of a name."""

    def __init__(self, at: int | tuple[str, int] | None = None) -> None:
        self.names: Counter[str] = Counter()
        self.at = at
        self.count = 0
        self.is_dead = False
        self.died_at = ""
        self._lock = threading.Lock()  # batches are applied in a thread

    def reach(self, name: str, last_breath: Callable[[], object] = lambda: None) -> None:
        with self._lock:
            if not self.is_dead:
                self.count += 1
                self.names[name] += 1
                if self.at not in (self.count, (name, self.names[name])):
                    return
                last_breath()
                self.is_dead, self.died_at = True, name
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


class RefitterHere(Refitter):
    """Fits in this process what the worker would fit, and tells of it when it was asked `patience` times."""

    def __init__(self, folder: Path, config: RefitConfig, patience: Callable[[], int] = lambda: 0) -> None:
        super().__init__(folder, config)
        self.patience = patience
        self.left = 0
        self.number: int | None = None

    def start(self, number: int, window: Any, warm: int | None) -> None:
        assert self.number is None
        files = FitFiles(self.folder, number)
        files.remove(keep_model=False)
        snapshot.save(files.window, {"window": window})
        worker.fit(self.folder, Task.of(number, warm, self.config))
        files.remove(keep_model=True)
        self.number, self.left = number, self.patience()

    def poll(self) -> Finished | None:
        self.left -= 1
        return self.wait() if self.number is not None and self.left < 0 else None

    def wait(self, timeout: float | None = None) -> Finished:
        assert self.number is not None
        number, self.number = self.number, None
        return Finished(number, "done", 0.0, self.load(number))

    def stop(self) -> None:
        self.number = None

    def forget(self, numbers_to_keep: set[int]) -> None:
        super().forget(numbers_to_keep if self.number is None else {*numbers_to_keep, self.number})


class SteppedJob(Job):
    """A job in small steps that looks around at each, whose time is told by the records.

    After so many records somebody asks for a model, once: `asked` outlives the job.
    """

    step = 11

    def __init__(
        self, config: Config, taxonomy: Taxonomy, asked: dict[int, str] | None = None, **named: Any
    ) -> None:
        named.setdefault("clock", lambda: 1000.0 + self._taken // 40 * 30)
        super().__init__(config, partial(build_processor, config, taxonomy), **named)
        self.asked = {} if asked is None else asked

    def _look_around(self) -> None:
        for records in [records for records in self.asked if self._taken >= records]:
            assert self._state is not None
            request = self._state.path / commands.FOLDER / f"{records:020d}-12345678.json"
            request.parent.mkdir(exist_ok=True)
            # Not by `post`, whose steps would count: it is another process that asks.
            request.write_text(json.dumps({"what": "promote", "model": self.asked.pop(records)}))
        super()._look_around()

    def _most(self) -> int | None:
        most = super()._most()
        return self.step if most is None else min(self.step, most)


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
        "model": ModelConfig(learners=["perceptron", "node-pa", "h-rls"], n_features=2**10),
        "labels": LabelsConfig(documents=60, early=9, seconds=100.0, changed="learn"),
        "refit": RefitConfig(enabled=True, window=50, least=20, every=20, lag=10, tol=0.5, in_step=True),
        "judge": JudgeConfig(sample=20, least=10, every=5, margin=0.0, sureness=0.0),
        "state": StateConfig(folder=str(folder / "state"), keep=2, every=37, seconds=None),
    }
    return Config(**(given | tables))


def write_stream(folder: Path, n_documents: int = 120, split: bool = False) -> Taxonomy:
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
def running(patience: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Let jobs look around at every step, and save snapshots and fit models here and now."""

    def save_here(keeper: Keeper, parts: Callable[[], Any], extra: Any) -> None:
        keeper._last += 1
        keeper._result = keeper._save_here(parts, extra)

    with (
        mock.patch.object(job_module, "LOOK_AROUND", 0.0),
        mock.patch.object(work_module, "Refitter", partial(RefitterHere, patience=patience)),
        mock.patch.object(Keeper, "save_in_background", save_here),
    ):
        yield


def run_with_crashes(
    make: Callable[[], Job], crashes: Sequence[int | tuple[str, int]], patience: Callable[[], int] = lambda: 0
) -> tuple[Job, list[str]]:
    """Run a job to its end through crashes, each at that point after the restart; return where they were."""
    died = []
    for at in [*crashes, None]:
        points, before = Points(at), _locks()
        job = make()
        try:
            with running(patience), points.installed():
                job.run()
            return job, died
        except Crash:
            died.append(points.died_at)
        for descriptor in _locks() - before:  # a process that dies leaves no lock
            with suppress(OSError):
                os.close(descriptor)
    raise AssertionError("the last run has nothing to die of")


def serve(folder: Path) -> None:
    """Run the job of a folder in a process of its own for each line that comes; tell its id and its status.

    Everything is real: snapshots by fork, fits in another process, in step with the stream. Only what is slow
    and the same each time, loading the kernels, is done once here.
    """
    config, taxonomy = killable(folder), news(1).taxonomy
    with TemporaryDirectory() as warm:
        write_stream(Path(warm), 60)
        with running():
            SteppedJob(configured(Path(warm)), taxonomy).run()
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            with mock.patch.object(job_module, "LOOK_AROUND", 0.0):
                SteppedJob(config, taxonomy).run()
            os._exit(0)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        sys.stdout.write(f"{os.waitpid(pid, 0)[1]}\n")
        sys.stdout.flush()


def killable(folder: Path) -> Config:
    """Return a job with one fit: it takes seconds to start its process."""
    config = configured(folder)
    refit = msgspec.structs.replace(config.refit, every=None, drift=False, least=100)
    return msgspec.structs.replace(config, refit=refit)


def _locks() -> set[int]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").endswith("/state/lock"):
                found.add(int(name))
    return found
