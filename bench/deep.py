"""Large taxonomies: HPA beside Vowpal Wabbit's label tree, `make bench-deep`.

From raw text, all read and learn one document after the other; then all predict what was held out. A document
has one path here: of several labels the first one counts. Writes `docs/large-taxonomies.md`.
"""

import gzip
import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console
from scipy.sparse import csr_array

from bench import ours
from bench.contest import Entrant
from bench.labels import closed
from bench.machine import machine
from bench.material import Material, Split, split
from bench.ours import HPA_LINES
from bench.peers import vw
from bench.real import BESIDE
from bench.required import Verdict
from bench.rounds import Timing, measure, ratio
from bench.streams import Stream, single_path
from stream_hc import HPA, Taxonomy
from stream_hc.datasets import load
from stream_hc.losses import tree_induced_error, zero_one

PATHS, LEAVES, QUICK_LEAVES = "VW plt", vw.leaf_name(25), vw.leaf_name(18)
ROUNDS = 3
MOST_MEMORY = 2.0  # GiB
PAGE = Path(__file__).with_name("deep.md")
WRITTEN = Path(__file__).resolve().parent.parent / "docs" / "large-taxonomies.md"


def main() -> None:
    """Measure, print, write; exit with 1 where a requirement is missed."""
    console = Console()
    parts: list[str] = []
    verdicts: list[Verdict] = []
    for stream in _streams():
        with tempfile.TemporaryDirectory(prefix="stream-hc-deep-") as folder:
            timings = _speed(Material(stream, Path(folder)))
            halves = split(stream, len(stream.texts) * 2 // 3, Path(folder))
            scores = {entrant.name: _judge(entrant, halves) for entrant in _entrants()}
        n_terms = halves.X_train.nnz / halves.X_train.shape[0]
        parts.append(_table(stream, n_terms, timings, scores))
        verdicts += _verdicts(stream.name, timings, scores)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    verdicts.append(Verdict("GiB, all of it in one process", resident, MOST_MEMORY, at_least=False))
    lines = [f"| {v.what} | {v.measured} | {v.required} | {'yes' if v.met else 'NO'} |" for v in verdicts]
    required = "\n".join(["| what | measured | required | met |", "| --- | ---: | ---: | --- |", *lines])
    page = PAGE.read_text(encoding="utf-8").format(
        machine=machine(), rounds=ROUNDS, tables="\n".join(parts), required=required
    )
    WRITTEN.write_text(page, encoding="utf-8")
    console.print(page, markup=False, highlight=False)
    sys.exit(0 if all(verdict.met for verdict in verdicts) else 1)


def _streams() -> Iterator[Stream]:
    yield single_path()
    folder = Path(os.environ.get("STREAM_HC_DATA", BESIDE)) / "inpi_patents"
    if folder.is_dir():
        data = load(folder)
        texts = [document for document in data.documents if isinstance(document, str)]
        with gzip.open(folder / "docs.jsonl.gz") as lines:
            first = [frozenset(msgspec.json.decode(line)["labels"][:1]) for line in lines]
        yield Stream("inpi_patents", data.taxonomy, texts, first)


def _speed(material: Material) -> dict[str, Timing]:
    peers = [*vw.deep_contestants(material), vw.leaf_driver(material, 25), vw.leaf_driver(material, 18)]
    return measure([*ours.of_paths(material), *peers], ROUNDS, material.stream.name)


def _entrants() -> list[Entrant]:
    def predict(halves: Split) -> csr_array:
        model = HPA(halves.test.stream.taxonomy)
        model.learn_many(halves.X_train, halves.train.Y)
        return model.predict_many(halves.X_test)

    paths = [entrant for entrant in vw.entrants() if entrant.name.startswith(PATHS)]
    return [Entrant(HPA_LINES, predict, ours=True), *paths, vw.leaf_entrant(25), vw.leaf_entrant(18)]


def _judge(entrant: Entrant, halves: Split) -> tuple[float, float]:
    """Return zero-one and tree-induced error after one pass over two thirds, on the last third."""
    taxonomy, Y_true = halves.test.stream.taxonomy, halves.test.Y
    Y = closed(entrant.predict(halves), taxonomy)
    return float(zero_one(taxonomy, Y, Y_true).mean()), _mean_distance(taxonomy, Y, Y_true)


def _mean_distance(taxonomy: Taxonomy, Y_pred: csr_array, Y_true: csr_array) -> float:
    """Return the mean distance of the deepest node predicted, or of the virtual root, to the true leaf."""
    distances = []
    true = [row[-1] for row in np.split(Y_true.indices, Y_true.indptr[1:-1])]
    for row, end in enumerate(true):
        nodes = Y_pred.indices[Y_pred.indptr[row] : Y_pred.indptr[row + 1]]
        if nodes.size:
            deepest = nodes[np.argmax(taxonomy.depth[nodes])]
            distances.append(tree_induced_error(taxonomy, taxonomy.nodes[deepest], taxonomy.nodes[end]))
        else:
            distances.append(int(taxonomy.depth[end]) + 1)
    return float(np.mean(distances))


def _table(
    stream: Stream, n_terms: float, timings: dict[str, Timing], scores: dict[str, tuple[float, float]]
) -> str:
    taxonomy = stream.taxonomy
    lines = [
        f"### {stream.name}: {len(stream.texts):,} documents of {n_terms:.0f} terms, "
        f"{len(taxonomy):,} nodes, {taxonomy.leaves.size:,} leaves\n",
        f"| who | documents/s | × {LEAVES} | zero-one | tree-induced error |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name in dict.fromkeys([*timings, *scores]):
        speed = (
            [f"{timings[name].median:,.0f}", f"{ratio(timings, name, LEAVES):.2f}"] if name in timings else []
        )
        errors = [f"{number:.3f}" for number in scores[name]] if name in scores else []
        lines.append(f"| {' | '.join([name, *(speed or ['', '']), *(errors or ['', ''])])} |")
    return "\n".join(lines) + "\n"


def _verdicts(
    stream: str, timings: dict[str, Timing], scores: dict[str, tuple[float, float]]
) -> list[Verdict]:
    found = [
        Verdict(f"{stream}: {HPA_LINES} ÷ {peer}", ratio(timings, HPA_LINES, peer), 1.0)
        for peer in (PATHS, LEAVES)
    ]
    for what, place in (("zero-one", 0), ("tree-induced error", 1)):
        ours_, peer = scores[HPA_LINES][place], scores[LEAVES][place]
        found.append(Verdict(f"{stream}: {what}, HPA ÷ {LEAVES}", ours_ / peer, 1.0, at_least=False))
    return found


if __name__ == "__main__":
    main()
