"""A server in a process of its own: it dies with the one who started it, and says why it does not come up."""

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["BrokerError", "Process", "answers", "why"]

# Runs the command in its own place, killed by the kernel when the thread that started it ends.
LAUNCHER = """
import os, sys
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)  # length, key, version, correlation, no client id


class BrokerError(RuntimeError):
    """A broker does not do what it is told; the first line says why, the others are the end of its log."""


class Process:
    """A command, started and ended, with its output in a file.

    The thread that starts it has to live as long as it is needed.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name, self.command, self.log = name, list(command), log
        self._begin = 0
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        """Whether it runs, or is paused."""
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int:
        """Its number; an error when it does not run."""
        if self._child is None or not self.alive:
            raise BrokerError(f"{self.name} is not running")
        return self._child.pid

    def start(self) -> None:
        """Start it; the output is added to the log."""
        if self.alive:
            raise BrokerError(f"{self.name} is running already, as process {self.pid}")
        launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid()), *self.command]
        with self.log.open("ab") as output:
            self._begin = output.tell()
            self._child = subprocess.Popen(
                launcher,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_it_answers(self, port: int, seconds: float) -> None:
        """Return when requests are answered; say why they are not, after it ended or after some seconds."""
        end = time.monotonic() + seconds
        while not answers(port):
            if self._child is not None and not self.alive:
                raise BrokerError(why(f"{self.name} ended with {self._child.returncode}", self.output()))
            if time.monotonic() > end:
                raise BrokerError(why(f"{self.name} does not answer after {seconds:g} s", self.output()))
            time.sleep(0.03)

    def output(self) -> str:
        """Return what it has written since its last start."""
        with self.log.open("rb") as file:
            file.seek(self._begin)
            return file.read().decode(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def end(self, seconds: float) -> None:
        """Ask it to end, and kill it if it has not after some seconds; do nothing if it does not run."""
        if self._child is None:
            return
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self._child.terminate()
                self._child.send_signal(signal.SIGCONT)
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it, as a power cut would; do nothing if it does not run."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()


def answers(port: int, seconds: float = 1.0) -> bool:
    """Ask the broker at this port of loopback which requests it knows; return whether it answered."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
            connection.sendall(API_VERSIONS)
            return len(connection.recv(8)) == 8
    except OSError:
        return False


def why(what: str, output: str, lines: int = 12) -> str:
    """Return one line that says what happened and the likely reason, and the end of the output below it."""
    written = [line.rstrip() for line in output.splitlines() if line.strip() and not line.startswith("\tat ")]
    thrown = re.findall(r"(?:\w+\.)+\w*(?:Exception|Error): .+", "\n".join(written))
    errors = [line for line in written if re.search(r"\b(ERROR|FATAL|error)\b", line)]
    reason = (thrown or errors or written or ["it wrote nothing"])[-1]
    return "\n".join([f"{what}: {reason}", *(f"    {line}" for line in written[-lines:])])
