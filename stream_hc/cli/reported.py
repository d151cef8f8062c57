"""The work behind `stream-hc report`: what a source knows, brought on one page."""

import sys
import tempfile
from pathlib import Path

from stream_hc.cli.console import say
from stream_hc.cli.explain_words import names_of
from stream_hc.cli.finding import Found, find
from stream_hc.cli.inspecting import size
from stream_hc.cli.making import writable_folder
from stream_hc.explain import NotLinearError, strongest
from stream_hc.explain.views import taxonomy_of
from stream_hc.runtime.disk.outlets import LOG
from stream_hc.runtime.events import Standing
from stream_hc.runtime.log import RunLog, read_log
from stream_hc.runtime.report import Topics, render_report, topics_of, words_section
from stream_hc.runtime.report.page import name, page, tiles
from stream_hc.runtime.report.writing import FOOT, notes_section
from stream_hc.runtime.scoring import SERVED
from stream_hc.snapshot import SnapshotError
from stream_hc.snapshot.format import MAGIC

__all__ = ["write"]

MOST_TOPICS, MOST_WORDS = 60, 8  # in the table of words
NO_CLOCK = "How fast it went: no clock is read for the log. Telemetry knows (/metrics of a job that runs)."
NO_MISTAKES = "Single mistakes: a job that runs shows the latest of each topic on its live page."
NO_TOPICS = "How well each topic is filed: the snapshot is of a version that did not count it."


def write(source: Path, output: str, title: str | None) -> None:
    """Write the page and say where it is."""
    if output != "-":
        writable_folder(output)
    html = _page(source, source.resolve().name if title is None else title)
    if output == "-":
        sys.stdout.buffer.write(html.encode())
        return
    Path(output).write_text(html, encoding="utf-8")
    say(f"written: {output}, {size(len(html.encode()))}")


def _page(source: Path, title: str) -> str:
    if source.is_dir():
        return _of_folder(source, title)
    with open(source, "rb") as file:
        is_snapshot = file.read(len(MAGIC)) == MAGIC
    if not is_snapshot:
        log = read_log(source)
        notes = ["Topics and words: a log has only losses and events. Name the state folder of the job."]
        if len(log.standings) == 1:
            notes.append("Losses along the stream: the log has a single standing so far.")
        return render_report(log, title, notes=[*notes, NO_CLOCK])
    found = find(source)
    return _of_job(found, RunLog(), title) if found.parts else _of_model(found, title)


def _of_folder(folder: Path, title: str) -> str:
    log = folder / LOG
    return _of_job(find(folder), _read_while_written(log) if log.exists() else RunLog(), title)


def _read_while_written(path: Path) -> RunLog:
    """Read a log without its last line if that has not ended: the job may just be writing it."""
    whole, end, _ = path.read_bytes().rpartition(b"\n")
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(whole + end)
        copy.flush()
        return read_log(copy.name) if end else RunLog()


def _of_job(found: Found, log: RunLog, title: str) -> str:
    """Return the page of a job: its log, with the standing of the snapshot at the end if that is newer."""
    last = _standing(found)
    before = tuple(standing for standing in log.standings if standing.documents < last.documents)
    newer = log.standings[len(before) :]
    log = RunLog((*before, *(newer or (last,))), log.events)
    counts = found.parts.get("nodes")
    if counts is not None and getattr(counts, "n_nodes", None) != len(found.taxonomy):
        raise SnapshotError(f"{found.path}: counts other topics than those of its models")
    topics = None if counts is None else topics_of(counts)
    notes = [NO_CLOCK, NO_MISTAKES]
    if topics is None:
        notes.insert(0, NO_TOPICS)
    if len(log.standings) == 1:
        missing = (
            "Losses along the stream, and when models were swapped: name the state folder, which has the log."
        )
        notes.insert(0, missing)
    more, problem = _words(found, None if topics is None else topics[0])
    happened = None if log.events else found.parts["progress"].happened
    return render_report(log, title, found.taxonomy, topics, more, [*notes, *problem], happened)


def _standing(found: Found) -> Standing:
    parts, progress = found.parts, found.parts["progress"]
    board, champion = parts["scores"], found.champion
    versions = progress.fitted_versions
    version = versions[champion] if champion in versions else found.models[champion].n_learned
    return Standing(
        progress.documents,
        progress.labelled,
        champion,
        version,
        board.score(SERVED),
        {model: board.score(model) for model in sorted(found.models)},
        board.by_depth.tolist(),
        *parts["waiting"].census(),
    )


def _of_model(found: Found, title: str) -> str:
    """Return the page of a single model: what it is, and its words."""
    model, taxonomy = found.models[found.champion], found.taxonomy
    learned, held = getattr(model, "n_learned", None), getattr(model, "nbytes", None)
    numbers = [
        ("Model", found.champion, type(model).__name__),
        ("Learned", "—" if learned is None else f"{learned:,}", "labelled documents"),
        ("Topics", f"{len(taxonomy):,}", f"on {int(taxonomy.depth.max(initial=-1)) + 1} levels"),
        ("Weights", "—" if held is None else size(held), f"{model.n_features:,} columns"),
    ]
    notes = [
        "Losses, topics, swaps, what waits: a model file has the model alone; a job with --state keeps them."
    ]
    more, problem = _words(found, None)
    parts = [tiles(numbers), *more, *notes_section([*notes, *problem])]
    return page(title, f"What {name(found.champion)} has learned.", parts, FOOT)


def _words(found: Found, topics: Topics | None) -> tuple[list[str], list[str]]:
    """Return the section on the words of the champion, or why there is none."""
    model = found.models[found.champion]
    taxonomy = taxonomy_of(model)
    if found.vectorizer is None:
        return [], ["Words: the model was saved without its vectorizer."]
    nodes = sorted(range(len(taxonomy)), key=lambda node: 0 if topics is None else -int(topics.support[node]))
    words = {}
    try:
        for node in sorted(nodes[:MOST_TOPICS]):
            pairs = strongest(model, taxonomy.nodes[node], MOST_WORDS)
            known = names_of([column for column, _ in pairs], found.vectorizer)
            if pairs:
                words[taxonomy.nodes[node]] = [
                    (word, weight) for word, (_, weight) in zip(known, pairs, strict=True)
                ]
    except NotLinearError as error:
        return [], [f"Words: {error}."]
    return [words_section(words, found.champion, max(0, len(taxonomy) - MOST_TOPICS))], []
