"""Line charts as SVG, coloured by the style sheet of the page: `var(--c0)` and so on, light or dark."""

import math
import unicodedata
from html import escape

from stream_hc.evaluate.drawing import shorten, spread
from stream_hc.runtime.report.chart import MOST_LABELS, NARROW, Chart, Curve, Size
from stream_hc.runtime.report.summary import printable, sentence, thin_out

__all__ = ["DASHES", "draw_chart", "ticks", "width_of"]

DASHES = ("", "7 3", "2 2.5")
LANE, BAND, LINE_GAP = 17, 16, 17
LONGEST_END = 150  # pixels of a name there


class _Frame:
    """Where things lie in the picture."""

    def __init__(self, chart: Chart, size: Size) -> None:
        self.named = (
            [] if size == NARROW else [curve for curve in chart.curves if curve.ends and curve.points]
        )
        if len(self.named) > MOST_LABELS:
            self.named = []
        names = max((width_of(_end(curve)) for curve in self.named), default=0.0)
        self.left, self.right = size.left, size.width - size.right - math.ceil(names)
        self.top = 12 + LANE * len(chart.lanes)
        self.bottom = self.top + size.height
        self.under = self.bottom + (BAND + 8 if chart.band else 0)
        self.height = self.under + 44
        self.end = max(chart.end, 1)
        values = [value for curve in chart.curves for _, value in curve.points]
        self.high = max(values, default=0.0) * 1.04 or 1.0
        self.y_ticks = [tick for tick in ticks(self.high, 5 if size == NARROW else 7) if tick <= self.high]

    def x(self, labelled: float) -> float:
        return self.left + (self.right - self.left) * min(max(labelled / self.end, 0), 1)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * min(max(value / self.high, 0), 1)


