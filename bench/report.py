"""The results as tables for the terminal, as JSON, and what both share with the page in docs/."""

from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from bench.accuracy import MEASURES, Score
from bench.limit import GATHER
from bench.machine import machine, versions
from bench.required import Verdict
from bench.rounds import Timing, ratio
from bench.run import Results

__all__ = ["ACCURACY_HEADER", "accuracy_rows", "as_json", "print_report", "speed_header", "speed_rows"]

# The columns of ratios: how many times as fast as these.
REFERENCES = {
    "× gather": GATHER,
    "× VW": "VW multilabel_oaa",
    "× scikit-learn": "scikit-learn Perceptron per node",
}


def speed_rows(timings: dict[str, Timing]) -> list[list[str]]:
    """Return group, name, documents, documents/s and the ratios of everyone, group by group."""
    references = [name for name in REFERENCES.values() if name in timings]
    groups = list(dict.fromkeys(timing.contestant.group for timing in timings.values()))
    rows = []
    for group in groups:
        members = [timing for timing in timings.values() if timing.contestant.group == group]
        for timing in sorted(members, key=lambda one: -one.median):
            one = timing.contestant
            ratios = [_short(ratio(timings, one.name, reference)) for reference in references]
            rows.append([group, one.name, f"{one.documents:,}", f"{timing.median:,.0f}", *ratios])
    return rows


def speed_header(timings: dict[str, Timing]) -> list[str]:
    """Return the names of the columns of `speed_rows`."""
    ratios = [title for title, name in REFERENCES.items() if name in timings]
    return ["task", "who", "documents", "documents/s", *ratios]


def accuracy_rows(scores: list[Score]) -> list[list[str]]:
    """Return name, mending and the four measures; of a peer only the better way to mend its labels."""
    shown: dict[str, Score] = {}
    for score in scores:
        shown.setdefault(score.name, score)
    ordered = sorted(shown.values(), key=lambda score: score.h_uniform)
    return [
        [f"**{score.name}**" if score.ours else score.name, score.mended or "respects it"]
        + [f"{getattr(score, measure):.4f}" for measure in MEASURES]
        for score in ordered
    ]


ACCURACY_HEADER = ["who", "taxonomy", "zero-one", "uniform H", "normalized H", "micro-F1"]


def print_report(results: Results, verdicts: list[Verdict], console: Console) -> None:
    """Print every table and verdict."""
    for name, timings in results.timings.items():
        _print(console, f"{name}: documents a second", speed_header(timings), speed_rows(timings))
    for name, scores in results.scores.items():
        plain = [[cell.strip("*") for cell in row] for row in accuracy_rows(scores)]
        _print(console, f"{name}: after one pass", ACCURACY_HEADER, plain)
    for verdict in verdicts:
        console.print(str(verdict), style="" if verdict.met else "bold red", highlight=False)


def as_json(results: Results, verdicts: list[Verdict]) -> bytes:
    """Return everything measured, for programs."""
    content: dict[str, Any] = {
        "machine": machine(),
        "versions": versions(),
        "sizes": results.sizes,
        "documents_per_second": {
            stream: {name: timing.rates for name, timing in timings.items()}
            for stream, timings in results.timings.items()
        },
        "ratios": {f"{fast} ÷ {slow}": value for (fast, slow), value in results.ratios.items()},
        "accuracy": results.scores,
        "endless": results.endless,
        "required": verdicts,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2)


def _print(console: Console, title: str, header: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title)
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number < 2 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"
