"""Slow, obvious twins of the max-margin ranking: feature vectors Λ(y) ⊗ x, all pairs, a generic QP solver.

A part of a category is a node, or ("terminal", node) for the miscellaneous one below an inner node. A pair is
(row, right, wrong). Dual variables are a dict pair -> α.
"""

import math
from itertools import product

import numpy as np
from scipy.optimize import minimize

from tests.naive import ancestors, close_rows


class RankingProblem:
    """`parents` of every node; rows as dense vectors; the most specific labels of each."""

    def __init__(self, parents, xs, label_rows, C):
        self.parents, self.xs, self.C = parents, [np.asarray(x, float) for x in xs], C
        inner = {above for some in parents for above in some}
        closed = [close_rows([labels], parents)[0] for labels in label_rows]
        self.labels = [{v for v in row if not any(v in parents[u] for u in row)} for row in closed]
        self.ends = sorted((set(range(len(parents))) - inner).union(*self.labels))
        terminals = [("terminal", end) for end in self.ends if end in inner]
        self.parts = [*range(len(parents)), *terminals]
        self.made_of = {
            v: {*ancestors(v, parents), v, *({("terminal", v)} & set(terminals))} for v in range(len(parents))
        }
        self.t = 1 / math.sqrt(max(len(parts) for parts in self.made_of.values()))
        self.pairs = [
            (row, *pair)
            for row, labels in enumerate(self.labels)
            for pair in product(sorted(labels), [end for end in self.ends if end not in labels])
        ]

    def attributes(self, end):
        return np.array([self.t * (part in self.made_of[end]) for part in self.parts])

    def phi(self, x, end):
        return np.kron(self.attributes(end), x)

    def difference(self, pair):
        row, right, wrong = pair
        return self.phi(self.xs[row], right) - self.phi(self.xs[row], wrong)

    def delta(self, pair):
        return len(self.made_of[pair[1]] ^ self.made_of[pair[2]])

    def pairs_of(self, row):
        return [pair for pair in self.pairs if pair[0] == row]

    def slope(self, w, pair):
        """G of (12)."""
        return self.delta(pair) * (1 - w @ self.difference(pair))


def table_of(problem, alphas):
    """(11): Σ α (Φ(x, y) − Φ(x, ȳ)), and its square."""
    w = np.zeros(len(problem.parts) * len(problem.xs[0]))
    for pair, alpha in alphas.items():
        w = w + alpha * problem.difference(pair)
    return w, w @ w


def slacks_of(problem, w):
    """The least ξ that (6) allows."""
    return [
        max([0.0, *(problem.slope(w, pair) for pair in problem.pairs_of(row))])
        for row in range(len(problem.xs))
    ]


def gaps_of(problem, w, alphas):
    """C ξ − Σ α (1 − margin) of each row, its ξ, and Σ α."""
    slacks = slacks_of(problem, w)
    gaps = [
        problem.C * slack
        - sum(alphas.get(pair, 0.0) * (1 - w @ problem.difference(pair)) for pair in problem.pairs_of(row))
        for row, slack in enumerate(slacks)
    ]
    return gaps, slacks, sum(alphas.values())


def primal(problem, w):
    return w @ w / 2 + problem.C * sum(slacks_of(problem, w))


def dual(problem, alphas):
    return sum(alphas.values()) - table_of(problem, alphas)[1] / 2


def maximum(problem, pairs, fixed):
    """The largest value of (7) over the variables of some pairs, the others being fixed."""
    if not pairs:
        return dual(problem, fixed)
    D = np.array([problem.difference(pair) for pair in pairs])
    other, square = table_of(problem, fixed)
    gram, linear = D @ D.T, 1 - D @ other
    delta = np.array([problem.delta(pair) for pair in pairs], float)
    rows = sorted({pair[0] for pair in pairs})
    mine = np.array([[(pair[0] == row) / d for pair, d in zip(pairs, delta, strict=True)] for row in rows])
    found = minimize(
        lambda a: 0.5 * a @ gram @ a - linear @ a,
        np.zeros(len(pairs)),
        jac=lambda a: gram @ a - linear,
        bounds=[(0.0, problem.C * d) for d in delta],
        constraints={"type": "ineq", "fun": lambda a: problem.C - mine @ a, "jac": lambda a: -mine},
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    return sum(fixed.values()) - square / 2 - found.fun


def optimum(problem):
    return maximum(problem, problem.pairs, {})


def least_primal(problem):
    """The optimum of (6) itself, over w and ξ."""
    n_rows, n_weights = len(problem.xs), len(problem.parts) * len(problem.xs[0])
    if not problem.pairs:
        return 0.0
    D = np.array([problem.difference(pair) for pair in problem.pairs])
    per_slack = np.array([[(p[0] == row) / problem.delta(p) for row in range(n_rows)] for p in problem.pairs])
    matrix = np.hstack([D, per_slack])
    start = np.concatenate([np.zeros(n_weights), np.full(n_rows, max(map(problem.delta, problem.pairs)))])
    price = np.concatenate([np.zeros(n_weights), np.full(n_rows, problem.C)])
    is_weight = np.arange(start.size) < n_weights
    found = minimize(
        lambda z: z[:n_weights] @ z[:n_weights] / 2 + price @ z,
        start,
        jac=lambda z: z * is_weight + price,
        bounds=[(None, None)] * n_weights + [(0.0, None)] * n_rows,
        constraints={"type": "ineq", "fun": lambda z: matrix @ z - 1, "jac": lambda z: matrix},
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    return found.fun


def visit(problem, alphas, row):
    """What the variables of one row can gain: at least, by the most violated pair alone, and at most."""
    w, _ = table_of(problem, alphas)
    before = dual(problem, alphas)
    own = problem.pairs_of(row)
    others = {pair: alpha for pair, alpha in alphas.items() if pair[0] != row}
    most = maximum(problem, own, others) - before
    pair = max(own, key=lambda p: problem.slope(w, p), default=None)
    if pair is None or problem.slope(w, pair) <= 0:
        return 0.0, most
    left = problem.C - sum(alphas.get(p, 0.0) / problem.delta(p) for p in own)
    slope, curvature = (
        problem.slope(w, pair),
        problem.delta(pair) ** 2 * problem.difference(pair) @ (problem.difference(pair)),
    )
    step = max(0.0, left if left * curvature <= slope else slope / curvature)
    return step * slope - step**2 * curvature / 2, most


def best_ends(problem, scores, n_labels):
    """The `n_labels` highest categories, the first among equals, and all above them."""
    ranked = sorted(problem.ends, key=lambda end: (-scores[end], end))
    return close_rows([ranked[:n_labels]], problem.parents)[0]


def expected_sizes(problem, damping, xs):
    """Ridge regression of the number of labels, less its mean."""
    X, sizes = np.array(problem.xs), np.array([len(labels) for labels in problem.labels], float)
    normal = X.T @ X + damping * np.eye(X.shape[1])
    u = np.linalg.solve(normal, X.T @ (sizes - sizes.mean()))
    return sizes.mean() + np.array(xs) @ u
