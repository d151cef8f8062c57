"""The price of a budget: `python -m bench.hrls_budget` writes docs/hrls-budget.md and its picture.

H-RLS with a bound on the documents a node may store, for every way to choose the one that goes, on three real
sets: the mean H-loss of one pass, each document predicted before it is learned.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple, get_args

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from stream_hc import HRLS
from stream_hc.datasets import load
from stream_hc.evaluate import vectorize_dataset
from stream_hc.evaluate.drawing import FAINT, INK, line_style, save
from stream_hc.learners.second_order import Eviction
from stream_hc.losses import h_loss

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("STREAM_HC_DATA", ROOT.parent / "shared" / "data"))
SETS = ("reuters21578", "newsgroups20", "rcv1_k500")
BUDGETS = (30, 100, 300, 1000)
PAGE = """\
# What a budget costs H-RLS

`HRLS(budget=…)` bounds the documents that each node stores, and with them memory and time; what is left after
an eviction is exactly what learning the kept documents alone would give. The tables say what that costs: the
mean H-loss (every cost 1) of one pass, each document predicted before it is learned, the documents stored in
all that time, and the memory held in the end. They are printed by `python -m bench.hrls_budget`.

* **oldest** goes, whatever it is worth;
* **coefficient**: the document with the smallest |α|, which the others predict best;
* **redundant**: the one whose x is best explained by the others, the largest diagonal entry of K⁻¹;
* **influence**: the one whose loss changes the regularised squared error least, α² / (K⁻¹)_jj.

![H-loss against the budget](hrls-budget.png)

{tables}
{verdict}
"""
VERDICT = """\
The best one in so many of the {n_rows} rows: {counts}. The default is `oldest`.

Where the budget is tight, forgetting what is predicted well leaves a node with what it cannot predict,
odd and mislabelled documents, and forgetting what resembles others leaves it with outliers. The last
documents are a fairer sample, and they follow a drift."""


class Trial(NamedTuple):
    """What one run came to."""

    h_loss: float
    n_updates: int
    n_bytes: int


def main() -> None:
    """Run everything, print and write."""
    tables, results = [], {}
    for name in SETS:
        data = load(DATA / name)
        X, Y = vectorize_dataset(data), data.taxonomy.encode(data.labels)
        trials: dict[tuple[str, int | None], Trial] = {}
        for budget in (*BUDGETS, None):
            for eviction in get_args(Eviction) if budget else ("oldest",):
                model = HRLS(data.taxonomy, budget=budget, eviction=eviction)
                loss = float(h_loss(data.taxonomy, model.predict_then_learn(X, Y), Y).mean())
                trials[eviction, budget] = Trial(loss, int(model.n_updates.sum()), model.nbytes)
                print(name, budget, eviction, trials[eviction, budget], flush=True)
        results[name] = trials
        tables.append(table(name, len(data), len(data.taxonomy), trials))
    draw(results, ROOT / "docs" / "hrls-budget.png")
    page = PAGE.format(tables="\n".join(tables), verdict=verdict(results))
    (ROOT / "docs" / "hrls-budget.md").write_text(page, encoding="utf-8")


def table(name: str, n_documents: int, n_nodes: int, trials: dict[tuple[str, int | None], Trial]) -> str:
    """Return the results on one set in Markdown; the best of each budget in bold."""
    exact = trials["oldest", None]
    lines = [
        f"## {name}: {n_documents:,} documents, {n_nodes} nodes\n",
        "| budget | " + " | ".join(get_args(Eviction)) + " | stored (oldest) | MiB |",
        "|---:|" + "---:|" * (len(get_args(Eviction)) + 2),
    ]
    for budget in BUDGETS:
        losses = [trials[eviction, budget].h_loss for eviction in get_args(Eviction)]
        cells = [f"**{loss:.3f}**" if loss == min(losses) else f"{loss:.3f}" for loss in losses]
        oldest = trials["oldest", budget]
        size = f"{oldest.n_updates:,} | {oldest.n_bytes / 2**20:.0f}"
        lines.append(f"| {budget:,} | {' | '.join(cells)} | {size} |")
    size = f"{exact.n_updates:,} | {exact.n_bytes / 2**20:.0f}"
    lines.append(f"| none | {exact.h_loss:.3f} |{' |' * (len(get_args(Eviction)) - 1)} {size} |")
    return "\n".join(lines) + "\n"


def verdict(results: dict[str, dict[tuple[str, int | None], Trial]]) -> str:
    """Say how often each eviction was best, and why the default is what it is."""
    wins = dict.fromkeys(get_args(Eviction), 0)
    for trials in results.values():
        for budget in BUDGETS:
            wins[min(wins, key=lambda eviction: trials[eviction, budget].h_loss)] += 1
    counts = ", ".join(f"{name} {count}" for name, count in wins.items())
    return VERDICT.format(n_rows=len(results) * len(BUDGETS), counts=counts)


def draw(results: dict[str, dict[tuple[str, int | None], Trial]], path: Path) -> None:
    """Write a panel for each set: a line for each eviction, and where the exact learner is."""
    figure = Figure(figsize=(9.0, 3.6), facecolor="white")
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(1, len(results))
    for axes, (name, trials) in zip(panels, results.items(), strict=True):
        for number, eviction in enumerate(get_args(Eviction)):
            losses = [trials[eviction, budget].h_loss for budget in BUDGETS]
            axes.plot(BUDGETS, losses, marker="o", markersize=3, label=eviction, **line_style(number))
        axes.axhline(trials["oldest", None].h_loss, color=FAINT, linewidth=1, linestyle=(0, (1, 2)))
        axes.set_title(name, fontsize=10, color=INK, loc="left")
        axes.set_xscale("log")
        axes.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS], minor=False)
        axes.minorticks_off()
        axes.set_xlabel("budget", fontsize=9, color=INK)
        axes.tick_params(colors=FAINT, labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("H-loss (dotted: no budget)", fontsize=9, color=INK)
    panels[-1].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    save(figure, path)


if __name__ == "__main__":
    main()
