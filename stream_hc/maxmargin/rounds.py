"""Ascent with the examples spread over shards that exchange what they found, several times in a pass.

Shards that work on copies of the weights all correct the same mistakes, and a joined step has to take most of
that back: with two shards and one exchange in two passes it took ten times the epochs. It is the number of
examples visited between two exchanges that counts. With a sixteenth of them, the epochs are those of one
process, and an exchange is small: not the weights travel, but the dual variables that changed, a dozen for
each example visited; the weights of each shard follow them.

An epoch ends with a joined step: the dual objective of what all have found together is worked out, and where
it is less than before, one goes back to the highest point on the way there, and exchanges twice as often from
then on. So the objective never falls, and the duality gap is that of the joined model.

Where the same document is in several shards, more exchanges do not help: all correct it at once, then all
take that back, and the way there may lead nowhere. Then an epoch is one pass without any exchange, and a
joined step. With K shards, two or more, its gain is at least 1/K of what they gained by themselves: the
objective is concave, and the mean of their points is on the way.
"""

import time
from collections.abc import Callable

import numpy as np

from stream_hc.interrupts import plain_interrupts
from stream_hc.kernels import Doubles, Ints
from stream_hc.maxmargin.changes import Changes
from stream_hc.maxmargin.crew import Crew, Workers
from stream_hc.maxmargin.passes import Point, joined_step
from stream_hc.maxmargin.problem import Problem
from stream_hc.maxmargin.shards import Look, Worked
from stream_hc.maxmargin.solver import Epoch, Limits, OnEpoch, Solution, Stopped, least_gap, reason

__all__ = ["ascend_together"]

CHUNKS = 16  # of a pass, with an exchange after each
MOST_CHUNKS = 256  # an exchange takes milliseconds
ALONE = 8192  # visits of an only shard between two looks at the clock
WORTH = 0.5  # of what each shard gained by itself must be left for all together, or they exchange more often
RENEWED = 4  # epochs after which the weights are worked out anew: a lost shard repeats no more than that


def ascend_together(
    problem: Problem,
    marginals: Doubles,
    limits: Limits,
    seed: int,
    workers: Workers,
    on_epoch: OnEpoch = lambda epoch, point: False,
    clock: Callable[[], float] = time.perf_counter,
) -> Solution:
    """Improve dual variables, in place, as `solver.ascend` does, with the work done by shards."""
    try:
        return _Ascent(problem, marginals, limits, seed, workers, clock).run(on_epoch)
    finally:
        workers.release()


