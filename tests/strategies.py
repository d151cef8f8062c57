"""Hypothesis strategies: small taxonomies of every shape, label sets, sparse documents."""

import os

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from stream_hc import Taxonomy

N_FEATURES = 12


PLAIN = os.environ.get("NUMBA_DISABLE_JIT") == "1"


def examples(n):
    """How many examples to draw: `n`, or a few where the kernels run uncompiled.

    That second run is there to see that every line of a kernel is reached.
    """
    return max(5, n // 10) if PLAIN else n


def size(n, plain):
    """How many documents to take: `n`, or `plain` where the kernels run uncompiled."""
    return plain if PLAIN else n


@st.composite
def forests(draw, max_nodes=9):
    """Forests in shuffled edge order: single nodes, chains and many roots included."""
    n_nodes = draw(st.integers(1, max_nodes))
    parents = [draw(st.integers(-1, node - 1)) for node in range(n_nodes)]
    edges = [(f"n{node}", None if p < 0 else f"n{p}") for node, p in enumerate(parents)]
    return Taxonomy(draw(st.permutations(edges)))


@st.composite
def dags(draw, max_nodes=9):
    """DAGs: a node may hang under any number of earlier ones."""
    n_nodes = draw(st.integers(1, max_nodes))
    edges = []
    for node in range(n_nodes):
        above = draw(st.sets(st.integers(0, node - 1), max_size=3)) if node else set()
        edges += [(f"n{node}", f"n{p}") for p in sorted(above)] or [(f"n{node}", None)]
    return Taxonomy(draw(st.permutations(edges)))


def label_sets(taxonomy):
    """Label sets as people give them: not closed, maybe empty."""
    return st.sets(st.sampled_from(taxonomy.nodes), max_size=4)


# Multiples of 1/8 with few digits: sums and products of them are exact in float32 and float64 alike.
exact_values = st.integers(-8, 8).filter(bool).map(lambda eighths: eighths / 8)
documents = st.dictionaries(st.integers(0, N_FEATURES - 1), exact_values, max_size=5)


@st.composite
def streams(draw, taxonomies=None, max_documents=12):
    """A taxonomy, documents as dicts column -> value, and their label sets."""
    taxonomy = draw(taxonomies if taxonomies is not None else st.one_of(forests(), dags()))
    n_documents = draw(st.integers(0, max_documents))
    xs = [draw(documents) for _ in range(n_documents)]
    ys = [draw(label_sets(taxonomy)) for _ in range(n_documents)]
    return taxonomy, xs, ys


def to_rows(xs, n_features=N_FEATURES):
    """Documents as dicts column -> value, as CSR."""
    X = np.zeros((len(xs), n_features), np.float32)
    for row, x in enumerate(xs):
        for column, value in x.items():
            X[row, column] = value
    return csr_array(X)
