"""What was predicted for documents that wait: joined to the whole taxonomy, and cut again."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stream_hc.kernels.labels import close_rows
from stream_hc.learners.base import LabelRows
from stream_hc.runtime.packing import unpacked_texts
from stream_hc.sharding import Shard

__all__ = ["cut_predicted", "in_one_order", "join_predicted"]


def in_one_order(rooms: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the states of waiting rooms with the predictions in the order of the documents of the first.

    A document that does not wait in a room has no predictions there.
    """
    names = unpacked_texts("ids", rooms[0])
    found = [rooms[0]]
    for room in rooms[1:]:
        ptr, nodes = room["predicted_ptr"], room["predicted"]
        own = unpacked_texts("ids", room)
        if own == names or ptr.size != len(own) + 1:  # the latter is refused by whoever joins them
            found.append(room)
            continue
        place = {name: row for row, name in enumerate(own)}
        rows = [
            nodes[ptr[k] : ptr[k + 1]] if (k := place.get(name, -1)) >= 0 else nodes[:0] for name in names
        ]
        ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        found.append({**room, "predicted": np.concatenate([nodes[:0], *rows]), "predicted_ptr": ends})
    return found


def join_predicted(rooms: Sequence[Mapping[str, Any]], shards: Sequence[Shard | None]) -> LabelRows:
    """Return the predictions of all nodes from the states of waiting rooms: each from the owner of the node.

    In a DAG, where any parent may be enough, those above a node that is on are switched on, too: in the shard
    that owns them nobody knew of that node.
    """
    first = rooms[0]
    if (first["lineup"].size + 1) != first["predicted_ptr"].size:
        raise ValueError("documents wait with predictions of models that are gone: wait for their labels")
    if shards[0] is None:
        return LabelRows(first["predicted_ptr"], first["predicted"])
    rows, columns = list[Any](), list[Any]()
    for room, shard in zip(rooms, shards, strict=True):
        assert shard is not None
        nodes, ptr = room["predicted"], room["predicted_ptr"]
        own = shard.own[nodes]
        rows.append(np.repeat(np.arange(ptr.size - 1), np.diff(ptr))[own])
        columns.append(shard.columns[nodes[own]])
    row, column = np.concatenate(rows), np.concatenate(columns)
    order = np.lexsort((column, row))
    counts = np.bincount(row, minlength=first["lineup"].size)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int64)
    whole = shards[0].whole
    return LabelRows(*close_rows(ends, column[order], whole.parent_ptr, whole.parent_idx))


def cut_predicted(predicted: LabelRows, shard: Shard | None) -> dict[str, Any]:
    """Return what the state of a waiting room has instead, for a shard or the whole taxonomy."""
    ptr, nodes = predicted if shard is None else shard.project(predicted)
    return {"predicted": nodes, "predicted_ptr": ptr}
