"""Slow twins of the decoder and of the calibration, from the definitions; `parent[node]` is -1 at a root."""

import itertools
import math

import numpy as np


def multilabels(parent):
    """All label sets that respect the forest."""
    nodes = range(len(parent))
    for bits in itertools.product([0, 1], repeat=len(parent)):
        if all(parent[node] < 0 or bits[parent[node]] for node in nodes if bits[node]):
            yield bits


def probability(y, p, parent):
    """P(y): a node whose parent is on is on with probability p_i, whatever the other nodes are."""
    share = 1.0
    for node in range(len(parent)):
        if parent[node] < 0 or y[parent[node]]:
            share *= p[node] if y[node] else 1 - p[node]
    return share


def h_loss(guess, y, parent, costs):
    """The costs of the nodes that differ below ancestors that all agree."""

    def agree_above(node):
        above = parent[node]
        return above < 0 or (guess[above] == y[above] and agree_above(above))

    return sum(costs[node] for node in range(len(parent)) if guess[node] != y[node] and agree_above(node))


def expected_h_loss(guess, p, parent, costs):
    return sum(probability(y, p, parent) * h_loss(guess, y, parent, costs) for y in multilabels(parent))


def least_expected_h_loss(p, parent, costs):
    return min(expected_h_loss(guess, p, parent, costs) for guess in multilabels(parent))


def decode_rows(rows, parent, costs, printed=False):
    """H-BAYES node by node, as in ALGORITHMS; or with the recursion as the paper prints it."""
    children = [[k for k in range(len(parent)) if parent[k] == node] for node in range(len(parent))]
    answers = []
    for p in rows:
        risk, on = {}, {}
        for node in reversed(range(len(parent))):
            below = sum(risk[k] for k in children[node])
            on[node] = p[node] * (2 - below / costs[node]) >= 1
            own = costs[node] * (p[node] * (1 - on[node]) + (1 - p[node]) * on[node])
            risk[node] = own + (1 if printed else p[node] * on[node]) * below
        for node in range(len(parent)):
            on[node] = on[node] and (parent[node] < 0 or on[parent[node]])
        answers.append([node for node in range(len(parent)) if on[node]])
    return answers


class Calibration:
    """The lines from margins to log-odds, with every belief written out as a vector and a matrix."""

    def __init__(self, parents, keep):
        self.parents, self.keep = parents, keep
        self.mean, self.precision = np.array([2.0, -1.0]), np.eye(2)  # of the shared line
        self.own_mean = [np.zeros(2) for _ in parents]
        self.own_precision = [np.eye(2) for _ in parents]
        self.seen = [[] for _ in parents]  # (document, margin) of each node, where it was eligible
        self.t = 0

    def mean_square(self, node):
        """Faded mean of the squared margins, with ten of the mean over all nodes added."""
        every = [(t, margin) for pairs in self.seen for t, margin in pairs]
        shared = self.weighted([(self.t - 1 - t, margin) for t, margin in every])
        shared = shared[0] / shared[1] if shared[0] > 0 else 1.0
        own = self.weighted([(age, margin) for age, (_, margin) in enumerate(reversed(self.seen[node]))])
        return (own[0] + 10 * shared) / (own[1] + 10)

    def weighted(self, aged):
        return sum(self.keep**age * m * m for age, m in aged), sum(self.keep**age for age, m in aged)

    def inputs(self, node, margin):
        z = margin / math.sqrt(self.mean_square(node))
        return np.array([z / math.sqrt(1 + (z / 2) ** 2), 1.0])

    def log_odds(self, node, margin):
        return float((self.mean + self.own_mean[node]) @ self.inputs(node, margin))


def log_odds_rows(calibration, rows):
    return [
        [max(-30.0, min(30.0, calibration.log_odds(node, m))) for node, m in enumerate(margins)]
        for margins in rows
    ]


def learn_margins(calibration, margins, labels):
    """Shared line: one Newton step. Own lines: the mode of the posterior."""
    c = calibration
    eligible = [node for node, above in enumerate(c.parents) if set(above) <= labels]
    x = {node: c.inputs(node, margins[node]) for node in eligible}
    y = {node: float(node in labels) for node in eligible}
    old_mean = c.mean.copy()
    p = {node: sigmoid(old_mean @ x[node]) for node in eligible}
    c.precision = c.keep * c.precision + (1 - c.keep) * np.eye(2)
    c.precision = c.precision + sum(p[n] * (1 - p[n]) * np.outer(x[n], x[n]) for n in eligible)
    gradient = sum(((y[n] - p[n]) * x[n] for n in eligible), np.zeros(2))
    c.mean = old_mean + np.linalg.solve(c.precision, gradient)
    for n in eligible:
        precision = c.keep * c.own_precision[n] + (1 - c.keep) * np.eye(2)
        mode = posterior_mode(c.own_mean[n], precision, old_mean, x[n], y[n])
        at_mode = sigmoid((old_mean + mode) @ x[n])
        c.own_precision[n] = precision + at_mode * (1 - at_mode) * np.outer(x[n], x[n])
        c.own_mean[n] = mode
        c.seen[n].append((c.t, margins[n]))
    c.t += 1


def posterior_mode(mean, precision, shared, x, y):
    """Minimise ½ (line − mean)ᵀ precision (line − mean) − ln P(y) over lines, by damped Newton steps."""

    def cost(line):
        u = (shared + line) @ x
        return 0.5 * (line - mean) @ precision @ (line - mean) + np.logaddexp(0.0, u) - y * u

    line = mean
    for _ in range(200):
        p = sigmoid((shared + line) @ x)
        gradient = precision @ (line - mean) + (p - y) * x
        step = np.linalg.solve(precision + p * (1 - p) * np.outer(x, x), gradient)
        length = 1.0
        while length > 1e-9 and cost(line - length * step) > cost(line) - 0.1 * length * gradient @ step:
            length /= 2
        line = line - length * step
        if np.abs(gradient).max() < 1e-12:
            break
    return line


def marginal_rows(rows, parents):
    """p_i times the least of its parents' marginals."""

    def marginal(p, node):
        return p[node] * min((marginal(p, above) for above in parents[node]), default=1.0)

    return [[marginal(p, node) for node in range(len(parents))] for p in rows]


def sigmoid(u):
    return 1 / (1 + math.exp(-u))


def expected_calibration_error(p, y, n_bins):
    """The mean over all forecasts of |mean forecast − share of true outcomes| in their bin."""
    total = 0.0
    for k in range(n_bins):
        inside = [(a, b) for a, b in zip(p, y, strict=True) if min(int(a * n_bins), n_bins - 1) == k]
        if inside:
            forecast, observed = (sum(pair[j] for pair in inside) / len(inside) for j in (0, 1))
            total += len(inside) * abs(forecast - observed)
    return total / len(p)
