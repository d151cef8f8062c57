"""A slow, obvious twin of the ranking perceptron, written from the formulas: dicts and sets, plain Python."""

import math
from collections import Counter, defaultdict
from itertools import product

from tests.naive import ancestors, close_rows


class RankingTwin:
    """`parents` of every node; an end is a node, made of nodes and, if it is an inner one, its terminal."""

    def __init__(self, parents, flat=False, margin=1.0, by_size=True):
        self.parents, self.flat, self.margin, self.by_size = parents, flat, margin, by_size
        inner = {above for some in parents for above in some}
        self.seen = set(range(len(parents))) - inner
        self.made_of = {}
        for end in range(len(parents)):
            own = ("terminal", end) if end in inner else end
            self.made_of[end] = {own} if flat else {*ancestors(end, parents), end, own}
        self.t = 1 / math.sqrt(max([1, *(len(parts) for parts in self.made_of.values())]))
        self.w = defaultdict(float)  # (feature, part) -> weight
        self.u = defaultdict(float)  # feature -> what it adds to the number of labels
        self.numbers = []  # of labels of the documents learned
        self.n_updates = 0
        self.close_call = False

    def score(self, x, end):
        return self.t * sum(self.w[j, part] * value for part in self.made_of[end] for j, value in x.items())

    def distance(self, right, wrong):
        return 1 if self.flat else len(self.made_of[right] ^ self.made_of[wrong])

    def number(self, x):
        mean = sum(self.numbers) / max(1, len(self.numbers))
        return mean + sum(self.u[j] * value for j, value in x.items())

    def predict(self, x):
        if not x or self.n_updates == 0:
            return set()
        ranked = sorted(self.seen, key=lambda end: (-self.score(x, end), end))
        n_labels = math.floor(max(0.0, self.number(x)) + 0.5)
        chosen = ranked[:n_labels] if self.by_size else [end for end in ranked if self.score(x, end) > 0]
        scores = [self.score(x, end) for end in ranked]
        self.watch([*scores, self.number(x) % 1 - 0.5 if self.by_size else 0.0])
        return close_rows([chosen], self.parents)[0]

    def watch(self, numbers):
        """Note whether anything hangs on numbers that are equal but for rounding, and not quite."""
        for one, other in product(numbers, repeat=2):
            self.close_call |= 0 < abs(one - other) < 1e-5

    def worst_pair(self, x, labels):
        """Among pairs of a label and another category: that with the smallest margin, first among equals."""
        pairs = product(sorted(labels), sorted(self.seen - set(labels)))
        margins = {(right, wrong): self.score(x, right) - self.score(x, wrong) for right, wrong in pairs}
        self.watch([*margins.values(), self.margin])
        return min(margins.items(), key=lambda item: item[1], default=((-1, -1), math.inf))

    def move_apart(self, x, right, wrong):
        for part in self.made_of[right] ^ self.made_of[wrong]:
            sign = 1 if part in self.made_of[right] else -1
            for j, value in x.items():
                self.w[j, part] += sign * self.distance(right, wrong) * self.t * value
        self.n_updates += 1

    def learn(self, x, labels):
        self.seen |= set(labels)
        if not x:
            return
        off = len(labels) - self.number(x)
        (right, wrong), margin = self.worst_pair(x, labels)
        if margin <= self.margin:
            self.move_apart(x, right, wrong)
        square = sum(value**2 for value in x.values())
        self.watch([abs(off), 0.25])
        if self.numbers and abs(off) > 0.25:
            for j, value in x.items():
                self.u[j] += math.copysign(min(0.1, (abs(off) - 0.25) / square), off) * value
        self.numbers.append(len(labels))


def stream_ranks(twin, xs, label_rows, delay):
    """Predict each document, then learn the one `delay` documents earlier; None never learns."""
    predictions = []
    for row, x in enumerate(xs):
        predictions.append(twin.predict(x))
        if delay is not None and row - delay >= 0:
            twin.learn(xs[row - delay], label_rows[row - delay])
    return predictions


def rank_rows(twin, xs):
    return [[twin.score(x, end) for end in range(len(twin.parents))] for x in xs]


def least_margins(twin, xs, label_rows, most_visits, n_steps):
    """Minover: the pair with the least margin of all documents, none too often; all pairs taken."""
    twin.seen |= {label for labels in label_rows for label in labels}
    taken = []
    while len(taken) < n_steps:
        worst = [
            (twin.worst_pair(x, labels) if x else ((-1, -1), math.inf))
            for x, labels in zip(xs, label_rows, strict=True)
        ]
        twin.watch([margin for _, margin in worst if margin < math.inf])
        visits = Counter(row for row, _, _ in taken)
        left = [row for row in range(len(xs)) if visits[row] < most_visits]
        row = min(left, key=lambda k: worst[k][1], default=None)
        if row is None or worst[row][1] > twin.margin:
            break
        taken.append((row, *worst[row][0]))
        add_pairs(twin, xs, taken[-1:])
    return taken


def add_pairs(twin, xs, pairs):
    for row, right, wrong in pairs:
        twin.move_apart(xs[row], right, wrong)
