"""Fit H-M³ to a window in another process while the stream goes on."""

import os
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from stream_hc.maxmargin import HM3
from stream_hc.maxmargin.reading import best_labels
from stream_hc.runtime.config import RefitConfig
from stream_hc.runtime.refit.files import FitFiles, Task, forget_files
from stream_hc.runtime.refit.outcome import Finished, load_model
from stream_hc.runtime.refit.process import RefitJob
from stream_hc.snapshot import Snapshotable
from stream_hc.taxonomy import Taxonomy

__all__ = ["WORKER", "Refitter"]

# Without the folder it is started in among the places to import from: it may hold anything.
WORKER = (sys.executable, "-P", "-m", "stream_hc.runtime.refit.worker")


class Refitter:
    """Runs one fit at a time; but for `wait` and `stop` no method waits for anything.

    A fit that goes wrong in any way is reported by `poll` as one that goes well is. When it is over only its
    model stays in the folder. No process is left behind when this one ends, however it ends.

    Parameters
    ----------
    folder
        Where windows go out and models come in; it is made if need be.
    config
        Settings of the fits, and their limits.
    clock
        Tells the seconds.
    command
        The worker; a job file becomes its last argument.
    """

    def __init__(
        self,
        folder: Path,
        config: RefitConfig,
        clock: Callable[[], float] = time.monotonic,
        command: Sequence[str] = WORKER,
    ) -> None:
        self.folder = folder
        self.config = config
        self._clock = clock
        self._command = tuple(command)
        self._job: RefitJob | None = None
        self._at_exit: weakref.finalize[..., Any] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        # Compiled, or loaded, before the stream begins: later that would hold it up, even in another thread.
        best_labels(Taxonomy([("any", None)]), np.zeros((1, 1)), scores=True)

    @property
    def running(self) -> int | None:
        """The number of the fit that was started and not yet reported."""
        return None if self._job is None else self._job.number

    def start(self, number: int, window: Snapshotable, warm: int | None) -> None:
        """Begin a fit.

        Parameters
        ----------
        number
            Of the fit: 1, 2, ...; it names the files and is the seed.
        window
            The documents, which must not change any more: a view of a `Window`.
        warm
            An earlier fit whose dual variables to begin with, if its file is there and sound.
        """
        if self._job is not None:
            raise ValueError(f"fit {self._job.number} is not over: poll or stop it before the next one")
        # The same places to import from as here, whatever was done to them.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
        self._job = RefitJob(
            FitFiles(self.folder, number),
            Task.of(number, warm, self.config),
            window,
            self.config.timeout,
            self._clock,
            self._command,
            environment,
        )
        self._at_exit = weakref.finalize(self, self._job.stop)

    def poll(self) -> Finished | None:
        """Return how the fit ended, once, or None if it has not ended or there is none."""
        return None if self._job is None else self._reported(self._job.finished)

    def wait(self, timeout: float | None = None) -> Finished:
        """Wait for the end of the fit; `TimeoutError` if that takes too long."""
        if self._job is None:
            raise ValueError("no fit is under way: start one first")
        finished = self._reported(self._job.wait(timeout))
        if finished is None:
            raise TimeoutError(
                f"fit {self.running} has not ended after {timeout} seconds: wait longer or stop it"
            )
        return finished

    def progress(self) -> dict[str, float] | None:
        """Return the last epoch of the fit under way: epoch, seconds, dual_objective, duality_gap."""
        job = self._job  # another thread may just take it
        if job is None:
            return None
        try:
            text = FitFiles(self.folder, job.number).progress.read_bytes()
        except OSError:
            return None
        return msgspec.json.decode(text, type=dict[str, float])

    def stop(self) -> None:
        """Kill the fit under way, if there is one, and remove its files."""
        if self._job is not None:
            self._job.stop()
            # It may have ended well just before: nobody heard of it.
            FitFiles(self.folder, self._job.number).remove(keep_model=False)
            self._drop()

    def load(self, number: int) -> HM3:
        """Return the model of an earlier fit, ready to predict; `SnapshotError` if it is gone or damaged."""
        return load_model(FitFiles(self.folder, number).model)

    def forget(self, numbers_to_keep: set[int]) -> None:
        """Remove the files of all other fits but the one under way, also what killed processes left."""
        kept = numbers_to_keep if self._job is None else {*numbers_to_keep, self._job.number}
        forget_files(self.folder, kept)

    def _reported(self, finished: Finished | None) -> Finished | None:
        if finished is not None:
            self._drop()
        return finished

    def _drop(self) -> None:
        self._job = None
        if self._at_exit is not None:
            self._at_exit.detach()
            self._at_exit = None
