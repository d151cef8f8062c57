"""Where answers and rejected lines of `stream-hc run` go, and what is counted on the way."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO

import msgspec

from stream_hc.cli.console import say
from stream_hc.cli.errors import CliError, Code
from stream_hc.runtime import Line, RecordError, Reject

__all__ = ["Sink", "Tally", "written"]

SHOWN_REJECTS = 10


@dataclass
class Tally:
    """What has happened so far."""

    lines: int = 0
    documents: int = 0
    labelled: int = 0
    rejected: int = 0
    h_loss: float = 0.0
    zero_one: float = 0.0
    began: float = field(default_factory=time.perf_counter)

    def remark(self) -> str:
        """Say it in a few words, for the progress bar."""
        loss = f", H-loss {self.h_loss / self.labelled:.3f}" if self.labelled else ""
        return f"{self.documents:,} docs{loss}, {self.rate():,.0f}/s"

    def summary(self) -> str:
        """Say it in one line."""
        losses = "no losses: no labels"
        if self.labelled:
            h, wrong = self.h_loss / self.labelled, self.zero_one / self.labelled
            losses = f"H-loss {h:.4f}, zero-one {wrong:.4f}"
        counts = f"{self.documents} documents, {self.labelled} labelled, {self.rejected} rejected"
        return f"{counts}; {losses}; {self.rate():.0f} documents/s"

    def rate(self) -> float:
        """Documents per second."""
        return self.documents / max(time.perf_counter() - self.began, 1e-9)


class Sink:
    """Where answers and rejected lines go."""

    def __init__(self, output: BinaryIO, rejects: BinaryIO | None, source: str) -> None:
        self._output = output
        self._rejects = rejects
        self._source = source
        self._encoder = msgspec.json.Encoder()
        self._rejected = 0

    def write(self, answers: bytes) -> None:
        """Write the answers of a batch; afterwards nothing is left in a buffer."""
        try:
            self._output.write(answers)
            self._output.flush()
        except BrokenPipeError:
            raise
        except OSError as error:  # a full disk: the system does not say which file it was
            name = "standard output" if self._output is sys.stdout.buffer else self._output.name
            raise CliError(f"{name}: cannot write: {error.strerror}", Code.BAD_INPUT) from error
        if self._rejects is not None:
            self._rejects.flush()

    def reject(self, line: Line, error: RecordError) -> None:
        """Report a line, the first ones to the user, and put it aside."""
        self._rejected += 1
        if self._rejected <= SHOWN_REJECTS:
            say(f"{self._source}:{line.number}: {error.reason}: {error.detail}")
        if self._rejects is not None:
            text = line.data.decode(errors="backslashreplace")
            record = Reject(line.number, error.reason, error.detail, text, line.too_long)
            self._rejects.write(self._encoder.encode(record) + b"\n")

    def finish(self) -> None:
        """Say how many rejected lines were not shown."""
        if self._rejected > SHOWN_REJECTS:
            say(f"{self._source}: {self._rejected - SHOWN_REJECTS} more rejected lines not shown")


@contextmanager
def written(path: str, append: bool) -> Iterator[BinaryIO]:
    """Open a file to write to, behind what is there or instead of it; `-` is standard output."""
    if path == "-":
        if sys.stdout is None:
            raise CliError("standard output is closed: open it, or use --output FILE", Code.BAD_INPUT)
        yield sys.stdout.buffer
        return
    file = open(path, "ab" if append else "wb")  # noqa: SIM115 - closed below, twice differently
    try:
        yield file
    except BaseException:
        with suppress(OSError):  # what could not be written is what the first error is about
            file.close()
        raise
    file.close()
