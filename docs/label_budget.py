"""Write `label-budget.md` and its picture: `python docs/label_budget.py` (needs the extra `plot`).

How many labels H-RLS has to ask for. The real sets come from the folder that the environment variable
`STREAM_HC_DATA` names, `../shared/data` beside the checkout by default; where it is missing the page is left
alone.
"""

import os
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc import HRLS
from stream_hc.datasets import Dataset, load
from stream_hc.evaluate import vectorize_dataset
from stream_hc.evaluate.drawing import FAINT, GRID, INK, line_style, new_page, save
from stream_hc.losses import h_loss

ROOT = Path(__file__).resolve().parent.parent
SETS = {"reuters21578": "train-rest", "newsgroups20": "own"}
N_TRAIN = 4000
SCALES = (1.0, 0.5, 0.25, 0.125, 0.0625)
SEEDS = (0, 1, 2)

PAGE = """\
# How many labels are worth asking for

`query_one(x)` of the second-order learners names the nodes that would store a document: those with a margin
in the band |m| ≤ √(5 ln t / N) (N documents stored at the node, t learned), among the nodes whose parents are
predicted. Empty: the labels are not worth asking for.

```python
if model.query_one(x):
    model.learn_one(x, ask_somebody(x))
```

The tables are printed by `python docs/label_budget.py`: `HRLS` goes once through the first {n_train:,}
training documents of a set, one by one, and learns only those it asks for; then the H-loss (every cost 1) of
the model as it is on the test documents. With a **scale** s below 1 it asks for less: for a document with
|m| ≤ s · √(5 ln t / N) at one of the nodes that `query_many` names. What is asked for is learned as ever.
**Random**: as many documents drawn at random, learned in the order of the stream; the mean of {n_seeds}
draws, and the lowest and highest of them. Texts are weighted by the document frequencies of all {n_train:,}
documents, which takes no labels.

![H-loss against the number of labels asked for](label-budget.png)

{tables}
{summary}
"""


class Point(NamedTuple):
    """One scale of the band."""

    scale: float
    n_asked: int
    asked: float  # mean H-loss on the test documents
    drawn: tuple[float, ...]  # the same for each random draw of so many documents

    @property
    def change(self) -> float:
        """How much lower the H-loss is than at random, as a share."""
        return self.asked / float(np.mean(self.drawn)) - 1.0


def ask(model: HRLS, X: csr_array, Y: csr_array, scale: float) -> int:
    """Let the model choose what to learn, row by row; return how many labels it asked for."""
    n_asked = 0
    for row in range(X.shape[0]):
        x = X[row : row + 1]
        found = model.query_many(x)
        with np.errstate(divide="ignore", invalid="ignore"):  # a node that has stored nothing always asks
            band = np.sqrt(5.0 * np.log(model.n_learned + 1) / model.n_stored[found.indices])
        if (np.isnan(band) | (np.abs(found.data) <= scale * band)).any():
            model.learn_many(x, Y[row : row + 1])
            n_asked += 1
    return n_asked


def points_of(data: Dataset, protocol: str) -> tuple[list[Point], float]:
    """Return the points of one set, and the H-loss with the labels of all training documents."""
    whole, test = data.train_test(own=True)
    if protocol == "train-rest":
        test = np.setdiff1d(np.arange(len(data)), whole)
    train, tax = whole[:N_TRAIN], data.taxonomy
    X, Y = vectorize_dataset(data, train=train), tax.encode(data.labels)

    def loss(model: HRLS) -> float:
        return float(h_loss(tax, model.predict_many(X[test]), Y[test]).mean())

    def taught(rows: NDArray[np.int64]) -> float:
        model = HRLS(tax)
        model.learn_many(X[rows], Y[rows])
        return loss(model)

    points = []
    for scale in SCALES:
        model = HRLS(tax)
        n_asked = ask(model, X[train], Y[train], scale)
        draws = [np.sort(np.random.default_rng(s).choice(train, n_asked, replace=False)) for s in SEEDS]
        points.append(Point(scale, n_asked, loss(model), tuple(map(taught, draws))))
        print(data.name, points[-1], flush=True)  # noqa: T201
    return points, taught(train)


def table(name: str, points: list[Point], everything: float) -> str:
    """Return one set as Markdown."""
    lines = [
        f"## {name}",
        "",
        "| scale | labels asked for | share | H-loss, asking | random | lowest – highest |",
    ]
    lines += ["|---:|---:|---:|---:|---:|---:|", f"| all | {N_TRAIN:,} | 100% | {everything:.3f} | | |"]
    for p in points:
        random = f"{np.mean(p.drawn):.3f} | {min(p.drawn):.3f} – {max(p.drawn):.3f}"
        share = f"{p.n_asked / N_TRAIN:.0%}"
        lines.append(f"| {p.scale:g} | {p.n_asked:,} | {share} | {p.asked:.3f} | {random} |")
    return "\n".join(lines) + "\n"


