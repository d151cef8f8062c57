"""Slow, obvious twins of H-M³: feature vectors of whole multilabels, all of them enumerated.

An edge is (parent, node), the parent None for the virtual root. A multilabel is a frozenset of nodes.
"""

from itertools import combinations

import numpy as np
from scipy.optimize import minimize


def edges_of(tax):
    return [(p, i) for i in range(len(tax)) for p in (tax.parents(i).tolist() or [None])]


def all_sets(tax):
    nodes = range(len(tax))
    return [frozenset(some) for size in range(len(tax) + 1) for some in combinations(nodes, size)]


def closed_sets(tax):
    return [y for y in all_sets(tax) if all(set(tax.parents(i).tolist()) <= y for i in y)]


def labelling(edge, y):
    return (1 if edge[0] is None or edge[0] in y else 0, 1 if edge[1] in y else 0)


def phi(tax, x, y):
    """[y_e = u] x for every edge and labelling."""
    x = np.asarray(x, float)
    labellings = [(0, 0), (1, 0), (1, 1), (0, 1)]
    return np.concatenate([x * (labelling(e, y) == u) for e in edges_of(tax) for u in labellings])


def loss(tax, kind, costs, true, y):
    total = 0.0
    for i in range(len(tax)):
        wrong = (i in true) != (i in y)
        if kind == "h_tilde":
            wrong = wrong and all((p in true) == (p in y) for p in tax.parents(i).tolist())
        total += costs[i] * wrong
    return total


def optimum(tax, xs, trues, kind, costs, C, sets):
    """The largest dual objective: Σ α ℓ − ½ |Σ α (φ(y_n) − φ(y))|², the α of an example adding up to C."""
    differences, losses, n_sets = [], [], len(sets)
    for x, true in zip(xs, trues, strict=True):
        differences += [phi(tax, x, true) - phi(tax, x, y) for y in sets]
        losses += [loss(tax, kind, costs, true, y) for y in sets]
    D, ell = np.array(differences), np.array(losses)
    gram = D @ D.T
    start = np.concatenate([[C * (y == true) for y in sets] for true in trues]).astype(float)
    sums = [
        {"type": "eq", "fun": lambda a, n=n: a[n * n_sets : (n + 1) * n_sets].sum() - C}
        for n in range(len(xs))
    ]
    found = minimize(
        lambda a: 0.5 * a @ gram @ a - ell @ a,
        start,
        jac=lambda a: gram @ a - ell,
        bounds=[(0.0, C)] * start.size,
        constraints=sums,
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    return -found.fun


def primal(tax, w, xs, trues, kind, costs, C, sets):
    """½ |w|² + C Σ max (ℓ − the margin)."""
    slack = [
        max(loss(tax, kind, costs, t, y) - w @ (phi(tax, x, t) - phi(tax, x, y)) for y in sets)
        for x, t in zip(xs, trues, strict=True)
    ]
    return 0.5 * w @ w + C * sum(slack)


def weights_of(tax, xs, trues, alphas, sets):
    """w = Σ α (φ(y_n) − φ(y)), α given as one dict {multilabel: number} for each example."""
    w = 0.0
    for x, true, alpha in zip(xs, trues, alphas, strict=True):
        w = w + sum(a * (phi(tax, x, true) - phi(tax, x, y)) for y, a in alpha.items())
    return w


def best_rows(tax, numbers):
    """The closed set with the largest sum, the smallest among equals, for each row."""
    return [max(closed_sets(tax), key=lambda y: (sum(row[i] for i in y), -len(y))) for row in numbers]


def preferences(tax, numbers):
    def best(row, sets):
        return max(sum(row[i] for i in y) for y in sets)

    sets = closed_sets(tax)
    return [
        [
            best(row, [y for y in sets if i in y]) - best(row, [y for y in sets if i not in y])
            for i in range(len(tax))
        ]
        for row in numbers
    ]


def chances(tax, numbers):
    sets = closed_sets(tax)
    found = []
    for row in numbers:
        p = np.exp([sum(row[i] for i in y) for y in sets])
        found.append(
            [sum(q for q, y in zip(p, sets, strict=True) if i in y) / p.sum() for i in range(len(tax))]
        )
    return found


def node_marginals(tax, alpha, is_free):
    """Σ α over the multilabels with a node, then, over all multilabels, with a node and its parent."""
    n = len(tax)
    a = [sum(v for y, v in alpha.items() if i in y) for i in range(n)]
    if not is_free:
        return a
    parents = [tax.parents(i).tolist() for i in range(n)]
    b = [sum(v for y, v in alpha.items() if p and i in y and p[0] in y) for i, p in enumerate(parents)]
    return a + b


def gaps_of(tax, w, xs, trues, alphas, kind, costs, C, sets):
    """C · max (ℓ + w·φ) − Σ α (ℓ + w·φ) for each example."""
    found = []
    for x, true, alpha in zip(xs, trues, alphas, strict=True):
        value = {y: loss(tax, kind, costs, true, y) + w @ phi(tax, x, y) for y in sets}
        found.append(C * max(value.values()) - sum(a * value[y] for y, a in alpha.items()))
    return found


def linear_part(tax, trues, alphas, kind, costs):
    return sum(
        a * loss(tax, kind, costs, true, y)
        for true, alpha in zip(trues, alphas, strict=True)
        for y, a in alpha.items()
    )


def quadratic_part(w):
    return w @ w


def visit(tax, w, x, true, alpha, kind, costs, C, sets):
    """One step of the printed algorithm for one example: w, α and the gain afterwards."""
    value = {y: loss(tax, kind, costs, true, y) + w @ phi(tax, x, y) for y in sets}
    best = max(sets, key=lambda y: (value[y], -len(y)))
    q = C * value[best] - sum(a * value[y] for y, a in alpha.items())
    d = C * phi(tax, x, best) - sum(a * phi(tax, x, y) for y, a in alpha.items())
    s = d @ d
    tau = 1.0 if s <= q else q / s
    alpha = {y: (1 - tau) * a for y, a in alpha.items()}
    alpha[best] = alpha.get(best, 0.0) + tau * C
    return w - tau * d, alpha, tau * q - tau * tau * s / 2


def node_rows(tax, w, x):
    """w·φ(x, y) of every closed set y, less that of the empty one: the sum of the numbers of its nodes."""
    empty = w @ phi(tax, x, frozenset())
    return {y: w @ phi(tax, x, y) - empty for y in closed_sets(tax)}


def differences(before, after):
    """Ends of the rows, columns, new values and changes, wherever two tables differ."""
    ptr, columns, values, change = [0], [], [], []
    for old, new in zip(before.tolist(), after.tolist(), strict=True):
        for k, (a, b) in enumerate(zip(old, new, strict=True)):
            if a != b:
                columns, values, change = [*columns, k], [*values, b], [*change, b - a]
        ptr.append(len(columns))
    return ptr, columns, values, change


def subtract(table, columns, values, changed, change):
    found = table.copy()
    for column, value in zip(columns, values, strict=True):
        for k, by in zip(changed, change, strict=True):
            found[column, k] -= value * by
    return found


def follow(table, X, rows, before, after):
    """The table less Σ x (after − before)."""
    return table - sum((np.outer(X[row], after[row] - before[row]) for row in rows), np.zeros(table.shape))
