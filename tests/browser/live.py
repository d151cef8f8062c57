"""A job that runs while somebody looks: `stream-hc run --http` on a file that grows bit by bit."""

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.conftest import ROOT

__all__ = ["LiveJob"]


class LiveJob:
    """A real job, in a process of its own.

    Parameters
    ----------
    folder
        Has `stream.jsonl`, whose lines come bit by bit, and the taxonomy.
    options
        Of `stream-hc run`.
    first
        So many lines are there at the beginning.
    pause
        Seconds between two times twenty lines.
    """

    def __init__(self, folder: Path, *options: str, first: int = 200, pause: float = 0.2) -> None:
        self._folder, self._options, self._pause = folder, options, pause
        self._lines = iter((folder / "stream.jsonl").read_bytes().splitlines(keepends=True))
        self._growing = folder / "growing.jsonl"
        self._growing.write_bytes(b"".join(itertools.islice(self._lines, first)))
        self._over, self._flows = threading.Event(), threading.Event()
        self._flows.set()

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "stream_hc.cli", "run", str(self._growing), "--follow"]
        self._process = subprocess.Popen(
            [*command, "--http", "0", "--output", "predictions.jsonl", *self._options],
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self.url = next(self._addresses())
        self._threads = [threading.Thread(target=work) for work in (self._listen, self._feed)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        for thread in self._threads:
            thread.join(60)
        assert self._process.stderr is not None
        self._process.stderr.close()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no more lines come for a while, so that two looks see the same."""
        self._flows.clear()
        time.sleep(2 * self._pause + 0.5)
        try:
            yield
        finally:
            self._flows.set()

    def end(self) -> None:
        """End the job; whoever looks on is left alone."""
        self._over.set()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)

    def _addresses(self) -> Iterator[str]:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said.append(line)
            found = re.search(r"live page: (http\S+)", line)
            if found:
                yield found[1]
        raise AssertionError("".join(self.said))

    def _listen(self) -> None:
        assert self._process.stderr is not None
        self.said.extend(self._process.stderr)

    def _feed(self) -> None:
        with self._growing.open("ab", buffering=0) as file:
            while not self._over.is_set():
                if self._flows.is_set():
                    file.write(b"".join(itertools.islice(self._lines, 20)))
                time.sleep(self._pause)
