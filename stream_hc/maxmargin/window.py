"""From what `fit` is given to a `Problem`, with everything checked."""

from typing import Any

import numpy as np

from stream_hc.kernels import Bools, Doubles, Ints
from stream_hc.maxmargin.problem import Problem, graph_arrays
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import feature_rows

__all__ = ["kernel_problem", "row_problem", "warm_duals"]

SYMMETRIC = 1e-8  # of the largest entry: as far as the two halves of a kernel may differ


def row_problem(
    X: Any,
    Y: Any,
    taxonomy: Taxonomy,
    costs: Doubles,
    is_tilde: bool,
    is_free: bool,
    C: float,
    n_features: int,
) -> tuple[Problem, Ints]:
    """Return the problem of rows and labels, and the features that its columns are."""
    rows = feature_rows(X, n_features)
    true = _true(taxonomy, Y, rows.indptr.size - 1)
    used = np.zeros(n_features, np.bool_)
    used[rows.indices] = True
    features, columns = np.flatnonzero(used), (np.cumsum(used, dtype=np.int32) - 1)[rows.indices]
    row = np.repeat(np.arange(true.shape[0]), np.diff(rows.indptr))
    squares = np.bincount(row, rows.values.astype(np.float64) ** 2, true.shape[0]).astype(np.float64)
    examples = (rows.indptr, columns, rows.values, np.zeros((0, 0)))
    graph = graph_arrays(taxonomy)
    problem = Problem(graph, costs, is_tilde, is_free, C, examples, features.size, squares, true)
    return problem, features.astype(np.int32)


def kernel_problem(
    K: Any,
    Y: Any,
    taxonomy: Taxonomy,
    costs: Doubles,
    is_tilde: bool,
    is_free: bool,
    C: float,
    n_features: int,
) -> Problem:
    """Return the problem of a kernel matrix and labels."""
    gram = np.ascontiguousarray(K, np.float64)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        raise ValueError(f"K must be n × n, not {gram.shape}")
    if not np.isfinite(gram).all():
        raise ValueError("K holds NaN or infinity")
    if gram.size and np.abs(gram - gram.T).max() > SYMMETRIC * np.abs(gram).max():
        raise ValueError("K must be symmetric")
    if (np.diagonal(gram) < 0.0).any():
        raise ValueError("K is no kernel: a number on its diagonal is negative")
    true = _true(taxonomy, Y, gram.shape[0])
    nothing = np.zeros(gram.shape[0] + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
    squares = np.diagonal(gram).copy()
    graph = graph_arrays(taxonomy)
    return Problem(graph, costs, is_tilde, is_free, C, (*nothing, gram), 0, squares, true)


def warm_duals(problem: Problem, duals: Any, row_ids: Any) -> Doubles:
    """Return the dual variables to begin with: those given, for the rows they belong to."""
    given, ids = np.asarray(duals, np.float64), np.asarray(row_ids)
    if given.ndim != 2 or given.shape[1] != problem.n_variables:
        raise ValueError(f"duals must have {problem.n_variables} columns, not shape {given.shape}")
    if ids.shape != given.shape[:1] or not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"row_ids must be {given.shape[0]} whole numbers, one for each row of duals")
    kept = ids >= 0
    if kept.any() and (ids.max() >= problem.n_rows or np.unique(ids[kept]).size < kept.sum()):
        raise ValueError(f"row_ids must be different rows below {problem.n_rows}, negative for those gone")
    if not _allowed(problem, given[kept]):
        raise ValueError("duals must come from duals_: shares between 0 and 1, no child above its parent")
    marginals = problem.start()
    marginals[ids[kept]] = problem.C * given[kept]
    return marginals


def _allowed(problem: Problem, duals: Doubles) -> bool:
    if not (np.isfinite(duals).all() and (duals >= 0.0).all() and (duals <= 1.0).all()):
        return False
    parent_ptr, parent_idx = problem.graph[:2]
    n_nodes = parent_ptr.size - 1
    nodes = np.repeat(np.arange(n_nodes), np.diff(parent_ptr))
    on, above = duals[:, nodes], duals[:, parent_idx]
    if not problem.is_free:
        return bool((on <= above).all())
    both, slack = duals[:, n_nodes + nodes], 1e-9
    return bool((both <= np.minimum(on, above) + slack).all() and (both >= on + above - 1.0 - slack).all())


def _true(taxonomy: Taxonomy, Y: Any, n_rows: int) -> Bools:
    labels = taxonomy.label_rows(Y, close=True)
    if labels.shape[0] != n_rows:
        raise ValueError(f"{n_rows} documents, but labels for {labels.shape[0]}")
    if n_rows == 0:
        raise ValueError("no documents to train on: the window is empty")
    if len(taxonomy) == 0:
        raise ValueError("no labels to train for: the taxonomy is empty")
    return np.asarray(labels.toarray(), np.bool_)
