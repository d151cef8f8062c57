"""One fit of H-M³ as a process of its own: ``python -m stream_hc.runtime.refit.worker FOLDER/job-1.json``.

It is told what to do by a file and answers by files (see `refit.files`), so nothing is ever pickled. It has a
low priority and limited memory, and ends when its standard input does: when whoever began it is gone.
Processes that help it have the same priority and the same limit, and end with it.
"""

import os
import resource
import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy.sparse import csr_array

from stream_hc import snapshot
from stream_hc.kernels import Longs
from stream_hc.maxmargin import HM3
from stream_hc.maxmargin.crew import Workers
from stream_hc.maxmargin.distributed import dask_workers
from stream_hc.runtime.refit.files import EXIT_ALONE, EXIT_FAILED, EXIT_MEMORY, Duals, FitFiles, Task
from stream_hc.runtime.window import Window, WindowArrays
from stream_hc.taxonomy import Taxonomy

__all__ = ["fit", "main"]

NICENESS = 10


def main(arguments: Sequence[str]) -> int:
    """Do the job of the file that is named, and return the exit code."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    os.nice(NICENESS)
    try:
        path = Path(arguments[0])
        task = msgspec.json.decode(path.read_bytes(), type=Task)
        _load_kernels()
        _limit_memory(task.max_memory)
        fit(path.parent, task)
    except Exception as error:
        line = " ".join(f"{type(error).__name__}: {error}".split())
        sys.stderr.write(f"{line}\n")
        return EXIT_MEMORY if _is_memory(error) else EXIT_FAILED
    return 0


def fit(folder: Path, task: Task) -> None:
    """Fit a model to the window of a task. Writes the model, and progress on the way."""
    files = FitFiles(folder, task.number)
    window: Window = snapshot.load(files.window)["window"]
    rows = window.arrays()
    model = HM3(
        window.taxonomy,
        task.loss or ("h_tilde" if window.taxonomy.is_tree else "symmetric_difference"),
        costs=task.costs,
        C=task.C,
        tol=task.tol,
        max_seconds=task.max_seconds,
        max_memory=task.max_memory,
        n_features=window.n_features,
        seed=task.number,
    )
    warm = _warm_start(folder, task.warm, rows.numbers)
    with _workers(task) as workers:
        n_warm = _fit(model, rows, warm, files.progress, workers)
    extra = {"number": task.number, "epochs": len(model.history_) - 1, "warm_rows": n_warm}
    snapshot.save(files.model, {"model": model, "duals": Duals(rows.numbers, model.duals_)}, extra=extra)


def _workers(task: Task) -> AbstractContextManager[Workers | None]:
    if task.scheduler is not None:
        return dask_workers(scheduler=task.scheduler)
    return dask_workers(task.workers) if task.workers > 1 else nullcontext()


def _fit(
    model: HM3,
    rows: WindowArrays,
    warm: tuple[Any, Longs] | None,
    progress: Path,
    workers: Workers | None = None,
) -> int:
    """Fit the model; return how many documents began with the dual variables they had."""
    n_rows = rows.numbers.size
    X = csr_array((rows.values, rows.indices, rows.indptr), shape=(n_rows, model.n_features))
    on = np.ones(rows.label_nodes.size, np.bool_)
    Y = csr_array((on, rows.label_nodes, rows.label_ptr), shape=(n_rows, len(model.taxonomy)))

    def tell(entry: dict[str, float]) -> None:
        beside = progress.with_name(f".{progress.name}.{os.getpid()}.tmp")
        with suppress(OSError):  # a full disk is no reason to give up: the model comes later
            beside.write_bytes(msgspec.json.encode(entry))
            beside.replace(progress)

    if warm is not None:
        # The duals may be of another taxonomy; whatever else is wrong is found again without them.
        with suppress(ValueError):
            model.fit(X, Y, warm_start=warm, progress=tell, workers=workers)
            return int((warm[1] >= 0).sum())
    model.fit(X, Y, progress=tell, workers=workers)
    return 0


def _warm_start(folder: Path, number: int | None, numbers: Longs) -> tuple[Any, Longs] | None:
    if number is None:
        return None
    try:
        parts = snapshot.load(FitFiles(folder, number).model)
    except snapshot.SnapshotError:
        return None  # gone or damaged: it only takes longer
    duals = parts.get("duals") if isinstance(parts, dict) else None
    return (duals.duals, duals.places(numbers)) if isinstance(duals, Duals) else None


def _end_with_input() -> None:
    # Not through sys.stdin, whose lock is needed to end properly. Kernels let this thread run.
    while os.read(0, 1):
        pass
    os._exit(EXIT_ALONE)


def _load_kernels() -> None:
    """Fit something tiny: a compiler that runs out of memory ends the process without a word."""
    X = csr_array(np.ones((2, 1), np.float32))
    HM3(Taxonomy([("a", None)]), n_features=1, max_epochs=1).fit(X, [{"a"}, set()])


def _limit_memory(most: int) -> None:
    """Limit the address space to what is used now and so many bytes more, where the system tells."""
    with suppress(OSError, OverflowError):
        pages = int(Path("/proc/self/statm").read_bytes().split()[0])
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = pages * resource.getpagesize() + most
        if hard == resource.RLIM_INFINITY or limit < hard:
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _is_memory(error: BaseException | None) -> bool:
    """Whether it is a lack of memory, or was caused by one: a snapshot says so in its own words."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__
    return error is not None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
