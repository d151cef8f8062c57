"""What each node has stored: which documents, the coefficients, the factor."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import Longs
from stream_hc.kernels.documents import keep_used, move_segments
from stream_hc.kernels.rls import BLOCK, Documents, Nodes
from stream_hc.learners.documents import DocumentStore
from stream_hc.learners.segments import Segments
from stream_hc.vectorize import Rows

__all__ = ["Instances", "factor_places"]


class Instances:
    """Documents, and for each node the numbers of those it has stored with what was worked out from them.

    Parameters
    ----------
    n_features
        Number of columns of the documents.
    n_nodes
        Number of nodes of the taxonomy.
    """

    def __init__(self, n_features: int, n_nodes: int) -> None:
        self.documents = DocumentStore(n_features)
        self._n_needed = 0  # documents that nodes had stored when all were looked through
        self.n_stored = np.zeros(n_nodes, np.int64)
        self.n_updates = np.zeros(n_nodes, np.int64)
        self.reach = np.zeros(n_nodes, np.float64)
        self.room = np.zeros(n_nodes, np.int64)
        self._members = Segments(n_nodes, (np.int32, np.int8, np.float64, np.float64))
        self._blocks = Segments(n_nodes, (np.int64,))
        self._factor = np.empty(0, np.float64)
        self._factor_used = 0

    def arrays(self) -> tuple[Documents, Nodes]:
        """Return everything as kernels take it."""
        store, members, blocks = self.documents, self._members, self._blocks
        documents = Documents(store.ptr, store.features, store.values, store.squares)
        counts = (self.n_stored, self.n_updates, self.reach)
        ids, targets, alpha, spread = members.arrays
        numbers = (ids, targets, alpha, spread, blocks.begin, blocks.arrays[0], self._factor)
        return documents, Nodes(members.begin, *counts, *numbers)

    @property
    def node_nbytes(self) -> NDArray[np.int64]:
        """Bytes held for each node alone."""
        numbers = self._members.room * self._members.item_bytes + self._blocks.room * self._blocks.item_bytes
        total: NDArray[np.int64] = numbers + factor_places(self.room) * self._factor.itemsize
        return total

    @property
    def nbytes(self) -> int:
        """Bytes held in all: documents, numbers and factors, spare room included."""
        return self.documents.nbytes + self._members.nbytes + self._blocks.nbytes + self._factor.nbytes

    def add_nodes(self, n_nodes: int) -> None:
        """Append nodes up to `n_nodes` in all, which have stored nothing."""
        more = (0, n_nodes - self.n_stored.size)
        self.n_stored, self.n_updates = np.pad(self.n_stored, more), np.pad(self.n_updates, more)
        self.reach, self.room = np.pad(self.reach, more), np.pad(self.room, more)
        self._members.add_lists(n_nodes)
        self._blocks.add_lists(n_nodes)

    def reserve(self, needed: Longs) -> None:
        """Make room for so many documents at each node, in whole blocks of the factor."""
        short = np.flatnonzero(needed > self.room)
        if short.size == 0:
            return
        old, new = self.room[short] // BLOCK, -(-needed[short] // BLOCK)
        self.room[short] = new * BLOCK
        self._members.reserve(self.room)
        self._blocks.reserve(self.room // BLOCK)
        # Block b has so many places; the new ones lie one after the other.
        n_more = new - old
        before = np.cumsum(n_more) - n_more
        number = np.arange(int(n_more.sum())) + np.repeat(old - before, n_more)
        sizes = BLOCK * BLOCK * (number + 1)
        self._blocks.arrays[0][np.repeat(self._blocks.begin[short], n_more) + number] = (
            self._factor_used + np.cumsum(sizes) - sizes
        )
        self._factor_used += int(sizes.sum())
        if self._factor_used > self._factor.size:
            # The system moves the pages of a large array without copying them; nobody else holds this one.
            self._factor.resize(self._factor_used + self._factor_used // 8, refcheck=False)

    def add_documents(self, rows: Rows, first: int, last: int, t: int) -> None:
        """Append documents that nodes may store; the first of them is the t-th one learned."""
        self.documents.refresh_index()
        self.documents.add(rows, first, last, np.arange(t, t + last - first))

    def drop_unused(self, first: int) -> None:
        """Drop the documents from number `first` on that no node has stored; now and then all such."""
        self._keep_used(first)
        if self.documents.n_documents > 2 * self._n_needed + 64:
            self._keep_used(0)
            self._n_needed = self.documents.n_documents

    def state(self) -> dict[str, Any]:
        """Return copies of everything, in the order of the stream and without spare room."""
        self._keep_used(0)
        rows = self.documents.rows()
        ids, targets, alpha, spread = self._members.lists(self.n_stored)
        begin, sizes = self._used_blocks()
        factors = np.empty(int(sizes.sum()))
        move_segments(self._factor, begin, sizes, factors, np.cumsum(sizes) - sizes)
        return {
            "document_ptr": rows.indptr,
            "features": rows.indices,
            "values": rows.values,
            "stamps": self.documents.stamps[: self.documents.n_documents].copy(),
            "stored_ptr": np.concatenate([np.zeros(1, np.int64), np.cumsum(self.n_stored)]),
            "stored": ids,
            "targets": targets,
            "coefficients": alpha,
            "spreads": spread,
            "factors": factors,
            "n_updates": self.n_updates.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned; the caller has checked it."""
        rows = Rows(state["document_ptr"], state["features"], state["values"])
        self.documents.add(rows, 0, rows.indptr.size - 1, state["stamps"])
        self.n_stored[:] = np.diff(state["stored_ptr"])
        self.n_updates[:] = state["n_updates"]
        self.reserve(self.n_stored)
        numbers = (state["stored"], state["targets"], state["coefficients"], state["spreads"])
        self._members.fill(self.n_stored, *numbers)
        begin, sizes = self._used_blocks()
        move_segments(state["factors"], np.cumsum(sizes) - sizes, sizes, self._factor, begin)
        lengths = np.abs(state["coefficients"]) * np.sqrt(self.documents.squares[state["stored"]])
        for node, (first, last) in enumerate(pairwise(state["stored_ptr"].tolist())):
            self.reach[node] = sum(lengths[first:last].tolist())  # one after the other, as the kernel does

    def _used_blocks(self) -> tuple[Longs, Longs]:
        """Return where the blocks of all factors begin, node after node, and their sizes."""
        n_blocks = -(-self.n_stored // BLOCK)
        before = np.cumsum(n_blocks) - n_blocks
        number = np.arange(int(n_blocks.sum())) - np.repeat(before, n_blocks)
        return self._blocks.lists(n_blocks)[0], BLOCK * BLOCK * (number + 1)

    def _keep_used(self, first: int) -> None:
        used = np.empty(self.documents.n_documents - first, np.bool_)
        keep_used(self._members.begin, self.n_stored, self._members.arrays[0], first, used)
        self.documents.keep(first, used)


def factor_places(n_rows: Any) -> Any:
    """Return how many numbers a factor of so many rows takes: see `kernels.rls`."""
    blocks = -(-n_rows // BLOCK)
    return BLOCK * BLOCK * blocks * (blocks + 1) // 2
