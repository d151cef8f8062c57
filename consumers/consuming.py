"""The work behind `stream-hc kafka consume`: from what was typed to a daemon, and its exit codes."""

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from consumers.clients import explaining
from consumers.daemon import Daemon, Fenced
from consumers.daemon.job import KafkaJob
from consumers.daemon.telling import TopicsTelemetry
from consumers.daemon.watching import ConsumeWatcher
from stream_hc.cli.configuring import assignments, load
from stream_hc.cli.console import say
from stream_hc.cli.errors import CliError, Code, usage_error
from stream_hc.cli.making import read_taxonomy
from stream_hc.cli.serving import served
from stream_hc.cli.signals import Stopper
from stream_hc.runtime.collector import spare_what_stays
from stream_hc.runtime.config import Config
from stream_hc.runtime.warming import compile_kernels
from stream_hc.runtime.watcher import StopRequest, Watcher, Watchers

__all__ = ["consume", "run_daemon"]

MakeDaemon = Callable[[StopRequest, Watcher[KafkaJob], Callable[[], object]], Daemon]

ON_A_TERMINAL, IN_A_LOG = 5.0, 60.0  # seconds between two lines about how it goes


def consume(file: str | None, options: Mapping[str, Any], settings: Sequence[str], quiet: bool) -> int:
    """Run the daemon and return the exit code."""
    config = load(file, {**options, **assignments(settings)}).config
    if config.state.folder is None:
        raise usage_error("--state is missing: a job on topics needs a folder for what it knows")
    taxonomy = None if config.model.taxonomy is None else read_taxonomy(config.model.taxonomy)
    return run_daemon(
        config, quiet, lambda stop, told, standing_by: Daemon(config, taxonomy, stop, told, standing_by)
    )


def run_daemon(config: Config, quiet: bool, make: MakeDaemon) -> int:
    """Run a daemon until it ends, with its page if that is wanted, and return the exit code."""
    watcher = ConsumeWatcher(ON_A_TERMINAL if sys.stderr.isatty() else IN_A_LOG, quiet)
    with Stopper() as stopper, explaining(config.kafka), served(config.http, quiet) as telemetry:
        compile_kernels(config)  # before the group may give it anything to do
        spare_what_stays()
        if telemetry is None:
            daemon = make(stopper, watcher, lambda: None)
        else:
            topics = TopicsTelemetry(telemetry)
            # The topics first: whether it is ready is the telemetry's to say, once it has caught up.
            daemon = make(stopper, Watchers(topics, watcher, telemetry), topics.stand_by)
        try:
            daemon.run()
        except Fenced as error:
            raise CliError(f"{error}: this one ends, and must not be started again", Code.FENCED) from error
    if not quiet:
        say(watcher.summary())
    return Code.INTERRUPTED if stopper.signal == signal.SIGINT else Code.FINE
