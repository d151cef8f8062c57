"""Slow twins of the losses, from the formulas, over plain sets; `parents` maps a name to its parents."""

import math
import statistics
from typing import TypeVar

Node = TypeVar("Node", str, int)
Parents = dict[str, list[str]]


def ancestors(parents: dict[Node, list[Node]], node: Node) -> set[Node]:
    """anc(i), without i."""
    found: set[Node] = set()
    for parent in parents[node]:
        found |= {parent} | ancestors(parents, parent)
    return found


def close(parents: dict[Node, list[Node]], labels: set[Node]) -> set[Node]:
    closed = set(labels)
    for label in labels:
        closed |= ancestors(parents, label)
    return closed


def depth(parents: Parents, node: str) -> int:
    return max((1 + depth(parents, parent) for parent in parents[node]), default=0)


def differing(parents: Parents, pred: set[str], true: set[str]) -> set[str]:
    return pred ^ close(parents, true)


def zero_one(parents: Parents, pred: set[str], true: set[str]) -> float:
    return 1.0 if differing(parents, pred, true) else 0.0


def symmetric_difference(parents: Parents, pred: set[str], true: set[str]) -> float:
    return float(len(differing(parents, pred, true)))


def first_mistakes(parents: Parents, pred: set[str], true: set[str]) -> set[str]:
    """Return the i with ŷ_i ≠ y_i and ŷ_j = y_j for every j in anc(i)."""
    wrong = differing(parents, pred, true)
    return {node for node in wrong if not ancestors(parents, node) & wrong}


def wrong_under_right_parent(parents: Parents, pred: set[str], true: set[str]) -> set[str]:
    """Return the i with ŷ_i ≠ y_i and ŷ_par(i) = y_par(i)."""
    wrong = differing(parents, pred, true)
    return {node for node in wrong if not set(parents[node]) & wrong}


def h_loss(parents: Parents, pred: set[str], true: set[str], costs: dict[str, float]) -> float:
    return sum(costs[node] for node in first_mistakes(parents, pred, true))


def h_tilde_loss(parents: Parents, pred: set[str], true: set[str], costs: dict[str, float]) -> float:
    return sum(costs[node] for node in wrong_under_right_parent(parents, pred, true))


def tree_induced_error(parents: dict[Node, list[Node]], a: Node, b: Node) -> int:
    """Grow the set of nodes within k edges of a until b is in it; None is the virtual root."""
    edges = [(node, above) for node in parents for above in parents[node] or [None]]
    reached: set[Node | None] = {a}
    steps = 0
    while b not in reached:
        reached |= {y for x, y in edges if x in reached} | {x for x, y in edges if y in reached}
        steps += 1
    return steps


def pair_loss(parents: dict[Node, list[Node]], a: Node, b: Node) -> int:
    return len(close(parents, {a}) ^ close(parents, {b}))


# Rankings: `scores` maps every node to a number, `relevant` are the labels to be ranked first.


def most_specific(parents: Parents, labels: set[str]) -> set[str]:
    closed = close(parents, labels)
    return {node for node in closed if not any(node in parents[other] for other in closed)}


def default_candidates(parents: Parents, truths: list[set[str]]) -> set[str]:
    leaves = {node for node in parents if not any(node in above for above in parents.values())}
    return leaves.union(*(most_specific(parents, true) for true in truths))


def first_ranked(scores: dict[str, float], candidates: set[str], good: set[str]) -> str:
    """Return the top of the ranking; of equal scores one that is not good comes first."""
    return max(candidates, key=lambda node: (scores[node], node not in good))


def one_accuracy(
    parents: Parents, scores: dict[str, float], relevant: set[str], candidates: set[str]
) -> float:
    if not relevant:
        return 1.0
    return float(first_ranked(scores, candidates, relevant) in relevant)


def parent_one_accuracy(
    parents: Parents, scores: dict[str, float], relevant: set[str], candidates: set[str]
) -> float:
    if not relevant:
        return 1.0
    right_parents = {above for node in relevant for above in parents[node] or [node]}
    good = {node for node in candidates if set(parents[node] or [node]) & right_parents}
    return float(first_ranked(scores, candidates, good) in good)


def average_precision(
    parents: Parents, scores: dict[str, float], relevant: set[str], candidates: set[str]
) -> float:
    precisions = []
    for y in relevant:
        not_below = {node for node in candidates if scores[node] >= scores[y]}
        precisions.append(len(not_below & relevant) / len(not_below))
    return sum(precisions) / len(precisions) if precisions else 1.0


