"""The work behind `stream-hc demo`."""

import os
import select
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.box import SIMPLE_HEAD
from rich.table import Table

from stream_hc.cli import demo_stream as files
from stream_hc.cli.console import out, progress_bar, say, watched
from stream_hc.cli.demo_watch import DemoWatcher, EarlyFits
from stream_hc.cli.errors import Code, usage_error
from stream_hc.cli.judging import can_plot
from stream_hc.cli.live import LiveView
from stream_hc.cli.serving import served
from stream_hc.cli.signals import Stopper
from stream_hc.maxmargin import HM3
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import Config, HttpConfig, load_config
from stream_hc.runtime.contest import Fetch
from stream_hc.runtime.disk.lock import lock_folder
from stream_hc.runtime.disk.outlets import LOG
from stream_hc.runtime.events import Event, Standing
from stream_hc.runtime.job import Job
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.log import RunLog, read_log
from stream_hc.runtime.processor import Processor
from stream_hc.runtime.report import WORDS, plot_run, topics_of, write_report
from stream_hc.runtime.telemetry import Telemetry
from stream_hc.runtime.watcher import Watchers
from stream_hc.taxonomy import Taxonomy

__all__ = ["show_demo"]

REPORT, NUMBERS, PICTURE = "report.html", "report.json", "report.png"
# Where somebody watches:
PAUSE = 0.001  # seconds for each document
FIT_SECONDS = 4.0  # for the documents that come while a fit is under way; most fits take less


def show_demo(n_documents: int, output: str, seed: int, fast: bool, stay: bool = False) -> int:
    """Make a stream, run a job on it, write a report, and say what to try next; returns the exit code.

    The live page is there while the job runs, and with `stay` until somebody wants it to end.
    """
    folder = Path(output)
    _claim(folder)
    news = files.write_files(folder, n_documents, seed)
    config = load_config(str(folder / files.JOB), {}, {}).config
    out().print(f"{n_documents:,} synthetic news in {len(news.taxonomy)} topics, a few bad lines among them.")
    out().print("Half-way the topics change their words.")
    out().print(
        f"Labels come {files.delay_of(n_documents):,} documents after their document was predicted.\n"
    )
    with served(_http()) as telemetry:
        assert telemetry is not None
        job = _run(config, news.taxonomy, watched(output_is_stdout=False) and not fast, telemetry)
        code = _tell(job, folder)
        if stay and job is not None:
            say("the live page stays: press Ctrl-C to end")
            with Stopper() as stopper:
                select.select([stopper.descriptor], [], [])
    return code


def _http() -> HttpConfig:
    """Return where the page is: at the usual port if it is free."""
    config = HttpConfig(enabled=True)
    with socket.socket() as probe:
        is_free = probe.connect_ex((config.host, config.port)) != 0
    return config if is_free else msgspec.structs.replace(config, port=0)


def _tell(job: Job | None, folder: Path) -> int:
    """Write the report, and say what came out."""
    if job is None:
        again = f"{_program()} run --config {_quoted(folder / files.JOB)}"
        say(f"stopped: run the demo again, or let its job go on: {again}")
        return Code.INTERRUPTED
    log = read_log(folder / files.STATE / LOG)
    last = job.processor.contest.standing()
    log = RunLog((*(each for each in log.standings if each.documents < last.documents), last), log.events)
    _report(folder, log, job.processor)
    _print_models(last)
    _print_events(log.events)
    out().print(f"\nThe report: {folder / REPORT} (picture: {PICTURE}, numbers: {NUMBERS})", soft_wrap=True)
    out().print("\nWhat to try next:\n")
    for what, command in _commands(folder, last):
        out().print(f"  # {what}", soft_wrap=True)
        out().print(f"  {command}\n", soft_wrap=True)
    return Code.FINE


def _claim(folder: Path) -> None:
    """Make the folder; refuse one with somebody's files, since `stream.jsonl` there would be replaced."""
    if folder.exists() and not folder.is_dir():
        raise usage_error(f"{folder}: not a folder: choose another --output")
    job, state = folder / files.JOB, folder / files.STATE
    theirs = folder.is_dir() and any(folder.iterdir())
    if theirs and not (job.is_file() and job.read_bytes().startswith(files.FIRST_LINE.encode())):
        raise usage_error(f"{folder}: has files that are not of a demo: choose another --output")
    folder.mkdir(parents=True, exist_ok=True)
    if state.is_dir():
        lock = lock_folder(str(state))  # not under the feet of a job that runs
        shutil.rmtree(state)
        os.close(lock)
    for name in (files.PREDICTIONS, files.REJECTS, REPORT, NUMBERS, PICTURE):
        (folder / name).unlink(missing_ok=True)


