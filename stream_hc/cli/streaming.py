"""The loop behind `stream-hc run`: read what is there, answer it, write, save; then wait for more."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from stream_hc import snapshot
from stream_hc.cli.console import clean, progress_bar, say, watched
from stream_hc.cli.errors import Code, usage_error
from stream_hc.cli.making import Wanted, load_filer, make_filer, writable_folder
from stream_hc.cli.signals import Stopper
from stream_hc.cli.sinks import Sink, Tally, written
from stream_hc.runtime import Document, Filed, Filer, Line, RecordError, parse_document
from stream_hc.runtime.jsonl import LineReader, open_lines
from stream_hc.runtime.records import MAX_LINE_BYTES

__all__ = ["Job", "stream"]

FileAll = Callable[[Iterable[list[Document]]], Iterator[Filed]]


@dataclass(frozen=True)
class Job:
    """What `stream-hc run` was asked to do; the names are those of its options."""

    source: str
    wanted: Wanted
    output: str
    snapshot: str | None
    snapshot_every: int | None
    rejects: str | None
    limit: int | None
    quiet: bool


class Batch(NamedTuple):
    """Some lines, and what was read in each."""

    lines: list[Line]
    items: list[Document | RecordError]


def stream(job: Job) -> int:
    """Do the job and return the exit code."""
    _check(job)
    goes_on = job.snapshot is not None and os.path.exists(job.snapshot)
    filer, seen = _open_filer(job, goes_on)
    tally = Tally()
    with ExitStack() as stack:
        stopper = stack.enter_context(Stopper())
        reader = stack.enter_context(open_lines(job.source, wait=stopper.wait))
        sink = Sink(
            stack.enter_context(written(job.output, goes_on)),
            None if job.rejects is None else stack.enter_context(written(job.rejects, goes_on)),
            "standard input" if job.source == "-" else job.source,
        )
        name = "reading" if job.source == "-" else os.path.basename(job.source)
        bar = progress_bar(clean(name)[:16], reader.size, watched(job.output == "-"))
        update = stack.enter_context(bar)
        pieces = _pieces(reader, job)
        for first in pieces:
            # A piece is read while the one before is learned, except across a snapshot and from a pipe: there
            # no answer may wait for the next question.
            file_all = filer.file_all if reader.size is not None else partial(map, filer.file)
            for batch, filed in _filed(file_all, _until_snapshot(first, pieces, job)):
                _write(batch, filed, sink, tally)
                update(reader.position(), tally.remark())
            if job.snapshot and job.snapshot_every and tally.lines % job.snapshot_every == 0:
                _save(job.snapshot, filer, seen + tally.documents)
        sink.finish()
        if job.snapshot:  # still inside: a second signal may interrupt the saving, the first may not
            _save(job.snapshot, filer, seen + tally.documents)
    if not job.quiet:
        say(tally.summary())
    if stopper.signal == signal.SIGINT:
        return Code.INTERRUPTED
    return Code.REJECTED if tally.rejected and job.rejects is None else Code.FINE


def _check(job: Job) -> None:
    """Refuse what would fail at the end, or destroy something, before anything begins."""
    if job.snapshot is None and job.snapshot_every is not None:
        raise usage_error("--snapshot-every needs --snapshot")
    files = {
        "INPUT": job.source,
        "--taxonomy": job.wanted.taxonomy,
        "--output": job.output,
        "--rejects": job.rejects,
        "--snapshot": job.snapshot,
    }
    used: dict[str, str] = {}
    for option, path in files.items():
        if path is None or path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
            continue
        real = os.path.realpath(path)
        if real in used:
            raise usage_error(f"{used[real]} and {option} are the same file: {path}")
        used[real] = option
    for path in (job.output, job.rejects, job.snapshot):
        if path is not None and path != "-":
            writable_folder(path)
    if job.rejects == "-":
        raise usage_error("--rejects must be a file: standard output has the predictions")


def _open_filer(job: Job, goes_on: bool) -> tuple[Filer, int]:
    """Return the filer, and how many documents it had seen before this run."""
    if job.snapshot is None or not goes_on:
        return make_filer(job.wanted), 0
    filer = load_filer(job.snapshot, job.wanted)
    seen = snapshot.inspect(job.snapshot).extra.get("documents", 0)
    if not job.quiet:
        say(f"continuing from {job.snapshot}: {filer.model}, {filer.version} documents learned")
    return filer, seen if isinstance(seen, int) else 0


def _pieces(reader: LineReader, job: Job) -> Iterator[list[Line]]:
    """Cut the batches where a snapshot is due and where the limit is reached."""
    count, every, limit = 0, job.snapshot_every, job.limit
    for batch in reader:
        while batch:
            ends = [len(batch)]
            if every is not None:
                ends.append(every - count % every)
            if limit is not None:
                ends.append(limit - count)
            piece, batch = batch[: min(ends)], batch[min(ends) :]
            count += len(piece)
            yield piece
            if count == limit:
                return


def _until_snapshot(first: list[Line], pieces: Iterator[list[Line]], job: Job) -> Iterator[list[Line]]:
    """Yield pieces up to the one that ends where a snapshot is due."""
    count = len(first)
    yield first
    while job.snapshot_every is None or count < job.snapshot_every:
        piece = next(pieces, None)
        if piece is None:
            return
        count += len(piece)
        yield piece


def _filed(file_all: FileAll, pieces: Iterable[list[Line]]) -> Iterator[tuple[Batch, Filed]]:
    """Parse and answer one piece after the other."""
    parsed: deque[Batch] = deque()

    def documents() -> Iterator[list[Document]]:
        for lines in pieces:
            items = [_parse(line) for line in lines]
            parsed.append(Batch(lines, items))
            yield [item for item in items if isinstance(item, Document)]

    for filed in file_all(documents()):
        yield parsed.popleft(), filed


def _write(batch: Batch, filed: Filed, sink: Sink, tally: Tally) -> None:
    """Count and write the answers and the rejected lines of a piece."""
    tally.lines += len(batch.lines)
    tally.documents += len(filed.answers)
    tally.labelled += filed.n_labelled
    tally.h_loss += filed.h_loss
    tally.zero_one += filed.zero_one
    if len(filed.answers) < len(batch.lines):
        place = 0
        for line, item in zip(batch.lines, batch.items, strict=True):
            error: RecordError | None
            if isinstance(item, Document):
                error, place = filed.errors.get(place), place + 1
            else:
                error = item
            if error is not None:
                tally.rejected += 1
                sink.reject(line, error)
    sink.write(filed.answers.json_lines())


def _parse(line: Line) -> Document | RecordError:
    try:
        if line.too_long:
            raise RecordError(
                "line_too_long", f"more than {MAX_LINE_BYTES} bytes: split or shorten the document"
            )
        return parse_document(line.data)
    except RecordError as error:
        return error


def _save(path: str, filer: Filer, documents: int) -> None:
    snapshot.save(path, filer.parts(), extra={"documents": documents, "learner": filer.model})
