"""The training problem of H-M³ as plain arrays: graph, loss, examples; its dual variables and objective."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from stream_hc.kernels import Bools, Doubles, Floats, Ints, Longs
from stream_hc.kernels import csga as kernels
from stream_hc.taxonomy import Taxonomy

__all__ = ["Arrays", "Problem", "graph_arrays"]

GraphArrays = tuple[Longs, Ints, Longs, Ints, bool]
Arrays = tuple[Longs, Ints, Floats, Doubles]


def graph_arrays(taxonomy: Taxonomy) -> GraphArrays:
    """Return parents and children of every node, and whether it is a forest, as the kernels take them."""
    return (
        taxonomy.parent_ptr.astype(np.int64, copy=False),
        taxonomy.parent_idx.astype(np.int32, copy=False),
        taxonomy.child_ptr.astype(np.int64, copy=False),
        taxonomy.child_idx.astype(np.int32, copy=False),
        bool(taxonomy.is_tree),
    )


class Problem(NamedTuple):
    """One problem: arrays only, so that a part of the work can be done in another process.

    `examples` are rows in CSR form, their columns counted from 0 without gaps, and an empty matrix; or three
    empty arrays and a kernel matrix (n × n). `is_free` trains over all multilabels, not only over consistent
    ones.
    """

    graph: GraphArrays
    costs: Doubles
    is_tilde: bool
    is_free: bool
    C: float
    examples: Arrays
    n_columns: int
    squares: Doubles
    true: Bools

    @property
    def n_rows(self) -> int:
        """How many examples there are."""
        return int(self.true.shape[0])

    @property
    def n_variables(self) -> int:
        """How many dual variables an example has."""
        return int(self.true.shape[1]) * (2 if self.is_free else 1)

    @property
    def by_kernel(self) -> bool:
        """Whether the examples are given by a kernel."""
        return self.examples[3].size > 0

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the kernels take first."""
        return (*self.graph, self.costs, self.is_tilde, self.C, *self.examples, self.squares, self.true)

    def start(self) -> Doubles:
        """Return the dual variables to begin with: all on the true labels."""
        true = self.C * self.true.astype(np.float64)
        if not self.is_free:
            return true
        return np.hstack([true, true * (np.diff(self.graph[0]) > 0)])

    def table(self, marginals: Doubles) -> Doubles:
        """Return the weights (or, with a kernel, the margins) that belong to dual variables."""
        distance = self.start() - marginals
        if self.by_kernel:
            found: Doubles = self.examples[3] @ distance
            return found
        ptr, columns, values, _ = self.examples
        rows = csr_array((values.astype(np.float64), columns, ptr), shape=(self.n_rows, self.n_columns))
        return np.ascontiguousarray(rows.T @ distance)

    def square(self, table: Doubles, distance: Doubles) -> float:
        """Return |w|² of a table; `distance` is how far from the true labels its dual variables are."""
        return float(kernels.quadratic_part(*self.graph, table, distance if self.by_kernel else table))

    def objective(self, table: Doubles, marginals: Doubles) -> float:
        """Return the dual objective."""
        distance = self.start() - marginals
        arguments = (*self.graph, self.costs, self.is_tilde, self.true, -distance)
        return float(kernels.linear_part(*arguments)) - self.square(table, distance) / 2.0

    def gaps(self, table: Doubles, marginals: Doubles, first: int, last: int, gaps: Doubles) -> None:
        """Compute the duality gaps of some examples under fixed weights. Writes `gaps`."""
        arguments = (*self.arguments, first, last, table, marginals, gaps)
        kernels.gaps_of(*arguments)
