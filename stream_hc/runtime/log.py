"""The log of a job: one line of JSON for each event and each standing."""

import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from stream_hc.runtime.events import Event, Standing
from stream_hc.runtime.jsonl import Line, SourceError, open_lines

__all__ = ["LogError", "RunLog", "encode_line", "read_log"]

MAX_LINE_BYTES = 2**24  # a standing names every model and every reason

Entry = TypeVar("Entry", Event, Standing)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event | Standing] = msgspec.json.Decoder(Event | Standing)


class LogError(SourceError):
    """A file that is not the log of a job; the message names the line."""


@dataclass(frozen=True)
class RunLog:
    """What a job has written about itself, oldest first."""

    standings: tuple[Standing, ...] = ()
    events: tuple[Event, ...] = ()


def encode_line(line: Event | Standing) -> bytes:
    r"""Return a line of the log, with its newline.

    >>> encode_line(Event("drift", documents=90, labelled=60))
    b'{"line":"event","what":"drift","documents":90,"labelled":60,"model":"","before":"","detail":""}\n'
    """
    if isinstance(line, Standing):
        scores = [line.served, *line.scores.values()]
        numbers = [number for score in scores for number in (score.mean, score.recent)] + line.by_depth
        if not all(map(math.isfinite, numbers)):
            # JSON has no word for it, and the whole log could not be read any more.
            raise ValueError(f"a standing after {line.documents} documents with a loss that is not finite")
    return _encoder.encode(line) + b"\n"


def read_log(path: str | Path) -> RunLog:
    """Read a log; `LogError` names the first line that does not belong into one.

    A job that was killed goes on from an earlier document and writes about the same documents again: what it
    wrote last counts.
    """
    standings: list[Standing] = []
    events: list[Event] = []
    with open_lines(str(path), MAX_LINE_BYTES) as batches:
        for batch in batches:
            for line in batch:
                entry = _decode(str(path), line)
                if isinstance(entry, Standing):
                    _append(standings, entry)
                else:
                    _append(events, entry)
    if not standings and not events:
        raise LogError(f"{path}: an empty log: nothing was written yet")
    return RunLog(tuple(standings), tuple(events))


def _append(entries: list[Entry], entry: Entry) -> None:
    if entries and entry.documents < entries[-1].documents:
        while entries and entries[-1].documents >= entry.documents:
            entries.pop()
    if entry not in itertools.takewhile(lambda e: e.documents == entry.documents, reversed(entries)):
        entries.append(entry)


def _decode(path: str, line: Line) -> Event | Standing:
    wrong = f"{path}: line {line.number} is not of the log of a job"
    if line.too_long:
        raise LogError(f"{wrong}: more than {MAX_LINE_BYTES} bytes: name the log.jsonl of a job")
    try:
        return _decoder.decode(line.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        detail = " ".join(str(error).split())[:200]
        raise LogError(f"{wrong}: {detail}: delete the line if the job was killed while writing") from None
