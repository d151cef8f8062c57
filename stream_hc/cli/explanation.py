"""An explanation on the terminal: a node a block, a bar for each word."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stream_hc.cli.console import clean, out
from stream_hc.explain import Explanation, Step
from stream_hc.runtime.records import Document

__all__ = ["print_explanation", "print_strongest"]

LONGEST_TEXT, LONGEST_WORD = 300, 40
BLOCKS = "▏▎▍▌▋▊▉█"
BAR = 24
SEEN = 0.0005  # differences that three decimals show
FOR, AGAINST = "green", "red"


def print_explanation(name: str, document: Document, explanation: Explanation) -> None:
    """Print what a model says about a document, and why."""
    what = _cut(document.text, LONGEST_TEXT) if document.text is not None else document.id
    out().print(Text(clean(what), style="italic"), soft_wrap=False)
    out().print(Text(f"{clean(name)} ({explanation.kind}), {_features(explanation.n_features)}", style="dim"))
    out().print(Text(explanation.rule, style="dim"))
    if explanation.nodes == "nearest":
        out().print("\nNothing is predicted. The roots that came closest:")
    elif not explanation.labels:
        out().print("\nNothing is predicted.")
    largest = max((abs(number) for step in explanation.steps for number in _numbers(step)), default=0.0)
    for step in explanation.steps:
        indent = 0 if explanation.nodes == "nearest" else 2 * step.depth
        out().print(Padding(_block(step, largest), (1, 0, 0, indent), expand=False))


def print_strongest(name: str, node: str, words: Sequence[tuple[str, int, float]]) -> None:
    """Print the words that count most at a node."""
    out().print(Text(f"{clean(node)}: the strongest weights of {clean(name)}\n", style="bold"))
    if not words:
        out().print(Text("No weights to show.", style="dim"))
        return
    largest = max(abs(weight) for _, _, weight in words)
    table = _table()
    for word, _, weight in words:
        table.add_row(*_row(word, weight, largest))
    out().print(table)


def _block(step: Step, largest: float) -> Group:
    head = Text()
    head.append("● " if step.is_on else "○ ", style="bold green" if step.is_on else "bold")
    head.append(clean(step.node), style="bold")
    head.append(f"  {_signed(step.margin)}", style=FOR if step.margin > 0 else AGAINST)
    if abs(step.total - step.margin) >= SEEN:
        head.append(f"  (score of the node {_signed(step.total)})")
    table = _table()
    for share in step.shares:
        table.add_row(*_row(share.feature, share.contribution, largest))
    if step.bias:
        table.add_row(*_row("(bias)", step.bias, largest, "dim"))
    if step.n_rest or abs(step.rest) >= SEEN:
        table.add_row(*_row(f"({step.n_rest} other{'s' * (step.n_rest != 1)})", step.rest, largest, "dim"))
    parts: list[Text | Table] = [head, Text(f"  {clean(step.reason)}", style="dim")]
    if len(step.through) > 1:
        said = ", ".join(f"{clean(each.node)} {_signed(each.contribution)}" for each in step.through)
        parts.append(Text(f"  through {said}", style="dim"))
    return Group(*parts, table)


def _table() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=1)
    table.add_column(min_width=14, overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    return table


def _row(word: str, number: float, largest: float, style: str = "") -> tuple[str, Text, Text, Text]:
    color = FOR if number > 0 else AGAINST
    shown = Text(_cut(clean(word), LONGEST_WORD), style=style)
    return "", shown, Text(_signed(number)), Text(_bar(number, largest), style=color)


def _bar(number: float, largest: float) -> str:
    """Return a bar of up to `BAR` cells, in eighths of one.

    >>> _bar(-0.25, 2.0), _bar(2.0, 2.0) == "█" * BAR
    ('███', True)
    """
    eighths = round(abs(number) / largest * BAR * 8) if largest else 0
    return "█" * (eighths // 8) + (BLOCKS[eighths % 8 - 1] if eighths % 8 else "")


def _numbers(step: Step) -> list[float]:
    return [*(share.contribution for share in step.shares), step.bias, step.rest]


def _signed(number: float) -> str:
    return f"{number if abs(number) >= SEEN else 0.0:+.3f}".replace("-", "−")


def _cut(text: str, longest: int) -> str:
    while cell_len(text) > longest:
        text = text[: max(1, min(len(text) - 2, longest - 1))].rstrip() + "…"
    return text


def _features(number: int) -> str:
    return f"{number} feature{'s' * (number != 1)}"
