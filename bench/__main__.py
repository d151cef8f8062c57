"""Ours, the peers and the bare limit in one run: `make bench`, or `python -m bench`."""

import argparse
import sys
from pathlib import Path

from rich.console import Console

from bench.chart import draw
from bench.page import page
from bench.report import as_json, print_report
from bench.required import Verdict, accuracy_verdict, endless_verdicts, speed_verdicts
from bench.run import MissingPeerError, Results, Sizes, run

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "results"
DOCS = ROOT / "docs"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write; return 1 if a requirement is missed, 2 if a peer is."""
    options = _parser().parse_args(arguments)
    sizes = Sizes()
    if options.quick:
        sizes = Sizes(3_000, 100, 1_000, 200, endless=100_000, real=1_000)
    try:
        results = run(sizes, with_peers=not options.without_peers)
    except MissingPeerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    verdicts = judge_all(results)
    print_report(results, verdicts, Console(width=None if sys.stdout.isatty() else 130))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "bench.json").write_bytes(as_json(results, verdicts))
    docs = RESULTS if options.quick or options.without_peers else DOCS
    draw(results.timings["RCV1-like"], docs / "benchmarks.png")
    (docs / "benchmarks.md").write_text(
        page(results, results.endless, verdicts, "benchmarks.png"), encoding="utf-8"
    )
    return 0 if all(verdict.met for verdict in verdicts) else 1


def judge_all(results: Results) -> list[Verdict]:
    """Return the verdicts on speed, on what an endless stream costs, and on accuracy."""
    verdicts = speed_verdicts(results.ratios)
    if results.endless is not None:
        verdicts += endless_verdicts(results.endless)
    return [*verdicts, accuracy_verdict(results.scores["RCV1-like"])]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--without-peers", action="store_true", help="leave out VW, napkinXC and fastText (and docs/)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of everything, to see that it runs (leaves docs/ alone)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
