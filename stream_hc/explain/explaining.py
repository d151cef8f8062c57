"""From the sums of a view to what people and programs are told about a document."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stream_hc.explain.view import View
from stream_hc.explain.views import view_of
from stream_hc.kernels import Doubles, Ints
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows

__all__ = ["Explanation", "Share", "Step", "Through", "explain"]

NEAREST = 3  # roots shown where nothing is predicted


@dataclass(frozen=True)
class Share:
    """What one feature adds: weight times value."""

    feature: str
    column: int
    value: float
    weight: float
    contribution: float


@dataclass(frozen=True)
class Through:
    """How much of a total comes through a node: itself, or an ancestor that it shares with others."""

    node: str
    contribution: float


@dataclass(frozen=True)
class Step:
    """One node on the way: `bias`, `shares` and `rest` add up to `total`.

    Attributes
    ----------
    total
        The margin; for H-M³ the score of the node by itself, since its margin compares whole multilabels.
    threshold
        What the margin has to exceed; None where more than this decides, as `reason` says.
    rest
        What the features not shown add, `n_rest` of them.
    """

    node: str
    depth: int
    is_on: bool
    margin: float
    total: float
    threshold: float | None
    reason: str
    bias: float
    shares: list[Share]
    n_rest: int
    rest: float
    through: list[Through]


@dataclass(frozen=True)
class Explanation:
    """Why a document got its labels, from the roots downward.

    `labels` are all that are predicted; `nodes` says what the steps are about: "predicted", "asked" (the way
    to a node) or "nearest" (nothing is predicted, so the roots that came closest).
    """

    kind: str
    rule: str
    labels: list[str]
    n_features: int
    nodes: str
    steps: list[Step]


def explain(
    model: Any, row: Rows, names: Mapping[int, str] | None = None, node: str | None = None, top: int = 8
) -> Explanation:
    """Explain what a model says about one document: along what it predicts, or along the way to a node.

    Parameters
    ----------
    model
        Any learner of this package, or a fitted `HM3` or `RankingSVM`.
    row
        One document.
    names
        Of its columns; others are shown as `#column`.
    node
        A node of interest, predicted or not; all its ancestors are explained, too.
    top
        How many features to show at each node.

    Examples
    --------
    >>> from stream_hc import HPerceptron
    >>> from stream_hc.vectorize import from_dict
    >>> model = HPerceptron(Taxonomy([("sport", None), ("tennis", "sport")]), n_features=64)
    >>> model.learn_one({"racket": 1.0, "the": 0.5}, {"tennis"})
    >>> found = explain(model, from_dict({"racket": 2.0}, 64), {44: "racket"})
    >>> [(step.node, step.margin, [share.feature for share in step.shares]) for step in found.steps]
    [('sport', 2.0, ['racket']), ('tennis', 2.0, ['racket'])]
    """
    view = view_of(model, row)
    tax, about = view.taxonomy, "predicted"
    if node is not None:
        wanted, about = np.append(tax.ancestors(node), tax.index(node)), "asked"
    elif view.on.any():
        wanted = np.flatnonzero(view.on)
    else:
        wanted, about = _nearest(view), "nearest"
    ordered = wanted.tolist() if about == "nearest" else _in_order(tax, wanted)
    steps = [_step(view, each, names or {}, max(0, top)) for each in ordered]
    labels = [tax.nodes[each] for each in np.flatnonzero(view.on)]
    return Explanation(type(model).__name__, view.rule, labels, int(row.indices.size), about, steps)


def _step(view: View, node: int, names: Mapping[int, str], top: int) -> Step:
    products, columns = view.products(node), view.row.indices
    order = np.lexsort((columns, -np.abs(products)))
    order = order[products[order] != 0.0]
    shown, total, bias = order[:top], view.total(node), view.bias(node)
    shares = [
        Share(names.get(int(columns[j]), f"#{columns[j]}"), int(columns[j]), *_numbers(view.x, products, j))
        for j in shown
    ]
    # The exact difference, rounded once: then the parts add up to what the model has worked out itself.
    rest = math.fsum([total, -bias, *(-share.contribution for share in shares)])
    return Step(
        view.taxonomy.nodes[node],
        int(view.taxonomy.depth[node]),
        bool(view.on[node]),
        float(view.margins[node]),
        total,
        view.threshold(node),
        view.reason(node),
        bias,
        shares,
        int(products.size - len(shares)),
        rest,
        [Through(*each) for each in view.through(node)],
    )


def _numbers(x: Doubles, products: Doubles, j: int) -> tuple[float, float, float]:
    return float(x[j]), float(products[j] / x[j]), float(products[j])


def _nearest(view: View) -> Ints:
    """Return the roots that came closest to being on."""
    roots = view.taxonomy.roots
    missing = np.array([(view.threshold(root) or 0.0) - view.margins[root] for root in roots])
    return roots[np.argsort(missing, kind="stable")[:NEAREST]]


def _in_order(taxonomy: Taxonomy, nodes: Ints) -> list[int]:
    """Return nodes as a tree is read: each below a parent of it, once."""
    wanted, found = set(nodes.tolist()), dict[int, None]()
    waiting = [int(root) for root in taxonomy.roots[::-1] if int(root) in wanted]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += [int(child) for child in taxonomy.children(node)[::-1] if int(child) in wanted]
    return list(found)
