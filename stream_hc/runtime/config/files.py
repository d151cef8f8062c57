"""Whether the files and folders that a configuration names are there, and its taxonomy is sound."""

import os
from collections.abc import Iterator

from stream_hc.runtime.config.checks import WRITTEN
from stream_hc.runtime.config.configured import Configured
from stream_hc.runtime.config.learners import refusal
from stream_hc.taxonomy import Taxonomy

__all__ = ["file_problems"]


def file_problems(job: Configured) -> list[str]:
    """Return what is wrong with the files and folders a configuration names, and with its taxonomy."""
    problems = []
    for name in ("stream.documents", "stream.labels"):
        path = job.value(name)
        if path not in (None, "-"):
            problems += [(name, path, _unreadable(path, job.config.stream.follow))]
    for name in WRITTEN:
        path = job.value(name)
        if path not in (None, "-"):
            problems += [(name, path, _unwritable(path))]
    folder = job.config.state.folder
    if folder is not None:
        problems += [("state.folder", folder, _unusable(folder))]
    found = [f"{job.place(name)}: {name}: {path}: {problem}" for name, path, problem in problems if problem]
    return found + list(_taxonomy_problems(job))


def _unreadable(path: str, may_come: bool) -> str:
    if not os.path.exists(path):
        comes = may_come and os.path.isdir(os.path.dirname(os.path.abspath(path)))
        return "" if comes else "the file does not exist"
    if os.path.isdir(path):
        return "this is a folder: name a file"
    return "" if os.access(path, os.R_OK) else "the file is not readable"


def _unwritable(path: str) -> str:
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        return "this is a folder: name a file"
    if os.path.exists(path):
        return "" if os.access(path, os.W_OK) else "the file is not writable"
    if not os.path.isdir(folder):
        return "the folder does not exist: make it first"
    return "" if os.access(folder, os.W_OK) else "the folder is not writable"


def _unusable(folder: str) -> str:
    """Return what is wrong with a folder; one that is not there will be made, if there is a place for it."""
    above = os.path.abspath(folder)
    while not os.path.exists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        return "this is a file: name a folder" if above == os.path.abspath(folder) else f"{above} is a file"
    return "" if os.access(above, os.W_OK | os.X_OK) else f"{above} is not writable"


def _taxonomy_problems(job: Configured) -> Iterator[str]:
    config = job.config
    path = config.model.taxonomy
    if path is None:
        return
    place = job.place("model.taxonomy")
    try:
        taxonomy = Taxonomy.read(path)
    except ValueError as error:
        yield f"{place}: model.taxonomy: {error}"
        return
    if not len(taxonomy):
        yield f"{place}: model.taxonomy: {path}: the taxonomy has no nodes: write a line for each"
        return
    for learner in config.model.learners:
        if problem := refusal(learner, config.model.settings.get(learner, {}), taxonomy):
            yield f"{job.place('model.learners')}: {learner}: {problem}"
    for name in ("model.costs", "refit.costs")[: 1 + config.refit.enabled]:
        try:
            taxonomy.costs(job.value(name))
        except ValueError as error:
            yield f"{job.place(name)}: {name}: {error}"
    if config.refit.enabled and config.refit.loss == "h_tilde" and not taxonomy.is_tree:
        yield f"{job.place('refit.loss')}: refit.loss: h_tilde needs a forest, {path} is a DAG: leave it out"
