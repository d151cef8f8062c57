"""One fit in another process, looked after by a thread: it saves the window, watches, and loads the model."""

import _thread
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from stream_hc import snapshot
from stream_hc.maxmargin import HM3
from stream_hc.runtime.refit.files import FitFiles, Task
from stream_hc.runtime.refit.outcome import Finished, Outcome, load_model, outcome_of
from stream_hc.snapshot import Snapshotable

__all__ = ["RefitJob"]

LOOK_SECONDS = 0.1  # how often the clock is looked at
PIPE_BYTES, LAST_BYTES = 2**16, 4096  # of what the worker says: read at a time, and kept
LONGEST_PROBLEM = 500  # characters


class RefitJob:
    """A fit in a spawned process. It is under way from the beginning on; `finished` says when it is over.

    Parameters
    ----------
    files
        Where everything goes.
    task
        What the worker is told.
    window
        The documents: saved by the thread, so it must not change any more.
    timeout
        The process is killed after so many seconds.
    clock
        Tells the seconds.
    command
        What to run; the job file becomes its last argument.
    environment
        Variables of the process.
    """

    def __init__(
        self,
        files: FitFiles,
        task: Task,
        window: Snapshotable,
        timeout: float,
        clock: Callable[[], float],
        command: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        self.number = files.number
        self.finished: Finished | None = None
        self._files = files
        self._task = task
        self._window = {"window": window}
        self._clock = clock
        self._began = clock()
        self._deadline = self._began + timeout
        self._command = (*command, str(files.job))
        self._environment = dict(environment)
        self._lock = threading.Lock()  # held while a process begins, is killed or is reaped
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False
        self._is_over = threading.Event()
        # `Thread.start` would wait until the thread runs, which takes its time while another one is busy.
        # Like a daemon, nobody waits for it at the end of the interpreter: `stop` is called instead.
        _thread.start_new_thread(self._run, ())

    def wait(self, timeout: float | None) -> Finished | None:
        """Return how it ended, or None if that takes longer than `timeout` seconds."""
        self._is_over.wait(timeout)
        return self.finished

    def stop(self) -> None:
        """Kill the process and remove all files, unless it is over; return when that is done."""
        with self._lock:
            self._is_stopped = True
        self._kill()
        self._is_over.wait()

    def _run(self) -> None:
        model: HM3 | None = None
        outcome: Outcome = "failed"  # until something better is known
        problem = ""
        try:
            self._files.remove(keep_model=False)  # of a fit with this number that was not heard to its end
            snapshot.save(self._files.window, self._window)
            self._window = {}  # its rows need not stay in memory
            self._files.job.write_bytes(msgspec.json.encode(self._task))
            ended, problem = self._watch(self._begin())
            if ended == "done":
                model = load_model(self._files.model)
            outcome = ended
        except Exception as error:  # whatever it is, the stream goes on without this model
            problem = str(error) or type(error).__name__
        with suppress(OSError):  # what stays is forgotten later
            self._files.remove(keep_model=model is not None and not self._is_stopped)
        problem = " ".join(problem.split())[:LONGEST_PROBLEM]
        self.finished = Finished(self.number, outcome, self._clock() - self._began, model, problem)
        self._is_over.set()

    def _begin(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._is_stopped:
                raise InterruptedError("stopped before it began")
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,  # nothing is written: its end tells the worker that it is alone
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=self._environment,
                start_new_session=True,  # Ctrl-C is for the stream alone, and a kill reaches children, too
            )
        return self._process

    def _watch(self, process: "subprocess.Popen[bytes]") -> tuple[Outcome, str]:
        """Wait for the process, and kill it when its time is up; return how it ended, and why."""
        words = _LastWords(process)
        is_late = False
        with process:
            while not self._has_ended():
                words.listen(LOOK_SECONDS)
                if not is_late and self._clock() >= self._deadline:
                    is_late = True
                    self._kill()
            words.listen(0.0)
        if is_late:
            return "timeout", f"killed after {self._deadline - self._began:g} seconds: set a longer timeout"
        return outcome_of(process.returncode, words.line)

    def _has_ended(self) -> bool:
        with self._lock:
            return self._process is None or self._process.poll() is not None

    def _kill(self) -> None:
        with self._lock:
            # Once it is reaped its number may belong to somebody else.
            if self._process is not None and self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)


class _LastWords:
    """The end of what a process says on standard error: of any amount only a little is kept."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stderr is not None
        self._stream = process.stderr
        self._ready = select.poll()  # unlike select.select it takes any descriptor
        self._ready.register(self._stream, select.POLLIN)
        self._is_open = True
        self._said = b""

    @property
    def line(self) -> str:
        """The last line that is not empty."""
        lines = self._said.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def listen(self, seconds: float) -> None:
        """Take what there is, and wait so long if there is nothing."""
        if not self._is_open:
            time.sleep(seconds)
        elif self._ready.poll(1000.0 * seconds):
            more = os.read(self._stream.fileno(), PIPE_BYTES)
            self._said = (self._said + more)[-LAST_BYTES:]
            self._is_open = bool(more)
