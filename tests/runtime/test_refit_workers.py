"""Fits spread over several processes: the same bits as here, and nobody outlives whoever began them."""

import json
import os
from functools import partial
from pathlib import Path

import msgspec
import pytest

from stream_hc import snapshot
from stream_hc.maxmargin import distributed
from stream_hc.maxmargin.crew import Here
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import ConfigError, RefitConfig, load_config
from stream_hc.runtime.job import Job
from stream_hc.runtime.refit import Refitter, worker
from stream_hc.runtime.refit.files import EXIT_FAILED, Task
from tests.maxmargin.test_distributed import cluster, free_port  # noqa: F401, a fixture
from tests.runtime.crashing import configured, write_stream
from tests.runtime.test_refitting import NEVER, fitted_here, is_alive, until, window_of

CONFIG = RefitConfig(C=2.0, tol=0.01, costs="subtree", max_seconds=600.0, workers=2)


def descendants(pid):
    """The processes that one began, and those that they began, but for Python's own."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            is_helper = b"resource_tracker" in stat.with_name("cmdline").read_bytes()
        except OSError:  # just gone
            continue
        if parent == pid and not is_helper:
            found += [int(stat.parent.name), *descendants(int(stat.parent.name))]
    return found


@pytest.mark.compiled
def test_two_processes_fit_what_two_shards_here_fit(tmp_path):
    window, others = window_of(60), set(descendants(os.getpid()))  # such as the browser of other tests
    refitter = Refitter(tmp_path, CONFIG)
    refitter.start(1, window.view(), None)
    finished = refitter.wait(NEVER)
    assert (finished.outcome, finished.problem) == ("done", "")
    here = fitted_here(window, 1, CONFIG, workers=Here(2))
    assert snapshot.dump_bytes(finished.model) == snapshot.dump_bytes(here)
    # The next one begins with its dual variables.
    refitter.start(2, window.view(), 1)
    again = refitter.wait(NEVER)
    extra = snapshot.inspect(tmp_path / "model-2.snap").extra
    assert (again.outcome, extra["warm_rows"]) == ("done", 60)
    until(lambda: set(descendants(os.getpid())) <= others)


@pytest.mark.compiled
def test_stopped_in_the_middle_nobody_is_left(tmp_path):
    endless = RefitConfig(tol=1e-15, max_seconds=600.0, workers=2)
    refitter, others = Refitter(tmp_path, endless), set(descendants(os.getpid()))
    refitter.start(1, window_of(300).view(), None)
    until(lambda: refitter.progress() is not None)
    assert refitter.progress().keys() == {"epoch", "seconds", "dual_objective", "duality_gap"}
    family = set(descendants(os.getpid())) - others
    assert len(family) >= 3  # the fit, and two that help it
    priorities = [os.getpriority(os.PRIO_PROCESS, pid) for pid in family if is_alive(pid)]
    assert min(priorities) >= os.getpriority(os.PRIO_PROCESS, 0) + worker.NICENESS
    limits = [Path(f"/proc/{pid}/limits").read_text() for pid in family if is_alive(pid)]
    soft = [next(line for line in text.splitlines() if "address space" in line).split()[3] for text in limits]
    assert "unlimited" not in soft
    refitter.stop()
    until(lambda: not any(map(is_alive, family)))


@pytest.mark.compiled
def test_a_cluster_fits_and_one_that_is_not_there_is_a_failed_fit(tmp_path, cluster):  # noqa: F811
    address, _ = cluster
    refitter = Refitter(tmp_path, RefitConfig(tol=0.01, scheduler=address))
    refitter.start(1, window_of(60).view(), None)
    assert refitter.wait(NEVER).outcome == "done"
    nowhere = f"tcp://127.0.0.1:{free_port()}"
    refitter = Refitter(tmp_path, RefitConfig(scheduler=nowhere))
    refitter.start(2, window_of(60).view(), None)
    finished = refitter.wait(NEVER)
    assert (finished.outcome, finished.model) == ("failed", None)
    assert finished.problem.startswith(f"WorkersError: no scheduler of Dask at {nowhere}: start one with")


def test_a_task_says_who_helps():
    task = Task.of(3, None, CONFIG)
    assert (task.workers, task.scheduler) == (2, None)
    assert Task.of(3, None, RefitConfig(scheduler="tcp://a:1")).scheduler == "tcp://a:1"


def test_a_fit_that_finds_no_help_ends_with_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(distributed, "CONNECT_SECONDS", 0.5)
    for name in ("_load_kernels", "_end_with_input"):
        monkeypatch.setattr(worker, name, lambda: None)
    monkeypatch.setattr(worker.os, "nice", lambda by: None)
    monkeypatch.setattr(worker.resource, "setrlimit", lambda kind, limit: None)
    snapshot.save(tmp_path / "window-1.snap", {"window": window_of(8)})
    nowhere = f"tcp://127.0.0.1:{free_port()}"
    job = tmp_path / "job-1.json"
    job.write_bytes(msgspec.json.encode(Task.of(1, None, RefitConfig(scheduler=nowhere))))
    assert worker.main([str(job)]) == EXIT_FAILED
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"WorkersError: no scheduler of Dask at {nowhere}: start one with")
    assert not (tmp_path / "model-1.snap").exists()


@pytest.mark.compiled
def test_the_stream_goes_on_after_a_fit_that_found_no_help(tmp_path):
    taxonomy = write_stream(tmp_path)
    nowhere = f"tcp://127.0.0.1:{free_port()}"
    refit = RefitConfig(
        enabled=True, window=50, least=60, every=None, lag=10, in_step=True, drift=False, scheduler=nowhere
    )
    config = configured(tmp_path, refit=refit)
    job = Job(config, partial(build_processor, config, taxonomy))
    job.run()
    happened = job.processor.progress.happened
    assert happened["refit_failed"] == 1
    assert "candidate" not in happened
    log = [json.loads(line) for line in (tmp_path / "state" / "log.jsonl").read_bytes().splitlines()]
    [failed] = [entry for entry in log if entry.get("what") == "refit_failed"]
    assert f"WorkersError: no scheduler of Dask at {nowhere}: start one with" in failed["detail"]
    answers = (tmp_path / "output.jsonl").read_bytes().splitlines()
    assert job.processor.progress.records == len((tmp_path / "stream.jsonl").read_bytes().splitlines())
    assert len(answers) >= 120 > failed["labelled"]
    assert {json.loads(line)["model"] for line in answers} <= set(config.model.learners)


def problems(text, tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path, {}, {})
    return caught.value.problems


def test_workers_and_a_scheduler_exclude_each_other(tmp_path):
    [both] = problems("[refit]\nworkers = 2\nscheduler = 'tcp://127.0.0.1:8786'\n", tmp_path)
    assert "line 2: refit.workers is 2, processes of this machine, and refit.scheduler is a cluster" in both
    [wrong] = problems("[refit]\nscheduler = 'here'\n", tmp_path)
    assert "refit.scheduler" in wrong
    [none] = problems("[refit]\nworkers = 0\n", tmp_path)
    assert "refit.workers" in none
