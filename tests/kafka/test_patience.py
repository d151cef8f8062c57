"""Brokers that are away come back: what is tried again, how often that is said, and what is hopeless."""

import pytest
from kafka import errors

from consumers.errors import KafkaProblem
from consumers.patience import FENCED, HOPELESS, LONGEST, SHORTEST, Interrupted, Patience
from stream_hc.runtime.config import KafkaConfig

AWAY = errors.NodeNotReadyError("broker 1")


class Trying:
    """Does something that fails as told, and remembers what was said and how long it waited."""

    def __init__(self, *failures, stop_after=1000):
        self.failures, self.stop_after = list(failures), stop_after
        self.notes, self.waits = [], []
        self.patience = Patience(KafkaConfig(), lambda: len(self.waits) >= stop_after, self.notes.append)

    def work(self):
        if self.failures:
            raise self.failures.pop(0)
        return "done"

    def run(self):
        return self.patience.until_done(self.work, self.waits.append)


def test_what_succeeds_at_once_says_nothing():
    trying = Trying(stop_after=0)
    assert trying.run() == "done"
    assert trying.notes == trying.waits == []


def test_it_waits_longer_each_time_and_says_so_once():
    trying = Trying(*[AWAY] * 5)
    assert trying.run() == "done"
    assert trying.waits == [SHORTEST * 2**n for n in range(5)]
    away, back = trying.notes
    assert away.endswith(": trying again until it works")
    assert "broker 1" in away
    assert back == "the brokers are back"


def test_after_a_while_it_waits_no_longer_and_says_it_now_and_then():
    trying = Trying(*[AWAY] * 12)
    trying.run()
    assert trying.waits[7:] == [LONGEST] * 5
    assert max(trying.waits) == LONGEST
    assert len(trying.notes) == 1 + 5 + 1


def test_another_problem_is_said_at_once():
    trying = Trying(AWAY, errors.NotEnoughReplicasError(), AWAY)
    trying.run()
    assert len(trying.notes) == 4
    assert "min.insync.replicas" in trying.notes[1]


def test_somebody_may_want_to_stop():
    trying = Trying(*[AWAY] * 9, stop_after=3)
    with pytest.raises(Interrupted, match="stopped while the brokers were away"):
        trying.run()
    assert len(trying.waits) == 3


@pytest.mark.parametrize("kind", HOPELESS)
def test_what_can_never_succeed_is_a_problem_at_once(kind):
    trying = Trying(kind("why"))
    with pytest.raises(KafkaProblem) as problem:
        trying.run()
    assert isinstance(problem.value.__cause__, kind)
    assert trying.waits == []


@pytest.mark.parametrize("kind", FENCED)
def test_one_that_was_shut_out_is_for_others_to_judge(kind):
    with pytest.raises(kind):
        Trying(kind()).run()


def test_a_bug_is_not_tried_again():
    trying = Trying(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        trying.run()
    assert trying.waits == []
