"""What the plots share: a white page, colours, a light grid, labels that do not overlap, a file.

matplotlib is an extra and imported on first use; figures are built without pyplot and its global state.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FAINT",
    "INK",
    "End",
    "bar_style",
    "label_ends",
    "line_style",
    "make_room",
    "new_page",
    "save",
    "shorten",
    "spread",
]

# Okabe and Ito's colours, told apart with every kind of colour vision; their yellow is too pale on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444")
# For more lines and bars than colours.
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)))
HATCHES = ("", "////", "....")
INK, FAINT, GRID = "#222222", "#6b6b6b", "#e6e6e6"

# Twice as many pixels as a page shows of it, so that it is sharp on dense screens.
WIDTH, HEIGHT, DPI = 9.0, 4.6, 200
LEFT, RIGHT, BOTTOM, TOP = 0.078, 0.98, 0.125, 0.865
BESIDE = 1.03  # where labels on the right begin, in widths of the axes


class End(NamedTuple):
    """Where a line ends, and what to write there."""

    y: float
    text: str
    color: str


def new_page(title: str, y_title: str) -> tuple["Figure", "Axes"]:
    """Return a page with a title, and empty axes on it."""
    try:
        # An extra: everything else here works without it.
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise ImportError('plots need matplotlib: pip install "stream_hc[plot]"') from None
    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    figure.text(0.018, 0.975, title, va="top", fontsize=13, fontweight="bold", color=INK)
    axes = figure.add_axes((LEFT, BOTTOM, RIGHT - LEFT, TOP - BOTTOM))
    axes.set_facecolor("white")
    axes.set_ylabel(y_title, color=INK, fontsize=10.5, labelpad=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=FAINT, labelsize=10, length=0, pad=6)
    axes.grid(axis="y", color=GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    return figure, axes


def line_style(number: int) -> dict[str, Any]:
    """Return colour and dashes of the line with this number."""
    return {
        "color": bar_style(number)["facecolor"],
        "linestyle": DASHES[number // len(PALETTE) % len(DASHES)],
    }


def bar_style(number: int) -> dict[str, Any]:
    """Return colour and hatching of the bar with this number."""
    hatch = HATCHES[number // len(PALETTE) % len(HATCHES)]
    return {"facecolor": PALETTE[number % len(PALETTE)], "hatch": hatch, "edgecolor": "white", "linewidth": 0}


def label_ends(axes: "Axes", ends: Sequence[End]) -> None:
    """Write every label to the right of where its line ends, moved apart where they would touch."""
    low, high = axes.get_ylim()
    at = [(end.y - low) / (high - low) for end in ends]
    beside: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
    texts = []
    for end, y, y_text in zip(ends, at, spread(at, gap=0.062), strict=True):
        axes.plot([1.004, BESIDE - 0.006], [y, y_text], color=end.color, linewidth=1, **beside)
        label: dict[str, Any] = {"color": end.color, "fontsize": 10.5, "fontweight": "bold", "va": "center"}
        texts.append(axes.text(BESIDE, y_text, end.text, **label, **beside))
    make_room(axes, max(text.get_window_extent().width for text in texts))


def make_room(axes: "Axes", pixels: float) -> None:
    """Narrow the axes for something that wide on their right; they keep at least 45 % of the page."""
    width = max(0.45, (RIGHT - LEFT - pixels / (WIDTH * DPI)) / BESIDE)
    axes.set_position((LEFT, BOTTOM, width, TOP - BOTTOM))


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Move positions between 0 and 1 apart until neighbours differ by `gap`, as little as that takes.

    Their order stays. Where there is no room for so many, the gap gets smaller.

    >>> spread([0.5, 0.0, 0.5], gap=0.25)
    [0.375, 0.0, 0.625]
    """
    gap = min(gap, 1 / max(len(positions) - 1, 1))
    gaps = gap * np.arange(len(positions))
    order = np.argsort(positions, kind="stable")
    # Less their gaps the positions only have to ascend, and the nearest numbers that do are means of blocks.
    blocks: list[tuple[float, int]] = []
    for position in (np.asarray(positions, np.float64)[order] - gaps).tolist():
        blocks.append((position, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (lower, n_lower), (upper, n_upper) = blocks[-2:]
            size = n_lower + n_upper
            blocks[-2:] = [((lower * n_lower + upper * n_upper) / size, size)]
    ascending = np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])
    moved = np.empty(len(positions))
    moved[order] = np.clip(ascending, 0, 1 - gap * (len(positions) - 1)) + gaps
    answer: list[float] = moved.tolist()
    return answer


def shorten(name: str, longest: int = 24) -> str:
    """Cut a name that would take up the page."""
    return name if len(name) <= longest else name[: longest - 1] + "…"


def save(figure: "Figure", path: str | Path) -> None:
    """Write the page as PNG; without dates and versions in it, the same picture is the same bytes."""
    figure.savefig(path, format="png", dpi=DPI, metadata={"Software": None})
