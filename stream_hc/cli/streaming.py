"""The loop behind `stream-hc run`: read what is there, answer it, write, save; then wait for more."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from stream_hc import snapshot
from stream_hc.cli.console import clean, progress_bar, say, watched
from stream_hc.cli.errors import Code, usage_error
from stream_hc.cli.making import Wanted, load_filer, make_filer, writable_folder
from stream_hc.cli.signals import Stopper
from stream_hc.cli.sinks import Sink, Tally, written
from stream_hc.runtime import Document, Filer, Line, Prediction, RecordError, parse_document
from stream_hc.runtime.jsonl import LineReader, open_lines
from stream_hc.runtime.records import MAX_LINE_BYTES

__all__ = ["Job", "stream"]


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
        for piece in _pieces(reader, job):
            _file(filer, piece, sink, tally)
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


def _file(filer: Filer, lines: list[Line], sink: Sink, tally: Tally) -> None:
    """Answer some lines and write the answers."""
    parsed = [_parse(line) for line in lines]
    filed = filer.file([item for item in parsed if isinstance(item, Document)])
    answers = iter(filed.outcomes)
    outcomes = [next(answers) if isinstance(item, Document) else item for item in parsed]
    predictions = [outcome for outcome in outcomes if isinstance(outcome, Prediction)]
    tally.lines += len(lines)
    tally.documents += len(predictions)
    tally.labelled += filed.n_labelled
    tally.h_loss += filed.h_loss
    tally.zero_one += filed.zero_one
    for line, outcome in zip(lines, outcomes, strict=True):
        if isinstance(outcome, RecordError):
            tally.rejected += 1
            sink.reject(line, outcome)
    sink.write(predictions)


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