def misordered(
    scores: dict[Node, float], relevant: set[Node], candidates: set[Node]
) -> list[tuple[Node, Node]]:
    return [(y, other) for y in relevant for other in candidates - relevant if scores[other] >= scores[y]]


def ranking_loss(
    parents: Parents, scores: dict[str, float], relevant: set[str], candidates: set[str]
) -> float:
    n_pairs = len(relevant) * len(candidates - relevant)
    return len(misordered(scores, relevant, candidates)) / n_pairs if n_pairs else 0.0


def maximal_loss(
    parents: Parents, scores: dict[str, float], relevant: set[str], candidates: set[str]
) -> float:
    pairs = misordered(scores, relevant, candidates)
    return max((pair_loss(parents, y, other) / 2 for y, other in pairs), default=0.0)


# Precision, recall and F1 of the decisions (row, node) in `nodes`, each row with its weight.


def divide(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def precision_recall_f1(
    preds: list[set[str]], truths: list[set[str]], nodes: set[str], weights: list[float]
) -> tuple[float, float, float]:
    rows = list(zip(preds, truths, weights, strict=True))
    hits = sum(w * len(pred & true & nodes) for pred, true, w in rows)
    precision = divide(hits, sum(w * len(pred & nodes) for pred, _, w in rows))
    recall = divide(hits, sum(w * len(true & nodes) for _, true, w in rows))
    return precision, recall, divide(2 * precision * recall, precision + recall)


def macro(
    preds: list[set[str]], truths: list[set[str]], nodes: set[str], weights: list[float]
) -> tuple[float, float, float]:
    values = [precision_recall_f1(preds, truths, {node}, weights) for node in nodes]
    precision, recall, f1 = (divide(sum(v[k] for v in values), len(values)) for k in range(3))
    return precision, recall, f1


# The kernels' own twins, under their names: rows are sets of node numbers, `parents` maps numbers to numbers.

Graph = dict[int, list[int]]


def compare_rows(a: list[set[int]], b: list[set[int]], common: bool) -> list[set[int]]:
    return [x & y if common else x ^ y for x, y in zip(a, b, strict=True)]


def topmost(rows: list[set[int]], parents: Graph) -> list[set[int]]:
    return [{node for node in row if not ancestors(parents, node) & row} for row in rows]


def under_right_parent(rows: list[set[int]], parents: Graph) -> list[set[int]]:
    return [{node for node in row if not set(parents[node]) & row} for row in rows]


def row_sums(rows: list[set[int]], costs: list[float]) -> list[float]:
    return [sum(costs[node] for node in sorted(row)) for row in rows]


def tree_distances(a: list[int], b: list[int], parents: Graph) -> list[int]:
    return [tree_induced_error(parents, x, y) for x, y in zip(a, b, strict=True)]


def ranks(
    scores: list[list[float]], relevant: list[set[int]], pairs: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    found = []
    for row, y in pairs:
        not_below = {column for column, score in enumerate(scores[row]) if score >= scores[row][y]}
        found.append((len(not_below), len(not_below & relevant[row])))
    return found


def worst_pairs(scores: list[list[float]], relevant: list[set[int]], parents: Graph) -> list[int]:
    worst = []
    for row, good in zip(scores, relevant, strict=True):
        pairs = misordered(dict(enumerate(row)), good, set(range(len(row))))
        worst.append(max((pair_loss(parents, y, other) for y, other in pairs), default=0))
    return worst


def put_losses(recent, at, losses, total):
    """Write losses into a ring; return how many are known, and their sum added to the total."""
    known = [loss for loss in losses if loss == loss]
    for k, loss in enumerate(losses):
        recent[(at + k) % len(recent)] = loss
    for loss in known:
        total = total + loss
    return len(known), total


def compare_losses(ours, theirs, first, n_last):
    """Pair two rings where both are known: how many, mean of theirs, mean difference, its standard error."""
    places = [(first + k) % len(ours) for k in range(n_last)]
    pairs = [(ours[k], theirs[k]) for k in places if ours[k] == ours[k] and theirs[k] == theirs[k]]
    if len(pairs) < 2:
        return len(pairs), None, None, None
    differences = [b - a for a, b in pairs]
    level = statistics.fmean(b for _, b in pairs)
    error = statistics.stdev(differences) / math.sqrt(len(pairs))
    return len(pairs), level, statistics.fmean(differences), error
