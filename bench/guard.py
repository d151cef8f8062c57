"""Regression guard: `make bench-guard` fails where a ratio has fallen to less than half of its baseline.

Only ratios within one run count, never times: the baseline of one machine holds on another, roughly, and a
factor of two leaves room for the rest. What else the machine does can only slow a run down: the clock counts
the time of this process alone, and both sides of a ratio are taken at their best round.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from bench import ours
from bench.limit import GATHER, limit
from bench.material import Material
from bench.peers import river_nodes, scikit
from bench.rounds import Timing, measure
from bench.streams import news_like

__all__ = ["BASELINE", "RATIOS", "fallen", "main"]

BASELINE = Path(__file__).parent / "baseline.json"
LEAST_SHARE = 0.5
DOCUMENTS, ONE_BY_ONE, ROUNDS = 6_000, 5_000, 5

# (faster, slower); no peer that needs an installation of its own
RATIOS = (
    ("H-PERC", GATHER),
    ("node PA", GATHER),
    ("H-AROW", "H-PERC"),
    ("H-PERC", scikit.NODES),
    (ours.TEXTS, scikit.HASHING),
    (ours.JSON_LINES, scikit.HASHING),
    (ours.DICTS, river_nodes.NODES),
)


def main(arguments: list[str] | None = None) -> int:
    """Measure and compare, or with --write renew the baseline; return 1 if a ratio has fallen."""
    parser = argparse.ArgumentParser(prog="python -m bench.guard", description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew bench/baseline.json")
    options = parser.parse_args(arguments)
    ratios = measured()
    if options.write:
        rounded = {name: round(value, 3) for name, value in ratios.items()}
        BASELINE.write_bytes(msgspec.json.format(msgspec.json.encode(rounded), indent=2) + b"\n")
    baseline = msgspec.json.decode(BASELINE.read_bytes(), type=dict[str, float])
    for name, value in ratios.items():
        print(f"{name}: {value:.3g} (baseline {baseline.get(name, float('nan')):.3g})")
    complaints = fallen(ratios, baseline)
    for complaint in complaints:
        print(f"error: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


def fallen(ratios: Mapping[str, float], baseline: Mapping[str, float]) -> list[str]:
    """Say which ratios are below half of their baseline, or have none."""
    complaints = [
        f"{name} is {ratios[name]:.3g}, less than half of its baseline {expected:.3g}"
        for name, expected in baseline.items()
        if name in ratios and ratios[name] < LEAST_SHARE * expected
    ]
    for name in sorted(ratios.keys() ^ baseline.keys()):
        missing = "in the baseline" if name in ratios else "among what was measured"
        complaints.append(f"{name} is not {missing}: renew the baseline by `python -m bench.guard --write`")
    return complaints


def measured() -> dict[str, float]:
    """Return the ratios of a small run."""
    with tempfile.TemporaryDirectory(prefix="stream-hc-guard-") as folder:
        material = Material(news_like(DOCUMENTS), Path(folder))
        few = material.first(ONE_BY_ONE)
        timings = measure(
            [
                limit(material),
                *ours.from_rows(material, ["H-PERC", "node PA", "H-AROW"]),
                ours.from_texts(material),
                ours.from_json(material),
                ours.from_dicts(few),
                scikit.nodes(material.first(2 * scikit.BATCH)),
                scikit.from_texts(material.first(2 * scikit.BATCH)),
                river_nodes.contestants(few)[0],
            ],
            ROUNDS,
            "guard",
            time.process_time,
        )
    return {f"{fast} ÷ {slow}": _best(timings[fast]) / _best(timings[slow]) for fast, slow in RATIOS}


def _best(timing: Timing) -> float:
    return max(timing.rates)


if __name__ == "__main__":
    sys.exit(main())
