"""Fits in another process: the same bits as here, and nothing that goes wrong there does any harm here."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from stream_hc import HM3, Taxonomy, snapshot
from stream_hc.learners.base import LabelRows
from stream_hc.runtime.config import RefitConfig
from stream_hc.runtime.refit import Refitter, worker
from stream_hc.runtime.refit.files import (
    EXIT_ALONE,
    EXIT_FAILED,
    EXIT_MEMORY,
    Duals,
    FitFiles,
    Task,
    forget_files,
)
from stream_hc.runtime.window import Window
from stream_hc.snapshot import SnapshotError
from stream_hc.vectorize import Rows
from tests.conftest import ROOT

TREE = Taxonomy([("a", None), ("b", None), ("aa", "a"), ("ab", "a"), ("ba", "b")])
DAG = Taxonomy([("a", None), ("b", None), ("ab", "a"), ("ab", "b")])
N_FEATURES = 64
CONFIG = RefitConfig(C=2.0, tol=0.01, costs="subtree", max_seconds=600.0)
NEVER = 60.0  # seconds: far longer than anything here takes


def pushed(window, n_rows, seed=0, per_row=6):
    """Put documents into a window; each label has its words."""
    rng = np.random.default_rng(seed)
    columns, nodes = [], []
    for _ in range(n_rows):
        node = int(rng.integers(len(window.taxonomy)))
        nodes.append(sorted({node, *window.taxonomy.parents(node)}))
        words = {node * 3 + int(word) for word in rng.integers(0, 3, 2)}
        columns.append(sorted(words | {int(word) for word in rng.integers(0, window.n_features, per_row)}))
    indices = np.concatenate([np.array(row, np.int32) for row in columns])
    values = rng.random(indices.size).astype(np.float32) + np.float32(0.1)
    ends = np.cumsum([0, *map(len, columns)])
    label_ends = np.cumsum([0, *map(len, nodes)])
    window.push(Rows(ends, indices, values), LabelRows(label_ends, np.concatenate(nodes).astype(np.int32)))
    return window


def window_of(n_rows=40, taxonomy=TREE, size=1000, seed=0):
    return pushed(Window(taxonomy, N_FEATURES, size), n_rows, seed)


def matrices(window):
    rows = window.arrays()
    n_rows = rows.numbers.size
    X = csr_array((rows.values, rows.indices, rows.indptr), shape=(n_rows, window.n_features))
    on = np.ones(rows.label_nodes.size, np.bool_)
    return X, csr_array((on, rows.label_nodes, rows.label_ptr), shape=(n_rows, len(window.taxonomy)))


def fitted_here(window, number, config=CONFIG, loss="h_tilde", **how):
    model = HM3(
        window.taxonomy,
        loss,
        config.costs,
        config.C,
        config.tol,
        max_seconds=config.max_seconds,
        max_memory=config.max_memory,
        n_features=window.n_features,
        seed=number,
    )
    return model.fit(*matrices(window), **how)


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"  # a zombie waits for whoever adopted it


def until(condition, seconds=NEVER):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def shell(script):
    """Return a command; $0 is the job file."""
    return ("/bin/sh", "-c", script)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


# In a process of its own


def test_a_process_fits_the_same_model_and_the_next_one_begins_where_it_ended(tmp_path):
    window = window_of(size=40)
    refitter = Refitter(tmp_path / "new" / "folder", CONFIG)
    folder = refitter.folder
    assert (refitter.running, refitter.poll(), refitter.progress()) == (None, None, None)
    refitter.start(1, window.view(), None)
    assert refitter.running == 1
    with pytest.raises(ValueError, match="fit 1 is not over: poll or stop it before the next one"):
        refitter.start(2, window.view(), None)
    pushed(window, 10, seed=5)  # the view stays as it was
    finished = refitter.wait(NEVER)
    assert (finished.number, finished.outcome, finished.problem) == (1, "done", "")
    assert (refitter.running, refitter.poll(), files_in(folder)) == (None, None, ["model-1.snap"])
    assert 0.0 < finished.seconds < NEVER

    first = window_of(size=40)
    here = fitted_here(first, 1)
    assert snapshot.dump_bytes(finished.model) == snapshot.dump_bytes(here)
    assert snapshot.dump_bytes(refitter.load(1)) == snapshot.dump_bytes(here)
    assert (finished.dual_objective, finished.duality_gap) == (here.dual_objective_, here.duality_gap_)

    refitter.start(2, window.view(), 1)
    until(lambda: refitter.poll() is not None)
    kept = np.concatenate([np.full(10, -1), np.arange(30)])
    warm = fitted_here(window, 2, warm_start=(here.duals_, kept))
    assert snapshot.dump_bytes(refitter.load(2)) == snapshot.dump_bytes(warm)
    extra = snapshot.inspect(folder / "model-2.snap").extra
    assert extra == {"number": 2, "epochs": len(warm.history_) - 1, "warm_rows": 30}
    assert len(warm.history_) < len(fitted_here(window, 2).history_)
    assert files_in(folder) == ["model-1.snap", "model-2.snap"]


def test_a_process_out_of_memory_says_so(tmp_path):
    window = pushed(Window(TREE, 2**18, 1000), 1000, per_row=1000)  # 4 MB of columns, and of values
    refitter = Refitter(tmp_path, RefitConfig(max_memory=2**21))
    refitter.start(1, window.view(), None)
    finished = refitter.wait(NEVER)
    assert finished.outcome == "memory"
    assert re.search(r"window-1.snap: array '\w+' needs \d+ bytes of memory", finished.problem)
    assert finished.model is finished.duality_gap is finished.dual_objective is None
    assert files_in(tmp_path) == []


STREAM = """
import sys, time
from pathlib import Path
from stream_hc.runtime.config import RefitConfig
from stream_hc.runtime.refit import WORKER, Refitter
from tests.runtime.test_refitting import shell, window_of