def draw(found: dict[str, tuple[list[Point], float]], path: Path) -> None:
    """Draw H-loss against labels, a panel for each set."""
    figure, left = new_page("Asking only where the margin is small", "H-loss on the test documents")
    left.set_position((0.078, 0.135, 0.40, 0.70))
    right = figure.add_axes((0.565, 0.135, 0.40, 0.70))
    right.spines[["top", "right", "left"]].set_visible(False)
    right.spines["bottom"].set_color(FAINT)
    right.tick_params(colors=FAINT, labelsize=10, length=0, pad=6)
    right.grid(axis="y", color=GRID, linewidth=0.9)
    for axes, (name, (points, everything)) in zip((left, right), found.items(), strict=True):
        n_asked, drawn = [p.n_asked for p in points], np.array([p.drawn for p in points])
        axes.set_title(name, loc="left", fontsize=10.5, color=INK, pad=8)
        axes.set_xlabel(f"labels asked for, of {N_TRAIN:,}", color=INK, fontsize=10.5, labelpad=6)
        axes.set_xlim(0, N_TRAIN * 1.02)
        axes.axhline(everything, color=FAINT, linewidth=1, linestyle=(0, (3, 3)), label="all labels")
        style = {"marker": "o", "markersize": 4.5, "linewidth": 1.8}
        axes.fill_between(n_asked, drawn.min(axis=1), drawn.max(axis=1), color="#D55E00", alpha=0.18, lw=0)
        axes.plot(n_asked, drawn.mean(axis=1), label="random", **style, **line_style(1))
        axes.plot(n_asked, [p.asked for p in points], label="query_one", **style, **line_style(0))
    lines, names = left.get_legend_handles_labels()
    where = {"loc": "upper right", "bbox_to_anchor": (0.975, 0.985), "ncols": 3, "frameon": False}
    figure.legend(lines, names, fontsize=10, labelcolor=INK, handlelength=1.8, columnspacing=1.4, **where)
    save(figure, path)


def summary(found: dict[str, tuple[list[Point], float]]) -> str:
    """Return what the tables say in a paragraph."""
    sentences = []
    for name, (points, everything) in found.items():
        p, random = points[0], np.mean(points[0].drawn)
        sentences.append(
            f"On {name} the band as it is asks for {p.n_asked / N_TRAIN:.0%} of the labels; the H-loss is "
            f"{p.asked:.3f}, with all labels {everything:.3f}, with as many random ones {random:.3f}."
        )
    pairs = [(name, p) for name, (points, _) in found.items() for p in points]
    clear = sum(p.asked < min(p.drawn) for _, p in pairs)
    worse = [f"{name} at {p.scale:g} ({p.change:+.1%})" for name, p in pairs if p.asked > max(p.drawn)]
    where, best = min(pairs, key=lambda pair: pair[1].change)
    sentences.append(
        f"Asking is below every random draw in {clear} of {len(pairs)} rows, most of all on {where} at scale "
        f"{best.scale:g} ({best.change:+.1%} against the mean of the draws)."
    )
    if worse:
        sentences.append(
            f"It is above every draw in {len(worse)}: {', '.join(worse)}. A band that narrow leaves out "
            "documents that would have been stored. A node that is wrong by a clear margin does not hear of "
            "it, nor do the nodes below, which are asked only where it is predicted: that may be why "
            "chance wins."
        )
    return textwrap.fill(" ".join(sentences), 110, break_on_hyphens=False)


def main() -> None:
    """Run both sets, draw and write the page."""
    folder = Path(os.environ.get("STREAM_HC_DATA", ROOT.parent / "shared" / "data"))
    if not all((folder / name).is_dir() for name in SETS):
        print(f"{folder} does not hold the real sets: docs/label-budget.md stays as it is")  # noqa: T201
        return
    found = {name: points_of(load(folder / name), protocol) for name, protocol in SETS.items()}
    draw(found, ROOT / "docs" / "label-budget.png")
    tables = "\n".join(table(name, *points) for name, points in found.items())
    page = PAGE.format(n_train=N_TRAIN, n_seeds=len(SEEDS), tables=tables, summary=summary(found))
    print(tables)  # noqa: T201
    (ROOT / "docs" / "label-budget.md").write_text(page.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
