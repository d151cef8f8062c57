"""The recent H-loss of a job as a PNG, for places where a page cannot be shown."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stream_hc.evaluate.drawing import (
    DASHES,
    FAINT,
    INK,
    PALETTE,
    End,
    label_ends,
    new_page,
    save,
    shorten,
)
from stream_hc.runtime.log import RunLog
from stream_hc.runtime.report.chart import MOST_LABELS
from stream_hc.runtime.report.summary import MARKED, Summary, printable, thin_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_run"]

MAX_POINTS = 1800  # as many as the picture has pixels across
SIGNS = {"drift": "v", "re-fit": "s", "swap": "D", "rollback": "<"}
ROUND: dict[str, Any] = {"solid_joinstyle": "round", "solid_capstyle": "round"}
ALARM, SERVED = "#b3261e", "#7f858c"
LANE, BAND = 0.062, 0.05  # heights in those of the axes


def plot_run(log: RunLog, path_png: str | Path) -> None:
    """Draw the recent H-loss of each model and of what was served, as a PNG. Same log, same bytes.

    Needs matplotlib: `pip install "stream_hc[plot]"`.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # a name in letters no font has
        _draw(Summary(log), path_png)


def _draw(summary: Summary, path_png: str | Path) -> None:
    figure, axes = new_page("Recent H-loss along the stream", "H-loss of the last documents")
    ends = _draw_lines(axes, summary)
    axes.set_xlim(0, max(summary.end, 1))
    axes.set_ylim(0, axes.get_ylim()[1])
    axes.set_xlabel("labelled documents", color=INK, fontsize=10.5, labelpad=6)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    if ends:
        label_ends(axes, ends[:MOST_LABELS])
    _make_room(axes, _draw_marks(axes, summary))
    _draw_band(axes, summary)
    save(figure, path_png)


def _draw_lines(axes: "Axes", summary: Summary) -> list[End]:
    alive = summary.last.scores if summary.last else {}
    served = thin_out(summary.points(None), MAX_POINTS)
    ends = []
    if served:
        axes.plot(*zip(*served, strict=True), color=SERVED, linewidth=4.5, **ROUND)
        ends.append(End(served[-1][1], f"served {served[-1][1]:.3f}", INK))
    for model in summary.models:
        points = thin_out(summary.points(model), MAX_POINTS)
        if points:
            color, dashes = summary.styles[model]
            style: dict[str, Any] = {"color": PALETTE[color], "linestyle": DASHES[dashes]}
            axes.plot(*zip(*points, strict=True), linewidth=1.6, **ROUND, **style)
        if points and model in alive:
            ends.append(End(points[-1][1], f"{_plain(model)} {points[-1][1]:.3f}", PALETTE[color]))
    return ends


def _draw_marks(axes: "Axes", summary: Summary) -> int:
    """Draw a row of marks above the lines for each kind of event; return how many rows there are."""
    above: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False}
    kinds = [(word, summary.marks(kinds)) for word, kinds in MARKED]
    kinds = [(word, events) for word, events in kinds if events]
    for row, (word, events) in enumerate(reversed(kinds)):
        y = 1 + LANE * (row + 0.75)
        color = ALARM if word in ("drift", "rollback") else INK if word == "swap" else FAINT
        at = [event.labelled for event in events]
        axes.plot(at, [y] * len(at), SIGNS[word], color=color, markersize=4.5, markeredgewidth=0, **above)
        axes.annotate(
            word, (0, y), xycoords="axes fraction", xytext=(-7, 0), textcoords="offset points",
            ha="right", va="center", fontsize=9, color=FAINT,
        )  # fmt: skip
        alpha = 0.35 if word == "re-fit" else 0.8
        axes.vlines(
            at, 0, y, color=color, linewidth=0.7, linestyle=(0, (3, 3)), alpha=alpha, zorder=1, **above
        )
    return len(kinds)


def _make_room(axes: "Axes", n_rows: int) -> None:
    """Lower the axes for rows of marks above, and raise them for the band below."""
    place = axes.get_position()
    bottom = place.y0 + 0.05
    height = (place.y1 - bottom) / (1 + LANE * max(n_rows - 0.5, 0))
    axes.set_position((place.x0, bottom, place.width, height))
    axes.tick_params(axis="x", pad=20)


def _draw_band(axes: "Axes", summary: Summary) -> None:
    below: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False}
    for span in summary.champions():
        width, middle = span.last - span.first, (span.first + span.last) / 2
        color = PALETTE[summary.styles[span.model][0]]
        axes.barh(-0.045, width, BAND, span.first, color=color, edgecolor="white", linewidth=0.6, **below)
        name = _plain(span.model)
        label: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8.5, "color": "white"}
        label["color"] = "white" if color in (PALETTE[0], PALETTE[6]) else "black"
        drawn = axes.text(middle, -0.047, name, **label, **below)
        x = axes.transData.transform([(span.first, 0), (span.last, 0)])[:, 0]
        if drawn.get_window_extent().width > x[1] - x[0] - 8:
            drawn.remove()


def _plain(name: str) -> str:
    """Return a name in which matplotlib finds no formula."""
    return shorten(printable(name), 20).replace("$", r"\$")
