"""The work behind `stream-hc run`: from what was typed to a job."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import msgspec

from stream_hc import snapshot
from stream_hc.cli.configuring import assignments, load
from stream_hc.cli.console import clean, progress_bar, say, watched
from stream_hc.cli.errors import Code, usage_error
from stream_hc.cli.live import LiveView
from stream_hc.cli.making import (
    Wanted,
    cost_scheme,
    load_filer,
    parameters,
    read_taxonomy,
    writable_folder,
)
from stream_hc.cli.serving import served, split_address
from stream_hc.cli.signals import Stopper
from stream_hc.cli.watching import RunWatcher
from stream_hc.learners import LEARNERS
from stream_hc.runtime import Filer
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.collector import spare_what_stays
from stream_hc.runtime.config import Config
from stream_hc.runtime.contest import Fetch
from stream_hc.runtime.job import Job
from stream_hc.runtime.processor import Processor
from stream_hc.runtime.warming import compile_kernels
from stream_hc.runtime.watcher import Watchers
from stream_hc.snapshot.format import Scalar
from stream_hc.taxonomy import Taxonomy

__all__ = ["Asked", "stream"]


@dataclass(frozen=True)
class Asked:
    """What `stream-hc run` was asked to do, by the names of its options; None where nothing was said."""

    source: str | None = None
    config: str | None = None
    taxonomy: str | None = None
    learners: Sequence[str] = ()
    output: str | None = None
    snapshot: str | None = None
    snapshot_every: int | None = None
    rejects: str | None = None
    labels: str | None = None
    requests: str | None = None
    follow: bool = False
    state: str | None = None
    refit: bool = False
    workers: int | None = None
    scheduler: str | None = None
    n_features: int | None = None
    settings: Sequence[str] = ()
    sequences: bool = False
    costs: str | None = None
    limit: int | None = None
    http: str | None = None
    quiet: bool = False


def stream(asked: Asked) -> int:
    """Do the job and return the exit code."""
    _check(asked)
    config = _configured(asked)
    if asked.snapshot is not None and (len(config.model.learners) > 1 or config.refit.enabled):
        raise usage_error("--snapshot keeps one learner: use --state to keep several, or fitted models")
    if asked.snapshot is not None and config.state.folder is not None:
        raise usage_error("--snapshot keeps one model, a state folder everything: choose one of them")
    goes_on = asked.snapshot is not None and os.path.exists(asked.snapshot)
    ready, seen = _from_model_file(asked) if goes_on else (None, 0)
    tree = None if ready is not None else _taxonomy(config)

    def build(fetch: Fetch | None) -> Processor:
        if ready is not None:
            return Processor(ready.taxonomy, {ready.model: ready.learner}, ready.vectorizer, config)
        if tree is None:
            raise usage_error("--taxonomy is missing: name the file, or a --snapshot or --state that exists")
        try:
            return build_processor(config, tree, fetch)
        except ValueError as error:
            raise usage_error(str(error)) from error

    def save(processor: Processor) -> None:
        if asked.snapshot is not None:
            ((name, model),) = processor.line_up.online.items()
            parts = {"learner": model.learner, "vectorizer": processor.vectorizer}
            counted: dict[str, Scalar] = {"documents": seen + processor.progress.documents, "learner": name}
            snapshot.save(asked.snapshot, parts, extra=counted)

    with ExitStack() as stack:
        stopper = stack.enter_context(Stopper())
        several = len(config.model.learners) > 1 or config.refit.enabled
        shown = watched(config.stream.output == "-") and not asked.quiet
        name = "reading" if config.stream.documents == "-" else os.path.basename(config.stream.documents)
        size = _size(config.stream.documents)
        update = stack.enter_context(progress_bar(clean(name)[:16], size, shown and not several))
        view = stack.enter_context(LiveView(shown)) if several and not asked.quiet else None
        watcher = RunWatcher(update, view, save)
        telemetry = stack.enter_context(served(config.http, asked.quiet))
        told = watcher if telemetry is None else Watchers(watcher, telemetry)
        job = Job(config, build, stopper, told, taxonomy=tree, append=goes_on)
        if telemetry is not None:
            compile_kernels(config, None if ready is None else ready.learner)
        spare_what_stays()
        job.run()
        watcher.finish()
    if not asked.quiet:
        say(watcher.summary())
    if stopper.signal == signal.SIGINT:
        return Code.INTERRUPTED
    return Code.REJECTED if watcher.n_rejected and config.stream.rejects is None else Code.FINE


def _check(asked: Asked) -> None:
    """Refuse what would fail at the end, or destroy something, before anything begins."""
    keeps_state = asked.state is not None or asked.config is not None
    if asked.snapshot is None and asked.snapshot_every is not None and not keeps_state:
        raise usage_error("--snapshot-every needs --snapshot or --state")
    if asked.snapshot is not None and keeps_state:
        raise usage_error("--snapshot keeps one model, --state and --config everything: choose one of them")
    if asked.rejects == "-":
        raise usage_error("--rejects must be a file: standard output has the predictions")
    files = {
        "INPUT": asked.source,
        "--taxonomy": asked.taxonomy,
        "--labels": asked.labels,
        "--output": asked.output,
        "--rejects": asked.rejects,
        "--requests": asked.requests,
        "--snapshot": asked.snapshot,
    }
    used: dict[str, str] = {}
    for option, path in files.items():
        if path is None or path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
            continue
        real = os.path.realpath(path)
        if real in used:
            raise usage_error(f"{used[real]} and {option} are the same file: {path}")
        used[real] = option
    for path in (asked.output, asked.rejects, asked.requests, asked.snapshot, asked.state):
        if path is not None and path != "-":
            writable_folder(path)


def _configured(asked: Asked) -> Config:
    """Return the configuration: what was typed counts more than the environment, and that than the file."""
    own = [setting for setting in asked.settings if "." not in setting.partition("=")[0]]
    others = assignments([setting for setting in asked.settings if setting not in own])
    if asked.costs is not None:
        cost_scheme(asked.costs)
    for name in asked.learners:
        parameters(name, ())
    if own and len(asked.learners) > 1:
        raise usage_error(f"--set {own[0]}: of which learner? Write {asked.learners[0]}.{own[0]}")
    host, port = (None, None) if asked.http is None else split_address(asked.http)
    options: Mapping[str, Any] = {
        "stream.documents": asked.source,
        "stream.labels": asked.labels,
        "stream.follow": asked.follow or None,
        "stream.output": asked.output,
        "stream.rejects": asked.rejects,
        "stream.requests": asked.requests,
        "stream.limit": asked.limit,
        "model.taxonomy": asked.taxonomy,
        "model.learners": list(asked.learners) or None,
        "model.n_features": asked.n_features,
        "model.sequences": asked.sequences or None,
        "model.costs": asked.costs,
        "refit.enabled": asked.refit or None,
        "refit.workers": asked.workers,
        "refit.scheduler": asked.scheduler,
        "state.folder": asked.state,
        "state.every": asked.snapshot_every,
        "http.enabled": None if asked.http is None else True,
        "http.host": host,
        "http.port": port,
        **others,
    }
    config = load(asked.config, options).config
    if not own or (asked.snapshot is not None and os.path.exists(asked.snapshot)):
        return config  # a model file has its parameters, and they are compared with what was typed
    (learner,) = config.model.learners
    given = config.model.settings.get(learner, {}) | parameters(learner, own)
    model = msgspec.structs.replace(config.model, settings={**config.model.settings, learner: given})
    return msgspec.structs.replace(config, model=model)


def _taxonomy(config: Config) -> Taxonomy | None:
    return None if config.model.taxonomy is None else read_taxonomy(config.model.taxonomy)


def _from_model_file(asked: Asked) -> tuple[Filer, int]:
    """Return the one learner of a model file, and how many documents it has seen."""
    assert asked.snapshot is not None
    learner = asked.learners[0] if asked.learners else None
    costs = "uniform" if asked.costs is None else asked.costs
    own = [_of_learner(setting) for setting in asked.settings]
    settings = [setting for setting in own if setting is not None]
    wanted = Wanted(asked.taxonomy, learner, asked.n_features, settings, costs, asked.sequences)
    filer = load_filer(asked.snapshot, wanted)
    seen = snapshot.inspect(asked.snapshot).extra.get("documents", 0)
    if not asked.quiet:
        say(f"continuing from {asked.snapshot}: {filer.model}, {filer.version} documents learned")
    return filer, seen if isinstance(seen, int) else 0


def _of_learner(setting: str) -> str | None:
    """Return a parameter of the learner without its name in front, None for another key."""
    table, dot, rest = setting.partition(".")
    if not dot or "=" in table:
        return setting
    return rest if table in LEARNERS else None


def _size(path: str) -> int | None:
    return os.path.getsize(path) if os.path.isfile(path) else None
