"""The work behind `stream-hc demo`."""

import os
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from stream_hc import snapshot
from stream_hc.cli.console import out, say
from stream_hc.cli.errors import usage_error
from stream_hc.cli.judging import Trial, can_plot, draw, print_table, run_all
from stream_hc.cli.making import make_learner
from stream_hc.datasets import Dataset, make_news
from stream_hc.evaluate import Comparison
from stream_hc.learners import QUICK
from stream_hc.runtime import Document, Filer

__all__ = ["show_demo"]

SAMPLE = 1_000
MARK = "report.json"  # a folder with this file and the snapshot is an earlier demo's, and may be overwritten
BEST = "best.snap"


def show_demo(n_documents: int, output: str, seed: int) -> None:
    """Make the stream, compare the learners on it, write the files and say what to try next."""
    folder = Path(output)
    _claim(folder)
    delay, window = max(1, n_documents // 50), max(50, n_documents // 20)
    news = make_news(n_documents, seed, "sudden")
    topics = f"{n_documents:,} synthetic news in {len(news.taxonomy)} topics"
    out().print(f"{topics}. Half-way the topics change their words.")
    out().print(f"Every label arrives {delay:,} documents after its document was predicted.\n")
    trial = Trial(
        f"news:{n_documents}:{seed}:sudden", list(QUICK), [], "progressive", delay, window, None, None
    )
    comparison = run_all(news, trial)
    print_table(comparison)
    _write(folder, comparison, news, seed, trial)
    out().print("\nWhat to try next:\n")
    for what, command in _commands(folder, comparison.ranking[0].name):
        out().print(f"  # {what}", soft_wrap=True)
        out().print(f"  {command}\n", soft_wrap=True)


def _claim(folder: Path) -> None:
    """Make the folder; refuse one with somebody's files, since `docs.jsonl` there would be replaced."""
    if folder.exists() and not folder.is_dir():
        raise usage_error(f"{folder}: not a folder: choose another --output")
    theirs = folder.is_dir() and any(folder.iterdir())
    if theirs and not ((folder / MARK).is_file() and (folder / BEST).is_file()):
        raise usage_error(f"{folder}: has files that are not of a demo: choose another --output")
    folder.mkdir(parents=True, exist_ok=True)


def _write(folder: Path, comparison: Comparison, news: Dataset, seed: int, trial: Trial) -> None:
    (folder / MARK).write_text(comparison.to_json() + "\n", encoding="utf-8")
    best = comparison.ranking[0].name
    learner = make_learner(best, news.taxonomy)
    filer = Filer(news.taxonomy, learner, model=best)
    filer.file([_document(news, row) for row in range(len(news))])
    extra: dict[str, str | int | float | bool | None] = {"documents": len(news), "learner": best}
    snapshot.save(folder / BEST, filer.parts(), extra=extra)
    _sample(len(news), seed + 1).write(folder)
    written = [MARK, BEST, "docs.jsonl", "taxonomy.tsv"]
    if can_plot():
        written += [path.name for path in draw(comparison, folder, trial.marks)]
    else:
        say('no plots: pip install "stream_hc[plot]" and run the demo again')
    out().print(f"\nIn {folder}: {', '.join(written)}", soft_wrap=True)


def _document(news: Dataset, row: int) -> Document:
    return Document(news.ids[row], text=str(news.documents[row]), labels=sorted(news.labels[row]))


def _sample(n_documents: int, seed: int) -> Dataset:
    """Return other documents from the end of such a stream: what the saved learner would meet next."""
    news = make_news(max(n_documents, 2 * SAMPLE), seed, "sudden")
    last = slice(len(news) - SAMPLE, None)
    return replace(
        news, name="sample", ids=news.ids[last], documents=news.documents[last], labels=news.labels[last]
    )


def _commands(folder: Path, best: str) -> list[tuple[str, str]]:
    def at(name: str) -> str:
        return shlex.quote(str(folder / name))

    program = _program()
    run = f"{program} run {at('docs.jsonl')} --snapshot {at(BEST)} --output {at('predictions.jsonl')}"
    return [
        ("file 1,000 other news with what was learned, and go on learning", run),
        (
            "judge a learner on them, with the labels at once",
            f"{program} evaluate {shlex.quote(str(folder))} --learner {best} --window 200",
        ),
        ("see the topics", f"{program} taxonomy draw {at('taxonomy.tsv')} --depth 1"),
    ]


def _program() -> str:
    """Return what to type for this very program: its name alone only where the shell would find it."""
    started = Path(sys.argv[0])
    if started.name != "stream-hc":
        return shlex.join([sys.executable, "-m", "stream_hc.cli"])
    found = shutil.which("stream-hc")
    if found is not None and Path(found).resolve() == started.resolve():
        return "stream-hc"
    return shlex.quote(os.path.relpath(started) if started.is_relative_to(Path.cwd()) else str(started))
