"""Vowpal Wabbit: its C++ driver, started from Python on a file in its text format.

The wheel has no command-line binary; a `Workspace` with `-d` reads the file to its end when it is made.
"""

from pathlib import Path

import vowpalwabbit
from scipy.sparse import csr_array

from bench.contest import Contestant, Entrant
from bench.labels import rows_of_labels
from bench.material import Material, Split
from bench.ours import RAW_GROUP
from stream_hc import TextVectorizer

__all__ = ["ANSWERS_WRITTEN", "DRIVER", "contestants", "deep_contestants", "drive", "entrants"]
__all__ += ["leaf_driver", "leaf_entrant", "leaf_name"]

DRIVER = "VW multilabel_oaa"
ANSWERS_WRITTEN = f"{DRIVER}, answers written"
ONE_BY_ONE = 3_000  # through Python, a tenth of the stream tells enough

# All weights of all labels share 2^b places: 18, the default, is the fastest, 25 the most accurate.
OAA = "--multilabel_oaa {n} --loss_function hinge -b {bits} --quiet"
PLT = "--plt {n} --loss_function logistic -b {bits} --quiet"
LEAF_RATE = "-l 1"  # of 0.5, 1 and 4 the best on both deep streams


def contestants(material: Material) -> list[Contestant]:
    """Driver on raw text, with and without a file of answers, Python calls, probabilistic label tree."""
    path = _write(material, "vw-oaa.txt")
    return [
        _driver(DRIVER, OAA, material, path),
        _driver(ANSWERS_WRITTEN, f"{OAA} -p {material.folder / 'vw-oaa-answers.txt'}", material, path),
        _by_python(material.first(ONE_BY_ONE)),
        *deep_contestants(material),
    ]


def drive(material: Material) -> Contestant:
    """One against all with hinge loss from raw words."""
    return _driver(DRIVER, OAA, material, _write(material, "vw-oaa.txt"))


def deep_contestants(material: Material) -> list[Contestant]:
    """Return the label tree, which alone can stand thousands of labels."""
    return [_driver("VW plt", PLT, material, _write(material, "vw-plt.txt"))]


def _driver(name: str, options: str, material: Material, path: Path) -> Contestant:
    command = options.format(n=len(material.stream.taxonomy), bits=18) + f" -d {path}"
    return Contestant(name, RAW_GROUP, len(material.stream.texts), lambda _: _run(command))


def _by_python(material: Material) -> Contestant:
    """Predict and learn from Python, line by line."""
    path = _write(material, "vw-python.txt")
    lines = path.read_text(encoding="utf-8").splitlines()
    command = OAA.format(n=len(material.stream.taxonomy), bits=18)

    def run(model: vowpalwabbit.Workspace) -> list[list[int]]:
        answers = []
        for line in lines:
            example = model.parse(line)
            answers.append(model.predict(example))
            model.learn(example)
            model.finish_example(example)
        return answers

    return Contestant(
        f"{DRIVER}, Python calls", RAW_GROUP, len(lines), run, lambda: vowpalwabbit.Workspace(command)
    )


def entrants() -> list[Entrant]:
    """Raw words at both sizes of the table of weights, our tf-idf weights, the tree."""

    def entrant(name: str, options: str, bits: int, weighted: bool = False) -> Entrant:
        return Entrant(name, lambda split: _train_and_test(split, options, bits, weighted))

    return [
        entrant(f"{DRIVER}, -b 18", OAA, 18),
        entrant(f"{DRIVER}, -b 25", OAA, 25),
        entrant(f"{DRIVER}, -b 25, tf-idf", OAA, 25, weighted=True),
        entrant("VW plt, -b 25", PLT, 25),
    ]


def leaf_driver(material: Material, bits: int) -> Contestant:
    """Drive the label tree over the most specific label of each document, with 2^bits weights."""
    path = _write(material, "vw-leaves.txt", leaves=True)
    command = f"{PLT.format(n=len(material.stream.taxonomy), bits=bits)} {LEAF_RATE} -d {path}"
    return Contestant(leaf_name(bits), RAW_GROUP, len(material.stream.texts), lambda _: _run(command))


def leaf_entrant(bits: int) -> Entrant:
    """Ask the same tree for the one label it thinks most likely."""

    def predict(split: Split) -> csr_array:
        train = _write(split.train, "vw-leaves-train.txt", leaves=True)
        test = _write(split.test, "vw-leaves-test.txt", leaves=True)
        model, answers = split.folder / "vw-leaves.model", split.folder / "vw-leaves-answers.txt"
        taxonomy = split.train.stream.taxonomy
        _run(f"{PLT.format(n=len(taxonomy), bits=bits)} {LEAF_RATE} -d {train} -f {model}")
        _run(f"-t -i {model} -d {test} -p {answers} --quiet --loss_function logistic --top_k 1")
        lines = answers.read_text().splitlines()  # label:probability
        return rows_of_labels([[int(line.split(":")[0])] if line.strip() else [] for line in lines], taxonomy)

    return Entrant(leaf_name(bits), predict)


def leaf_name(bits: int) -> str:
    """Return what the label tree over leaves is called."""
    return f"VW plt, leaves alone, -b {bits}"


def _train_and_test(split: Split, options: str, bits: int, weighted: bool) -> csr_array:
    train = _write(split.train, "vw-train.txt", split.X_train if weighted else None)
    test = _write(split.test, "vw-test.txt", split.X_test if weighted else None)
    model, answers = split.folder / "vw.model", split.folder / "vw-answers.txt"
    taxonomy = split.train.stream.taxonomy
    _run(options.format(n=len(taxonomy), bits=bits) + f" -d {train} -f {model}")
    # The tree does not remember its loss, and tells labels from probabilities only if given a threshold.
    extra = " --loss_function logistic --threshold 0.5" if "--plt" in options else ""
    _run(f"-t -i {model} -d {test} -p {answers} --quiet{extra}")
    lines = answers.read_text().splitlines()
    return rows_of_labels(
        [[int(node) for node in line.split(",") if node.strip()] for line in lines], taxonomy
    )


def _run(command: str) -> None:
    vowpalwabbit.Workspace(command).finish()


def _write(material: Material, name: str, X: csr_array | None = None, leaves: bool = False) -> Path:
    """Write labels and words (or the columns of `X` with their weights) in VW's text format.

    With `leaves` a document has one path, and only its end is written.
    """
    path, Y, tokens = material.folder / name, material.Y, TextVectorizer().tokens
    with path.open("w", encoding="utf-8") as file:
        for row, text in enumerate(material.stream.texts):
            nodes = Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()
            labels = ",".join(map(str, nodes[-1:] if leaves else nodes))
            if X is None:
                features = " ".join(tokens(text))
            else:
                part = slice(X.indptr[row], X.indptr[row + 1])
                pairs = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
                features = " ".join(f"{column}:{value:.6f}" for column, value in pairs)
            file.write(f"{labels} |f {features}\n")
    return path
