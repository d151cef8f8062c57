"""Brokers that are away come back: try again, waiting longer each time, for hours if need be."""

from collections.abc import Callable
from typing import TypeVar

from kafka.errors import (
    AuthorizationError,
    IllegalStateError,
    InvalidProducerEpochError,
    KafkaConfigurationError,
    KafkaError,
    ProducerFencedError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
)

from consumers.errors import KafkaProblem, explained
from stream_hc.runtime.config import KafkaConfig

__all__ = ["FENCED", "Interrupted", "Patience"]

SHORTEST, LONGEST = 0.1, 10.0  # seconds
FENCED = (ProducerFencedError, InvalidProducerEpochError)
HOPELESS = (
    AuthorizationError,
    IllegalStateError,
    KafkaConfigurationError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
)

T = TypeVar("T")


class Interrupted(RuntimeError):  # noqa: N818 (it says what is the matter)
    """Somebody wanted to stop while the brokers were away."""


class Patience:
    """Does things that need brokers.

    Parameters
    ----------
    config
        For what is said about errors.
    stop
        Asked before every new attempt.
    note
        Called with what somebody should know: that it waits, and that it goes on.
    """

    def __init__(self, config: KafkaConfig, stop: Callable[[], bool], note: Callable[[str], None]) -> None:
        self._config = config
        self._stop = stop
        self._note = note

    def until_done(self, work: Callable[[], T], wait: Callable[[float], object]) -> T:
        """Return what `work` returns when it succeeds; `wait` lets some seconds pass.

        Raises
        ------
        KafkaProblem
            It can never succeed.
        Interrupted
            Somebody wanted to stop.
        """
        pause, said = SHORTEST, ""
        while True:
            try:
                done = work()
                if said:
                    self._note("the brokers are back")
                return done
            except FENCED:
                raise
            except HOPELESS as error:
                raise KafkaProblem(explained(error, self._config)) from error
            except KafkaError as error:
                problem = explained(error, self._config)
                if problem != said or pause == LONGEST:  # once, and then now and then
                    self._note(f"{problem}: trying again until it works")
                said = problem
            wait(pause)
            if self._stop():
                raise Interrupted("stopped while the brokers were away")
            pause = min(2 * pause, LONGEST)
