"""Run `stream-hc` as users do: another process, real files, pipes and terminals."""

import fcntl
import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Callable, Sequence
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
    "interrupted_on_terminal",
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
        shown = _until(ours)
        os.close(ours)
        return process.wait(60), shown.decode()


def interrupted_on_terminal(*args: object, when: str) -> tuple[int, str, Callable[[], list[int]]]:
    """Run a command on a terminal of its own and press Ctrl-C once what it shows matches.

    Return its code, what was shown, and a function for the processes it has left behind.
    """
    ours, theirs = pty.openpty()
    command = [*COMMAND, *map(str, args)]
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as process:
        os.close(theirs)
        shown = _until(ours, when.encode())
        os.write(ours, b"\x03")
        shown += _until(ours)
        os.close(ours)
        return process.wait(60), shown.decode(), lambda: _session(process.pid)


def _until(descriptor: int, pattern: bytes = b"(?!)") -> bytes:
    """Read what is shown until it matches, or until the other side is closed."""
    shown = b""
    try:
        while not re.search(pattern, shown) and (piece := os.read(descriptor, 65536)):
            shown += piece
    except OSError:  # how Linux says that the other side is closed
        pass
    return shown


def _session(number: int) -> list[int]:
    """Return the processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            session = int(stat.read_text().rpartition(")")[2].split()[3])
        except OSError:  # just gone
            continue
        if session == number:
            found.append(int(stat.parent.name))
    return found


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
