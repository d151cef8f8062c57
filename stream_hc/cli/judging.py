"""The work behind `evaluate`, `compare` and `demo`: learners on a data set, a table, JSON, plots."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from rich.box import SIMPLE_HEAD

from stream_hc.cli.console import out, progress_bar, say, watched
from stream_hc.cli.errors import CliError, Code, usage_error
from stream_hc.cli.making import N_FEATURES, load_dataset, make_learner, writable_folder
from stream_hc.datasets import Dataset
from stream_hc.evaluate import (
    PROTOCOLS,
    CompareProgress,
    Comparison,
    Protocol,
    compare,
    plot_by_depth,
    plot_running,
)
from stream_hc.vectorize import SequenceVectorizer

__all__ = ["Trial", "can_plot", "draw", "judge", "print_table", "run_all", "show"]


@dataclass(frozen=True)
class Trial:
    """What `evaluate` and `compare` were asked to do; the names are those of their options."""

    dataset: str
    learners: Sequence[str]
    settings: Sequence[str]
    protocol: str
    delay: int
    window: int
    n_features: int | None
    limit: int | None
    sequences: bool = False

    @property
    def marks(self) -> list[tuple[int, str]]:
        """Where to draw a line in the plots: synthetic news know when they change."""
        fields = self.dataset.split(":")
        whole_stream = self.protocol == "progressive" and self.limit is None
        if whole_stream and fields[0] == "news" and fields[-1] == "sudden":
            return [(int(fields[1]) // 2, "topics change")]
        return []


def judge(trial: Trial, plot: str | None) -> Comparison:
    """Run the trial."""
    if trial.protocol not in PROTOCOLS:
        raise usage_error(f"there is no protocol {trial.protocol!r}: choose one of {', '.join(PROTOCOLS)}")
    if trial.delay and trial.protocol != "progressive":
        raise usage_error(f"--delay needs --protocol progressive, not {trial.protocol}")
    if plot is not None and not can_plot():
        raise usage_error('--plot needs matplotlib: pip install "stream_hc[plot]"')
    if len(set(trial.learners)) < len(trial.learners):
        raise usage_error("the same --learner twice: name each once")
    dataset = load_dataset(trial.dataset, trial.limit)
    return run_all(dataset, trial, shown_after=2.0)


def run_all(dataset: Dataset, trial: Trial, shown_after: float = 0.0) -> Comparison:
    """Put the learners of a trial through a data set, with a progress bar on a terminal."""
    models = {}
    for name in trial.learners:
        learner, _, settings = name.partition(":")
        given = [*trial.settings, *filter(None, settings.split(","))]
        models[name] = make_learner(learner, dataset.taxonomy, trial.n_features, given)
    done_before = {name: number for number, name in enumerate(models)}
    with progress_bar("learning", len(models), watched(output_is_stdout=False), shown_after) as update:

        def progress(name: str, done: int, total: int) -> None:
            update(done_before[name] + done / total, f"{name} {done:,} of {total:,}")

        return _compare(models, dataset, trial, progress)


def _compare(
    models: Mapping[str, object], dataset: Dataset, trial: Trial, progress: CompareProgress
) -> Comparison:
    try:
        return compare(
            models,
            dataset,
            protocol=cast(Protocol, trial.protocol),
            delay=trial.delay,
            window=trial.window,
            progress=progress,
            sequences=SequenceVectorizer(trial.n_features or N_FEATURES) if trial.sequences else None,
        )
    except ValueError as error:  # a split that is missing or empty, a learner that cannot be judged this way
        raise CliError(f"{trial.dataset}: {error}", Code.BAD_INPUT) from error


def show(comparison: Comparison, trial: Trial, plot: str | None, json: str | None, markdown: bool) -> None:
    """Print the table, or Markdown, or JSON; write what was asked for."""
    if plot is not None:
        for path in draw(comparison, Path(plot), trial.marks):
            say(f"wrote {path}")
    if json == "-":
        sys.stdout.write(comparison.to_json() + "\n")
        return
    if json is not None:
        writable_folder(json)
        Path(json).write_text(comparison.to_json() + "\n", encoding="utf-8")
        say(f"wrote {json}")
    if markdown:
        sys.stdout.write(comparison.to_markdown())
        return
    print_table(comparison)


def print_table(comparison: Comparison) -> None:
    """Print the table with few lines and whole names, so that it fits 80 columns."""
    table = comparison.table()
    table.box, table.padding, table.pad_edge = SIMPLE_HEAD, (0, 1, 0, 0), False
    table.columns[0].no_wrap = True
    table.title_justify = "left"
    out().print(table)


def can_plot() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(comparison: Comparison, folder: Path, marks: Sequence[tuple[int, str]]) -> list[Path]:
    """Draw the two plots and return where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    running, by_depth = folder / "running.png", folder / "by-depth.png"
    plot_running(comparison.runs, running, marks=marks)
    plot_by_depth(comparison.runs, by_depth)
    return [running, by_depth]
