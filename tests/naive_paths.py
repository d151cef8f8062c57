"""Slow, obvious twins of the learners of paths, written from the formulas: dicts, plain Python.

Weights and scores are rounded to float32 as in the kernel, and sums run in its order, so that ties fall the
same way.
"""

from collections import defaultdict

import numpy as np


def chance(seed, time, node):
    """Mix three numbers: two rounds of shift and multiply for each, in 32 bits."""

    def mixed(h):
        for _ in range(2):
            h = ((h >> 16) ^ h) * 0x45D9F3B % 2**32
        return (h >> 16) ^ h

    return mixed(mixed(mixed(seed % 2**32 ^ mixed(seed >> 32)) ^ time % 2**32) ^ node)


class PathTwin:
    """PA (`flat`), HPA (one concept) and LHPA on a forest: `parent` of every node, -1 at a root."""

    def __init__(self, parent, ends, C=1.0, flat=False, concepts=1, averaged=False, seed=0):
        self.parent, self.ends, self.C, self.flat = parent, ends, C, flat
        self.concepts, self.averaged, self.seed = concepts, averaged, seed
        self.w = defaultdict(float)  # (feature, node, concept) -> weight
        self.touched = defaultdict(set)  # feature -> the concepts it ever touched
        self.after = []  # the weights after each document learned
        self.n_updates = 0

    def path(self, node):
        return [] if node < 0 else [*self.path(self.parent[node]), node]

    def mean(self):
        keys = {key for w in self.after for key in w}
        return {key: sum(float(w.get(key, 0.0)) for w in self.after) / len(self.after) for key in keys}

    def score(self, w, x, node, concept):
        """Features that touched many concepts come first: those for which a block of 2, 4, 8, … places is
        too small, if the next one has places for an eighth of all."""
        places = 2
        while 8 * places < len(self.parent) * self.concepts:
            places *= 2
        few = places // 2 if places > 2 else 0
        ordered = sorted(x.items(), key=lambda item: (len(self.touched[item[0]]) <= few, item[0]))
        total = np.float32(0.0)
        for j, value in ordered:
            total += np.float32(value) * np.float32(w.get((j, node, concept), 0.0))
        return float(total)

    def spokesman(self, w, x, node):
        """The best concept of a node and its score; among equals one by chance."""
        scores = [self.score(w, x, node, concept) for concept in range(self.concepts)]
        best = [concept for concept in range(self.concepts) if scores[concept] == max(scores)]
        chosen = best[0] if len(best) == 1 else best[chance(self.seed, len(self.after), node) % len(best)]
        return chosen, scores[chosen]

    def total(self, w, x, end):
        nodes = [end] if self.flat else self.path(end)
        return sum(self.spokesman(w, x, node)[1] for node in nodes)

    def predict(self, x):
        if not x or self.n_updates == 0:
            return []
        w = self.mean() if self.averaged and self.after else self.w
        return self.path(max(self.ends, key=lambda end: (self.total(w, x, end), -end)))

    def margins(self, x):
        w = self.mean() if self.averaged and self.after else self.w
        return [self.spokesman(w, x, node)[1] for node in range(len(self.parent))]

    def learn(self, x, true_ends):
        wrong_ends = [end for end in self.ends if end not in true_ends]
        if x and true_ends and wrong_ends:
            wrong = max(wrong_ends, key=lambda end: (self.total(self.w, x, end), -end))
            right = min(true_ends, key=lambda end: (self.total(self.w, x, end), end))
            plus, minus = ({right}, {wrong}) if self.flat else (set(self.path(right)), set(self.path(wrong)))
            plus, minus = plus - minus, minus - plus
            distance = 1 if self.flat else len(plus) + len(minus)
            loss = distance - (self.total(self.w, x, right) - self.total(self.w, x, wrong))
            if loss > 0:
                norm = sum(value**2 for _, value in sorted(x.items())) * (len(plus) + len(minus))
                step = self.C if self.C * norm <= loss else loss / norm
                spoke = {node: self.spokesman(self.w, x, node)[0] for node in plus | minus}
                for node, concept in spoke.items():
                    for j, value in x.items():
                        move = np.float32(step * value * (1 if node in plus else -1))
                        self.w[j, node, concept] = np.float32(self.w[j, node, concept]) + move
                        self.touched[j].add((node, concept))
                self.n_updates += 1
        self.after.append(dict(self.w))


def stream_paths(twin, xs, true_ends, delay):
    """Predict each document, then learn the one `delay` documents earlier; None never learns."""
    predictions = []
    for row, x in enumerate(xs):
        predictions.append(twin.predict(x))
        if delay is not None and row - delay >= 0:
            twin.learn(xs[row - delay], true_ends[row - delay])
    return predictions


def score_rows(twin, xs):
    return [twin.margins(x) for x in xs]


def entries(twin):
    """The weights by feature: {feature: {(node, concept): weight}}."""
    found = defaultdict(dict)
    for (feature, node, concept), weight in twin.w.items():
        found[feature][node, concept] = weight
    return found


def add_entries(twin, found):
    for feature, owners in found.items():
        for owner, weight in owners.items():
            twin.w[(feature, *owner)] = weight
