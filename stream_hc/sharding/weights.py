"""States of linear learners: weights of features × nodes, cut by columns and put side by side again."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stream_hc.kernels import Bools, Floats
from stream_hc.sharding.shard import Shard

__all__ = ["cut_weights", "join_weights"]

# What a weight and a variance are before anything was learned, as they lie in memory: -0.0 is something else.
INITIAL = {"weights": np.float32(0.0).view(np.uint32), "variances": np.float32(1.0).view(np.uint32)}


def cut_weights(state: Mapping[str, Any], shard: Shard) -> dict[str, Any]:
    """Return the arrays of a shard's learner from the state of a whole one.

    A feature has a row where one of the nodes has learned something about it. A few rows hold nothing at all,
    since what was learned was too small or was taken back: they go to shard 0, so that none gets lost.
    """
    tables = {name: state[name] for name in INITIAL if name in state}
    own = {name: np.take(table, shard.columns, axis=1) for name, table in tables.items()}
    kept = _are_used(own)
    if shard.number == 0:
        kept |= ~_are_used(tables)
    cut = {name: table[kept] for name, table in own.items()}
    cut |= {"features": state["features"][kept], "n_updates": state["n_updates"][shard.columns]}
    return cut | ({"cuts": state["cuts"][shard.columns]} if "cuts" in state else {})


def _are_used(tables: Mapping[str, Floats]) -> Bools:
    """Return which rows are not all as they were when the feature first turned up."""
    used = np.zeros(len(tables["weights"]), np.bool_)
    for name, table in tables.items():
        used |= (table.view(np.uint32) != INITIAL[name]).any(axis=1)
    return used


def join_weights(states: Sequence[Mapping[str, Any]], shards: Sequence[Shard]) -> dict[str, Any]:
    """Return the arrays of the whole learner: each node as its owner has it, features of all."""
    n_nodes = len(shards[0].whole)
    features = np.unique(np.concatenate([state["features"] for state in states]))
    whole: dict[str, Any] = {"features": features, "n_updates": np.empty(n_nodes, np.int64)}
    for name, initial in INITIAL.items():
        if name in states[0]:
            whole[name] = np.full((features.size, n_nodes), initial.view(np.float32))
    if "cuts" in states[0]:
        whole["cuts"] = np.empty((n_nodes, states[0]["cuts"].shape[1]))
    for state, shard in zip(states, shards, strict=True):
        columns, rows = shard.columns[shard.own], np.searchsorted(features, state["features"])
        for name in whole.keys() & INITIAL.keys():
            whole[name][rows[:, np.newaxis], columns] = state[name][:, shard.own]
        for name in whole.keys() & {"n_updates", "cuts"}:
            whole[name][columns] = state[name][shard.own]
    return whole
