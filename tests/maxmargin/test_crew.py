"""Shards that are lost, at any moment: the model has the same bits, or there is one clear error."""

import numpy as np
import pytest

from stream_hc import HM3
from stream_hc.maxmargin import rounds
from stream_hc.maxmargin.crew import TOO_OFTEN, Here, Lost, WorkersError, nothing
from stream_hc.maxmargin.shards import OutOfStepError, Shard, blueprints
from stream_hc.maxmargin.window import row_problem
from tests.maxmargin.test_hm3 import N_FEATURES, news

N_ROWS, N_SHARDS = 18, 3


class Forgetful(Here):
    """Loses shards at some calls: before they answered, or afterwards."""

    def __init__(self, n_shards, lost, afterwards=False):
        super().__init__(n_shards)
        self.lost, self.afterwards = lost, afterwards
        self.n_calls = self.n_built = 0

    def build(self, blueprint):
        self.n_built += 1
        super().build(blueprint)

    def call(self, calls, meanwhile=nothing):
        meanwhile()
        return {number: self._one(number, call) for number, call in calls.items()}

    def _one(self, number, call):
        self.n_calls += 1
        if self.n_calls - 1 not in self.lost:
            return self._shards[number].do(*call)
        if self.afterwards:
            self._shards[number].do(*call)
        del self._shards[number]
        return Lost("an accident")


class Cancelled(Here):
    """Somebody wants it to stop after so many questions whether somebody does."""

    n_asked = 0

    def __init__(self, n_shards, after):
        super().__init__(n_shards)
        self.after = after

    @property
    def is_cancelled(self):
        self.n_asked += 1
        return self.n_asked > self.after


def fitted(workers, max_epochs=5, tol=1e-9):
    taxonomy, X, Y = news(N_ROWS)
    model = HM3(taxonomy, n_features=N_FEATURES, tol=tol, max_epochs=max_epochs)
    return model.fit(X, Y, workers=workers)


def bits(model):
    history = [(entry["dual_objective"], entry["duality_gap"]) for entry in model.history_]
    return model.duals_.tobytes(), model.state()["weights"].tobytes(), history


@pytest.fixture(autouse=True)
def few_exchanges(monkeypatch):
    monkeypatch.setattr(rounds, "CHUNKS", 2)


@pytest.mark.compiled
@pytest.mark.parametrize("afterwards", [False, True])
def test_a_shard_lost_at_any_call_changes_no_bit(afterwards):
    calm = Forgetful(N_SHARDS, ())
    expected = bits(fitted(calm))
    assert calm.n_built == N_SHARDS
    for moment in range(calm.n_calls):
        workers = Forgetful(N_SHARDS, {moment}, afterwards)
        assert bits(fitted(workers)) == expected, moment
        assert workers.n_built == N_SHARDS + 1


def test_several_are_lost_also_while_they_are_told_everything_once_more():
    expected = bits(fitted(Here(N_SHARDS)))
    for lost in ({0, 1, 2}, {10, 11, 12, 14}, {20, 21, 30, 40, 41, 42}):
        workers = Forgetful(N_SHARDS, lost)
        assert bits(fitted(workers)) == expected
        assert workers.n_built == N_SHARDS + len(lost)


def test_who_is_lost_again_and_again_is_given_up():
    workers = Forgetful(N_SHARDS, range(5, 10**6))
    with pytest.raises(WorkersError, match=r"lost 11 times, the last one by an accident: look at their logs"):
        fitted(workers)
    assert workers.n_built == N_SHARDS + TOO_OFTEN
    assert workers._shards == {}  # released


@pytest.mark.parametrize("after", [0, 1, 4, 12])
def test_cancelled_it_ends_with_what_it_has(after):
    model = fitted(Cancelled(2, after), max_epochs=1000, tol=1e-14)
    assert model.stopped_ == "callback"
    taxonomy, X, Y = news(N_ROWS)
    check = HM3(taxonomy, n_features=N_FEATURES, max_epochs=0)
    check.fit(X, Y, warm_start=(model.duals_, np.arange(N_ROWS)))
    assert check.duality_gap_ == pytest.approx(model.duality_gap_, rel=1e-6, abs=1e-9)
    assert check.dual_objective_ == pytest.approx(model.dual_objective_, rel=1e-9)


def test_documents_are_dealt_out_and_never_to_more_shards_than_there_are():
    taxonomy, X, Y = news(N_ROWS)
    problem, _ = row_problem(X, Y, taxonomy, taxonomy.costs("uniform"), True, False, 1.0, N_FEATURES)
    made = blueprints(problem, 4, 0)
    assert sorted(np.concatenate([each.rows for each in made]).tolist()) == list(range(N_ROWS))
    for each in made:
        assert each.problem.n_rows == each.rows.size
        assert (each.problem.true == problem.true[each.rows]).all()
        ptr, columns, values, _ = each.problem.examples
        for k, row in enumerate(each.rows):
            part, whole = slice(ptr[k], ptr[k + 1]), slice(*problem.examples[0][row : row + 2])
            assert columns[part].tolist() == problem.examples[1][whole].tolist()
            assert values[part].tolist() == problem.examples[2][whole].tolist()
    crowd = Forgetful(50, ())
    assert fitted(crowd, tol=0.1, max_epochs=100).stopped_ == "gap"
    assert crowd.n_built == N_ROWS


def test_a_shard_that_missed_a_call_says_so():
    taxonomy, X, Y = news(N_ROWS)
    problem, _ = row_problem(X, Y, taxonomy, taxonomy.costs("uniform"), True, False, 1.0, N_FEATURES)
    shard = Shard(blueprints(problem, 1, 0)[0])
    with pytest.raises(OutOfStepError, match="shard 0: call 3, but it expects 0"):
        shard.do(3, "look", (), ())