class _Ascent:
    def __init__(
        self,
        problem: Problem,
        duals: Doubles,
        limits: Limits,
        seed: int,
        workers: Workers,
        clock: Callable[[], float],
    ) -> None:
        self._problem, self._duals, self._limits = problem, duals, limits
        self._workers, self._clock = workers, clock
        self._began = clock()
        self._crew = Crew(problem, workers, seed)
        self._history: list[Epoch] = []
        self._news: list[Changes] = []  # not yet in the dual variables
        self._told: list[list[Changes]] = []  # for each shard, what the others found last
        alone = -(-problem.n_rows // ALONE)
        self._n_chunks = alone if self._crew.n_shards == 1 else CHUNKS
        self._is_careful = False  # one pass, one joined step
        self._forget()

    def run(self, on_epoch: OnEpoch) -> Solution:
        stopped: Stopped | None = None
        rounding = least_gap(self._problem)
        before = self._duals.copy()
        try:
            with plain_interrupts():
                self._crew.begin(self._duals)
                look = self._look()
        except KeyboardInterrupt:
            stopped, look = "interrupted", self._alone(before)
        while True:
            epoch = Epoch(len(self._history), self._seconds(), look.linear - look.square / 2.0, look.gap)
            self._history.append(epoch)
            try:
                with plain_interrupts():
                    wants_stop = on_epoch(epoch, lambda: self._point(self._history[-1].dual_objective))
            except KeyboardInterrupt:
                stopped, wants_stop = "interrupted", True
            stopped = stopped or reason(
                epoch, self._limits, wants_stop or self._workers.is_cancelled, rounding
            )
            if stopped is not None:
                return Solution(self._point(epoch.dual_objective), self._history, stopped)
            before[:] = self._duals
            try:
                with plain_interrupts():
                    gained = self._epoch(epoch.epoch)
                    look = self._checked(self._look(), before, gained, rounding)
            except KeyboardInterrupt:
                stopped, look = "interrupted", self._alone(before)

    def _epoch(self, number: int) -> float:
        """Let all shards make their passes; return what each gained by itself, added up."""
        gained, is_over, n_chunks = 0.0, False, 1 if self._is_careful else self._n_chunks
        while not is_over and not self._is_time_up():
            found: list[Worked] = self._crew.tell(
                "work", self._told, (number, n_chunks), meanwhile=self._take_over
            )
            self._news = [worked.changes for worked in found]
            told, everyone = [changes.to_follow() for changes in self._news], range(len(found))
            self._told = [[told[k] for k in everyone if k != own] for own in everyone]
            gained += sum(worked.gain for worked in found)
            is_over = self._is_careful or all(worked.is_over for worked in found)
        self._take_over()
        return gained

    def _take_over(self) -> None:
        """Put what was found last into the dual variables."""
        for changes in self._news:
            changes.put_into(self._duals)
        self._news = []

    def _look(self) -> Look:
        # Just before a look, which works out all that a shard has beside its dual variables and the weights.
        if self._history and len(self._history) % RENEWED == 0:
            self._crew.renew(self._duals)
            self._forget()
        looks: list[Look] = self._crew.tell("look", self._told, ())
        self._forget()
        return Look(*(float(sum(part)) for part in zip(*looks, strict=True)))

    def _checked(self, look: Look, before: Doubles, gained: float, rounding: float) -> Look:
        """Return the look at a point that is no lower than the one before; that may be another point."""
        height = self._history[-1].dual_objective
        rise = look.linear - look.square / 2.0 - height
        is_poor, was_careful = rise < WORTH * gained and self._crew.n_shards > 1, self._is_careful
        if is_poor:
            most = min(MOST_CHUNKS, self._problem.n_rows)
            self._is_careful = self._n_chunks >= most
            self._n_chunks = min(2 * self._n_chunks, max(most, self._n_chunks))
        if rise >= -rounding and not (was_careful and is_poor):
            return look
        self._step_back(before, height)
        self._crew.begin(self._duals)
        return self._look()

    def _step_back(self, before: Doubles, height: float) -> None:
        start = Point(before, self._table(before), height)
        self._duals[:] = joined_step(self._problem, start, self._duals).marginals

    def _alone(self, before: Doubles) -> Look:
        """Return the look at what was found so far, without help: shards may be anywhere in their work."""
        problem = self._problem
        height = problem.objective(self._table(before), before)
        if problem.objective(self._table(self._duals), self._duals) < height:
            self._step_back(before, height)
        table, gaps = self._table(self._duals), np.zeros(problem.n_rows)
        problem.gaps(table, self._duals, 0, problem.n_rows, gaps)
        square = problem.square(table, self._duals)
        objective = problem.objective(table, self._duals)
        return Look(float(gaps.sum()), objective + square / 2.0, square)

    def _point(self, objective: float) -> Point:
        return Point(self._duals, self._table(self._duals), objective)

    def _table(self, duals: Doubles) -> Doubles:
        problem, start = self._problem, self._problem.start()
        rows: Ints = np.arange(problem.n_rows, dtype=np.int32)
        table = np.zeros((problem.n_columns, problem.n_variables))
        Changes.between(rows, start, duals).move(problem.examples[:3], table)
        return table

    def _forget(self) -> None:
        self._told = [[] for _ in range(self._crew.n_shards)]

    def _seconds(self) -> float:
        return self._clock() - self._began

    def _is_time_up(self) -> bool:
        return self._workers.is_cancelled or self._seconds() >= self._limits.max_seconds
