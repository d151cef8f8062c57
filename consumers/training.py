"""The work behind `stream-hc kafka train`: from what was typed to trainers, and their exit codes."""

import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from consumers.clients import explaining
from consumers.consuming import run_daemon
from consumers.daemon import Daemon
from consumers.errors import KafkaProblem
from consumers.models.manifest import MOST_SHARDS, ShardKey
from consumers.trainer.planning import check_learners, make_plan
from consumers.trainer.settings import letters_about, trainer_config
from consumers.trainer.together import run_together
from stream_hc.cli.configuring import assignments, load
from stream_hc.cli.console import out, say
from stream_hc.cli.errors import Code, usage_error
from stream_hc.cli.making import read_taxonomy
from stream_hc.cli.signals import Stopper
from stream_hc.runtime.config import Config
from stream_hc.sharding import Plan
from stream_hc.taxonomy import Taxonomy

__all__ = ["Wanted", "train"]


class Wanted(NamedTuple):
    """What `train` was asked to do, by the names of its options."""

    shards: int
    shard: int | None
    traffic: str | None
    show_plan: bool
    ends_with_input: bool
    quiet: bool


def train(wanted: Wanted, file: str | None, options: Mapping[str, Any], settings: Sequence[str]) -> int:
    """Run one trainer, or one for each shard, and return the exit code."""
    config = load(file, {**options, **assignments(settings)}).config
    if not 1 <= wanted.shards <= MOST_SHARDS:
        raise usage_error(f"--shards {wanted.shards}: choose 1 to {MOST_SHARDS}")
    if wanted.shard is not None and not 0 <= wanted.shard < wanted.shards:
        raise usage_error(
            f"--shard {wanted.shard}: of {wanted.shards} shards the last is {wanted.shards - 1}"
        )
    if wanted.shards > 1 and config.model.taxonomy is None:
        raise usage_error("--taxonomy is missing: it is what is cut into shards")
    taxonomy = None if config.model.taxonomy is None else read_taxonomy(config.model.taxonomy)
    plan = None if taxonomy is None else make_plan(taxonomy, wanted.shards, wanted.traffic)
    if wanted.show_plan:
        if plan is None:
            raise usage_error("--taxonomy is missing: it is what is cut into shards")
        out().print(plan.table(), highlight=False)
        return Code.FINE
    _check(config, taxonomy, wanted.shards)
    if wanted.shards > 1 and wanted.shard is None:
        assert plan is not None
        return _all(wanted, config, plan)
    if wanted.ends_with_input:
        threading.Thread(target=_end_with_input, daemon=True).start()
    key = ShardKey(wanted.shard or 0, wanted.shards)
    shard = None if plan is None or wanted.shards == 1 else plan.shards[key.number]
    try:
        own = trainer_config(config, key)
    except KafkaProblem as error:
        raise usage_error(str(error)) from None
    return run_daemon(
        own,
        wanted.quiet,
        lambda stop, watcher, standing_by: Daemon(
            own, taxonomy, stop, watcher, standing_by, shard, letters_about(own)
        ),
    )


def _check(config: Config, taxonomy: Taxonomy | None, n_shards: int) -> None:
    """Refuse what shards cannot do, and a folder with another number of them: what they know would stay."""
    if n_shards > 1 and taxonomy is not None:
        check_learners(config, taxonomy)
    folder = None if config.state.folder is None else Path(config.state.folder)
    if folder is None or not folder.is_dir():
        return
    keys = [key for each in folder.iterdir() if (key := ShardKey.of(each.name)) is not None]
    counts = {key.n_shards for key in keys}
    if counts and n_shards not in counts:
        there = f"{folder} has {max(counts)} shards, not {n_shards}"
        raise usage_error(
            f"{there}: stream-hc kafka reshard --shards {n_shards} goes on with what they know; "
            "another folder begins anew"
        )


def _all(wanted: Wanted, config: Config, plan: Plan) -> int:
    if not wanted.quiet:
        for line in plan.table().splitlines():
            say(line)
    typed = sys.argv[1:]
    commands = [[*typed, "--shard", str(number), *_http(config, number)] for number in range(wanted.shards)]
    with Stopper() as stopper, explaining(config.kafka):
        run_together(commands, stopper, lambda text: say(text, "yellow"))
    return Code.INTERRUPTED if stopper.signal == signal.SIGINT else Code.FINE


def _http(config: Config, number: int) -> list[str]:
    """Return where the trainer of a shard serves its page: at the port of the first, and those behind it."""
    http = config.http
    return ["--http", f"{http.host}:{http.port + number}"] if http.enabled and http.port else []


def _end_with_input() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