def ticks(high: float, most: int) -> list[float]:
    """Return round numbers from 0 to the first that is not below `high`, about `most` of them.

    >>> ticks(0.83, 5)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    raw = high / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= raw * 0.999)
    return [round(step * number, 12) for number in range(math.ceil(high / step - 1e-9) + 1)]


def draw_chart(chart: Chart, size: Size) -> str:
    """Return the chart as an SVG element."""
    frame = _Frame(chart, size)
    title, about = f"{chart.key}-{size.name}-title", f"{chart.key}-{size.name}-about"
    parts = [
        f'<svg class="chart {size.name}" viewBox="0 0 {size.width} {frame.height}" role="img" '
        f'aria-labelledby="{title} {about}">',
        f'<title id="{title}">{_text(chart.title)}</title>',
        f'<desc id="{about}">{_text(chart.about, 3_000)}</desc>',
        *_axes(frame, size),
        *_lanes(chart, frame),
        *_curves(chart, frame, size),
        *_band(chart, frame),
        "</svg>",
    ]
    return "\n".join(parts)


def _axes(frame: _Frame, size: Size) -> list[str]:
    parts = []
    step = frame.y_ticks[1] if len(frame.y_ticks) > 1 else frame.high
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) + 1 if step < 10 else 0
    for value in frame.y_ticks:
        y = frame.y(value)
        parts.append(f'<path class="grid" d="M{frame.left} {y:.1f}H{frame.right}"/>')
        at = f'x="{frame.left - 8}" y="{y + 4:.1f}" text-anchor="end"'
        parts.append(f'<text class="faint" {at}>{value:,.{min(digits, 4)}f}</text>')
    parts.append(f'<path class="axis" d="M{frame.left} {frame.bottom}H{frame.right}"/>')
    for value in ticks(frame.end, 3 if size == NARROW else 8):
        if value <= frame.end:
            x, word = frame.x(value), f"{value:,.0f}" if frame.end >= 8 else f"{value:g}"
            anchor = "end" if x + width_of(word) / 2 > size.width else "middle"
            y = frame.under + 17
            parts.append(f'<text class="faint" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{word}</text>')
    middle = (frame.left + frame.right) / 2
    parts.append(
        f'<text class="faint" x="{middle:.0f}" y="{frame.under + 37}" text-anchor="middle">'
        "labelled documents</text>"
    )
    return parts


def _lanes(chart: Chart, frame: _Frame) -> list[str]:
    """Draw a row of marks for each kind of event: however many there are, no word covers another."""
    parts = []
    for place, lane in enumerate(chart.lanes):
        y = 10 + LANE * place
        kind = lane.word.replace("-", "")
        at = f'x="{frame.left - 8}" y="{y + 4}" text-anchor="end"'
        parts.append(f'<text class="faint" {at}>{_text(lane.word)}</text>')
        for event in lane.events:
            x = frame.x(event.labelled)
            shape = {
                "drift": f"M{x - 5:.1f} {y - 4}h10l-5 9z",
                "refit": f"M{x - 3:.1f} {y - 3}h6v6h-6z",
                "swap": f"M{x:.1f} {y - 5}l5 5l-5 5l-5 -5z",
            }.get(kind, f"M{x + 4:.1f} {y - 5}v10l-9 -5z")
            about = _text(f"{lane.word} after {event.labelled:,} labelled documents: {sentence(event)}")
            parts.append(
                f'<g class="mark {kind}"><title>{about}</title>'
                f'<path class="stem" d="M{x:.1f} {y + 5}V{frame.bottom}"/>'
                f'<path class="sign" d="{shape}"/></g>'
            )
    return parts


def _curves(chart: Chart, frame: _Frame, size: Size) -> list[str]:
    parts = []
    for curve in chart.curves:
        points = thin_out(curve.points, size.points)
        path = " ".join(f"{frame.x(at):.1f},{frame.y(value):.1f}" for at, value in points)
        if len(points) == 1:  # a single point is a short line
            path += f" {frame.x(points[0][0]) + 3:.1f},{frame.y(points[0][1]):.1f}"
        parts.append(
            f'<polyline class="{_line_class(curve)}"{_dash(curve)} points="{path}">'
            f"<title>{_text(curve.name)}</title></polyline>"
        )
    height = frame.bottom - frame.top
    at = [(frame.y(curve.points[-1][1]) - frame.top) / height for curve in frame.named]
    for curve, y_text in zip(frame.named, spread(at, LINE_GAP / height), strict=True):
        x, y = frame.x(curve.points[-1][0]), frame.y(curve.points[-1][1])
        y_text = frame.top + y_text * height
        leader = f"M{x + 3:.1f} {y:.1f}L{frame.right + 14} {y_text:.1f}h8"
        parts.append(f'<path class="leader {_line_class(curve)}"{_dash(curve)} d="{leader}"/>')
        weight = ' class="served-name"' if curve.number is None else ""
        parts.append(f'<text{weight} x="{frame.right + 26}" y="{y_text + 4:.1f}">{_text(_end(curve))}</text>')
    return parts


def _end(curve: Curve) -> str:
    name = printable(curve.name)[:80]
    longest = next((n for n in range(len(name), 1, -1) if width_of(shorten(name, n)) <= LONGEST_END), 1)
    return f"{shorten(name, longest)} {curve.points[-1][1]:{curve.form}}"


def width_of(text: str) -> float:
    """Return how many pixels a text of 12 pixels takes at most, in the usual fonts."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" or c in "mwMW@%…—" for c in text)
    return 7.5 * len(text) + 4.8 * wide + 1.2 * sum(c.isupper() for c in text)


def _line_class(curve: Curve) -> str:
    return "line served" if curve.number is None else f"line k{curve.number[0]}"


def _dash(curve: Curve) -> str:
    dash = DASHES[curve.number[1]] if curve.number else ""
    return f' stroke-dasharray="{dash}"' if dash else ""


def _band(chart: Chart, frame: _Frame) -> list[str]:
    if not chart.band:
        return []
    y = frame.bottom + 7
    parts = [f'<text class="faint" x="{frame.left - 8}" y="{y + 12}" text-anchor="end">champion</text>']
    for span, color in chart.band:
        first, last = frame.x(span.first), frame.x(span.last)
        about = _text(f"{span.model} answered from {span.first:,} to {span.last:,} labelled documents")
        box = f'x="{first:.1f}" y="{y}" width="{max(last - first - 1, 0.5):.1f}" height="{BAND}"'
        parts.append(f'<rect class="f{color}" {box} rx="2"><title>{about}</title></rect>')
        name = shorten(printable(span.model))
        if width_of(name) + 10 < last - first:
            parts.append(
                f'<text class="o{color}" x="{(first + last) / 2:.1f}" y="{y + 12}" text-anchor="middle">'
                f"{_text(name)}</text>"
            )
    return parts


def _text(text: str, longest: int = 300) -> str:
    return escape(shorten(printable(text), longest))
