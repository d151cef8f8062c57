"""Write `max-margin.md` and its picture: `python docs/maxmargin.py` (needs the extras `compare` and `plot`).

The tables of the paper of 2005 on real sets. They come from the folder that the environment variable
`STREAM_HC_DATA` names, `../shared/data` beside the checkout by default.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse import csr_array

from stream_hc import HM3, HRLS, HSVM, FlatSVM, SequenceVectorizer, Taxonomy, losses
from stream_hc.datasets import load
from stream_hc.evaluate import vectorize_dataset
from stream_hc.evaluate.drawing import GRID, INK, line_style, save

ROOT = Path(__file__).resolve().parent.parent
SETS = {
    "reuters21578": "train-rest",
    "newsgroups20": "own",
    "inpi_patents_d": "two-thirds",
    "ec_proteins": "two-thirds",
}
TRAINING: dict[str, dict[str, Any]] = {
    "ℓ_Δ": {"loss": "symmetric_difference"},
    "ℓ_H̃ uniform": {"costs": "uniform"},
    "ℓ_H̃ sibling": {"costs": "sibling"},
    "ℓ_H̃ subtree": {"costs": "subtree"},
}
SVM, H_SVM, RLS, BEST = "SVM", "H-SVM", "H-RLS", "H-M³ ℓ_H̃ subtree"
DRAWN = "reuters21578"
PATIENCE = 120.0  # seconds for one H-M³
LONG = "ec_proteins"  # sequences with more k-mers than there are documents: a kernel is smaller than the rows

PAGE = """\
# H-M³ beside SVMs and H-RLS

Rousu, Saunders, Szedmak and Shawe-Taylor, *Learning hierarchical multi-category text classification models*
(2005), train one model for whole multilabels (`HM3`) and set it against an SVM at every node (`FlatSVM`), one
that sees only the documents of its parent (`HSVM`), and H-RLS. Here are their three tables on other sets,
printed by `python docs/maxmargin.py`.

H-M³ has C = 1 and stops at a duality gap of 1 %, or after {patience:.0f} seconds: the column "gap" says how
far it came. SVM and H-SVM are scikit-learn's `LinearSVC`, C = 1, with an intercept, which H-M³ does not have.
H-RLS is one pass (`HRLS`, exact). `reuters21578` and `newsgroups20`
are split as they came, the others after two thirds, `ec_proteins` in an order drawn at random. Sequences are
rows of k-mers; there H-M³ is trained on their inner products (`fit_kernel`), and SVM and H-RLS are left out,
because they take too long.

{summary}

{sets}
## On the way to the optimum

![gap and test loss over time](max-margin.png)

H-M³ with ℓ_H̃ and subtree costs on `{drawn}`. Above: dual objective and what it is at most (objective + gap),
below: the loss it is trained for on the test documents. {curve}

## More than one process

`HM3.fit` takes workers that share the documents, processes of this machine or those of a Dask cluster
(`pip install "stream_hc[distributed]"`):

```python
from stream_hc.maxmargin.distributed import dask_workers

if __name__ == "__main__":  # the processes import this file
    with dask_workers(2) as workers:  # or dask_workers(scheduler="tcp://127.0.0.1:8786")
        model = HM3(taxonomy).fit(X, Y, workers=workers)
```

