"""Slow, obvious twins of the second-order learners: the paper's formula, solved directly in feature space."""

import math

import numpy as np

from tests.naive import close_rows, is_open, top_down, truncate_rows

ZERO = 1e-9  # a margin this small is 0 up to rounding


class StoredLearner:
    """H-RLS: w = (I + S Sᵀ + x xᵀ)⁻¹ S y at every node, from the documents stored there."""

    def __init__(
        self, parents, n_features, zero_is_on=False, budget=None, eviction="oldest", needs_all=False
    ):
        self.parents, self.n_features, self.zero_is_on = parents, n_features, zero_is_on
        self.budget, self.eviction, self.needs_all = budget, eviction, needs_all
        self.stored = [[] for _ in parents]  # pairs (dense x, ±1)
        self.n_updates = [0 for _ in parents]
        self.t = 0
        self.close_call = False

    def dense(self, x):
        row = np.zeros(self.n_features)
        for j, value in x.items():
            row[j] = value
        return row

    def columns(self, node):
        """S and y."""
        S = np.array([x for x, _ in self.stored[node]]).reshape(-1, self.n_features).T
        return S, np.array([y for _, y in self.stored[node]], float)

    def margin(self, node, x):
        S, y = self.columns(node)
        x = self.dense(x)
        w = np.linalg.solve(np.eye(self.n_features) + S @ S.T + np.outer(x, x), S @ y)
        return 0.0 if abs(w @ x) < ZERO else w @ x

    def own(self, node, x):
        margin = self.margin(node, x)
        return self.zero_is_on if margin == 0 else margin > 0

    def predict(self, x):
        wanted = {node for node in range(len(self.parents)) if self.own(node, x)}
        return top_down(wanted, self.parents, self.needs_all)

    def wants(self, node, x, t):
        if self.n_updates[node] == 0:
            return True
        band = math.sqrt(5 * math.log(t) / self.n_updates[node])
        self.close_call |= abs(abs(self.margin(node, x)) - band) < ZERO
        return abs(self.margin(node, x)) <= band

    def learn(self, x, y):
        self.t += 1
        if not x:
            return
        y = close_rows([y], self.parents)[0]
        for node in range(len(self.parents)):
            if is_open(node, self.parents, y, self.needs_all) and self.wants(node, x, self.t):
                if len(self.stored[node]) == self.budget:
                    del self.stored[node][self.worst(node)]
                self.stored[node].append((self.dense(x), 1 if node in y else -1))
                self.n_updates[node] += 1

    def worst(self, node):
        """Which stored document to evict: the first of the least scores, up to rounding."""
        S, y = self.columns(node)
        inverse = np.linalg.inv(np.eye(y.size) + S.T @ S)
        alpha = inverse @ y
        scores = {
            "oldest": np.zeros(y.size),
            "coefficient": np.abs(alpha),
            "redundant": -np.diag(inverse),
            "influence": alpha**2 / np.diag(inverse),
        }[self.eviction]
        best = 0
        for j in range(1, y.size):
            if scores[j] < scores[best] - 1e-9 * abs(scores[best]):
                best = j
        return best

    def query(self, x):
        predicted = self.predict(x)
        return {
            node: self.margin(node, x)
            for node in range(len(self.parents))
            if x
            and is_open(node, self.parents, predicted, self.needs_all)
            and self.wants(node, x, self.t + 1)
        }


class BayesLearner(StoredLearner):
    """APPROX-H-BAYES: the same stores, another decision; `parents` is a forest."""

    def __init__(self, parents, n_features, costs, **options):
        super().__init__(parents, n_features, **options)
        self.costs = costs

    def p(self, node, x):
        margin = self.margin(node, x)
        if margin == 0:
            return 0.5 if self.zero_is_on else 0.0
        return min(max((1 + margin) / 2, 0.0), 1.0)

    def predict(self, x):
        risk, wanted = [0.0 for _ in self.parents], set()
        for node in reversed(range(len(self.parents))):
            children = [k for k, above in enumerate(self.parents) if node in above]
            below, p, cost = sum(risk[k] for k in children), self.p(node, x), self.costs[node]
            gain = p * (2 - below / cost)
            self.close_call |= abs(gain - 1) < ZERO and p != 0.5
            if gain >= 1:
                wanted.add(node)
            yes = node in wanted
            risk[node] = cost * (p * (1 - yes) + (1 - p) * yes) + p * yes * below
        return truncate_rows([wanted], self.parents)[0]


def stream_nodes(learner, xs, ys, delay=0):
    """Predict each document, then learn the one `delay` documents earlier."""
    predictions = []
    for row, x in enumerate(xs):
        predictions.append(learner.predict(x))
        if row - delay >= 0:
            learner.learn(xs[row - delay], ys[row - delay])
    return predictions


stream_bayes = stream_nodes  # of a BayesLearner


def margin_nodes(learner, xs):
    return np.array([[learner.margin(node, x) for node in range(len(learner.parents))] for x in xs])


def ask_nodes(learner, xs):
    return [learner.query(x) for x in xs]


def predict_rows(learner, xs):
    return [learner.predict(x) for x in xs]


def refresh_tables(learner):
    """The weights v = (I + S Sᵀ)⁻¹ S y of every node."""
    weights = []
    for node in range(len(learner.parents)):
        S, y = learner.columns(node)
        weights.append(np.linalg.solve(np.eye(learner.n_features) + S @ S.T, S @ y))
    return weights


def count_eligible(parents, label_rows, needs_all):
    closed = close_rows(label_rows, parents)
    return [sum(is_open(node, parents, row, needs_all) for row in closed) for node in range(len(parents))]


def square_rows(xs):
    return [sum(value**2 for value in x.values()) for x in xs]


def multiply_rows(documents, xs):
    return [[sum(x.get(j, 0) * value for j, value in d.items()) for d in documents] for x in xs]


def index_documents(documents):
    """Feature -> [(document, value)]."""
    features = {j for d in documents for j in d}
    return {j: [(i, d[j]) for i, d in enumerate(documents) if j in d] for j in features}


def multiply_indexed(index, n_documents, xs):
    products = [[0.0] * n_documents for _ in xs]
    for row, x in enumerate(xs):
        for j, value in x.items():
            for document, entry in index.get(j, []):
                products[row][document] += value * entry
    return products


def keep_used(lists, first, n_documents):
    """Renumber the documents from `first` on that are in no list; return the lists and which were used."""
    used = sorted({i for one in lists for i in one if i >= first})
    new = {old: first + number for number, old in enumerate(used)}
    return [[new.get(i, i) for i in one] for one in lists], [i in used for i in range(first, n_documents)]


def move_segments(source, begin, sizes, target, target_begin):
    target = list(target)
    for b, size, to in zip(begin, sizes, target_begin, strict=True):
        target[to : to + size] = source[b : b + size]
    return target
