"""`stream-hc kafka doctor`, and `stream-hc doctor --kafka`: whether a job on topics could run."""

from collections.abc import Callable, Iterator

import msgspec
from kafka.errors import KafkaError

from consumers.checking.state import Kept, check_folder, check_place, newest_kept
from consumers.checks import Finding, check_cluster
from consumers.clients import administrator
from consumers.errors import KafkaProblem, explained
from consumers.settings import problems_of, warnings_of
from consumers.topics import describe
from stream_hc.cli.console import clean
from stream_hc.cli.errors import Code
from stream_hc.runtime.config import Config
from stream_hc.snapshot import SnapshotError

__all__ = ["examine_kafka"]

PATIENCE = 10.0  # seconds for an answer: whoever asks the doctor sits and waits


def examine_kafka(config: Config, echo: Callable[[str], None]) -> int:
    """Report every finding as soon as it is there, and return the exit code."""
    worst = Code.FINE
    for finding in _findings(config):
        echo(clean(f"{finding.verdict:8} {finding.text}"))
        worst = Code.BUG if finding.verdict == "problem" else worst
    return worst


def _findings(config: Config) -> Iterator[Finding]:
    for warning in warnings_of(config.kafka):
        yield Finding("warning", warning)
    kept: Kept | None = None
    try:
        kept = newest_kept(config.state.folder) if config.state.folder is not None else None
        yield from check_folder(config, kept)
    except SnapshotError as error:
        yield Finding("problem", str(error))
    problems = problems_of(config.kafka)
    yield from (Finding("problem", problem) for problem in problems)
    if problems:
        return  # there is no way to the brokers
    patience = min(PATIENCE, config.kafka.request_timeout)
    try:
        with administrator(msgspec.structs.replace(config.kafka, request_timeout=patience)) as admin:
            yield from check_cluster(admin, config.kafka, age=None if kept is None else kept.age)
            yield from check_place(admin, config, describe(admin, config.kafka), kept)
    except (KafkaError, KafkaProblem) as error:
        yield Finding("problem", explained(error, config.kafka))
