"""Changes of dual variables as they travel between shards: a few numbers for each example visited."""

from typing import Any, NamedTuple, Self

import numpy as np

from stream_hc.kernels import Doubles, Floats, Ints, Longs
from stream_hc.kernels import csga as kernels

__all__ = ["Changes", "Features"]

Features = tuple[Longs, Ints, Floats]


class Changes(NamedTuple):
    """From `ptr[r]` to `ptr[r + 1]` - 1, `variables` are those of example `rows[r]` that changed.

    `values` are what they are now: exact, however often they changed. `change` is by how much they changed,
    which the weights follow.
    """

    rows: Ints
    ptr: Longs
    variables: Ints
    values: Doubles
    change: Doubles

    @classmethod
    def between(cls, rows: Ints, before: Doubles, after: Doubles) -> Self:
        """Return how the dual variables of some examples changed."""
        return cls(rows, *kernels.differences(before, after))

    def to_follow(self) -> Self:
        """Return what weights need to follow: less to carry, but `put_into` has nothing to put any more."""
        return self._replace(values=self.values[:0])

    def put_into(self, duals: Doubles) -> None:
        """Take over what the dual variables are now. Writes `duals`, those of all examples."""
        duals[np.repeat(self.rows, np.diff(self.ptr)), self.variables] = self.values

    def move(self, features: Features, table: Doubles) -> None:
        """Let the weights follow the changes. Writes `table`."""
        # What came from another process may be read-only: for numba another type, compiled anew.
        rows, ptr, variables, _, change = self
        told = [np.require(array, requirements="W") for array in (rows, ptr, variables, change)]
        arguments: tuple[Any, ...] = (*features, *told, table)
        kernels.follow(*arguments)
