"""A taxonomy as nested rectangles: areas by traffic, colours by error, from the style sheet of the page."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from stream_hc.evaluate.drawing import shorten
from stream_hc.runtime.report.summary import printable
from stream_hc.runtime.report.svg import width_of

__all__ = ["BOUNDS", "NARROW_MAP", "WIDE_MAP", "Box", "MapSize", "Tile", "draw_treemap", "squarified"]

BOUNDS = (0.1, 0.2, 0.35, 0.5, 0.7)  # between the colours of errors
HEAD, GAP = 17.0, 1.5  # pixels: the strip with the name of a topic that has others in it; around each
LEAST = 5.0  # pixels: what would be smaller is left out
LINE, MOST_LINES = 15.0, 2  # height of a line of text, and lines of a name
DESCRIBED = 12  # topics in words, for those who do not see the picture


class Tile(NamedTuple):
    """A topic: its name, the place of its parent among the tiles (-1: none), its size and its error."""

    name: str
    parent: int
    size: int
    error: float | None
    about: str


class MapSize(NamedTuple):
    """How large it is drawn, in pixels."""

    name: str
    width: float
    height: float


class Box(NamedTuple):
    """Where a rectangle lies."""

    x: float
    y: float
    width: float
    height: float


WIDE_MAP = MapSize("wide", 1000, 540)
NARROW_MAP = MapSize("narrow", 344, 520)


def draw_treemap(tiles: Sequence[Tile], size: MapSize) -> str:
    """Return the map as an SVG element; tiles have their parents before them."""
    children: list[list[int]] = [[] for _ in tiles]
    roots: list[int] = []
    weights = [float(tile.size) for tile in tiles]
    for place, tile in enumerate(tiles):
        (roots if tile.parent < 0 else children[tile.parent]).append(place)
    for place in reversed(range(len(tiles))):
        # A document may be in several topics below one: all of them have to fit in.
        weights[place] = max(weights[place], sum(weights[child] for child in children[place]))
    parts = []
    waiting = [(roots, Box(0.0, 0.0, size.width, size.height))]
    while waiting:
        places, box = waiting.pop()
        places = sorted((place for place in places if weights[place] > 0), key=lambda p: (-weights[p], p))
        for place, inner in zip(places, squarified([weights[p] for p in places], box), strict=True):
            if min(inner.width, inner.height) < LEAST:
                continue
            below = _below(inner) if children[place] else None
            parts.append(_tile(tiles[place], inner, below is not None))
            if below is not None:
                waiting.append((children[place], below))
    largest = sorted(range(len(tiles)), key=lambda place: (-tiles[place].size, place))[:DESCRIBED]
    about = "; ".join(f"{shorten(tiles[place].name, 60)}: {tiles[place].about}" for place in largest)
    key = f"topics-{size.name}"
    return "\n".join(
        [
            f'<svg class="chart map {size.name}" viewBox="0 0 {size.width:.0f} {size.height:.0f}" role="img" '
            f'aria-labelledby="{key}-title {key}-about">',
            f'<title id="{key}-title">Topics by traffic and error</title>',
            f'<desc id="{key}-about">{_text(about, 3_000)}</desc>',
            *parts,
            "</svg>",
        ]
    )


def squarified(weights: Sequence[float], box: Box) -> list[Box]:
    """Share out a box by weights, which descend and are positive, so that no part is long and thin.

    After Bruls, Huizing and van Wijk (2000): a row along the shorter side takes weights as long as that makes
    the worst ratio of sides in it better.

    >>> squarified([2.0, 1.0, 1.0], Box(0.0, 0.0, 4.0, 2.0))[0]
    Box(x=0.0, y=0.0, width=2.0, height=2.0)
    """
    if not weights:
        return []
    scale = box.width * box.height / sum(weights)
    areas = [weight * scale for weight in weights]
    boxes: list[Box] = []
    first = 0
    while first < len(areas):
        side = min(box.width, box.height)
        last = first + 1
        while last < len(areas) and _worst(areas[first : last + 1], side) <= _worst(areas[first:last], side):
            last += 1
        row = areas[first:last]
        depth = sum(row) / side if side > 0 else 0.0
        at = 0.0
        for area in row:
            length = area / depth if depth > 0 else 0.0
            if box.width >= box.height:
                boxes.append(Box(box.x, box.y + at, depth, length))
            else:
                boxes.append(Box(box.x + at, box.y, length, depth))
            at += length
        if box.width >= box.height:
            box = Box(box.x + depth, box.y, max(box.width - depth, 0.0), box.height)
        else:
            box = Box(box.x, box.y + depth, box.width, max(box.height - depth, 0.0))
        first = last
    return boxes


def _worst(areas: Sequence[float], side: float) -> float:
    """Return the worst ratio of sides in a row of these areas."""
    total = sum(areas)
    if total <= 0 or side <= 0 or min(areas) <= 0:
        return float("inf")
    return max(side * side * max(areas) / (total * total), total * total / (side * side * min(areas)))


def _below(box: Box) -> Box | None:
    """Return the room under the name; None if there is too little for anything."""
    width, height = box.width - 4 * GAP, box.height - HEAD - 3 * GAP
    if width < 4 * LEAST or height < 2 * LEAST:
        return None
    return Box(box.x + 2 * GAP, box.y + HEAD + GAP, width, height)


def _tile(tile: Tile, box: Box, has_more: bool) -> str:
    kind = "none" if tile.error is None else f"e{sum(tile.error > bound for bound in BOUNDS)}"
    width, height = max(box.width - GAP, 0.5), max(box.height - GAP, 0.5)
    about = _text(f"{tile.name}: {tile.about}", 600)
    at = f'x="{box.x + GAP / 2:.1f}" y="{box.y + GAP / 2:.1f}" width="{width:.1f}" height="{height:.1f}"'
    words = _label(tile, box, has_more)
    return f'<g class="tile {kind}"><title>{about}</title><rect {at} rx="2"/>{words}</g>'


def _label(tile: Tile, box: Box, has_more: bool) -> str:
    """Return the name, as much of it as fits, and below it the error where there is room."""
    room, x, y = box.width - 9, box.x + 5, box.y + 13
    most_lines = 1 if has_more else int(min((box.height - 2) // LINE, MOST_LINES))
    lines = _lines(printable(tile.name)[:80], room, most_lines) if box.height >= LINE else []
    label = "".join(
        f'<text x="{x:.1f}" y="{y + LINE * number:.1f}">{_text(line)}</text>'
        for number, line in enumerate(lines)
    )
    if tile.error is None or not lines:
        return label
    error = f"{100 * tile.error:.0f} %"
    if has_more:
        end = f'x="{box.x + box.width - 5:.1f}" y="{y:.1f}" text-anchor="end"'
        fits = width_of(lines[0]) + width_of(error) + 8 <= room
        return label + (f'<text class="less" {end}>{error}</text>' if fits else "")
    if box.height >= LINE * (len(lines) + 1) + 2 and width_of(error) <= room:
        label += f'<text class="less" x="{x:.1f}" y="{y + LINE * len(lines):.1f}">{error}</text>'
    return label


def _lines(name: str, room: float, most: int) -> list[str]:
    """Return a name in lines, broken at blanks and cut where need be; none if too little would be left."""
    lines: list[str] = []
    for word in name.split():
        together = f"{lines[-1]} {word}" if lines else word
        if lines and (width_of(together) <= room or len(lines) == most):
            lines[-1] = together
        else:
            lines.append(word)
    cut: list[str] = []
    for line in lines[:most]:
        longest = next((n for n in range(len(line), 1, -1) if width_of(shorten(line, n)) <= room), 0)
        if longest < min(3, len(line)):
            return [*cut[:-1], f"{cut[-1]}…"] if cut else []
        cut.append(shorten(line, longest))
    return cut


def _text(text: str, longest: int = 300) -> str:
    return escape(shorten(printable(text), longest))
