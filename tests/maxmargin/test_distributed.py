"""Shards on workers of Dask, in real processes: the same model, whoever is killed, one line for errors."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from stream_hc import HM3
from stream_hc.maxmargin import distributed
from stream_hc.maxmargin.crew import Here, WorkersError
from stream_hc.maxmargin.distributed import dask_workers
from tests.maxmargin.test_hm3 import N_FEATURES, news
from tests.runtime.test_refitting import is_alive, until

pytestmark = pytest.mark.compiled
N_ROWS = 200


def fitted(workers, tol=1e-3, progress=None, **how):
    taxonomy, X, Y = news(N_ROWS)
    return HM3(taxonomy, n_features=N_FEATURES, tol=tol, **how).fit(X, Y, workers=workers, progress=progress)


def bits(model):
    return model.duals_.tobytes(), model.state()["weights"].tobytes()


def pids(workers):
    return list(workers.client.run(os.getpid).values())


@pytest.fixture(scope="module")
def two():
    with dask_workers(2) as workers:
        made = set(pids(workers))
        yield workers
        made |= set(pids(workers))
    until(lambda: not any(map(is_alive, made)))  # nobody is left behind


def test_processes_find_what_one_finds(two):
    model = fitted(two)
    assert bits(model) == bits(fitted(Here(2)))
    assert model.duality_gap_ <= 1e-3 * model.dual_objective_
    alone = fitted(None, tol=1e-5)
    assert model.dual_objective_ <= alone.dual_objective_ + alone.duality_gap_
    assert alone.dual_objective_ - model.dual_objective_ <= model.duality_gap_
    assert len(set(pids(two)) | {os.getpid()}) == 3
    assert all(address.startswith("tcp://127.0.0.1:") for address in two.client.nthreads())


def test_a_worker_killed_in_the_middle_changes_no_bit(two):
    expected, before = bits(fitted(Here(2), tol=1e-5)), two.n_built
    victims = []

    def kill(entry):
        if entry["epoch"] == 2:
            victims.append(pids(two)[0])
            os.kill(victims[0], signal.SIGKILL)

    assert bits(fitted(two, tol=1e-5, progress=kill)) == expected
    assert victims
    assert two.n_built > before + 2  # it was built again


def test_it_is_cancelled_from_another_thread(two):
    begun = threading.Event()

    def cancel():
        begun.wait(60)
        two.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        model = fitted(two, tol=1e-15, progress=lambda entry: begun.set(), max_seconds=60)
    finally:
        begun.set()
        thread.join()
        two._cancelled.clear()
    assert model.stopped_ == "callback"
    assert 0.0 <= model.duality_gap_ < np.inf


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def cluster():
    """A scheduler and two workers as somebody starts them in a shell: the address, and the processes."""
    address = f"tcp://127.0.0.1:{free_port()}"
    place = ["--host", "127.0.0.1", "--no-dashboard"]
    commands = [
        ["scheduler", *place, "--port", address.rpartition(":")[2]],
        *[["worker", address, *place, "--nthreads", "1", "--no-nanny", "--memory-limit", "0"]] * 2,
    ]
    # Sessions of their own: whatever they start is ended with them.
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        for command in commands
    ]
    yield address, processes
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_cluster_that_is_there_is_used_and_may_lose_workers(cluster, monkeypatch):
    address, processes = cluster
    with dask_workers(scheduler=address, n_shards=2) as workers:
        workers.client.wait_for_workers(2, timeout=60)

        def kill(entry):
            if entry["epoch"] == 2:
                processes[1].kill()

        assert bits(fitted(workers, progress=kill)) == bits(fitted(Here(2)))
        assert len(workers.client.nthreads()) == 1
        # And then there are none.
        monkeypatch.setattr(distributed, "JOIN_SECONDS", 0.5)
        processes[2].kill()
        until(lambda: not workers.client.nthreads())
        with pytest.raises(WorkersError, match=r"^the cluster has no workers: start some with dask worker"):
            fitted(workers)


def test_a_scheduler_that_is_lost_in_the_middle_is_one_line(cluster, monkeypatch):
    monkeypatch.setattr(distributed, "JOIN_SECONDS", 0.5)
    address, processes = cluster
    said = []

    def kill(entry):
        said.append(entry["epoch"])
        if entry["epoch"] == 2:
            processes[0].kill()
            processes[0].wait()

    with dask_workers(scheduler=address, n_shards=2) as workers:
        workers.client.wait_for_workers(2, timeout=60)
        with pytest.raises(WorkersError) as caught:
            fitted(workers, tol=1e-12, progress=kill, max_seconds=60)
    assert re.fullmatch(
        r"the scheduler of Dask is gone \(\w+\): start it again, or leave it out", str(caught.value)
    )
    assert said == [0, 1, 2]


def test_where_no_scheduler_is_one_line_says_so(monkeypatch):
    monkeypatch.setattr(distributed, "CONNECT_SECONDS", 0.5)
    address = f"tcp://127.0.0.1:{free_port()}"
    said = re.escape(f"no scheduler of Dask at {address}: start one with dask scheduler")
    with pytest.raises(WorkersError, match=said), dask_workers(scheduler=address):
        pass
    said = "no scheduler of Dask at nonsense://x"
    with pytest.raises(WorkersError, match=said), dask_workers(scheduler="nonsense://x"):
        pass


def test_what_makes_no_sense_is_refused():
    for how in ({}, {"n_workers": 2, "scheduler": "tcp://127.0.0.1:1"}):
        with pytest.raises(ValueError, match="give either n_workers or a scheduler"), dask_workers(**how):
            pass
    with pytest.raises(ValueError, match="n_workers"), dask_workers(0):
        pass


def test_without_dask_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(WorkersError, match=r"pip install 'stream_hc\[distributed\]'"), dask_workers(2):
        pass


def test_processes_end_with_the_one_that_began_them():
    script = (
        "import os, time\n"
        "from stream_hc.maxmargin.distributed import dask_workers\n"
        "if __name__ == '__main__':\n"
        "    with dask_workers(2) as workers:\n"
        "        print(*workers.client.run(os.getpid).values(), flush=True)\n"
        "        time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    with process:
        children = list(map(int, process.stdout.readline().split()))
        assert len(children) == 2
        time.sleep(0.1)
        process.kill()
    until(lambda: not any(map(is_alive, children)))
