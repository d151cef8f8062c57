"""Growing lists, one for each node, side by side in shared arrays: a kernel can take all of them at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import Longs
from stream_hc.kernels.documents import move_segments

__all__ = ["Segments"]


class Segments:
    """The list of node i takes `room[i]` places from `begin[i]` on, in every one of the `arrays`.

    A list that outgrows its room moves to the end. When the arrays are full, all lists move together into
    larger ones: at that moment nothing is wasted, and at most half is before it.
    """

    def __init__(self, n_lists: int, dtypes: tuple[type, ...]) -> None:
        self.begin = np.zeros(n_lists, np.int64)
        self.room = np.zeros(n_lists, np.int64)
        self.arrays: tuple[NDArray[Any], ...] = tuple(np.empty(0, dtype) for dtype in dtypes)
        self._used = 0

    @property
    def item_bytes(self) -> int:
        """Bytes of one place in all arrays."""
        return sum(array.itemsize for array in self.arrays)

    @property
    def nbytes(self) -> int:
        """Bytes held, spare places included."""
        return sum(array.nbytes for array in self.arrays)

    def add_lists(self, n_lists: int) -> None:
        """Append empty lists up to `n_lists` in all."""
        more = np.zeros(n_lists - self.begin.size, np.int64)
        self.begin, self.room = np.concatenate([self.begin, more]), np.concatenate([self.room, more])

    def reserve(self, needed: Longs) -> None:
        """Give every list at least as many places as it needs, and a fourth more where it grows."""
        short = np.flatnonzero(needed > self.room)
        if short.size == 0:
            return
        room = self.room.copy()
        room[short] = needed[short] + needed[short] // 4
        more = int(room[short].sum())
        if self._used + more > self.arrays[0].size:
            self._move_all(room)
            return
        begin = self._used + np.cumsum(room[short]) - room[short]
        for array in self.arrays:
            move_segments(array, self.begin[short], self.room[short], array, begin)
        self.begin[short] = begin
        self.room = room
        self._used += more

    def lists(self, sizes: Longs) -> list[NDArray[Any]]:
        """Return a copy of each array: the first `sizes[i]` numbers of list i, one list after the other."""
        ends = np.cumsum(sizes)
        copies = [np.empty(int(sizes.sum()), array.dtype) for array in self.arrays]
        for array, copy in zip(self.arrays, copies, strict=True):
            move_segments(array, self.begin, sizes, copy, ends - sizes)
        return copies

    def fill(self, sizes: Longs, *arrays: NDArray[Any]) -> None:
        """Take back what `lists` returned; there must be room."""
        begin = np.cumsum(sizes) - sizes
        for source, target in zip(arrays, self.arrays, strict=True):
            move_segments(source, begin, sizes, target, self.begin)

    def _move_all(self, room: Longs) -> None:
        begin = np.cumsum(room) - room
        self._used = int(room.sum())
        arrays = tuple(np.empty(self._used + self._used // 2, array.dtype) for array in self.arrays)
        for old, new in zip(self.arrays, arrays, strict=True):
            move_segments(old, self.begin, self.room, new, begin)
        self.begin, self.room, self.arrays = begin, room, arrays
