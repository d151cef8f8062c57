"""How well scores rank the categories: the five measures of Cai and Hofmann (2007, section 6.1).

Ranked are the `candidates`: unless told otherwise the leaves and every node that is a most specific true
label of some row. (The paper hangs a miscellaneous terminal under an inner node that may be a label by
itself; here that node stands for its own terminal.) Relevant for a row are its most specific true labels
among the candidates.

A tie counts against the ranking in all five measures: of two equal scores the irrelevant one is taken to
come first. A row where nothing can be ranked wrongly, because it has no relevant or no irrelevant
candidate, is perfect: accuracy and precision 1, loss 0. Both as in scikit-learn's
`label_ranking_average_precision_score` and `label_ranking_loss`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array, diags_array

from stream_hc.kernels import Bools, Doubles, Ints, Longs
from stream_hc.kernels import labels as label_kernels
from stream_hc.kernels import losses as kernels
from stream_hc.taxonomy import Taxonomy, TaxonomyError

__all__ = [
    "Candidates",
    "average_precision",
    "maximal_loss",
    "one_accuracy",
    "parent_one_accuracy",
    "ranking_loss",
]

Candidates: TypeAlias = Sequence[str] | Ints | Longs | None


class _Ranking(NamedTuple):
    """Scores and relevance of the candidates, and the relevant pairs as (row, position)."""

    candidates: Longs  # [C] columns of the taxonomy
    scores: Doubles  # [n, C]
    relevant: Bools  # [n, C]
    rows: Longs
    positions: Longs


def one_accuracy(taxonomy: Taxonomy, scores: Any, Y_true: Any, candidates: Candidates = None) -> Doubles:
    """Return for each row whether the top-ranked candidate is relevant.

    Parameters
    ----------
    taxonomy
        Labels and their parents.
    scores
        float[n, N], a score for each node; infinite ones are fine, NaN is not.
    Y_true
        Labels as sparse or dense rows or as label sets, closed upward first.
    candidates
        Names or columns of the nodes to rank; by default the leaves and the most specific labels met.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> tax.nodes
    ('sport', 'politics', 'tennis', 'football')
    >>> one_accuracy(tax, [[0, 1, 3, 2], [0, 3, 2, 1]], [{"tennis"}, {"tennis"}])
    array([1., 0.])
    """
    ranking = _rank(taxonomy, scores, Y_true, candidates)
    return _perfect_if_none(ranking, _top(ranking) & ~ranking.relevant)


def parent_one_accuracy(
    taxonomy: Taxonomy, scores: Any, Y_true: Any, candidates: Candidates = None
) -> Doubles:
    """Return for each row whether the top-ranked candidate shares a parent with a relevant one.

    A root has no parent and stands for its own. Parameters as in `one_accuracy`.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> parent_one_accuracy(tax, [[0, 1, 2, 3], [0, 3, 2, 1]], [{"tennis"}, {"tennis"}])
    array([1., 0.])
    """
    ranking = _rank(taxonomy, scores, Y_true, candidates)
    is_root = (np.diff(taxonomy.parent_ptr) == 0).astype(np.int32)
    parents = (_parents(taxonomy) + diags_array(is_root, format="csr", dtype=np.int32))[ranking.candidates]
    siblings = csr_array(ranking.relevant, dtype=np.int32) @ parents @ parents.T
    return _perfect_if_none(ranking, _top(ranking) & (siblings.toarray() == 0))


def average_precision(taxonomy: Taxonomy, scores: Any, Y_true: Any, candidates: Candidates = None) -> Doubles:
    """Return for each row the mean over its relevant labels of the precision at that label's rank.

    Parameters as in `one_accuracy`.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> average_precision(tax, [[0, 1, 3, 2], [0, 3, 2, 1]], [{"tennis"}, {"tennis"}])
    array([1. , 0.5])
    """
    ranking = _rank(taxonomy, scores, Y_true, candidates)
    at_least, relevant_at_least = kernels.ranks(*ranking[1:])
    n_relevant = np.bincount(ranking.rows, minlength=len(ranking.scores))
    sums = np.bincount(ranking.rows, weights=relevant_at_least / at_least, minlength=len(ranking.scores))
    return np.where(n_relevant > 0, sums / np.maximum(n_relevant, 1), 1.0)


def ranking_loss(taxonomy: Taxonomy, scores: Any, Y_true: Any, candidates: Candidates = None) -> Doubles:
    """Return for each row the fraction of its (relevant, irrelevant) pairs that are in the wrong order.

    Parameters as in `one_accuracy`.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> ranking_loss(tax, [[0, 1, 3, 2], [0, 3, 2, 1]], [{"tennis"}, {"tennis"}])
    array([0. , 0.5])
    """
    ranking = _rank(taxonomy, scores, Y_true, candidates)
    at_least, relevant_at_least = kernels.ranks(*ranking[1:])
    misordered = np.bincount(
        ranking.rows, weights=at_least - relevant_at_least, minlength=len(ranking.scores)
    )
    n_relevant = np.bincount(ranking.rows, minlength=len(ranking.scores))
    n_pairs = n_relevant * (ranking.candidates.size - n_relevant)
    fraction: Doubles = misordered / np.maximum(n_pairs, 1)
    return fraction


def maximal_loss(taxonomy: Taxonomy, scores: Any, Y_true: Any, candidates: Candidates = None) -> Doubles:
    """Return for each row the largest ½ |anc⁺(y) △ anc⁺(ȳ)| over its misordered pairs (equation 9).

    y is relevant, ȳ is not and scores at least as much; 0 if there is no such pair. Halved as in the
    paper's tables. Parameters as in `one_accuracy`.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> maximal_loss(tax, [[0, 1, 2, 3], [0, 3, 2, 1]], [{"tennis"}, {"tennis"}])
    array([1. , 1.5])
    """
    ranking = _rank(taxonomy, scores, Y_true, candidates)
    order = np.argsort(ranking.positions, kind="stable")
    above = label_kernels.close_rows(
        np.arange(ranking.candidates.size + 1),
        ranking.candidates.astype(np.int32),
        taxonomy.parent_ptr,
        taxonomy.parent_idx,
    )
    worst = kernels.worst_pairs(
        ranking.scores, ranking.relevant, ranking.rows[order], ranking.positions[order], *above
    )
    return worst / 2.0


def _rank(taxonomy: Taxonomy, scores: Any, Y_true: Any, candidates: Candidates) -> _Ranking:
    """Select the candidates' columns and find the most specific true labels among them."""
    specific = _most_specific(taxonomy, taxonomy.label_rows(Y_true, close=True))
    table = np.asarray(scores, dtype=np.float64)
    if table.shape != specific.shape:
        raise TaxonomyError(f"scores of shape {table.shape} do not fit labels of shape {specific.shape}")
    if candidates is None:
        columns = np.union1d(taxonomy.leaves, specific.indices).astype(np.int64)
    else:
        columns = np.unique(
            [taxonomy.index(node) if isinstance(node, str) else node for node in candidates]
        ).astype(np.int64)
        if columns.size and not 0 <= columns[0] <= columns[-1] < len(taxonomy):
            raise TaxonomyError(f"candidates must be names or columns from 0 to {len(taxonomy) - 1}")
    table = np.ascontiguousarray(table[:, columns])
    if np.isnan(table).any():
        raise TaxonomyError(f"the scores of row {np.argwhere(np.isnan(table))[0, 0]} contain NaN")
    relevant = np.ascontiguousarray(specific[:, columns].toarray())
    return _Ranking(columns, table, relevant, *np.nonzero(relevant))


def _most_specific(taxonomy: Taxonomy, closed: csr_array) -> csr_array:
    """Take away from every row the nodes that have a child in it."""
    rows = closed.astype(np.int32)
    return csr_array(rows - rows @ _parents(taxonomy) > 0)


def _parents(taxonomy: Taxonomy) -> csr_array:
    """Return the N × N matrix with a 1 at (child, parent)."""
    ones = np.ones(taxonomy.parent_idx.size, np.int32)
    return csr_array((ones, taxonomy.parent_idx, taxonomy.parent_ptr), shape=(len(taxonomy), len(taxonomy)))


def _top(ranking: _Ranking) -> Bools:
    """Return the candidates with the highest score of their row, all of them if several tie."""
    top: Bools = ranking.scores == ranking.scores.max(axis=1, initial=-np.inf, keepdims=True)
    return top


def _perfect_if_none(ranking: _Ranking, wrong: Bools) -> Doubles:
    """Return 1 where nothing is wrong or nothing relevant, 0 elsewhere."""
    return np.where(wrong.any(axis=1) & ranking.relevant.any(axis=1), 0.0, 1.0)
