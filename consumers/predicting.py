"""The work behind `stream-hc kafka predict`: from what was typed to a predictor, and its exit codes."""

import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from consumers.clients import explaining
from consumers.daemon import Fenced
from consumers.predictor.predictor import Predictor
from consumers.predictor.watching import PredictWatcher
from stream_hc.cli.configuring import assignments, load
from stream_hc.cli.console import say
from stream_hc.cli.errors import CliError, Code
from stream_hc.cli.serving import served
from stream_hc.cli.signals import Stopper
from stream_hc.runtime.collector import spare_what_stays
from stream_hc.runtime.config import Config
from stream_hc.runtime.config.structs import StateConfig

__all__ = ["MODELS", "predict", "predictor_config"]

MODELS = "models"  # the topic, where none is named
ON_A_TERMINAL, IN_A_LOG = 5.0, 60.0  # seconds between two lines about how it goes
LONGEST_TRANSACTION = 10.0  # seconds: what one leaves open that is killed, the others wait for


def predictor_config(config: Config, instance: str | None) -> Config:
    """Return the configuration of a predictor from that of the job, which all its processes share.

    All predictors are one group, beside that of the trainers. The name of a trainer is not theirs.
    """
    kafka = msgspec.structs.replace(
        config.kafka,
        group=f"{config.kafka.group}-predict",
        instance=instance,
        models=config.kafka.models or MODELS,
        labels=None,
        requests=None,
        events=None,
        transaction_timeout=min(config.kafka.transaction_timeout, LONGEST_TRANSACTION),
    )
    return msgspec.structs.replace(config, kafka=kafka, state=StateConfig())


def predict(
    file: str | None,
    options: Mapping[str, Any],
    settings: Sequence[str],
    instance: str | None = None,
    least: int = 0,
    quiet: bool = False,
) -> int:
    """Run a predictor and return the exit code."""
    config = predictor_config(load(file, {**options, **assignments(settings)}).config, instance)
    with Stopper() as stopper, explaining(config.kafka), served(config.http, quiet) as telemetry:
        watcher = PredictWatcher(ON_A_TERMINAL if sys.stderr.isatty() else IN_A_LOG, quiet, telemetry)
        spare_what_stays()
        try:
            Predictor(config, stopper, watcher, least).run()
        except Fenced as error:
            raise CliError(f"{error}: this one ends, and must not be started again", Code.FENCED) from error
    if not quiet:
        say(watcher.summary())
    return Code.INTERRUPTED if stopper.signal == signal.SIGINT else Code.FINE
