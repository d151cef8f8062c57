"""The parts of the report in HTML: numbers, tables, legends, and the page around them.

Names and texts in a log come from outside: each goes through `name` or `text` and stays text.
"""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from stream_hc.evaluate.drawing import PALETTE, shorten
from stream_hc.runtime.report.chart import NARROW, WIDE, Chart
from stream_hc.runtime.report.summary import printable
from stream_hc.runtime.report.svg import DASHES, draw_chart

__all__ = ["bar", "figure", "legend", "name", "page", "section", "swatch", "table", "text", "tiles"]

# The palette again, light enough for a dark page.
DARK_PALETTE = ("#4BA3DC", "#F08545", "#2FBF98", "#DF9CC2", "#EBB03A", "#86CCF2", "#B8B8B8")
BLACK, WHITE = "#000000", "#ffffff"
ON_PALETTE = (WHITE, BLACK, BLACK, BLACK, BLACK, BLACK, WHITE)  # of text on a colour: at least 4.5 : 1
# Of errors, from few to many, and of text on them: at least 4.5 : 1.
ERRORS = ("#e4eef4", "#fdeccf", "#fbcf97", "#f3a066", "#c4471c", "#8f1d0c")
ON_ERRORS = (BLACK, BLACK, BLACK, BLACK, WHITE, WHITE)
DARK_ERRORS = ("#26323a", "#4a3d28", "#6e4620", "#9c4f1d", "#e98a4e", "#ffc19a")
ON_DARK_ERRORS = (WHITE, WHITE, WHITE, WHITE, BLACK, BLACK)
LONGEST_NAME, LONGEST_TEXT = 80, 600
# Nothing is loaded and nothing runs, whatever a name tries.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def text(raw: str) -> str:
    """Return text for a page."""
    return escape(shorten(printable(raw), LONGEST_TEXT))


def name(raw: str) -> str:
    """Return a name for a page, kept apart from the direction in which its neighbours are written."""
    return f"<bdi>{escape(shorten(printable(raw), LONGEST_NAME)) or '—'}</bdi>"


def swatch(style: tuple[int, int] | None) -> str:
    """Return a piece of the line of a model, or of what was served."""
    kind = "served" if style is None else f"k{style[0]}"
    dash = f' stroke-dasharray="{DASHES[style[1]]}"' if style and style[1] else ""
    return (
        '<svg class="swatch" viewBox="0 0 22 10" aria-hidden="true">'
        f'<path class="line {kind}"{dash} d="M0 5H22"/></svg>'
    )


def legend(entries: Iterable[tuple[str, tuple[int, int] | None, bool]]) -> str:
    """Return names beside pieces of their lines; what a wide chart names itself is left out there."""
    items = [
        f"<li{' class=ended' if named else ''}>{swatch(style)}{name(raw)}</li>"
        for raw, style, named in entries
    ]
    return f'<ul class="legend">{"".join(items)}</ul>'


def bar(share: float, color: int | None = None) -> str:
    """Return a bar of that share of the width; the number stands beside it."""
    fill = "" if color is None else f";background:var(--c{color})"
    return f'<span class="bar" style="width:{100 * min(max(share, 0), 1):.1f}%{fill}"></span>'


def table(caption: str, heads: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML; each column has a head and a class, the first names the row."""
    head = "".join(f'<th scope="col" class="{kind}">{escape(word)}</th>' for word, kind in heads)
    body = []
    for first, *cells in rows:
        others = "".join(
            f'<td class="{kind}">{cell}</td>' for cell, (_, kind) in zip(cells, heads[1:], strict=True)
        )
        body.append(f'<tr><th scope="row" class="{heads[0][1]}">{first}</th>{others}</tr>')
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{chr(10).join(body)}</tbody></table></div>"
    )


def tiles(numbers: Iterable[tuple[str, str, str]]) -> str:
    """Return headline numbers: what, how much, and a remark that is HTML."""
    cells = [
        f'<div><dt>{escape(what)}</dt><dd class="number">{escape(number)}</dd>'
        + (f'<dd class="remark">{remark}</dd>' if remark else "")
        + "</div>"
        for what, number, remark in numbers
    ]
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def section(key: str, title: str, *parts: str) -> str:
    """Return a part of the page with a heading."""
    inside = "\n".join(parts)
    return f'<section aria-labelledby="{key}">\n<h2 id="{key}">{escape(title)}</h2>\n{inside}\n</section>'


def figure(chart: Chart) -> str:
    """Return a chart for wide and for narrow pages; only one of them is ever shown."""
    return f"{draw_chart(chart, WIDE)}\n{draw_chart(chart, NARROW)}"


def page(title: str, lead: str, parts: Sequence[str], foot: str) -> str:
    """Return the whole page; `lead`, `parts` and `foot` are HTML."""
    inside = "\n".join(parts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{text(title)}</title>
<style>
{_colors()}
{files("stream_hc.runtime.report").joinpath("report.css").read_text(encoding="utf-8")}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<h1>{text(title)}</h1>
<p class="lead">{lead}</p>
</header>
<main id="content">
{inside}
</main>
<footer><p>{foot}</p></footer>
</body>
</html>
"""


def _colors() -> str:
    def variables(prefix: str, colors: Iterable[str]) -> str:
        return " ".join(f"--{prefix}{number}: {color};" for number, color in enumerate(colors))

    light = f"{variables('c', PALETTE)} {variables('o', ON_PALETTE)} --star: #9A6700;"
    light += f" {variables('e', ERRORS)} {variables('on-e', ON_ERRORS)}"
    dark = f"{variables('c', DARK_PALETTE)} {variables('o', [BLACK] * len(PALETTE))} --star: #EBB03A;"
    dark += f" {variables('e', DARK_ERRORS)} {variables('on-e', ON_DARK_ERRORS)}"
    rules = [
        f".k{number} {{ stroke: var(--c{number}); }} .f{number} {{ fill: var(--c{number}); }} "
        f".chart .o{number} {{ fill: var(--o{number}); }}"
        for number in range(len(PALETTE))
    ]
    rules += [
        f".key.e{number} {{ background: var(--e{number}); }} "
        f".map .e{number} rect {{ fill: var(--e{number}); }} "
        f".map .e{number} text {{ fill: var(--on-e{number}); }}"
        for number in range(len(ERRORS))
    ]
    return "\n".join(
        [
            f":root {{ {light} }}",
            f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}",
            *rules,
        ]
    )
