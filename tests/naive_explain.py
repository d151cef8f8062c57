"""Slow, obvious twins of the views: contributions worked out densely, from a saved state by the formula."""

import numpy as np

from stream_hc import Taxonomy


def closure(taxonomy: Taxonomy, node: int) -> list[int]:
    return sorted({node, *taxonomy.ancestors(node).tolist()})


def linear(state, x, node):
    """w_j x_j."""
    w = np.zeros(x.size)
    w[state["features"]] = state["weights"][:, node]
    return w * x


def second_order(state, x, node):
    """v_j x_j / (1 + r) with v = (I + S Sᵀ)⁻¹ S y and r = xᵀ (I + S Sᵀ)⁻¹ x."""
    first, last = state["stored_ptr"][node : node + 2]
    S = np.zeros((x.size, last - first))
    for column, document in enumerate(state["stored"][first:last]):
        part = slice(*state["document_ptr"][document : document + 2])
        S[state["features"][part], column] = state["values"][part]
    A = np.eye(x.size) + S @ S.T
    v, solved = np.linalg.solve(A, np.column_stack([S @ state["targets"][first:last].astype(float), x])).T
    return v * x / (1.0 + x @ solved)


def owned(state, n_features, n_owners):
    """Weights (features × owners) of a sparse table; with sums the means: w − Σ t · step / T."""
    W = np.zeros((n_features, n_owners))
    for place, feature in enumerate(state["features"]):
        for k in range(*state["owner_ptr"][place : place + 2]):
            mean = state["sums"][k] / max(1, state["used"][1]) if state["sums"].size else 0.0
            W[feature, state["owners"][k]] = state["weights"][k] - mean
    return W


def path(state, x, node):
    """w_j x_j of the concept with the highest score."""
    concepts = state.get("concepts", 1)
    n_nodes = len(Taxonomy.from_json(state["taxonomy"]))
    W = owned(state, x.size, n_nodes * concepts)[:, node * concepts : (node + 1) * concepts]
    return W[:, np.argmax(x @ W)] * x


def ranking(state, x, node):
    """t x_j Σ w_uj over the node and its ancestors; an inner node adds the category below it."""
    taxonomy = Taxonomy.from_json(state["taxonomy"])
    W = owned(state, x.size, 1 + 2 * len(taxonomy))

    def owners(end):
        above = [1 + 2 * each for each in closure(taxonomy, end)]
        return above if taxonomy.children(end).size == 0 else [*above, 2 + 2 * end]

    t = 1.0 / np.sqrt(max(len(owners(end)) for end in range(len(taxonomy))))
    return t * W[:, owners(node)].sum(axis=1) * x


def hm3(state, x, node):
    """U_ij x_j: what switching the node on changes at the edges into it and out of it."""
    taxonomy = Taxonomy.from_json(state["taxonomy"])
    edges = []
    for child in range(len(taxonomy)):
        edges += [(parent, child) for parent in taxonomy.parents(child).tolist()] or [(-1, child)]
    U = np.zeros(x.size)
    for (parent, child), (off_off, on_off, on_on) in zip(edges, state["weights"], strict=True):
        if child == node:
            U[state["columns"]] += on_on - on_off
        if parent == node:
            U[state["columns"]] += on_off - off_off
    return U * x


def ranking_svm(state, x, node):
    """t x_j Σ w_uj: nodes first, then the categories below inner nodes that are ends."""
    taxonomy = Taxonomy.from_json(state["taxonomy"])
    inner = [each for each in np.flatnonzero(state["is_end"]) if taxonomy.children(int(each)).size]

    def owners(end):
        return closure(taxonomy, end) + ([len(taxonomy) + inner.index(end)] if end in inner else [])

    t = 1.0 / np.sqrt(max(len(owners(end)) for end in range(len(taxonomy))))
    W = np.zeros(x.size)
    W[state["columns"]] = state["weights"][:, owners(node)].sum(axis=1)
    return t * W * x
