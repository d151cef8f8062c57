"""Slow, obvious twins of the kernels, written from the formulas: dense, plain Python, no shortcuts."""

import json
import math
import re
from collections import Counter, defaultdict

import msgspec
import numpy as np


def ancestors(node, parents):
    """All strict ancestors; `parents[node]` lists the parents of a node."""
    found = set()
    for parent in parents[node]:
        found |= {parent} | ancestors(parent, parents)
    return found


def close_rows(rows, parents):
    return [set(row).union(*(ancestors(node, parents) for node in row)) for row in rows]


def truncate_rows(rows, parents):
    return [{node for node in row if ancestors(node, parents) <= set(row)} for row in rows]


def is_open(node, parents, on, needs_all):
    return not parents[node] or (all if needs_all else any)(parent in on for parent in parents[node])


def top_down(wanted, parents, needs_all=False):
    """Nodes are numbered parents first: keep those wanted below kept ones, then add all their ancestors."""
    on = set()
    for node in sorted(wanted):
        if is_open(node, parents, on, needs_all):
            on.add(node)
    return close_rows([on], parents)[0]


def most_specific(rows, parents):
    return [node not in {p for other in row for p in parents[other]} for row in rows for node in sorted(row)]


def hash_tokens(tokens):
    """FNV-1a, 32 bits, then the finaliser of MurmurHash3."""
    hashes = []
    for token in tokens:
        h = 2166136261
        for byte in token:
            h = (h ^ byte) * 16777619 % 2**32
        h = (h ^ h >> 16) * 0x85EBCA6B % 2**32
        h = (h ^ h >> 13) * 0xC2B2AE35 % 2**32
        hashes.append(h ^ h >> 16)
    return hashes


def token_columns(texts, n_features, shortest, longest):
    """The columns of the terms of each text."""
    rows = []
    for text in texts:
        tokens = re.findall(r"\w\w+", text)
        terms = [
            " ".join(tokens[first : first + size])
            for size in range(shortest, longest + 1)
            for first in range(len(tokens) - size + 1)
        ]
        rows.append([h % n_features for h in hash_tokens([term.encode() for term in terms])])
    return rows


def sorted_row(hashes, numbers, n_features):
    """Column -> sum of its values, smallest first, without zeros, ascending."""
    row = {}
    for number, h in sorted(zip(numbers, hashes, strict=True)):
        row[h % n_features] = row.get(h % n_features, 0.0) + number
    return {column: np.float32(row[column]) for column in sorted(row) if np.float32(row[column]) != 0}


def packed_row(packed, n_features):
    """Decode, hash the names, sort; None where a name or a value is of another kind."""
    features = msgspec.msgpack.decode(packed, strict=False)
    if not all(type(name) in (str, int) and name != 2**63 for name in features):
        return None
    if not all(type(value) in (float, int, bool) and value != 2**63 for value in features.values()):
        return None
    hashes = [name if isinstance(name, int) else hash_tokens([name.encode()])[0] for name in features]
    return sorted_row(hashes, [float(value) for value in features.values()], n_features)


def are_sound(rows, n_columns, largest):
    """Rows of (column, value): columns ascend in their shape, values are neither 0 nor out of range."""
    return all(
        [column for column, _ in row] == sorted({column for column, _ in row})
        and all(0 <= column < n_columns and 0 < abs(value) <= largest for column, value in row)
        for row in rows
    )


def are_closed(rows, parents):
    """Rows of (node, value): nodes ascend, all are true, and every ancestor is there."""
    return all(
        [node for node, _ in row] == sorted({node for node, _ in row})
        and all(0 <= node < len(parents) and value for node, value in row)
        and close_rows([{node for node, _ in row}], parents) == [{node for node, _ in row}]
        for row in rows
    )


def weigh_rows(token_lists, learn, tf="log", idf=True, norm=True, seen_in=None, n_documents=0):
    """Rows {column: weight} of lists of columns."""
    seen_in = Counter(seen_in or {})
    rows = []
    for tokens in token_lists:
        counts = Counter(tokens)
        if learn:
            n_documents += 1
            seen_in.update(counts.keys())
        row = {}
        for column, count in counts.items():
            weight = {"raw": count, "log": 1 + math.log(count), "binary": 1}[tf]
            row[column] = weight * (math.log((n_documents + 1) / (seen_in[column] + 0.5)) if idf else 1)
        length = math.sqrt(sum(weight**2 for weight in row.values()))
        rows.append({column: weight / length if norm else weight for column, weight in row.items()})
    return rows


