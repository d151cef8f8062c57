"""Large taxonomies: HPA beside Vowpal Wabbit's label tree, `python -m bench.deep` (needs the peers).

From raw text, both read and learn one document after the other; then both predict what was held out. A
document has one path here: of several labels the first one counts.
"""

import gzip
import os
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from bench import ours
from bench.contest import Contestant
from bench.labels import closed
from bench.material import Material, Split, split
from bench.peers import vw
from bench.real import BESIDE
from bench.rounds import measure, ratio
from bench.streams import Stream, single_path
from stream_hc import HPA, Taxonomy
from stream_hc.datasets import load
from stream_hc.losses import tree_induced_error, zero_one

PLT = "VW plt"
HPA_LINES = "JSON lines → HPA → JSON"


def main() -> None:
    """Measure and print."""
    console = Console()
    for stream in _streams():
        with tempfile.TemporaryDirectory(prefix="stream-hc-deep-") as folder:
            _speed(Material(stream, Path(folder)), console)
            _accuracy(split(stream, len(stream.texts) * 2 // 3, Path(folder)), console)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    console.print(
        f"the largest this process ever was: {resident:.2f} GiB, both learners and the data together"
    )


def _streams() -> Iterator[Stream]:
    yield single_path()
    folder = Path(os.environ.get("STREAM_HC_DATA", BESIDE)) / "inpi_patents"
    if folder.is_dir():
        data = load(folder)
        texts = [document for document in data.documents if isinstance(document, str)]
        with gzip.open(folder / "docs.jsonl.gz") as lines:
            first = [frozenset(msgspec.json.decode(line)["labels"][:1]) for line in lines]
        yield Stream("inpi_patents", data.taxonomy, texts, first)


def _speed(material: Material, console: Console) -> None:
    taxonomy = material.stream.taxonomy
    rows = Contestant(
        "HPA",
        ours.ROWS_GROUP,
        material.X.shape[0],
        lambda model: model.predict_then_learn(material.X, material.Y),
        lambda: HPA(taxonomy),
        ours=True,
    )
    lines = ours.from_json(material, HPA_LINES, HPA)
    timings = measure([rows, lines, *vw.deep_contestants(material)], 3, material.stream.name)
    table = Table(
        "who", "documents/s", title=f"{material.stream.name}: {len(material.stream.texts):,} documents"
    )
    for name, timing in timings.items():
        table.add_row(name, f"{timing.median:,.0f}")
    console.print(table)
    console.print(f"HPA from lines of JSON ÷ {PLT} (required: above 1): {ratio(timings, HPA_LINES, PLT):.2f}")


def _accuracy(halves: Split, console: Console) -> None:
    taxonomy = halves.test.stream.taxonomy
    model = HPA(taxonomy)
    model.learn_many(halves.X_train, halves.train.Y)
    answers = {"HPA": model.predict_many(halves.X_test)}
    for entrant in vw.entrants():
        if entrant.name.startswith(PLT):
            answers[entrant.name] = closed(entrant.predict(halves), taxonomy)
    table = Table(
        "who", "zero-one", "tree-induced error", title="after one pass over two thirds, on the last third"
    )
    for name, Y in answers.items():
        wrong = zero_one(taxonomy, Y, halves.test.Y).mean()
        table.add_row(name, f"{wrong:.4f}", f"{_mean_distance(taxonomy, Y, halves.test.Y):.4f}")
    console.print(table)
    console.print(f"weights of HPA: {model.nbytes / 2**20:.0f} MiB, {model.n_updates:,} updates")


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


if __name__ == "__main__":
    main()
