"""The shards of a fit, wherever they are: one that is lost is built again and told everything once more."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from stream_hc.kernels import Doubles, Ints
from stream_hc.maxmargin.changes import Changes
from stream_hc.maxmargin.problem import Problem
from stream_hc.maxmargin.shards import Blueprint, Shard, blueprints

__all__ = ["Call", "Crew", "Here", "Lost", "Workers", "WorkersError", "nothing"]

TOO_OFTEN = 10  # times that shards are lost in one fit: it is no accident any more


class WorkersError(RuntimeError):
    """Workers cannot be had, or do not last; the message has the remedy."""


class Call(NamedTuple):
    """What a shard is told to do: see `Shard.do`."""

    number: int
    name: str
    told: Sequence[Changes]
    arguments: tuple[Any, ...]


class Lost(NamedTuple):
    """The answer of a shard that is gone, or of one that stands in its place and knows nothing."""

    why: str


def nothing() -> None:
    """Do nothing meanwhile."""


class Workers(Protocol):
    """Where shards live: other processes, other machines.

    Attributes
    ----------
    n_shards
        How many shards the examples are dealt out to. The result depends on it, not on where they live.
    n_here
        How many of them take memory of this machine.
    is_cancelled
        Whether somebody wants the fit to stop.
    """

    n_shards: int

    @property
    def n_here(self) -> int:
        """How many shards take memory of this machine."""

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody wants the fit to stop."""

    def build(self, blueprint: Blueprint) -> None:
        """Make a shard, in the place of an earlier one with its number."""

    def call(self, calls: dict[int, Call], meanwhile: Callable[[], None] = nothing) -> dict[int, Any]:
        """Return the answers of some shards, which work at the same time; `Lost` where one is gone.

        `meanwhile` is called once, while they work.
        """

    def release(self) -> None:
        """Forget all shards; it never fails."""


class Here:
    """Shards in this process, one after the other: to try something out, and for tests."""

    is_cancelled = False

    def __init__(self, n_shards: int) -> None:
        self.n_shards = self.n_here = n_shards
        self._shards: dict[int, Shard] = {}

    def build(self, blueprint: Blueprint) -> None:
        """Make a shard."""
        self._shards[blueprint.number] = Shard(blueprint)

    def call(self, calls: dict[int, Call], meanwhile: Callable[[], None] = nothing) -> dict[int, Any]:
        """Return the answers."""
        meanwhile()
        return {number: self._shards[number].do(*call) for number, call in calls.items()}

    def release(self) -> None:
        """Forget all shards."""
        self._shards.clear()


class Crew:
    """All shards of a problem, and what each was told since it last began.

    Parameters
    ----------
    problem
        What is solved.
    workers
        Where the shards live.
    seed
        Draws the order of the examples, with the number of the epoch and of the shard.
    """

    def __init__(self, problem: Problem, workers: Workers, seed: int) -> None:
        self._problem = problem
        self._workers = workers
        n_shards = min(workers.n_shards, problem.n_rows)
        self._blueprints = blueprints(problem, n_shards, seed)
        self._calls: list[list[Call]] = [[] for _ in self._blueprints]
        self._n_calls = self._n_lost = 0
        for blueprint in self._blueprints:
            workers.build(blueprint)

    @property
    def n_shards(self) -> int:
        """How many there are: never more than examples."""
        return len(self._blueprints)

    def begin(self, duals: Doubles) -> None:
        """Go on from other dual variables."""
        self._all(self._beginnings(duals), is_first=True)

    def renew(self, duals: Doubles) -> None:
        """Let all work their weights out anew: what was told before need not be kept any longer.

        A shard that is built again begins with the dual variables that the others have by now.
        """
        beginnings = self._beginnings(duals)
        number = beginnings[0].number
        self.tell("renew", [()] * self.n_shards, (beginnings[0].arguments[1],))
        self._calls = [[call._replace(number=number)] for call in beginnings]

    def tell(
        self,
        name: str,
        told: Sequence[Sequence[Changes]],
        arguments: tuple[Any, ...],
        meanwhile: Callable[[], None] = nothing,
    ) -> list[Any]:
        """Return the answers of all to the same call, each after what the others told it."""
        calls = [Call(self._n_calls, name, told[k], arguments) for k in range(self.n_shards)]
        return self._all(calls, meanwhile)

    def _beginnings(self, duals: Doubles) -> list[Call]:
        start = self._problem.start()
        rows: Ints = np.arange(self._problem.n_rows, dtype=np.int32)
        changes = Changes.between(rows, start, duals)
        return [
            Call(self._n_calls, "begin", (), (duals[blueprint.rows], changes))
            for blueprint in self._blueprints
        ]

    def _all(
        self, calls: Sequence[Call], meanwhile: Callable[[], None] = nothing, is_first: bool = False
    ) -> list[Any]:
        for k, call in enumerate(calls):
            self._calls[k] = [call] if is_first else [*self._calls[k], call]
        self._n_calls += 1
        answers = self._workers.call(dict(enumerate(calls)), meanwhile)
        for k, answer in answers.items():
            if isinstance(answer, Lost):
                answers[k] = self._again(k, answer)
        return [answers[k] for k in range(self.n_shards)]

    def _again(self, k: int, answer: Any) -> Any:
        """Build a shard again and tell it everything once more; return its last answer."""
        while isinstance(answer, Lost):
            self._n_lost += 1
            if self._n_lost > TOO_OFTEN:
                raise WorkersError(
                    f"workers were lost {self._n_lost} times, the last one by {answer.why}: "
                    "look at their logs and their memory, or take more workers"
                )
            self._workers.build(self._blueprints[k])
            for call in self._calls[k]:
                answer = self._workers.call({k: call})[k]
                if isinstance(answer, Lost):
                    break
        return answer
