"""The weights v of each node as a small hash table, made from the documents it stores: predictions in O(nnz).

A table has a power of two of places, at least twice as many as features, with linear probing; a place holds a
feature plus 1, or 0 where it is empty.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from stream_hc.kernels import Bools, Doubles, Floats, Ints, Longs

__all__ = ["Tables", "predict_rows", "refresh_tables"]

ROUNDING = 64 * 2.0**-53  # as in `kernels.rls`: what is 0 up to rounding


class Tables(NamedTuple):
    """The table of node i has `room[i]` places from `begin[i]` on; `used[0]` places are taken in all."""

    begin: Longs
    room: Longs
    used: Longs
    keys: Ints
    weights: Doubles


@njit(cache=True, nogil=True)
def place_of(keys: Ints, feature: int) -> int:
    """Return where a feature is, or where it would be."""
    mask = keys.size - 1
    at = int(((np.int64(feature) * 0x9E3779B1) & 0xFFFFFFFF) * keys.size >> 32)
    while keys[at] != 0 and keys[at] != feature + 1:
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def refresh_tables(
    tables: Tables,
    ptr: Longs,
    features: Ints,
    values: Floats,
    begin: Longs,
    n_stored: Longs,
    ids: Ints,
    alpha: Doubles,
    stale: Ints,
    lookup: Ints,
) -> tuple[int, int]:
    """Work out v = Sα for each stale node; return how many were done and the places the next one needs.

    Node i has stored the documents `ids` with the coefficients `alpha`, from `begin[i]` on. It stops early
    where there is no room for a table. `lookup` has a 0 for every feature, and again on return. Writes
    `tables`.
    """
    most = 0
    for i in range(stale.size):
        total = 0
        for j in range(begin[stale[i]], begin[stale[i]] + n_stored[stale[i]]):
            total += ptr[ids[j] + 1] - ptr[ids[j]]
        most = max(most, total)
    found, sums = np.empty(most, np.int32), np.empty(most, np.float64)
    for i in range(stale.size):
        node, n_found = stale[i], 0
        for j in range(begin[node], begin[node] + n_stored[node]):
            for p in range(ptr[ids[j]], ptr[ids[j] + 1]):
                place = lookup[features[p]]
                if place == 0:
                    found[n_found], sums[n_found] = features[p], alpha[j] * values[p]
                    n_found += 1
                    lookup[features[p]] = n_found
                else:
                    sums[place - 1] += alpha[j] * values[p]
        for f in range(n_found):
            lookup[found[f]] = 0
        needed = 8
        while needed < 2 * n_found:
            needed *= 2
        if needed > tables.room[node]:
            if tables.used[0] + needed > tables.keys.size:
                return i, needed
            tables.begin[node], tables.room[node] = tables.used[0], needed
            tables.used[0] += needed
        fill_table(tables, node, found[:n_found], sums[:n_found])
    return stale.size, 0


@njit(cache=True, nogil=True)
def fill_table(tables: Tables, node: int, found: Ints, sums: Doubles) -> None:
    """Write the features and their weights into the table of a node. Writes `tables`."""
    part = slice(tables.begin[node], tables.begin[node] + tables.room[node])
    keys, weights = tables.keys[part], tables.weights[part]
    keys[:] = 0
    for f in range(found.size):
        at = place_of(keys, found[f])
        keys[at], weights[at] = found[f] + 1, sums[f]


@njit(cache=True, nogil=True)
def predict_rows(
    tables: Tables,
    n_stored: Longs,
    reach: Doubles,
    parent_ptr: Longs,
    parent_idx: Ints,
    needs_all: bool,
    zero_is_on: bool,
    x_ptr: Longs,
    x_idx: Ints,
    x_values: Floats,
    x_squares: Doubles,
    on: Bools,
) -> None:
    """Predict documents from the roots downward, by the sign of vᵀx. Writes `on`, which must be all False.

    A node is looked at below any of its parents that is on, under `needs_all` only below all of them.
    """
    for row in range(on.shape[0]):
        part = slice(x_ptr[row], x_ptr[row + 1])
        features, values = x_idx[part], x_values[part]
        for node in range(on.shape[1]):
            n_parents, n_on = parent_ptr[node + 1] - parent_ptr[node], 0
            for j in range(parent_ptr[node], parent_ptr[node + 1]):
                n_on += on[row, parent_idx[j]]
            if n_on < (n_parents if needs_all else min(n_parents, 1)):
                continue
            vx = 0.0
            if n_stored[node] > 0:
                table = slice(tables.begin[node], tables.begin[node] + tables.room[node])
                keys, weights = tables.keys[table], tables.weights[table]
                for f in range(features.size):
                    at = place_of(keys, features[f])
                    if keys[at] != 0:
                        vx += values[f] * weights[at]
                noise = ROUNDING * (n_stored[node] + features.size) * reach[node] * np.sqrt(x_squares[row])
                if abs(vx) <= noise:
                    vx = 0.0
            on[row, node] = vx > 0.0 or (vx == 0.0 and zero_is_on)
