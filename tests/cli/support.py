"""Run `stream-hc` as users do: another process, real files, pipes and terminals."""

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from stream_hc.datasets import Dataset

__all__ = [
    "COMMAND",
    "ROOT",
    "Result",
    "call",
    "call_all",
    "environment",
    "lines_of",
    "on_terminal",
    "start",
    "write_docs",
]

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "stream_hc.cli"]
Result = subprocess.CompletedProcess[bytes]


def environment(**extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("STREAM_HC", "COV_"))}
    kept.pop("FORCE_COLOR", None)
    path = os.pathsep.join([*filter(None, [extra.pop("plugins", "")]), str(ROOT)])
    return {**kept, "PYTHONPATH": path, "COLUMNS": "80", "TERM": "xterm", **extra}


def call(
    *args: str | Path, stdin: bytes = b"", cwd: Path | None = None, patience: float = 120, **extra: str
) -> Result:
    """Run a command to its end."""
    command = [*COMMAND, *map(str, args)]
    how = {"capture_output": True, "timeout": patience, "cwd": cwd, "env": environment(**extra)}
    return subprocess.run(command, input=stdin, check=False, **how)


def call_all(*commands: Sequence[str | Path], cwd: Path | None = None) -> list[Result]:
    """Run several commands, two at a time: most of their time is spent in imports."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda args: call(*args, cwd=cwd), commands))


def start(*args: str | Path, **extra: str) -> subprocess.Popen[bytes]:
    """Start a command with pipes to talk through."""
    command = [*COMMAND, *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env=environment(**extra)
    )


def on_terminal(*args: str | Path, stdout_too: bool) -> tuple[int, str]:
    """Run a command with standard error on a terminal of 80 columns; return its code and what was shown."""
    ours, theirs = pty.openpty()
    stdout = theirs if stdout_too else subprocess.DEVNULL
    command = [*COMMAND, *map(str, args)]
    with subprocess.Popen(command, stdin=theirs, stdout=stdout, stderr=theirs, env=environment()) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # how Linux says that the other side is closed
            pass
        os.close(ours)
        return process.wait(60), shown.decode()


def write_docs(path: Path, data: Dataset, labelled: bool = True) -> bytes:
    """Write a data set as JSON lines."""
    records = list(data.records())
    if not labelled:
        for record in records:
            del record["labels"]
    content = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
    path.write_bytes(content)
    return content


def lines_of(data: bytes) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in data.splitlines()]
