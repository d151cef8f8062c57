"""Pictures of runs: the loss along the stream, and the depth at which it is charged."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from stream_hc.checks import whole_number
from stream_hc.evaluate.drawing import (
    FAINT,
    INK,
    End,
    bar_style,
    label_ends,
    line_style,
    make_room,
    new_page,
    save,
    shorten,
)
from stream_hc.evaluate.run import Measure, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Mark", "plot_by_depth", "plot_running"]

Mark: TypeAlias = int | tuple[int, str]

TITLES: dict[Measure, str] = {
    "zero_one": "Zero-one loss",
    "h_loss": "H-loss",
    "normalized_h_loss": "Normalized H-loss",
    "symmetric_difference": "Symmetric difference",
}
MAX_POINTS = 1800  # as many as the picture has pixels across
WHITE_BOX = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # so that no grid line crosses a number
MAX_SKIPPED = 50
GROUP_WIDTH = 0.78  # of the room that a depth has


def plot_running(
    runs: Sequence[Run],
    path: str | Path,
    measure: Measure = "h_loss",
    window: int | None = None,
    marks: Sequence[Mark] = (),
) -> None:
    """Draw the mean loss over the last documents along the stream, one line for each run, as a PNG.

    Same runs, same bytes. Needs matplotlib: `pip install "stream_hc[plot]"`.

    Parameters
    ----------
    runs
        What to draw, for example `comparison.runs`.
    path
        The file to write.
    measure
        Which loss.
    window
        How many documents each point looks back; by default what the first run says. A line begins after a
        tenth of that, or 50 documents: the mean of a handful is noise.
    marks
        Documents to mark with a thin vertical line: numbers, or pairs (number, text).

    Examples
    --------
    >>> from stream_hc import HAROW
    >>> from stream_hc.datasets import make_news
    >>> from stream_hc.evaluate import compare
    >>> news = make_news(400, drift="sudden")
    >>> runs = compare({"H-AROW": HAROW(news.taxonomy)}, news, window=100).runs
    >>> plot_running(runs, "running.png", marks=[(200, "topics change")])  # doctest: +SKIP
    """
    if not runs:
        raise ValueError("there are no runs to draw")
    longest = max(map(len, runs))
    window = min(whole_number("window", runs[0].window if window is None else window, 1), longest)
    lines = [run.windowed(measure, window) for run in runs]
    looks_back = f"mean of the last {window:,} documents" if window < longest else "mean so far"
    figure, axes = new_page(f"{TITLES[measure]} along the stream", looks_back)
    ends = []
    for number, (run, line) in enumerate(zip(runs, lines, strict=True)):
        first = min(window // 10, MAX_SKIPPED, line.size - 1)
        shown = np.arange(first, line.size, max(1, line.size // MAX_POINTS))
        shown = np.unique([*shown, line.size - 1])
        axes.plot(shown + 1, line[shown], linewidth=1.8, solid_joinstyle="round", **line_style(number))
        ends.append(End(float(line[-1]), f"{shorten(run.name)} {line[-1]:.2f}", line_style(number)["color"]))
    axes.set_xlim(0, longest)
    axes.set_ylim(0, axes.get_ylim()[1])
    axes.set_xlabel("documents", color=INK, fontsize=10.5, labelpad=6)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    for mark in marks:
        _draw_mark(axes, mark)
    label_ends(axes, ends)
    save(figure, path)


def plot_by_depth(runs: Sequence[Run], path: str | Path) -> None:
    """Draw how much of the H-loss is charged at each depth of the taxonomy, a bar for each run, as a PNG.

    The bars of a run add up to its mean H-loss. Same runs, same bytes. Needs matplotlib:
    `pip install "stream_hc[plot]"`.

    Parameters
    ----------
    runs
        What to draw, for example `comparison.runs`.
    path
        The file to write.

    Examples
    --------
    >>> from stream_hc.evaluate import score
    >>> from stream_hc.taxonomy import Taxonomy
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport")])
    >>> run = score("by hand", tax, [{"sport"}, {"sport"}], [{"tennis"}, {"sport"}])
    >>> plot_by_depth([run], "depth.png")  # doctest: +SKIP
    """
    if not runs:
        raise ValueError("there are no runs to draw")
    n_depths = max(run.h_loss_by_depth.size for run in runs)
    figure, axes = new_page("Where the first mistakes are made", "H-loss per document")
    width = GROUP_WIDTH / len(runs)
    for number, run in enumerate(runs):
        at = np.arange(run.h_loss_by_depth.size) + (number - (len(runs) - 1) / 2) * width
        bars = axes.bar(
            at,
            run.h_loss_by_depth,
            width=width * 0.9,
            **bar_style(number),
            label=f"{shorten(run.name)} {run.h_loss_by_depth.sum():.2f}",
        )
        # Numbers need room: with many bars the grid has to do.
        if n_depths * len(runs) <= 24:
            axes.bar_label(bars, fmt="%.2f", padding=3, fontsize=9, color=INK, bbox=WHITE_BOX)
    names = ["roots", *(f"depth {depth}" for depth in range(1, n_depths))]
    axes.set_xticks(np.arange(n_depths), names)
    axes.set_xlabel("depth of the node where the prediction first goes wrong", color=INK, fontsize=10.5)
    axes.set_ylim(0, axes.get_ylim()[1])
    legend = axes.legend(
        title="sum of all depths",
        loc="upper left",
        bbox_to_anchor=(1.0, 1.02),
        frameon=False,
        fontsize=10.5,
        labelcolor=INK,
        handlelength=1,
        handleheight=1,
        alignment="left",
    )
    legend.get_title().set_color(FAINT)
    make_room(axes, legend.get_window_extent().width)
    save(figure, path)


def _draw_mark(axes: "Axes", mark: Mark) -> None:
    at, text = (mark, "") if isinstance(mark, int) else mark
    axes.axvline(at, color=FAINT, linewidth=1, linestyle=(0, (3, 3)), zorder=1)
    axes.annotate(
        text,
        (at, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        fontsize=10,
        color=FAINT,
    )
