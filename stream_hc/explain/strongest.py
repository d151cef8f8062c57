"""The features that count most at a node, whatever the document."""
# ruff: noqa: SLF001 (the weights of a node are read where the model keeps them)

from typing import Any

import numpy as np

from stream_hc.explain.view import NotLinearError
from stream_hc.explain.views import taxonomy_of
from stream_hc.learners import Calibrated
from stream_hc.maxmargin import HM3, RankingSVM

__all__ = ["strongest"]


def strongest(model: Any, node: str, k: int = 10) -> list[tuple[int, float]]:
    """Return the `k` features that count most at a node, as (column, weight), for or against it.

    For a ranking perceptron these are the weights of the node itself, without those of its ancestors.
    """
    if isinstance(model, Calibrated):
        model = model.model
    if hasattr(model, "strongest"):
        found: list[tuple[int, float]] = model.strongest(node, k)
        return [(column, weight) for column, weight in found if weight != 0.0]
    if not isinstance(model, HM3 | RankingSVM):
        raise NotLinearError(f"{type(model).__name__} has no linear weights that could be shown")
    table = model._node_weights if isinstance(model, HM3) else model._end_weights
    if table is None:
        raise NotLinearError(f"{type(model).__name__} has no weights for features: fit it to rows first")
    weights = table[:, taxonomy_of(model).index(node)]
    order = np.lexsort((model._columns, -np.abs(weights)))[: max(0, k)]
    chosen = order[weights[order] != 0.0]
    return list(zip(model._columns[chosen].tolist(), weights[chosen].tolist(), strict=True))
