"""The picture of a streaming job on a terminal, line by line."""

from collections import deque
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from stream_hc.cli.console import clean
from stream_hc.cli.live_chart import History, Run, draw_lines
from stream_hc.evaluate.drawing import PALETTE
from stream_hc.runtime.events import Event, Standing
from stream_hc.runtime.report import WORDS, Points, family, styles_of

__all__ = ["Shown", "draw_frame"]

MARGIN = 7  # left of the chart, for numbers
LEAST_ROWS, MOST_ROWS = 3, 16  # of the chart
MOST_MODELS = 5
LONGEST_NAME = 20
LONGEST_BAR = 48
GREY, BOLD, ALARM = Style(dim=True), Style(bold=True), Style(color="red", bold=True)
DARK_GREY, LIGHT_GREY = PALETTE[-1], "#999999"  # the one cannot be seen on black, the other on both

Line = list[Segment]


class Shown(Protocol):
    """What there is to show."""

    history: History
    families: dict[str, None]
    events: deque[Event]
    standing: Standing | None
    rate: float
    refit: Mapping[str, Any] | None


def draw_frame(view: Shown, width: int, height: int) -> list[Line]:
    """Return at most `height` lines of at most `width` cells."""
    standing = view.standing
    events = [_event(event) for event in view.events]
    if standing is None:
        waiting = [Segment(" waiting for labelled documents", GREY)]
        return [_cut(line, width) for line in [waiting, *events]][:height]
    styles = styles_of(list(dict.fromkeys([*view.families, *map(family, standing.scores)])))
    lines = view.history.lines()
    colors = {name: _color(styles[family(name)][0]) for name in [*lines, *standing.scores]}
    head = _counters(standing, view.rate)
    table = _table(standing, colors, width)
    fit = [_refit(view.refit)] if view.refit is not None else []
    rows = height - len(head) - len(table) - len(fit) - len(events) - 2
    chart = []
    if rows >= LEAST_ROWS:
        columns = max(width - MARGIN - 2, 10)
        chart = _chart(lines, standing, colors, columns, min(rows, MOST_ROWS))
        chart.append(_band(view.history.champions(columns), colors))
    return [_cut(line, width) for line in [*head, *chart, *table, *fit, *events]][:height]


def _counters(standing: Standing, rate: float) -> list[Line]:
    dead = sum(standing.rejected.values())
    first = [
        (f"{standing.documents:,}", "documents"),
        (f"{standing.labelled:,}", "labelled"),
        (f"{rate:,.0f}", "a second"),
    ]
    second = [
        (f"{standing.waiting_documents:,}", "wait for labels"),
        (f"{standing.waiting_labels:,}", "labels wait"),
        (f"{dead:,}", "dead letters" if dead != 1 else "dead letter"),
    ]
    return [
        [
            segment
            for number, word in pairs
            for segment in (Segment(f" {number}", BOLD), Segment(f" {word}  ", GREY))
        ]
        for pairs in (first, second)
    ]


