"""A shard of the examples of H-M³, improved where it is, with the weights that belong to all of them.

A shard holds its examples with their dual variables, the features of all, and weights of its own. Chunk by
chunk it improves its examples and tells how their dual variables changed; the weights follow what the others
tell. What a shard does depends on the calls it got and on nothing else: one that is lost is built again, and
after the same calls it is the same, bit for bit.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stream_hc.kernels import Doubles, Ints
from stream_hc.kernels import csga as kernels
from stream_hc.maxmargin.changes import Changes, Features
from stream_hc.maxmargin.passes import MOST_PASSES, SURE, VISITS, visit
from stream_hc.maxmargin.problem import Problem

__all__ = ["Blueprint", "Look", "OutOfStepError", "Shard", "Worked", "blueprints"]

CALLS = ("begin", "renew", "look", "work")


class Blueprint(NamedTuple):
    """What a shard is made of: its examples as a problem of their own, and where they are among all."""

    number: int
    n_shards: int
    seed: int
    problem: Problem
    rows: Ints
    features: Features


class Look(NamedTuple):
    """What a shard adds to the duality gap, to the loss and to |w|²: the sums over all belong together."""

    gap: float
    linear: float
    square: float


class Worked(NamedTuple):
    """What came of a chunk: the dual variables that changed, the gain, and whether the epoch is over."""

    changes: Changes
    gain: float
    is_over: bool


class OutOfStepError(RuntimeError):
    """A call for a shard that has not had those before it: it was lost, and something stands in its place."""


def blueprints(problem: Problem, n_shards: int, seed: int) -> list[Blueprint]:
    """Deal the examples out: neighbours, which may be about the same, go to different shards."""
    features = problem.examples[:3]
    return [
        Blueprint(number, n_shards, seed, _part(problem, rows), rows, features)
        for number in range(n_shards)
        for rows in [np.arange(number, problem.n_rows, n_shards, dtype=np.int32)]
    ]


def _part(problem: Problem, rows: Ints) -> Problem:
    ptr, columns, values, gram = problem.examples
    sizes = np.diff(ptr)[rows]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    taken = np.arange(ends[-1]) + np.repeat(ptr[rows] - ends[:-1], sizes)
    examples = ends, columns[taken], values[taken], gram
    return problem._replace(examples=examples, squares=problem.squares[rows], true=problem.true[rows])


class Shard:
    """The examples of one worker.

    Parameters
    ----------
    blueprint
        What it is made of.
    """

    def __init__(self, blueprint: Blueprint) -> None:
        self._blueprint = blueprint
        self._problem = _as_compiled(blueprint.problem)
        ptr, columns, values = blueprint.features
        self._features = np.array(ptr), np.array(columns), np.array(values)
        self._table = np.zeros((self._problem.n_columns, self._problem.n_variables))
        self._n_calls = 0
        self._epoch = -1

    def do(self, number: int, name: str, told: Sequence[Changes], arguments: tuple[Any, ...]) -> Any:
        """Answer a call: "begin", "renew", "look" or "work"; what others told comes first.

        `number` counts the calls; that of `begin` is taken over.
        """
        if name not in CALLS:
            raise ValueError(f"{name!r} is no call: take one of {', '.join(CALLS)}")
        if name == "begin":
            self._n_calls = number
        elif number != self._n_calls:
            raise OutOfStepError(
                f"shard {self._blueprint.number}: call {number}, but it expects {self._n_calls}"
            )
        for changes in told:
            changes.move(self._features, self._table)
        self._n_calls += 1
        return getattr(self, name)(*arguments)

    def begin(self, duals: Doubles, changes: Changes) -> None:
        """Take over dual variables of its own examples, and weights: how far those of all have moved."""
        self._duals = np.array(duals)
        self._gaps = np.zeros(self._problem.n_rows)
        self.renew(changes)

    def renew(self, changes: Changes) -> None:
        """Work the weights out anew."""
        self._table[:] = 0.0
        changes.move(self._features, self._table)

    def look(self) -> Look:
        """Return what its examples add to the certificate, under the weights of now."""
        problem, duals, table = self._problem, self._duals, self._table
        problem.gaps(table, duals, 0, problem.n_rows, self._gaps)
        distance = duals - problem.start()
        arguments = (*problem.graph, problem.costs, problem.is_tilde, problem.true, distance)
        # The weights are the same everywhere: each shard adds up its part of the columns.
        number, n_shards = self._blueprint.number, self._blueprint.n_shards
        ends = np.linspace(0, problem.n_columns, n_shards + 1).astype(int)
        part = table[ends[number] : ends[number + 1]]
        square = float(kernels.quadratic_part(*problem.graph, part, part))
        return Look(float(self._gaps.sum()), float(kernels.linear_part(*arguments)), square)

    def work(self, epoch: int, n_chunks: int) -> Worked:
        """Visit the next examples: about so many chunks are one pass."""
        if epoch != self._epoch:
            blueprint = self._blueprint
            self._epoch = epoch
            self._rng = np.random.default_rng((blueprint.seed, epoch, blueprint.number))
            self._chunks: list[Ints] = []
            self._n_visits = self._n_passes = 0
        if not self._chunks and not self._is_over():
            self._chunks = self._drawn(n_chunks)
        rows = self._chunks.pop(0) if self._chunks else np.zeros(0, np.int32)
        before = self._duals[rows]
        gain = visit(self._problem, rows, self._table, self._duals, self._gaps)
        changes = Changes.between(self._blueprint.rows[rows], before, self._duals[rows])
        return Worked(changes, gain, not self._chunks and self._is_over())

    def _is_over(self) -> bool:
        return self._n_visits >= VISITS * self._problem.n_rows or self._n_passes >= MOST_PASSES

    def _drawn(self, n_chunks: int) -> list[Ints]:
        """Return the examples of one pass, drawn in proportion to their gaps, in chunks of the same size."""
        gaps, n_rows = self._gaps, self._problem.n_rows
        drawn = np.flatnonzero(gaps > self._rng.random(n_rows) * SURE * gaps.mean()).astype(np.int32)
        self._rng.shuffle(drawn)
        self._n_visits += drawn.size
        self._n_passes += 1
        return np.array_split(drawn, max(1, min(drawn.size, -(-drawn.size * n_chunks // n_rows))))


def _as_compiled(problem: Problem) -> Problem:
    """Return the same arrays, read-only where they were: for numba that is a type, compiled anew if new."""
    parent_ptr, parent_idx, child_ptr, child_idx, is_forest = problem.graph
    graph = parent_ptr.copy(), parent_idx.copy(), child_ptr.copy(), child_idx.copy()
    for array in graph:
        array.setflags(write=False)
    ptr, columns, values, gram = problem.examples
    return problem._replace(
        graph=(*graph, is_forest),
        costs=problem.costs.copy(),
        squares=problem.squares.copy(),
        true=problem.true.copy(),
        examples=(ptr.copy(), columns.copy(), values.copy(), gram.copy()),
    )
