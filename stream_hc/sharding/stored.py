"""States of second-order learners: what each node has stored, and the documents that nodes share."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import Ints, Longs
from stream_hc.kernels.documents import move_segments
from stream_hc.learners.instances import factor_places
from stream_hc.sharding.shard import Shard
from stream_hc.vectorize import Rows, joined

__all__ = ["cut_stored", "join_stored"]

LISTS = {"stored": np.int32, "targets": np.int8, "coefficients": np.float64, "spreads": np.float64}


def cut_stored(state: Mapping[str, Any], shard: Shard) -> dict[str, Any]:
    """Return the arrays of a shard's learner from the state of a whole one."""
    nodes = np.arange(shard.columns.size, dtype=np.int32)
    cut = _lists([(state, shard.columns, nodes)], nodes.size)
    return _with_documents(cut, _documents(state), state["stamps"])


def join_stored(
    states: Sequence[Mapping[str, Any]], shards: Sequence[Shard], level: bool = True
) -> dict[str, Any]:
    """Return the arrays of the whole learner: nodes as their owners have them, documents in their order.

    Shards that have learned the same documents in different orders can be joined without `level` alone: each
    then brings its own, whatever the others have.
    """
    rows, stamps = joined([_documents(state) for state in states]), [state["stamps"] for state in states]
    # The same stamp is the same document, whichever shards have stored it.
    merged, first, numbers = np.unique(np.concatenate(stamps), return_index=True, return_inverse=True)
    pairs: Any = zip(rows, _taken(rows, first[numbers]), strict=True)
    if not all(np.array_equal(one, other) for one, other in pairs):
        if level:
            raise ValueError("the shards have learned different documents: they are not of the same stream")
        first = numbers = np.arange(numbers.size)
        merged = first + 1
    renumbered, end = list[Mapping[str, Any]](), 0
    for state in states:
        begin, end = end, end + state["stamps"].size
        renumbered.append({**state, "stored": numbers[begin:end].astype(np.int32)[state["stored"]]})
    parts = [
        (state, np.flatnonzero(shard.own).astype(np.int32), shard.columns[shard.own])
        for state, shard in zip(renumbered, shards, strict=True)
    ]
    whole = _lists(parts, len(shards[0].whole))
    return _with_documents(whole, _taken(rows, first), merged)


def _lists(parts: Sequence[tuple[Mapping[str, Any], Ints, Ints]], n_nodes: int) -> dict[str, Any]:
    """Put lists of nodes together: each part has a state, nodes in it, and which nodes they become."""
    n_stored, n_updates = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    for state, old, new in parts:
        n_stored[new] = np.diff(state["stored_ptr"])[old]
        n_updates[new] = state["n_updates"][old]
    whole: dict[str, Any] = {"n_updates": n_updates, "stored_ptr": _pointers(n_stored)}
    factor_ptr = _pointers(factor_places(n_stored))
    for name, dtype in LISTS.items():
        whole[name] = np.empty(int(whole["stored_ptr"][-1]), dtype)
    whole["factors"] = np.empty(int(factor_ptr[-1]))
    for state, old, new in parts:
        begin, places = state["stored_ptr"], _pointers(factor_places(np.diff(state["stored_ptr"])))
        for name in LISTS:
            move_segments(state[name], begin[old], n_stored[new], whole[name], whole["stored_ptr"][new])
        move_segments(
            state["factors"], places[old], np.diff(factor_ptr)[new], whole["factors"], factor_ptr[new]
        )
    return whole


def _with_documents(lists: dict[str, Any], rows: Rows, stamps: Longs) -> dict[str, Any]:
    """Add those of the documents that some node has stored, and number them anew."""
    kept, numbers = np.unique(lists["stored"], return_inverse=True)
    ptr, features, values = _taken(rows, kept)
    documents = {"document_ptr": ptr, "features": features, "values": values, "stamps": stamps[kept]}
    return {**lists, **documents, "stored": numbers.astype(np.int32)}


def _documents(state: Mapping[str, Any]) -> Rows:
    return Rows(state["document_ptr"], state["features"], state["values"])


def _taken(rows: Rows, numbers: NDArray[Any]) -> Rows:
    """Return some rows, in the order of their numbers."""
    lengths = np.diff(rows.indptr)[numbers]
    ptr = _pointers(lengths)
    entries = np.arange(int(ptr[-1])) + np.repeat(rows.indptr[numbers] - ptr[:-1], lengths)
    return Rows(ptr, rows.indices[entries], rows.values[entries])


def _pointers(sizes: Longs) -> Longs:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
