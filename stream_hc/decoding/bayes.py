"""H-BAYES: the multilabel with the least expected H-loss, given probabilities at the nodes of a forest.

Notation: p_i = P(y_i = 1 given y_par(i) = 1) -> `P[row, node]`; c_i -> `costs[node]`.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from stream_hc.kernels import Doubles
from stream_hc.kernels import bayes as kernels
from stream_hc.taxonomy import CostScheme, Taxonomy, TaxonomyError

__all__ = ["Costs", "h_bayes", "require_forest"]

Costs: TypeAlias = CostScheme | NDArray[np.floating[Any]] | Sequence[float]


def h_bayes(
    taxonomy: Taxonomy | ArrayLike, P: ArrayLike | Taxonomy, costs: Costs = "normalized"
) -> csr_array:
    """Return for each row of probabilities the multilabel with the least expected H-loss, as bool rows.

    H-BAYES of Cesa-Bianchi et al. (2004), section 3.1, where p_i is the probability that node i is a label
    given that its parent is one. (Their model has siblings independent of each other; the expected H-loss is
    a sum over nodes and needs the p_i only.) From the leaves upward

        ŷ_i = 1  iff  p_i (2 − Σ H_k / c_i) ≥ 1, the sum over the children k of i
        H_i = c_i (p_i (1 − ŷ_i) + (1 − p_i) ŷ_i) + p_i ŷ_i Σ H_k

    then everything under a 0 becomes 0. The paper prints H_i without the factor p_i ŷ_i on the sum. That
    charges a loss below a node even where the node itself is wrong or not a label, and is not optimal:
    `tests/test_decoding.py` compares both with all multilabels of small forests.

    Since Σ H_k ≥ 0 a label needs p_i ≥ 1/2, and more the costlier the mistakes below it are.

    Parameters
    ----------
    taxonomy
        A forest. The first two arguments may also come the other way round.
    P
        Conditional probabilities p_i, n × N, or N numbers for a single document. Not the marginal ones that
        `predict_proba_one` returns: `Calibrated.conditional_probabilities` has them for any learner.
    costs
        Those of the H-loss to expect: the name of a scheme, or a positive number for each node.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
    >>> P = np.zeros((2, 4))
    >>> P[:, tax.index("sport")] = 0.6, 0.9
    >>> P[:, tax.index("tennis")] = P[:, tax.index("football")] = 0.2
    >>> [sorted(labels) for labels in tax.decode(h_bayes(tax, P, costs="uniform"))]
    [[], ['sport']]

    At 0.6 "sport" is likely, but leaving it out costs 0.6 on average, and taking it 0.4 + 0.6 · (0.2 + 0.2).
    """
    if isinstance(P, Taxonomy):
        taxonomy, P = P, taxonomy
    if not isinstance(taxonomy, Taxonomy):
        raise TypeError(f"h_bayes takes a Taxonomy and probabilities, not {type(taxonomy).__name__}")
    require_forest(taxonomy)
    p = _checked(taxonomy, P)
    ptr, nodes = kernels.decode_rows(p, taxonomy.parent, taxonomy.costs(costs))
    Y = csr_array((np.ones(nodes.size, np.bool_), nodes, ptr), shape=p.shape)
    Y.has_canonical_format = True
    return Y


def require_forest(taxonomy: Taxonomy) -> None:
    """Refuse a DAG, with the reason."""
    if not taxonomy.is_tree:
        raise TaxonomyError(
            "H-BAYES shares out the risk from a node to its one parent and is not defined on a DAG, where a "
            "node may have several: decode from the roots downward instead"
        )


def _checked(taxonomy: Taxonomy, P: Any) -> Doubles:
    given = np.asarray(P)
    if given.dtype.kind not in "biuf":
        raise ValueError(f"probabilities must be an array of numbers, not {_describe(P)}")
    p: Doubles = np.atleast_2d(np.ascontiguousarray(given, np.float64))
    if given.ndim not in (1, 2) or p.shape[1] != len(taxonomy):
        raise ValueError(
            f"probabilities of shape {given.shape} do not fit {len(taxonomy)} nodes: "
            f"give (n, {len(taxonomy)}) or ({len(taxonomy)},)"
        )
    bad = np.argwhere(~((p >= 0.0) & (p <= 1.0)))  # neither is true of NaN
    if bad.size:
        row, node = bad[0].tolist()
        raise ValueError(
            f"row {row}, node {taxonomy.nodes[node]!r} is {p[row, node]}: "
            "a probability lies between 0 and 1, and NaN is none"
        )
    return p


def _describe(P: object) -> str:
    dtype = getattr(P, "dtype", None)
    return type(P).__name__ if dtype is None else f"{type(P).__name__} of {dtype}"