`stream-hc refit` and `stream-hc run --refit` do the same with `--workers 2` or `--scheduler
tcp://HOST:PORT` ([cli.md](cli.md#refit)). Each worker makes CSGA passes over its documents, sixteen chunks
a pass; after each chunk they tell each other which dual variables changed. At the end of an epoch the
objective of all together is worked out. If it is lower than before, a joined step goes back to the highest
point on the way, so it never falls; the duality gap is that of the joined model. Where exchanges lead
nowhere, as with one document in all shards, an epoch is one pass and a joined step. Progress and limits are
those of one process; `workers.cancel()`, or Ctrl-C, ends the fit with what it has. A worker that is killed
is replaced and told again what it missed: the model has the same bits, and they depend on the seed and on
the number of shards alone. Workers of Dask exchange pickled objects: use a scheduler only if you trust it.
Every worker holds all rows and a copy of the weights; `max_memory` counts those on this machine.

[distributed-refit.md](distributed-refit.md) has what that saves.
"""


class Task(NamedTuple):
    """A set, cut in two."""

    taxonomy: Taxonomy
    X: csr_array
    Y: csr_array
    train: Any
    test: Any


class Found(NamedTuple):
    """What a model predicted, how long its training took, and how large its relative gap is then."""

    predicted: csr_array
    seconds: float
    gap: float = np.nan


def main() -> None:
    """Train, judge, draw and write."""
    folder = Path(os.environ.get("STREAM_HC_DATA", ROOT.parent / "shared" / "data"))
    if not all((folder / name).is_dir() for name in SETS):
        sys.exit(f"error: {folder} does not hold the real sets: set STREAM_HC_DATA")
    parts, ahead, curve = [], {}, ""
    for name, protocol in SETS.items():
        task = read(folder / name, protocol)
        if name == DRAWN:
            curve = draw(task)
        found = {}
        for model, train in models(name, task).items():
            found[model] = train()
            print(f"{name}: {model}, {found[model].seconds:.1f} s", flush=True)  # noqa: T201
        parts.append(tables(name, task, found))
        ahead[name] = is_ahead(task, found)
        print(parts[-1], flush=True)  # noqa: T201
    page = PAGE.format(
        patience=PATIENCE, summary=summary(ahead), sets="\n".join(parts), drawn=DRAWN, curve=curve
    )
    (ROOT / "docs" / "max-margin.md").write_text(page.rstrip() + "\n", encoding="utf-8")


def read(folder: Path, protocol: str) -> Task:
    """Read a set and make rows of it, weighted by the training documents."""
    data = load(folder)
    train, test = data.train_test(own=protocol != "two-thirds")
    if protocol == "train-rest":
        test = np.setdiff1d(np.arange(len(data)), train)
    if data.name == LONG:
        order = np.random.default_rng(0).permutation(len(data))
        train, test = order[train], order[test]
    sequences = SequenceVectorizer() if data.name == LONG else None
    X = vectorize_dataset(data, train=train, sequences=sequences)
    return Task(data.taxonomy, X, data.taxonomy.encode(data.labels), train, test)


def models(name: str, task: Task) -> dict[str, Callable[[], Found]]:
    """Return what to train, by its name in the tables."""
    tax, X, Y, train, test = task

    def timed(model: Any, learn: Callable[[Any, Any], object]) -> Found:
        start = perf_counter()
        learn(X[train], Y[train])
        seconds = perf_counter() - start
        gap = model.duality_gap_ / model.dual_objective_ if isinstance(model, HM3) else np.nan
        return Found(model.predict_many(X[test]), seconds, gap)

    def svm(kind: type[FlatSVM]) -> Callable[[], Found]:
        model = kind(tax)
        return lambda: timed(model, model.fit)

    def rls() -> Found:
        model = HRLS(tax)
        return timed(model, model.learn_many)

    def hm3(how: dict[str, Any]) -> Callable[[], Found]:
        model = HM3(tax, max_seconds=PATIENCE, **how)
        if name != LONG:
            return lambda: timed(model, model.fit)

        def by_kernel() -> Found:
            rows = X.astype(np.float64)
            start = perf_counter()
            model.fit_kernel((rows[train] @ rows[train].T).toarray(), Y[train])
            seconds = perf_counter() - start
            gap = model.duality_gap_ / model.dual_objective_
            return Found(model.predict_kernel((rows[test] @ rows[train].T).toarray()), seconds, gap)

        return by_kernel

    baselines = {H_SVM: svm(HSVM)} if name == LONG else {SVM: svm(FlatSVM), H_SVM: svm(HSVM), RLS: rls}
    return baselines | {f"H-M³ {loss}": hm3(how) for loss, how in TRAINING.items()}


def is_ahead(task: Task, found: dict[str, Found]) -> bool:
    """Whether H-M³ has less zero-one and less uniform H-loss than H-SVM."""
    true = task.Y[task.test]
    return all(
        loss(task.taxonomy, found[BEST].predicted, true).mean()
        < loss(task.taxonomy, found[H_SVM].predicted, true).mean()
        for loss in (losses.zero_one, losses.h_loss)
    )


def summary(ahead: dict[str, bool]) -> str:
    """Return a sentence about who is ahead."""
    yes = [f"`{name}`" for name, is_so in ahead.items() if is_so]
    no = [f"`{name}`" for name, is_so in ahead.items() if not is_so]
    sentence = (
        f"{BEST} is ahead of H-SVM on zero-one and on uniform H-loss on {' and '.join(yes) or 'no set'}"
    )
    return f"{sentence}; it is not on {' and '.join(no)}." if no else f"{sentence}."


def tables(name: str, task: Task, found: dict[str, Found]) -> str:
    """Return the three tables of one set as Markdown."""
    tax, true = task.taxonomy, task.Y[task.test]
    measures: dict[str, Callable[[csr_array], float]] = {
        "zero-one": lambda Y: losses.zero_one(tax, Y, true).mean(),
        "ℓ_Δ": lambda Y: losses.symmetric_difference(tax, Y, true).mean(),
        "ℓ_H uniform": lambda Y: losses.h_loss(tax, Y, true).mean(),
        "ℓ_H sibling": lambda Y: losses.h_loss(tax, Y, true, "sibling").mean(),
        "ℓ_H subtree": lambda Y: losses.h_loss(tax, Y, true, "subtree").mean(),
    }
    lines = [
        f"## {name}: {len(task.train):,} / {len(task.test):,} documents, {len(tax):,} nodes\n",
        "| model | " + " | ".join(measures) + " | P | R | F1 | seconds | gap |",
        "|---|" + "---:|" * (len(measures) + 5),
    ]
    values = {model: [f(one.predicted) for f in measures.values()] for model, one in found.items()}
    least = [f"{min(column):.3f}" for column in zip(*values.values(), strict=True)]
    for model, one in found.items():
        texts = [f"{value:.3f}" for value in values[model]]
        cells = [f"**{t}**" if t == best else t for t, best in zip(texts, least, strict=True)]
        micro = losses.precision_recall_f1(tax, one.predicted, true)
        cells += [f"{value:.3f}" for value in micro]
        gap = "" if np.isnan(one.gap) else f"{one.gap:.1%}"
        lines.append(f"| {model} | " + " | ".join(cells) + f" | {one.seconds:.1f} | {gap} |")
    lines += ["", "Precision / recall on each level:\n", *levels(tax, true, found)]
    return "\n".join(lines) + "\n"


def levels(tax: Taxonomy, true: csr_array, found: dict[str, Found]) -> list[str]:
    """Return precision and recall of some models on each level, as the lines of a table."""
    shown = [model for model in (SVM, H_SVM, RLS, "H-M³ ℓ_Δ", BEST) if model in found]
    n_levels = int(tax.depth.max()) + 1
    lines = [
        "| model | " + " | ".join(f"level {k}" for k in range(n_levels)) + " |",
        "|---|" + "---:|" * n_levels,
    ]
    for model in shown:
        by_level = losses.precision_recall_f1(tax, found[model].predicted, true, "level")
        pairs = zip(by_level.precision, by_level.recall, strict=True)
        lines.append(f"| {model} | " + " | ".join(f"{p:.3f} / {r:.3f}" for p, r in pairs) + " |")
    return lines


def draw(task: Task) -> str:
    """Draw how objective, gap and test loss go; return a sentence about it."""
    tax, X, Y, train, test = task
    model = HM3(tax, costs="subtree", tol=1e-3)
    model.fit(X[train], Y[train], validation=(X[test], Y[test]), patience=10**6)
    epochs = [entry["epoch"] for entry in model.history_]
    objective = np.array([entry["dual_objective"] for entry in model.history_])
    bound = objective + np.array([entry["duality_gap"] for entry in model.history_])
    tested = [entry["held_out_loss"] for entry in model.history_]
    figure = Figure(figsize=(8, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(epochs[1:], objective[1:], label="dual objective", **line_style(0))
    above.plot(epochs[1:], bound[1:], label="objective + gap: the optimum is below", **line_style(1))
    above.set_yscale("log")
    above.legend(frameon=False)
    below.plot(epochs[1:], tested[1:], **line_style(2))
    below.set_xlabel("epoch", color=INK)
    below.set_ylabel("loss on test documents", color=INK)
    above.set_ylabel("objective", color=INK)
    for axes in (above, below):
        axes.grid(color=GRID)
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, ROOT / "docs" / "max-margin.png")
    within = next(k for k, (d, b) in enumerate(zip(objective, bound, strict=True)) if b - d <= 0.01 * d)
    return (
        f"The gap is below 1 % after {within} epochs, where the loss is {tested[within]:.4f}, and below\n"
        f"0.1 % after {len(epochs) - 1}, where it is {tested[-1]:.4f}."
    )


if __name__ == "__main__":
    main()