is_real = sys.argv[2] == "real"
command = WORKER if is_real else shell("sleep 600")
refitter = Refitter(Path(sys.argv[1]), RefitConfig(max_seconds=600.0, C=1e6), command=command)
refitter.start(1, window_of(1000).view(), None)
while refitter._job._process is None or (is_real and refitter.progress() is None):
    time.sleep(0.01)
print(refitter._job._process.pid, flush=True)
time.sleep(600 if is_real else 0)
"""


def stream(folder, worker):
    command = [sys.executable, "-c", STREAM, str(folder), worker]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def test_a_worker_ends_when_whoever_began_it_is_killed(tmp_path):
    with stream(tmp_path, "real") as process:
        worker = int(process.stdout.readline())
        assert is_alive(worker)
        assert os.getpriority(os.PRIO_PROCESS, worker) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
        assert os.getsid(worker) == worker
        entry = json.loads((tmp_path / "progress-1.json").read_bytes())
        assert entry.keys() == {"epoch", "seconds", "dual_objective", "duality_gap"}
        process.kill()
    until(lambda: not is_alive(worker))
    left = files_in(tmp_path)
    assert {"job-1.json", "window-1.snap"} <= set(left)
    assert "model-1.snap" not in left  # it did not end because it was ready
    Refitter(tmp_path, CONFIG).forget(set())
    assert files_in(tmp_path) == []


def test_nothing_is_left_when_the_interpreter_ends(tmp_path):
    with stream(tmp_path, "asleep") as process:
        worker = int(process.stdout.readline())
        assert process.wait(NEVER) == 0
    assert not is_alive(worker)
    assert files_in(tmp_path) == []


# What a worker may do


@pytest.mark.parametrize(
    ("script", "outcome", "problem"),
    [
        ("echo first >&2; echo ' last words ' >&2; echo >&2; exit 1", "crashed", "exit code 1: last words"),
        ("exit 1", "crashed", "exit code 1"),
        ("kill -9 $$", "crashed", "ended by signal SIGKILL"),
        ("kill -40 $$", "crashed", "ended by signal 40"),
        (f"echo no room >&2; exit {EXIT_MEMORY}", "memory", "no room"),
        (f"echo no documents >&2; exit {EXIT_FAILED}", "failed", "no documents"),
        (
            "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo end >&2; exit 3",
            "crashed",
            "exit code 3: end",
        ),
        ("exec 2>&-; exit 4", "crashed", "exit code 4"),
        ("true", "failed", "model-7.snap: cannot read: No such file or directory"),
        ('echo junk > "${0%/*}/model-7.snap"', "failed", "model-7.snap: not a stream_hc snapshot"),
        ('cp "${0%/*}/window-7.snap" "${0%/*}/model-7.snap"', "failed", "holds no fitted HM3: fit it again"),
        ('echo half > "${0%/*}/.model-7.snap.12-0a1b.tmp"; exit 5', "crashed", "exit code 5"),
    ],
)
def test_a_worker_that_goes_wrong_is_reported_and_leaves_nothing(tmp_path, script, outcome, problem):
    refitter = Refitter(tmp_path, CONFIG, command=shell(script))
    refitter.start(7, window_of(5).view(), None)
    finished = refitter.wait(NEVER)
    assert (finished.number, finished.outcome, finished.model) == (7, outcome, None)
    assert finished.problem.endswith(problem)
    assert len(finished.problem) <= 500
    assert files_in(tmp_path) == []
    assert refitter.running is None


def test_what_cannot_be_started_or_saved_is_reported_too(tmp_path):
    refitter = Refitter(tmp_path, CONFIG, command=(str(tmp_path / "missing"),))
    refitter.start(1, window_of(5).view(), None)
    assert "No such file" in refitter.wait(NEVER).problem

    class Unknown:
        def state(self):
            return {}

    refitter.start(2, Unknown(), None)
    finished = refitter.wait(NEVER)
    assert finished.outcome == "failed"
    assert "'Unknown' is not registered" in finished.problem
    assert files_in(tmp_path) == []


def test_a_worker_that_hangs_is_killed_with_its_children(tmp_path):
    pids, clock = tmp_path / "pids", Clock()
    (tmp_path / "fits").mkdir()
    script = f"sleep 600 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; yes >&2"
    refitter = Refitter(tmp_path / "fits", RefitConfig(timeout=30.0), clock, shell(script))
    refitter.start(1, window_of(5).view(), None)
    until(pids.exists)
    clock.now += 29.0
    with pytest.raises(TimeoutError, match=r"fit 1 has not ended after 0.3 seconds: wait longer or stop it"):
        refitter.wait(0.3)
    clock.now += 1.0
    finished = refitter.wait(NEVER)
    assert (finished.outcome, finished.seconds) == ("timeout", 30.0)
    assert finished.problem.startswith("killed after 30 seconds")
    until(lambda: not any(is_alive(pid) for pid in pids.read_text().split()))
    assert files_in(tmp_path / "fits") == []


def test_a_job_that_is_stopped_leaves_no_process_and_no_file(tmp_path):
    pids = tmp_path / "pids"
    ready = f"echo $$ > {pids}.new; mv {pids}.new {pids}"
    script = f'name=${{0##*/job-}}; echo x > "${{0%/*}}/model-${{name%.json}}.snap"; {ready}; sleep 600'
    refitter = Refitter(tmp_path / "fits", CONFIG, command=shell(script))
    refitter.stop()  # nothing to do
    refitter.start(1, window_of(5).view(), None)
    until(pids.exists)
    refitter.stop()
    assert not is_alive(int(pids.read_text()))
    assert (refitter.running, refitter.poll(), files_in(refitter.folder)) == (None, None, [])
    with pytest.raises(ValueError, match="no fit is under way: start one first"):
        refitter.wait()
    refitter.start(2, window_of(5).view(), None)
    refitter.stop()  # at once, before or while the process begins
    assert files_in(refitter.folder) == []
    refitter.start(3, window_of(5).view(), None)
    del refitter
    assert files_in(tmp_path / "fits") == []


def test_a_fit_that_ended_well_and_was_not_reported_goes_with_the_stop(tmp_path):
    refit_worker_fit(tmp_path, window_of(8), 1)
    (tmp_path / "model-1.snap").rename(tmp_path / "ready")
    refitter = Refitter(
        tmp_path / "fits", CONFIG, command=shell(f'cp {tmp_path}/ready "${{0%/*}}/model-1.snap"')
    )
    refitter.start(1, window_of(8).view(), None)
    until(lambda: refitter._job.finished is not None)
    assert files_in(refitter.folder) == ["model-1.snap"]
    refitter.stop()
    assert files_in(refitter.folder) == []


def test_the_stream_does_not_wait_for_a_large_window(tmp_path):
    window = Window(TREE, 2**18, 10**6)
    for seed in range(10):
        pushed(window, 250, seed, per_row=1000)
    assert sum(array.nbytes for array in window.arrays()) > 19e6
    refitter = Refitter(tmp_path, CONFIG, command=shell("exit 1"))
    # A busy machine makes anything wait now and then, but hardly three times.
    longest = [longest_waits(refitter, window.view(), number) for number in (1, 2, 3)]
    sys.stdout.write(f"milliseconds: {longest}\n")
    for name in longest[0]:
        assert min(waits[name] for waits in longest) < 50.0


def longest_waits(refitter, view, number):
    """Return how long each call took at most, in milliseconds, while a job begins and ends."""
    longest = {}

    def timed(name, call):
        began = time.perf_counter()
        answer = call()
        longest[name] = max(longest.get(name, 0.0), round(1e3 * (time.perf_counter() - began), 2))
        return answer

    timed("start", lambda: refitter.start(number, view, None))
    while timed("poll", refitter.poll) is None:
        timed("else", lambda: sum(range(1000)))  # whatever the stream does beside
    FitFiles(refitter.folder, number).model.write_bytes(bytes(50_000_000))
    timed("forget", lambda: refitter.forget(set()))
    assert files_in(refitter.folder) == []
    return longest


# The worker, without a process


def task(number, warm=None, config=CONFIG):
    return Task.of(number, warm, config)


def refit_worker_fit(folder, window, number, warm=None, config=CONFIG):
    snapshot.save(FitFiles(folder, number).window, {"window": window})
    worker.fit(folder, task(number, warm, config))
    FitFiles(folder, number).window.unlink()
    FitFiles(folder, number).progress.unlink()
    path = FitFiles(folder, number).model
    return snapshot.load(path)["model"], snapshot.inspect(path).extra


def test_rows_that_remain_begin_with_their_duals(tmp_path):
    window = window_of(30, size=30)
    first, _ = refit_worker_fit(tmp_path, window, 1)
    again, extra = refit_worker_fit(tmp_path, window, 2, warm=1)
    assert extra == {"number": 2, "epochs": 0, "warm_rows": 30}  # there was nothing to do
    assert again.state()["weights"] == pytest.approx(first.state()["weights"], abs=1e-6)
    pushed(window, 5, seed=1)
    _, extra = refit_worker_fit(tmp_path, window, 3, warm=2)
    assert extra["warm_rows"] == 25
    pushed(window, 30, seed=2)
    _, extra = refit_worker_fit(tmp_path, window, 4, warm=3)
    assert extra["warm_rows"] == 0


def test_a_warm_start_that_is_gone_damaged_or_of_another_taxonomy_only_takes_longer(tmp_path):
    window = window_of(20)
    cold = snapshot.dump_bytes(fitted_here(window, 5))
    refit_worker_fit(tmp_path, window_of(20, Taxonomy([("other", None)])), 1)
    (tmp_path / "model-2.snap").write_bytes((tmp_path / "model-1.snap").read_bytes()[:-9])
    snapshot.save(tmp_path / "model-3.snap", fitted_here(window, 1))
    snapshot.save(tmp_path / "model-4.snap", {"model": fitted_here(window, 1)})
    for warm in (1, 2, 3, 4, 99):
        model, extra = refit_worker_fit(tmp_path, window, 5, warm=warm)
        assert (snapshot.dump_bytes(model), extra["warm_rows"]) == (cold, 0)


def test_the_loss_fits_the_taxonomy_unless_it_is_given(tmp_path):
    window, uniform = window_of(20, DAG), RefitConfig(C=0.5)
    model, _ = refit_worker_fit(tmp_path, window, 1, config=uniform)
    here = fitted_here(window, 1, uniform, loss="symmetric_difference")
    assert snapshot.dump_bytes(model) == snapshot.dump_bytes(here)
    with pytest.raises(ValueError, match="in a DAG HM3 trains with loss='symmetric_difference'"):
        refit_worker_fit(tmp_path, window, 2, config=RefitConfig(loss="h_tilde"))
    model, _ = refit_worker_fit(tmp_path, window_of(9), 3, config=RefitConfig(loss="symmetric_difference"))
    assert model.loss == "symmetric_difference"
    assert Task.of(1, None, RefitConfig(max_seconds=float("inf"))).max_seconds is None


def test_an_empty_window_is_refused_and_a_lack_of_memory_recognised(tmp_path):
    with pytest.raises(ValueError, match="the window is empty") as caught:
        refit_worker_fit(tmp_path, Window(TREE, N_FEATURES, 5), 1)
    assert not worker._is_memory(caught.value)
    told = SnapshotError("an array needs 3 bytes of memory")
    told.__cause__ = MemoryError()
    assert worker._is_memory(told)
    with pytest.raises(MemoryError):
        refit_worker_fit(tmp_path, window_of(5), 1, config=RefitConfig(max_memory=1))


def test_the_worker_ends_with_a_line_and_a_code_of_its_own(tmp_path, monkeypatch, capsys):
    done, limits = [], []
    monkeypatch.setattr(worker.os, "nice", done.append)
    monkeypatch.setattr(worker, "_end_with_input", lambda: None)
    monkeypatch.setattr(worker.resource, "setrlimit", lambda kind, limit: limits.append(limit[0]))
    job = tmp_path / "job-1.json"
    assert worker.main([str(job)]) == EXIT_FAILED
    assert capsys.readouterr().err.startswith("FileNotFoundError: ")
    assert done == [10]
    snapshot.save(tmp_path / "window-1.snap", {"window": window_of(8)})
    for config, code in [(RefitConfig(max_memory=10), EXIT_MEMORY), (CONFIG, 0)]:
        job.write_bytes(msgspec.json.encode(task(1, config=config)))
        assert worker.main([str(job)]) == code
    assert capsys.readouterr().err.startswith("MemoryError: 8 documents need about ")
    assert limits[0] > 10
    assert limits[1] > CONFIG.max_memory
    assert files_in(tmp_path) == ["job-1.json", "model-1.snap", "progress-1.json", "window-1.snap"]


def test_the_worker_ends_with_its_input(monkeypatch):
    told, codes = [b"", b"x", b"x"], []
    monkeypatch.setattr(worker.os, "read", lambda *_: told.pop())
    monkeypatch.setattr(worker.os, "_exit", codes.append)
    worker._end_with_input()
    assert (told, codes) == ([], [EXIT_ALONE])


def test_progress_is_there_while_the_fit_runs(tmp_path):
    script = """echo '{"epoch": 3, "duality_gap": 0.5}' > "${0%/*}/progress-1.json"; sleep 600"""
    refitter = Refitter(tmp_path, CONFIG, command=shell(script))
    refitter.start(1, window_of(5).view(), None)
    until((tmp_path / "progress-1.json").exists)
    until(lambda: (tmp_path / "progress-1.json").stat().st_size)
    assert refitter.progress() == {"epoch": 3, "duality_gap": 0.5}
    refitter.stop()
    assert refitter.progress() is None


def test_a_model_that_is_fitted_again_reads_rows_by_its_new_features():
    model = HM3(TREE, n_features=N_FEATURES)
    for seed in (0, 1):
        window = window_of(6, seed=seed)
        model.fit(*matrices(window))
        many, _ = matrices(window_of(2100, seed=7))  # with features that were not trained on; in two parts
        columns, weights = model.state()["columns"], model.state()["node_weights"]
        assert columns.size < N_FEATURES
        numbers = np.vstack(list(model._numbers(many)))
        assert (numbers == many[:, columns] @ weights).all()
        assert (model.margins(many[[3]]) == model.margins(many)[3]).all()


# Files


numbers = st.sets(st.integers(0, 12)).map(lambda given: np.array(sorted(given), np.int64))


@given(numbers, numbers)
def test_places_are_those_of_the_same_numbers(before, after):
    places = Duals(before, np.zeros((before.size, 2))).places(after)
    for number, place in zip(before, places, strict=True):
        assert after[place] == number if place >= 0 else number not in after


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"numbers": np.array([2, 1])}, "numbers must be ascending"),
        ({"numbers": np.array([1, 2], np.int32)}, "numbers must be ascending"),
        ({"duals": np.zeros((3, 1))}, "a row for each number"),
        ({"duals": np.zeros((2, 1), np.float32)}, "must be float64"),
    ],
)
def test_duals_that_cannot_be_are_refused(state, message):
    with pytest.raises(ValueError, match=message):
        Duals.from_state({"numbers": np.array([1, 2]), "duals": np.zeros((2, 1)), **state})


def test_only_files_of_fits_are_forgotten(tmp_path):
    others = ["model-1.snap.bak", "notes.txt", "model-x.snap", "snapshot-1.snap", ".model-1.snap"]
    ours = ["model-1.snap", "window-12.snap", "job-12.json", "progress-12.json"]
    half = [".model-12.snap.34-0a1b2c3d.tmp", ".progress-12.json.34.tmp"]
    for name in [*others, *ours, *half, "model-2.snap", ".model-2.snap.3-ab.tmp"]:
        (tmp_path / name).write_text("x")
    (tmp_path / "window-3.snap").mkdir()  # cannot be removed: that is no harm
    forget_files(tmp_path, {2})
    assert files_in(tmp_path) == sorted([*others, "model-2.snap", ".model-2.snap.3-ab.tmp", "window-3.snap"])
    with pytest.raises(SnapshotError, match=r"model-1.snap: cannot read: No such file"):
        Refitter(tmp_path, CONFIG).load(1)
