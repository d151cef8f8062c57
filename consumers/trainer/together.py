"""All trainers of a machine under one command: a process for each shard; they end together."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from stream_hc.cli.errors import CliError, Code
from stream_hc.runtime.watcher import StopRequest

__all__ = ["ENDS_WITH_INPUT", "run_together"]

ENDS_WITH_INPUT = "--ends-with-input"  # hidden: the trainer ends when its standard input does
LOOK_SECONDS = 0.2
PATIENCE = 120.0  # seconds for the others to save what they know


class _Trainer(NamedTuple):
    number: int
    process: "subprocess.Popen[bytes]"


def run_together(arguments: Sequence[Sequence[str]], stop: StopRequest, note: Callable[[str], None]) -> None:
    """Run one command of `stream-hc` for each shard until all have ended.

    Somebody who starts this again is needed where one of them fails: the others are stopped then, each with
    a snapshot. None outlives this process, however it ends.
    """
    trainers = [_Trainer(number, _begin(each)) for number, each in enumerate(arguments)]
    failed: _Trainer | None = None
    asked = 0.0
    try:
        while any(trainer.process.poll() is None for trainer in trainers):
            broken = (each for each in trainers if each.process.poll() not in (None, 0))
            failed = failed or next(broken, None)
            if (failed is not None or stop.requested) and not asked:
                asked = time.monotonic()
                if failed is not None and not stop.requested:
                    note(f"the trainer of shard {failed.number} has ended: the others save and end, too")
                for trainer in trainers:
                    trainer.process.terminate()
            if asked and time.monotonic() > asked + PATIENCE:
                break
            time.sleep(LOOK_SECONDS)
    finally:
        for trainer in trainers:
            trainer.process.kill()
            trainer.process.wait()
    codes = [trainer.process.returncode for trainer in trainers]
    failed = failed or next((each for each in trainers if each.process.returncode != 0), None)
    if failed is not None and not (stop.requested and all(code <= 0 for code in codes)):
        code = failed.process.returncode
        why = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise CliError(f"the trainer of shard {failed.number} ended with {why}: start it again", Code.CHILD)


def _begin(arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "stream_hc.cli", *arguments, ENDS_WITH_INPUT]
    # Nothing is written to its input: its end tells that this process is gone. A group of its own, since
    # Ctrl-C is for this process, which passes it on.
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
