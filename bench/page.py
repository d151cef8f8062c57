"""docs/benchmarks.md, written whole from the results of one run; the words around the tables: page.md."""

from datetime import date
from pathlib import Path

from bench.endless import N_FEATURES, Endless
from bench.machine import machine, versions
from bench.report import ACCURACY_HEADER, accuracy_rows, speed_header, speed_rows
from bench.required import Verdict
from bench.run import Results

__all__ = ["page"]

TEMPLATE = Path(__file__).parent / "page.md"


def page(results: Results, endless: Endless, verdicts: list[Verdict], chart: str) -> str:
    """Return the page; `chart` is the name of the picture beside it."""
    sizes = results.sizes
    return TEMPLATE.read_text(encoding="utf-8").format(
        rounds=sizes.rounds,
        machine=machine(),
        versions=", ".join(f"{name} {number}" for name, number in versions().items()),
        date=date.today().isoformat(),
        speed=_speed(results, chart),
        documents=f"{sizes.documents:,}",
        one_by_one=f"{sizes.one_by_one:,}",
        deep=f"{sizes.deep:,}",
        train=f"{sizes.documents * 2 // 3:,}",
        accuracy=_accuracy(results),
        endless_documents=f"{endless.documents:,}",
        columns=f"{N_FEATURES:,}",
        bound=f"{endless.bound / 1e6:.1f}",
        endless=_endless(endless),
        required=_required(verdicts),
    )


def _speed(results: Results, chart: str) -> str:
    parts = []
    for name, timings in results.timings.items():
        parts.append(f"### {name}\n\n" + _table(speed_header(timings), speed_rows(timings)))
        if len(parts) == 1:
            parts.append(f"![Documents a second on the RCV1-like stream]({chart})\n")
    return "\n".join(parts)


def _accuracy(results: Results) -> str:
    tables = {name: _table(ACCURACY_HEADER, accuracy_rows(scores)) for name, scores in results.scores.items()}
    return "\n".join(f"### {name}, after one pass\n\n{table}" for name, table in tables.items())


def _endless(endless: Endless) -> str:
    tenth = endless.documents // len(endless.rates)
    rows = [
        [f"{(k + 1) * tenth:,}", f"{rate:,.0f}", f"{held / 1e6:.1f}"]
        for k, (rate, held) in enumerate(zip(endless.rates, endless.held, strict=True))
    ]
    return _table(["documents seen", "documents/s", "MB held"], rows, n_words=0)


def _required(verdicts: list[Verdict]) -> str:
    rows = [[v.what, v.measured, v.required, "yes" if v.met else "**no**"] for v in verdicts]
    return _table(["what", "measured", "required", "met"], rows, n_words=1)


def _table(header: list[str], rows: list[list[str]], n_words: int = 2) -> str:
    rule = ["---" if k < n_words else "---:" for k in range(len(header))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *rows)) + "\n"