class NodeLearner:
    """A linear learner at every node: rules "path" and "node" (H-PERC), "flat", "arow", "pa"."""

    def __init__(self, parents, rule, strength=0.0, threshold=0.0, zero_is_on=False, needs_all=False):
        self.parents, self.rule, self.strength = parents, rule, strength
        self.zero_is_on, self.needs_all, self.learns_thresholds = (
            zero_is_on,
            needs_all,
            threshold == "learned",
        )
        self.thresholds = [0.0 if self.learns_thresholds else threshold for _ in parents]
        self.told = [[] for _ in parents]  # [bin of the margin, whether it is a label, how much that counts]
        self.w = [defaultdict(float) for _ in parents]
        self.sigma = [defaultdict(lambda: 1.0) for _ in parents]
        self.n_updates = [0 for _ in parents]

    def margin(self, node, x):
        return sum(self.w[node][j] * value for j, value in x.items())

    def own(self, node, x):
        margin = self.margin(node, x)
        return self.zero_is_on if margin == 0 else margin > self.thresholds[node]

    def predict(self, x):
        wanted = {node for node in range(len(self.parents)) if self.own(node, x)}
        return top_down(wanted, self.parents, self.needs_all)

    def learn(self, x, y):
        if not x:
            return
        y = close_rows([y], self.parents)[0]
        predicted = self.predict(x)
        decisions = {node: self.own(node, x) for node in range(len(self.parents))}
        for node in range(len(self.parents)):
            if self.rule != "flat" and not is_open(node, self.parents, y, self.needs_all):
                continue
            sign = 1 if node in y else -1
            margin = self.margin(node, x)
            if self.learns_thresholds:
                self._move_threshold(node, margin, node in y)
            says = (node in predicted) if self.rule == "path" else decisions[node]
            if self.rule in ("path", "node", "flat") and says != (node in y):
                self._add(node, sign, x)
            elif self.rule == "pa" and sign * margin < 1:
                square = sum(value**2 for value in x.values())
                self._add(node, sign * min(self.strength, (1 - sign * margin) / square), x)
            elif self.rule == "arow" and sign * margin < 1:
                self._add_arow(node, sign, margin, x)

    def _move_threshold(self, node, margin, is_true):
        """Try every edge of a bin; on a tie the one nearest to 0, then the lower one."""
        told = self.told[node]
        if margin == 0:
            return
        told.append([min(max(math.floor(16 * margin), -32), 31), is_true, 1.0])
        if len(told) in (16, 32, 64, 128, 256):
            told[:] = [[place, was_true, weight / 2] for place, was_true, weight in told]

        def errors(edge):
            return sum(weight for place, was_true, weight in told if (place >= edge) != was_true)

        self.thresholds[node] = min(range(-32, 33), key=lambda edge: (errors(edge), abs(edge), edge)) / 16

    def _add(self, node, step, x):
        self.n_updates[node] += 1
        for j, value in x.items():
            self.w[node][j] += step * value

    def _add_arow(self, node, sign, margin, x):
        self.n_updates[node] += 1
        sigma = self.sigma[node]
        beta = 1 / (sum(sigma[j] * value**2 for j, value in x.items()) + self.strength)
        alpha = beta * (1 - sign * margin)
        for j, value in x.items():
            self.w[node][j] += alpha * sign * sigma[j] * value
            sigma[j] -= beta * sigma[j] ** 2 * value**2


def margin_rows(learner, xs):
    return np.array([[learner.margin(node, x) for node in range(len(learner.parents))] for x in xs])


def predict_row(learner, x):
    return learner.predict(x)


def learn_row(learner, x, y):
    learner.learn(x, y)


def stream_rows(learner, xs, ys, delay):
    """Predict each document, then learn the one `delay` documents earlier; None never learns."""
    predictions = []
    for row, x in enumerate(xs):
        predictions.append(predict_row(learner, x))
        if delay is not None and row - delay >= 0:
            learn_row(learner, xs[row - delay], ys[row - delay])
    return predictions


def kmer_columns(sequences, n_features, shortest, longest, gapped):
    rows = []
    for sequence in sequences:
        kmers = []
        for first in range(len(sequence)):
            for length in range(shortest, longest + 1):
                if first + length <= len(sequence):
                    kmer = sequence[first : first + length]
                    kmers.append(kmer)
                    kmers += [kmer[:gap] + "." + kmer[gap + 1 :] for gap in range(1, length - 1) if gapped]
        rows.append([h % n_features for h in hash_tokens([kmer.encode() for kmer in kmers])])
    return rows


def names_of_columns(texts, n_features, shortest, longest, limit):
    """Column -> name after these texts: the first term seen; of a full table the rarer half is dropped."""
    names, seen_in = {}, Counter()
    for text in texts:
        if len(names) == limit:
            frequent_first = sorted(names, key=lambda column: (-seen_in[column], column))
            names = {column: names[column] for column in frequent_first[: limit // 2]}
        tokens = re.findall(r"\w\w+", text)
        terms = [
            " ".join(tokens[first : first + size])
            for size in range(shortest, longest + 1)
            for first in range(len(tokens) - size + 1)
        ]
        columns = token_columns([text], n_features, shortest, longest)[0]
        for column, term in zip(columns, terms, strict=True):
            if column not in names and len(names) < limit:
                names[column] = term.encode()[:64].decode(errors="ignore")
        seen_in.update(set(columns))
    return names


def prediction_lines(documents, rows, versions, model, names, parents):
    """Return a line of JSON for each document from its {node: margin}; `parents` of every node."""
    lines = []
    for (document_id, ts), row, version in zip(documents, rows, versions, strict=True):
        above = {parent for node in row for parent in parents[node]}
        record = {
            "id": document_id,
            "labels": [names[node] for node in sorted(row) if node not in above],
            "path_labels": [names[node] for node in sorted(row)],
            "scores": {names[node]: round(row[node], 6) for node in sorted(row)},
            "model": model,
            "model_version": version,
        }
        lines.append(json.dumps(record if ts is None else record | {"ts": ts}))
    return lines


def count_nodes(n_nodes, predicted, true, charged):
    """Count for each node: belongs there, filed there, both, charged there; rows are sets of nodes."""
    return [
        [
            sum(node in row for row in true),
            sum(node in row for row in predicted),
            sum(node in p and node in t for p, t in zip(predicted, true, strict=True)),
            sum(node in row for row in charged),
        ]
        for node in range(n_nodes)
    ]
