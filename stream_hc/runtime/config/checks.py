"""Whether the values of a configuration go together."""

import os
from collections.abc import Callable, Iterator
from itertools import combinations

from stream_hc.runtime.config.configured import Configured
from stream_hc.runtime.config.http import http_problem
from stream_hc.runtime.config.learners import check_learners, check_settings

__all__ = ["CHECKS", "WRITTEN"]

READ = ("stream.documents", "stream.labels", "model.taxonomy")
WRITTEN = ("stream.output", "stream.rejects", "stream.requests")


def _at_most(less: str, more: str) -> Callable[[Configured], Iterator[str]]:
    def check(job: Configured) -> Iterator[str]:
        if job.value(less) > job.value(more):
            place, values = job.place(less, more), (job.value(less), job.value(more))
            yield f"{place}: {less} is {values[0]}, more than {more}, {values[1]}: lower it, or raise {more}"

    return check


def _check_trigger(job: Configured) -> Iterator[str]:
    refit = job.config.refit
    if refit.enabled and refit.every is None and refit.seconds is None and not refit.drift:
        place = job.place("refit.every", "refit.drift", "refit.enabled")
        triggers = "refit.every, refit.seconds and refit.drift"
        yield f"{place}: refit.enabled, but nothing would begin a fit: set one of {triggers}"


def _check_workers(job: Configured) -> Iterator[str]:
    refit = job.config.refit
    if refit.scheduler is not None and refit.workers > 1:
        place = job.place("refit.workers", "refit.scheduler")
        yield (
            f"{place}: refit.workers is {refit.workers}, processes of this machine, and refit.scheduler is "
            "a cluster instead: leave one of them out"
        )


def _check_files(job: Configured) -> Iterator[str]:
    for one, other in combinations((*READ, *WRITTEN), 2):
        first, second = job.value(one), job.value(other)
        opposite = one in READ and other in WRITTEN  # standard input is not standard output
        if first is None or second is None or (opposite and "-" in (first, second)):
            continue
        if first == second == "-" or _same_file(first, second):
            shown = "-" if first == "-" else repr(second)
            yield f"{job.place(other, one)}: {other} is the same file as {one}, {shown}: name another"


def _same_file(first: str, second: str) -> bool:
    """Whether both name one file; a device such as /dev/null may be used twice."""
    if "-" in (first, second) or (os.path.exists(first) and not os.path.isfile(first)):
        return False
    return os.path.realpath(first) == os.path.realpath(second)


def _check_follow(job: Configured) -> Iterator[str]:
    stream = job.config.stream
    for name in ("stream.documents", "stream.labels"):
        if stream.follow and job.value(name) == "-":
            place = job.place("stream.follow", name)
            remedy = "leave it out, a pipe is waited for anyway"
            yield f"{place}: stream.follow is for files, and {name} is standard input: {remedy}"


def _check_http(job: Configured) -> Iterator[str]:
    problem = http_problem(job.config.http)
    if problem:
        yield f"{job.place('http.host', 'http.certificate', 'http.key', 'http.enabled')}: {problem}"


# The keys a check looks at, and the check: it is left out where one of them is wrong by itself.
CHECKS: list[tuple[tuple[str, ...], Callable[[Configured], Iterator[str]]]] = [
    (("model.learners",), check_learners),
    (("model.learners", "model.settings"), check_settings),
    (("refit.least", "refit.window"), _at_most("refit.least", "refit.window")),
    (("judge.least", "judge.sample"), _at_most("judge.least", "judge.sample")),
    (("refit.enabled", "refit.every", "refit.seconds", "refit.drift"), _check_trigger),
    (("refit.workers", "refit.scheduler"), _check_workers),
    ((*READ, *WRITTEN), _check_files),
    (("stream.follow", "stream.documents", "stream.labels"), _check_follow),
    (("http.enabled", "http.host", "http.token_file", "http.certificate", "http.key"), _check_http),
]
