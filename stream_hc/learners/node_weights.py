"""The weights v of every node, made when a prediction first needs them: then it costs O(nnz) at a node."""

import numpy as np

from stream_hc.kernels import Bools, Doubles, Ints, Longs
from stream_hc.kernels import weights as kernels
from stream_hc.kernels.rls import Documents, Graph
from stream_hc.learners.instances import Instances

__all__ = ["NodeWeights"]


class NodeWeights:
    """A hash table for each node, as large as the features of the documents it stores ask for."""

    def __init__(self, n_nodes: int) -> None:
        self._made_at = np.zeros(n_nodes, np.int64)
        self._tables = kernels.Tables(
            np.zeros(n_nodes, np.int64),
            np.zeros(n_nodes, np.int64),
            np.zeros(1, np.int64),
            np.empty(0, np.int32),
            np.empty(0, np.float64),
        )

    @property
    def node_nbytes(self) -> Longs:
        """Bytes held for each node."""
        return self._tables.room * (self._tables.keys.itemsize + self._tables.weights.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes held, spare places included."""
        return self._tables.keys.nbytes + self._tables.weights.nbytes

    def add_nodes(self, n_nodes: int) -> None:
        """Append nodes up to `n_nodes` in all."""
        more = (0, n_nodes - self._made_at.size)
        self._made_at = np.pad(self._made_at, more)
        tables = self._tables
        self._tables = tables._replace(begin=np.pad(tables.begin, more), room=np.pad(tables.room, more))

    def of(self, node: int) -> tuple[Ints, Doubles]:
        """Return the features of a node and their weights, which must be fresh."""
        part = slice(self._tables.begin[node], self._tables.begin[node] + self._tables.room[node])
        keys, weights = self._tables.keys[part], self._tables.weights[part]
        return keys[keys != 0] - 1, weights[keys != 0]

    def refresh(self, stored: Instances) -> None:
        """Make the weights of the nodes that have stored something since."""
        stale = np.flatnonzero(self._made_at != stored.n_updates).astype(np.int32)
        docs, nodes = stored.arrays()
        while stale.size:
            n_done, needed = kernels.refresh_tables(
                self._tables,
                docs.ptr,
                docs.features,
                docs.values,
                nodes.begin,
                nodes.n_stored,
                nodes.ids,
                nodes.alpha,
                stale,
                stored.documents.lookup,
            )
            self._made_at[stale[:n_done]] = stored.n_updates[stale[:n_done]]
            stale = stale[n_done:]
            if stale.size:
                self._make_room(int(stale[0]), needed)

    def predict(self, stored: Instances, graph: Graph, zero_is_on: bool, x: Documents) -> Bools:
        """Return whether each document belongs to each node; the weights must be fresh."""
        on = np.zeros((x.squares.size, self._made_at.size), np.bool_)
        kernels.predict_rows(
            self._tables,
            stored.n_stored,
            stored.reach,
            *graph,
            zero_is_on,
            x.ptr,
            x.features,
            x.values,
            x.squares,
            on,
        )
        return on

    def _make_room(self, node: int, needed: int) -> None:
        """Move the tables into larger arrays, without the gaps that outgrown ones have left."""
        tables = self._tables
        tables.room[node] = 0  # its old table is not needed any more
        live = np.flatnonzero(tables.room)
        begin = np.cumsum(tables.room) - tables.room
        used = int(tables.room.sum())
        size = 2 * (used + needed)
        keys, weights = np.empty(size, np.int32), np.empty(size, np.float64)
        for i in live.tolist():
            old = slice(tables.begin[i], tables.begin[i] + tables.room[i])
            new = slice(begin[i], begin[i] + tables.room[i])
            keys[new], weights[new] = tables.keys[old], tables.weights[old]
        self._tables = kernels.Tables(begin, tables.room, np.array([used]), keys, weights)
