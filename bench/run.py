"""Everything `make bench` measures, one part after the other."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType

from bench import ours
from bench.accuracy import Score, judge
from bench.contest import Contestant
from bench.endless import Endless, run_endless
from bench.limit import limit
from bench.material import Material, split
from bench.peers import river_nodes, scikit
from bench.real import real_streams
from bench.required import LEAST
from bench.rounds import Timing, measure, ratio
from bench.streams import Stream, news_like, single_path

__all__ = ["MissingPeerError", "Results", "Sizes", "run"]

INSTALLED_APART = ("vw", "napkin", "fast_text")
ACCURACY_SEED = 5  # settings were chosen on seed 1, and seeds 0, 2, 3 and 4 were looked at on the way


class MissingPeerError(Exception):
    """A peer is not installed."""


@dataclass(frozen=True)
class Sizes:
    """How much to measure; the defaults are those of the published table."""

    documents: int = 30_000
    one_by_one: int = 30_000
    deep: int = 30_000
    endless: int = 1_000_000
    real: int | None = None  # all there are
    rounds: int = 5


@dataclass
class Results:
    """What came out, by the name of the stream."""

    sizes: Sizes
    timings: dict[str, dict[str, Timing]] = field(default_factory=dict)
    scores: dict[str, list[Score]] = field(default_factory=dict)
    ratios: dict[tuple[str, str], float] = field(default_factory=dict)
    endless: Endless | None = None


def run(sizes: Sizes, with_peers: bool) -> Results:
    """Measure everything."""
    peers = _installed_peers() if with_peers else []
    results = Results(sizes)
    with _folder() as folder:
        _news(results, folder, peers)
        if peers:
            _single_path(results, folder, peers)
        for stream in real_streams(sizes.real):
            _real(results, folder, peers, stream)
    results.endless = run_endless(sizes.endless)
    return results


def news_contestants(sizes: Sizes, folder: Path, peers: list[ModuleType]) -> list[list[Contestant]]:
    """Return all who run on the RCV1-like stream, in the order of their turns; each list by itself.

    Those who take one document at a time hold the whole stream as dicts, which fill memory and caches: they
    are compared with each other alone.
    """
    material = Material(news_like(sizes.documents), folder)
    many = [limit(material), *ours.from_rows(material), ours.from_texts(material), ours.from_json(material)]
    many += [*scikit.contestants(material), river_nodes.from_texts(material.first(sizes.documents // 6))]
    many += [one for peer in peers for one in peer.contestants(material)]
    one_by_one = material.first(sizes.one_by_one)
    return [many, [ours.from_dicts(one_by_one), *river_nodes.contestants(one_by_one)]]


def _news(results: Results, folder: Path, peers: list[ModuleType]) -> None:
    sizes = results.sizes
    timings: dict[str, Timing] = {}
    for contestants in news_contestants(sizes, folder, peers):
        timings |= measure(contestants, sizes.rounds, "RCV1-like")
    results.timings["RCV1-like"] = timings
    results.ratios |= {pair: ratio(timings, *pair) for pair in LEAST if timings.keys() >= set(pair)}
    halves = split(news_like(sizes.documents, ACCURACY_SEED), sizes.documents * 2 // 3, folder)
    entrants = ours.entrants() + [one for peer in (scikit, river_nodes, *peers) for one in peer.entrants()]
    results.scores["RCV1-like"] = judge(entrants, halves)


def _single_path(results: Results, folder: Path, peers: list[ModuleType]) -> None:
    """Time those that can stand 5,320 nodes."""
    sizes = results.sizes
    material = Material(single_path(sizes.deep), folder)
    contestants = ours.of_paths(material)
    contestants += [one for peer in peers for one in peer.deep_contestants(material)]
    results.timings["single path"] = measure(contestants, sizes.rounds, "single path")


def _real(results: Results, folder: Path, peers: list[ModuleType], stream: Stream) -> None:
    material = Material(stream, folder)
    contestants = [limit(material), *ours.from_rows(material, ["H-PERC", "node PA", "H-AROW"])]
    contestants += [ours.from_texts(material), ours.from_json(material), *scikit.contestants(material)]
    contestants += [peer.drive(material) for peer in peers if hasattr(peer, "drive")]
    results.timings[stream.name] = measure(contestants, results.sizes.rounds, stream.name)
    halves = split(stream, len(stream.texts) * 2 // 3, folder)
    entrants = ours.entrants() + [one for peer in (scikit, *peers) for one in peer.entrants()]
    results.scores[stream.name] = judge(entrants, halves)


def _installed_peers() -> list[ModuleType]:
    try:
        return [import_module(f"bench.peers.{name}") for name in INSTALLED_APART]
    except ImportError as error:
        remedy = "run `make bench`, which installs it, or `python -m bench --without-peers`"
        raise MissingPeerError(f"{error.name} is not installed: {remedy}") from error


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="stream-hc-bench-") as folder:
        yield Path(folder)
