"""Whether the learners of a configuration exist, and take the parameters they are given."""

import inspect
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from stream_hc.learners import LEARNERS
from stream_hc.runtime.config.configured import Configured
from stream_hc.runtime.config.remedies import did_you_mean
from stream_hc.runtime.config.table import Setting
from stream_hc.taxonomy import Taxonomy

__all__ = ["REFITTED", "check_learners", "check_settings", "refusal"]

REFITTED = "hm3"  # the name of the re-fitted model, which no learner may have
_NOT_SETTINGS = ("taxonomy", "n_features")


def check_learners(job: Configured) -> Iterator[str]:
    """Say which names are no learners, or given twice."""
    names, place = job.config.model.learners, job.place("model.learners")
    for name in dict.fromkeys(names):
        if name == REFITTED:
            yield f"{place}: model.learners names {REFITTED}, the re-fitted model: set refit.enabled instead"
        elif name not in LEARNERS:
            near = did_you_mean(get_close_matches(name.lower(), LEARNERS, 1))
            remedy = near or f"choose from {', '.join(LEARNERS)}"
            yield f"{place}: model.learners names {name!r}, which is no learner: {remedy}"
        if names.count(name) > 1:
            yield f"{place}: model.learners names {name} {names.count(name)} times: name each learner once"


def check_settings(job: Configured) -> Iterator[str]:
    """Say which parameters no learner takes."""
    for learner, settings in job.config.model.settings.items():
        table = f"model.settings.{learner}"
        place = job.origin[f"{table}.{next(iter(settings))}"]
        if learner == REFITTED:
            yield f"{place}: {table}: what the re-fitted model is told stands in [refit]"
        elif learner not in job.config.model.learners:
            listed = ", ".join(job.config.model.learners)
            remedy = "add it there, or leave its settings out"
            yield f"{place}: {table}: {learner} is not in model.learners ({listed}): {remedy}"
        elif learner in LEARNERS:
            yield from _check_parameters(job, learner, settings)


def _check_parameters(job: Configured, learner: str, settings: dict[str, Setting]) -> Iterator[str]:
    """Ask the learner itself, which knows best what it takes: without a taxonomy it costs nothing to make."""
    place = {name: job.origin[f"model.settings.{learner}.{name}"] for name in settings}
    taken = [name for name in inspect.signature(LEARNERS[learner]).parameters if name not in _NOT_SETTINGS]
    known = {name: value for name, value in settings.items() if name in taken}
    together = refusal(learner, known)
    alone = {name: refusal(learner, {name: value}) for name, value in known.items()} if together else {}
    for name in settings:
        problem = alone.get(name, "") if name in known else f"unknown: {learner} takes {', '.join(taken)}"
        if problem:
            yield f"{place[name]}: model.settings.{learner}.{name}: {problem}"
    if together and not any(alone.values()):
        yield f"{place[next(iter(known))]}: model.settings.{learner}: {together}"


def refusal(learner: str, settings: Mapping[str, Any], taxonomy: Taxonomy | None = None) -> str:
    """Return what the learner says against its parameters, or nothing."""
    try:
        LEARNERS[learner](taxonomy, n_features=1, **settings)
    except (ValueError, TypeError, OverflowError) as error:
        return str(error)
    return ""
