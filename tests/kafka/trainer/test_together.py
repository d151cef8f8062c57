"""Processes that end together, whichever of them ends first and however."""

import signal
import subprocess
import sys
import time

import pytest

from consumers.trainer import together
from stream_hc.cli.errors import CliError, Code

SLEEPS = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    "print(flush=True)\n"
    "time.sleep(60)"
)


class Stop:
    """Is asked whether to stop; says yes after some time."""

    def __init__(self, after=1e9):
        self._at = time.monotonic() + after
        self.descriptor = None

    @property
    def requested(self):
        return time.monotonic() >= self._at


@pytest.fixture
def begun(monkeypatch):
    """Let scripts stand for trainers; return their processes."""
    made = []

    def begin(arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", arguments[0]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        process.stdout.readline()  # it is ready to be told
        made.append(process)
        return process

    monkeypatch.setattr(together, "_begin", begin)
    yield made
    for process in made:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_they_are_told_to_stop_and_waited_for(begun):
    notes = []
    together.run_together([[SLEEPS], [SLEEPS]], Stop(0.3), notes.append)
    assert [process.returncode for process in begun] == [0, 0]
    assert notes == []


def test_all_may_end_by_themselves(begun):
    together.run_together([["print()"], ["print()"]], Stop(), pytest.fail)
    assert [process.returncode for process in begun] == [0, 0]


def test_one_that_fails_ends_the_others(begun):
    notes = []
    with pytest.raises(CliError, match="shard 1 ended with exit code 3: start it again") as error:
        together.run_together([[SLEEPS], ["print(); import sys; sys.exit(3)"]], Stop(), notes.append)
    assert error.value.code == Code.CHILD
    assert begun[0].returncode == 0
    assert notes == ["the trainer of shard 1 has ended: the others save and end, too"]


def test_one_that_is_killed_is_named(begun):
    script = f"import os; print(flush=True); os.kill(os.getpid(), {signal.SIGKILL})"
    with pytest.raises(CliError, match="shard 0 ended with signal 9"):
        together.run_together([[script], [SLEEPS]], Stop(), [].append)


def test_who_does_not_end_is_killed(begun, monkeypatch):
    monkeypatch.setattr(together, "PATIENCE", 0.5)
    deaf = SLEEPS.replace("lambda *_: sys.exit(0)", "signal.SIG_IGN")
    together.run_together([[deaf]], Stop(0.2), [].append)
    assert begun[0].returncode == -signal.SIGKILL


def test_the_real_command_takes_the_option():

    process = together._begin(["kafka", "train", "--shards", "2", "--help"])
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0
