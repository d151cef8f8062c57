"""Write `paths.md`: `python docs/paths.py`. The learners of the papers of 2011 and 2007 on real sets.

They come from the folder that the environment variable `STREAM_HC_DATA` names, `../shared/data` beside the
checkout by default.
"""

import gzip
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc import HPA, LHPA, PA, RankingPerceptron, SequenceVectorizer, Taxonomy, losses
from stream_hc.datasets import load
from stream_hc.evaluate import vectorize_dataset
from stream_hc.learners import PathLearner

ROOT = Path(__file__).resolve().parent.parent
EPOCHS = {"newsgroups20": 10, "inpi_patents_d": 10, "ec_proteins": 3}
RANKED = ("cf_mesh", "inpi_patents_d")
PASSES = 5
PAGE = """\
# The learners of paths and of rankings

Both parts are printed by `python docs/paths.py`.

## PA, HPA and LHPA

Qiu, Huang, Liu and Zhou, *Hierarchical text classification with latent concepts* (2011), compare a flat
passive-aggressive learner (PA), one that adds up scores along a path (HPA), and one with two latent concepts
for each node (LHPA). Here they are on three other sets, all with C = 1.

A document has one path: that of its first label. `newsgroups20` is split as it came, the others after two
thirds, `ec_proteins` in an order drawn at random. In `inpi_patents_d` and `ec_proteins` a path may end at an
inner node, so their learners have `partial_paths=True`. Texts are weighted by the document frequencies of the
training part; the sequences of `ec_proteins` are rows of k-mers (`SequenceVectorizer()`).

Three ways to train: **one pass** over the training documents, as on a stream; one pass with **averaged**
weights; and the printed algorithm, `fit`: several epochs, each from nothing and in an order of its own, and
the mean of their weights.

Accuracy is the share of documents whose path is right to its end; TIE the mean tree-induced error between the
ends. Macro-F1 is 2PR / (P + R) of the mean precision P and the mean recall R over the ends that occur in the
test part (the paper prints it without the 2).

{paths}
## The ranking perceptron, flat and hierarchical

Cai and Hofmann, *Exploiting known taxonomies in learning overlapping concepts* (2007), rank all categories of
a document by a perceptron that knows the taxonomy (`RankingPerceptron`) and by one that does not
(`flat=True`). Their five measures, on the last third of the documents after training on the others:
one-accuracy (acc), average precision (prec), maximal loss (x-loss), ranking loss (rloss) and parent
one-accuracy (pacc); for x-loss and rloss less is better. A tie counts against the ranking. `cf_mesh` is a
DAG: a subject heading may stand in several places.

Training goes {passes} times over the documents in their order; in the **Minover** order the document with the
least margin is always next, and none is taken more than {passes} times. (On `inpi_patents_d` a Minover run
takes minutes and is left out.)

{ranks}
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
    ranks = [ranking(folder / name) for name in RANKED]
    paths = [table(name, task_of(folder / name)) for name in EPOCHS]
    page = PAGE.format(passes=PASSES, paths="\n".join(paths), ranks="\n".join(ranks))
    (ROOT / "docs" / "paths.md").write_text(page, encoding="utf-8")


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
    if data.name == "ec_proteins":
        rows = np.random.default_rng(0).permutation(rows)
    train, test = rows[is_train], rows[~is_train]
    sequences = SequenceVectorizer() if data.name == "ec_proteins" else None
    X = vectorize_dataset(data, train=train, sequences=sequences)
    return Task(data.taxonomy, X, np.array(ends), train, test, data.name != "newsgroups20")


def table(name: str, task: Task) -> str:
    """Return the results on a set."""
    n_ends, n_epochs = np.unique(task.ends).size, EPOCHS[name]
    lines = [
        f"### {name}: {task.train.size:,} / {task.test.size:,} documents, "
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
            (f"{n_epochs} epochs", whole, lambda X, Y, fit=whole.fit: fit(X, Y, epochs=n_epochs)),
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
    distance = losses.tree_induced_error(
        task.taxonomy, [names[end] for end in found], [names[end] for end in true]
    )
    right = found == true
    classes = np.unique(true)
    hits, told, meant = (
        np.bincount(ends, minlength=len(names))[classes] for ends in (true[right], found, true)
    )
    precision, recall = np.mean(hits / np.maximum(told, 1)), np.mean(hits / meant)
    f1 = 2 * precision * recall / max(precision + recall, 1e-12)
    return f"| {name} | {way} | {right.mean():.3f} | {f1:.3f} | {distance.mean():.3f} |"


def ranking(folder: Path) -> str:
    """Return flat and hierarchical rankings of a set in the form of the paper's tables."""
    data = load(folder)
    cut = len(data.documents) * 2 // 3
    X, Y = vectorize_dataset(data, train=np.arange(cut)), data.taxonomy.encode(data.labels)
    shape = "a tree" if data.taxonomy.is_tree else "a DAG"
    lines = [
        f"### {data.name}: {cut:,} / {Y.shape[0] - cut:,} documents, {len(data.taxonomy):,} nodes, {shape}\n",
        "| order | perceptron | acc (%) | prec (%) | x-loss | rloss (%) | pacc (%) |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    measures = (
        (losses.one_accuracy, 100, 1),
        (losses.average_precision, 100, 1),
        (losses.maximal_loss, 1, 2),
        (losses.ranking_loss, 100, 2),
        (losses.parent_one_accuracy, 100, 1),
    )
    orders: tuple[Literal["online", "minover"], ...] = ("online", "minover")
    for order in orders if data.name == "cf_mesh" else orders[:1]:
        for flat in (True, False):
            model = RankingPerceptron(data.taxonomy, flat=flat)
            model.fit(X[:cut], Y[:cut], order=order, epochs=PASSES, max_steps=PASSES * cut)
            scores = model.margins(X[cut:])
            cells = [
                f"{factor * measure(data.taxonomy, scores, Y[cut:]).mean():.{digits}f}"
                for measure, factor, digits in measures
            ]
            lines.append(f"| {order} | {'flat' if flat else 'hierarchical'} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