def _chart(
    history: dict[str, Points], standing: Standing, colors: dict[str, Style], columns: int, rows: int
) -> list[Line]:
    """Draw the recent losses, the champion's on top."""
    champion = standing.champion
    names = sorted(history, key=lambda name: (name in standing.scores, name == champion))
    lines = [(name, history[name]) for name in names]
    losses = [loss for _, points in lines for _, loss in points]
    low, high = 0.8 * min(losses, default=0.0), max(1.02 * max(losses, default=1.0), 0.01)
    cells = draw_lines(lines, columns, rows, standing.labelled, low, high)
    end = history[champion][-1][1] if champion in history else None
    star = -1 if end is None else round((high - end) / (high - low) * (4 * rows - 1)) // 4
    drawn = [[Segment(" recent H-loss", GREY)]]
    for row, runs in enumerate(cells):
        segments = [Segment(f"{'│':>{MARGIN}}", GREY)]
        if row in (0, rows // 2, rows - 1):
            segments = [Segment(f"{high - (high - low) * row / (rows - 1):{MARGIN - 2}.2f} ┤", GREY)]
        segments += [Segment(text, colors.get(name)) for text, name in runs]
        drawn.append([*segments, Segment("★", colors.get(champion))] if row == star else segments)
    return drawn


def _band(champions: list[Run], colors: dict[str, Style]) -> Line:
    """Draw who answered when."""
    return [Segment(f"{'└':>{MARGIN}}", GREY), *(Segment(text, colors.get(name)) for text, name in champions)]


def _table(standing: Standing, colors: dict[str, Style], width: int) -> list[Line]:
    """Write the champion first, the others from good to bad."""
    ranked = sorted(standing.scores.items(), key=lambda item: (item[0] != standing.champion, item[1].recent))
    shown, more = ranked[:MOST_MODELS], len(ranked) - MOST_MODELS
    longest = max([len("served"), *(cell_len(_short(name)) for name, _ in shown)])
    highest = max((score.recent for _, score in ranked), default=0.0) or 1.0
    room = max(width - longest - 26, 4)
    left = f" (and {more} more)" if more > 0 else ""
    lines = [[Segment(f"   {'H-loss':<{longest}}     mean   recent{left}", GREY)]]
    served = standing.served
    for name, score, mark in [
        ("served", served, " "),
        *((n, s, "★" if n == standing.champion else " ") for n, s in shown),
    ]:
        style = BOLD if score is served else colors.get(name)
        numbers = f"{score.mean:>9.3f}{score.recent:>9.3f}" if score.scored else f"{'–':>9}{'–':>9}"
        bar = _bar(score.recent / highest, room) if score.scored else ""
        name_cells = set_cell_size(_short(name), longest)
        lines.append([Segment(f" {mark} {name_cells}", style), Segment(f"{numbers}  "), Segment(bar, style)])
    return lines


def _bar(share: float, room: int) -> str:
    halves = round(min(max(share, 0.0), 1.0) * min(room, LONGEST_BAR) * 2)
    return "━" * (halves // 2) + "╸" * (halves % 2)


def _refit(refit: Mapping[str, Any]) -> Line:
    gap, objective = refit.get("duality_gap"), refit.get("dual_objective")
    said = []
    if isinstance(refit.get("epoch"), int | float):
        said.append(f"epoch {refit['epoch']:.0f}")
    if isinstance(gap, int | float) and isinstance(objective, int | float) and objective > 0:
        said.append(f"gap {gap / objective:.1%}")
    elif isinstance(gap, int | float):
        said.append(f"gap {gap:.3g}")
    if isinstance(refit.get("seconds"), int | float):
        said.append(f"{refit['seconds']:.0f} s")
    return [Segment(" ⟳ re-fit under way ", BOLD), Segment(", ".join(said))]


def _event(event: Event) -> Line:
    style = ALARM if event.what in ("drift", "rollback", "refit_failed") else BOLD
    return [
        Segment(f"{event.labelled:>10,} ", GREY),
        Segment(f"{WORDS[event.what]:<14}", style),
        Segment(clean(_brief(event))),
    ]


def _brief(event: Event) -> str:
    """Say in few words what the word before leaves open."""
    models = f"{event.before} → {event.model}" if event.before else event.model
    if event.what not in ("swap", "rollback", "promoted"):
        models = event.model
    return ": ".join(filter(None, (models, event.detail)))


def _short(name: str) -> str:
    name = clean(name)
    return name if cell_len(name) <= LONGEST_NAME else set_cell_size(name, LONGEST_NAME - 1) + "…"


def _cut(line: Line, width: int) -> Line:
    """Cut off what is too wide, with a sign that something is missing."""
    if sum(segment.cell_length for segment in line) <= width:
        return line
    return [*Segment.adjust_line_length(line, width - 1, pad=False), Segment("…", GREY)]


@cache
def _color(number: int) -> Style:
    color = PALETTE[number]
    return Style(color=LIGHT_GREY if color == DARK_GREY else color)
