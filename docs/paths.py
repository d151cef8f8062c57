"""Write `paths.md`: `python docs/paths.py`. The learners of the 2011 paper on real sets.

They come from the folder that the environment variable `STREAM_HC_DATA` names, `../shared/data` beside the
checkout by default.
"""

import gzip
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc import HPA, LHPA, PA, Taxonomy
from stream_hc.datasets import load
from stream_hc.evaluate import vectorize_dataset
from stream_hc.learners import PathLearner
from stream_hc.losses import tree_induced_error

ROOT = Path(__file__).resolve().parent.parent
EPOCHS = 10
PAGE = """\
# The learners of the 2011 paper

Qiu, Huang, Liu and Zhou, *Hierarchical text classification with latent concepts* (2011), compare a flat
passive-aggressive learner (PA), one that adds up scores along a path (HPA), and one with two latent concepts
for each node (LHPA). Here they are on two other sets, printed by `python docs/paths.py`, all with C = 1.

A document has one path: that of its first label. `newsgroups20` is split as it came, the other after two
thirds. In `inpi_patents_d` a path may end at an inner node, so its learners have `partial_paths=True`. Texts
are weighted by the document frequencies of the training part.

Three ways to train: **one pass** over the training documents, as on a stream; one pass with **averaged**
weights; and the printed algorithm, `fit`: {epochs} epochs, each from nothing and in an order of its own, and
the mean of their weights.

Accuracy is the share of documents whose path is right to its end; TIE the mean tree-induced error between the
ends. Macro-F1 is 2PR / (P + R) of the mean precision P and the mean recall R over the ends that occur in the
test part (the paper prints it without the 2).

{tables}
"""


class Task(NamedTuple):
    """A set, cut in two, with one path a document."""

    taxonomy: Taxonomy
    X: csr_array
    ends: NDArray[np.int64]
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    partial_paths: bool


def main() -> None:
    """Train, judge and write."""
    folder = Path(os.environ.get("STREAM_HC_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        sys.exit(f"error: {folder} is missing: set STREAM_HC_DATA")
    tables = [table(name, task_of(folder / name)) for name in ("newsgroups20", "inpi_patents_d")]
    (ROOT / "docs" / "paths.md").write_text(
        PAGE.format(epochs=EPOCHS, tables="\n".join(tables)), encoding="utf-8"
    )


def task_of(folder: Path) -> Task:
    """Read a set."""
    data = load(folder)
    with gzip.open(folder / "docs.jsonl.gz") as lines:
        first = [msgspec.json.decode(line)["labels"] for line in lines]
    # Some sets list ancestors, too: the first of the most specific labels.
    ends = []
    for labels in first:
        specific = data.taxonomy.most_specific(data.taxonomy.close(labels))
        ends.append(data.taxonomy.index(next(label for label in labels if label in specific)))
    rows = np.arange(len(ends))
    is_train = rows < len(ends) * 2 // 3
    if data.name == "newsgroups20":
        is_train = np.array([part == "train" for part in data.splits or ()])
    train, test = rows[is_train], rows[~is_train]
    X = vectorize_dataset(data, train=train)
    return Task(data.taxonomy, X, np.array(ends), train, test, data.name == "inpi_patents_d")


def table(name: str, task: Task) -> str:
    """Return the results on a set."""
    n_ends = np.unique(task.ends).size
    lines = [
        f"## {name}: {task.train.size:,} / {task.test.size:,} documents, "
        f"{len(task.taxonomy):,} nodes, {n_ends:,} ends\n",
        "| learner | training | accuracy | macro-F1 | TIE |",
        "|---|---|---:|---:|---:|",
    ]
    Y = task.taxonomy.encode([{task.taxonomy.nodes[end]} for end in task.ends])
    X_train, Y_train = task.X[task.train], Y[task.train]
    for kind in (PA, HPA, LHPA):
        once, mean, whole = (
            kind(task.taxonomy, partial_paths=task.partial_paths, averaged=averaged)
            for averaged in (False, True, False)
        )
        for way, model, learn in (
            ("one pass", once, once.learn_many),
            ("averaged", mean, mean.learn_many),
            (f"{EPOCHS} epochs", whole, lambda X, Y, model=whole: model.fit(X, Y, epochs=EPOCHS)),
        ):
            lines.append(row(kind.__name__, way, model, learn, task, X_train, Y_train))
    return "\n".join(lines) + "\n"


def row(
    name: str,
    way: str,
    model: PathLearner,
    learn: Callable[[csr_array, csr_array], object],
    task: Task,
    X: csr_array,
    Y: csr_array,
) -> str:
    """Train and judge one learner."""
    learn(X, Y)
    predicted = model.predict_many(task.X[task.test])
    # A path ascends: its end is the last node. Where there is none, for want of features, node 0 stands in.
    found = np.array(
        [nodes[-1] if nodes.size else 0 for nodes in np.split(predicted.indices, predicted.indptr[1:-1])]
    )
    true = task.ends[task.test]
    names = task.taxonomy.nodes
    distance = tree_induced_error(task.taxonomy, [names[end] for end in found], [names[end] for end in true])
    right = found == true
    classes = np.unique(true)
    hits, told, meant = (
        np.bincount(ends, minlength=len(names))[classes] for ends in (true[right], found, true)
    )
    precision, recall = np.mean(hits / np.maximum(told, 1)), np.mean(hits / meant)
    f1 = 2 * precision * recall / max(precision + recall, 1e-12)
    return f"| {name} | {way} | {right.mean():.3f} | {f1:.3f} | {distance.mean():.3f} |"


if __name__ == "__main__":
    main()