def _run(config: Config, taxonomy: Taxonomy, slowly: bool, telemetry: Telemetry) -> Job | None:
    """Run the job; None if somebody stopped it."""
    _warm_up(config, taxonomy)
    fits = EarlyFits()
    fits.ended = telemetry.fitted

    def build(fetch: Fetch | None) -> Processor:
        return build_processor(config, taxonomy, None if fetch is None else fits.fetch)

    # Of two lines one is a document, the other has its labels.
    pauses = (PAUSE / 2, FIT_SECONDS / (2 * config.refit.lag))
    with Stopper() as stopper, LiveView(watched(output_is_stdout=False)) as view:
        watcher = DemoWatcher(view, fits, pauses if slowly else (0.0, 0.0))
        job = Job(config, build, stopper, Watchers(watcher, telemetry))
        job.run()
    return None if stopper.signal == signal.SIGINT else job


def _warm_up(config: Config, taxonomy: Taxonomy) -> None:
    """Compile what is not compiled yet, before anything moves: in a new installation it takes a minute."""
    texts, labels = ["a word", "another one"], [[taxonomy.nodes[0]], [taxonomy.nodes[1]]]
    told = "once, in a new installation"
    with progress_bar("compiling", 2, watched(output_is_stdout=False)) as update:
        update(0, told)
        processor = build_processor(config, taxonomy)
        records = [
            {"id": text, "text": text, "labels": names} for text, names in zip(texts, labels, strict=True)
        ]
        lines = [Line(number, msgspec.json.encode(record)) for number, record in enumerate(records, start=1)]
        processor.apply(processor.prepare(lines))
        update(1, told)
        model = HM3(taxonomy, costs=config.refit.costs, n_features=config.model.n_features)
        X = processor.vectorizer.transform(texts)
        model.fit(X, labels).predict_many(X, scores=True)


def _report(folder: Path, log: RunLog, processor: Processor) -> None:
    title = "A day at the newswire"
    write_report(log, folder / REPORT, title, processor.taxonomy, topics_of(processor.nodes))
    numbers = {"standing": log.standings[-1], "events": log.events}
    (folder / NUMBERS).write_bytes(msgspec.json.format(msgspec.json.encode(numbers), indent=2) + b"\n")
    if can_plot():
        plot_run(log, folder / PICTURE)
    else:
        say('no picture: pip install "stream_hc[plot]" and run the demo again')


def _print_models(last: Standing) -> None:
    table = Table("model", "scored", "H-loss", "lately", "", box=SIMPLE_HEAD)
    for column in table.columns[1:4]:
        column.justify = "right"
    served = [("what was served", last.served, "")]
    models = sorted(last.scores.items(), key=lambda item: (-item[1].scored, item[1].mean))
    rows = [*((name, score, "answers" if name == last.champion else "") for name, score in models), *served]
    for name, score, role in rows:
        losses = [f"{score.mean:.4f}", f"{score.recent:.4f}"] if score.scored else ["", ""]
        table.add_row(name, f"{score.scored:,}", *losses, role, style="bold" if role else "")
    out().print(table)


def _print_events(events: Sequence[Event]) -> None:
    """Write a line for each drift and swap, and one for each fit that says what became of its model."""
    became = {event.model: event.detail for event in events if event.what in ("dropped", "refit_failed")}
    for event in events:
        if event.what == "swap":
            became[event.model] = ", then ".join(filter(None, ("swapped in", became.get(event.model))))
    for event in events:
        said = event.detail if event.what == "drift" else ""
        if event.what in ("swap", "rollback"):
            said = f"{event.before} to {event.model}: {event.detail}"
        if event.what == "refit":
            said = f"{event.model}: {became.get(event.model, 'is being judged')}"
        if said:
            out().print(f"{event.labelled:>7,}  {WORDS[event.what]:<8}  {said}", soft_wrap=True)


def _commands(folder: Path, last: Standing) -> list[tuple[str, str]]:
    def at(name: str) -> str:
        return _quoted(folder / name)

    program, state = _program(), at(files.STATE)
    others = [
        (-score.scored, score.mean, name) for name, score in last.scores.items() if name != last.champion
    ]
    other = min(others)[2]  # the best of those that have been there all the time
    return [
        ("see who is in the race", f"{program} models {state}"),
        (
            "which words put a document where it is filed",
            f'{program} explain {state} --text "The champion serves an ace and wins the last set"',
        ),
        (f"let {other} answer until it is worse again", f"{program} promote {state} {other}"),
        (
            "1,000 more documents come in: the job goes on where it stood",
            f"cat {at(files.MORE)} >> {at(files.STREAM)} && {program} run --config {at(files.JOB)}",
        ),
    ]


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _program() -> str:
    """Return what to type for this very program: its name alone only where the shell would find it."""
    started = Path(sys.argv[0])
    if started.name != "stream-hc":
        return shlex.join([sys.executable, "-m", "stream_hc.cli"])
    found = shutil.which("stream-hc")
    if found is not None and Path(found).resolve() == started.resolve():
        return "stream-hc"
    return shlex.quote(os.path.relpath(started) if started.is_relative_to(Path.cwd()) else str(started))
