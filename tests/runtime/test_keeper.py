"""Snapshots in the background: the state of one moment, whatever happens to child, disk or files."""

import errno
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pytest

from stream_hc.runtime.disk import Failed, Keeper, KeeperLocked, Loaded, Saved, child, lock
from stream_hc.snapshot import SnapshotError, load, register
from stream_hc.snapshot import save as save_file
from tests.conftest import ROOT


@register
class Kept:
    """An array, and something to do before it is handed out."""

    def __init__(self, values: npt.NDArray[np.int64], before: Callable[[], object] = lambda: None) -> None:
        self.values = values
        self.before = before

    def state(self) -> dict[str, Any]:
        self.before()
        return {"values": self.values.copy()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        return cls(**state)


def kept(value: int, before: Callable[[], object] = lambda: None) -> dict[str, Kept]:
    return {"kept": Kept(np.full(1000, value), before)}


def outcome(keeper: Keeper) -> Saved | Failed:
    until = time.monotonic() + 20
    while (result := keeper.poll()) is None:
        assert time.monotonic() < until
        time.sleep(0.005)
    return result


def value(keeper: Keeper) -> int:
    loaded = keeper.load_newest()
    assert loaded is not None
    (found,) = set(loaded.parts["kept"].values.tolist())
    return int(found)


@contextmanager
def gate() -> Iterator[tuple[Callable[[], object], Callable[[], object]]]:
    """Two functions: one waits, in the child, until the other is called."""
    with TemporaryDirectory() as folder:
        closed = Path(folder) / "closed"
        closed.touch()

        def wait() -> None:
            while closed.exists():
                time.sleep(0.005)

        yield wait, closed.unlink


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    with Keeper(tmp_path / "state", 3) as opened:
        yield opened


class TestSaving:
    def test_here_and_again(self, keeper: Keeper) -> None:
        assert keeper.load_newest() is None
        assert keeper.save(kept(1), {"position": '{"offset": 12}', "records": 7}) == 1
        loaded = keeper.load_newest()
        assert isinstance(loaded, Loaded)
        assert (loaded.number, loaded.skipped) == (1, [])
        assert loaded.extra == {"position": '{"offset": 12}', "records": 7}
        assert loaded.parts["kept"].values.tolist() == [1] * 1000
        assert os.path.basename(keeper.path(1)) == "snapshot-00000001.snap"

    def test_the_state_is_that_of_the_fork(self, keeper: Keeper) -> None:
        parts = kept(0)
        with gate() as (wait, go_on):
            parts["kept"].before = wait
            for value_then in range(5):
                parts["kept"].values[:] = value_then
            keeper.save_in_background(lambda: parts, {"records": value_then})
            assert keeper.busy
            for later in range(5, 50):
                parts["kept"].values[:] = later
                assert keeper.poll() is None
            go_on()
            result = outcome(keeper)
        assert isinstance(result, Saved)
        assert (result.number, result.path) == (1, keeper.path(1))
        assert result.seconds > 0
        assert value(keeper) == 4
        assert not keeper.busy
        assert keeper.poll() is None

    def test_only_one_at_a_time(self, keeper: Keeper) -> None:
        with gate() as (wait, go_on):
            keeper.save_in_background(lambda: kept(1, wait), {})
            with pytest.raises(SnapshotError, match="snapshot 1 is not done: poll until it is"):
                keeper.save_in_background(lambda: kept(2), {})
            go_on()
            assert keeper.save(kept(2), {}) == 2  # after the other
        assert isinstance(keeper.poll(), Saved)
        assert keeper.numbers() == [1, 2]
        assert value(keeper) == 2

    def test_only_the_last_ones_stay(self, keeper: Keeper) -> None:
        for number in range(1, 6):
            keeper.save(kept(number), {})
            assert keeper.numbers() == list(range(max(number - 2, 1), number + 1))
        keeper.save_in_background(lambda: kept(6), {})
        assert isinstance(outcome(keeper), Saved)
        assert keeper.numbers() == [4, 5, 6]
        keeper.close()
        with Keeper(keeper.folder, 1) as again:
            assert again.numbers() == [4, 5, 6]  # until a newer one is complete
            assert again.save(kept(7), {}) == 7
            assert again.numbers() == [7]
        with pytest.raises(ValueError, match="keep must be positive"):
            Keeper(keeper.folder, 0)

    def test_without_a_fork_it_is_saved_here(self, keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> None:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")

        for number, name in enumerate(["fork", "pipe"], 1):
            with monkeypatch.context() as patched:
                patched.setattr(os, name, fail)
                keeper.save_in_background(lambda: kept(5), {})
            assert keeper.busy
            assert keeper.poll() == (number, keeper.path(number), pytest.approx(0, abs=20))
            assert value(keeper) == 5
        monkeypatch.setattr(os, "fork", fail)
        keeper.save_in_background(lambda: kept(5, lambda: 1 // 0), {})
        result = keeper.poll()
        assert isinstance(result, Failed)
        assert "ZeroDivisionError" in result.problem

    def test_handlers_and_buffers_of_the_parent_stay_its_own(self, tmp_path: Path) -> None:
        code = f"""
import atexit, os, signal, sys, threading, time
sys.path.insert(0, {str(ROOT)!r})
from stream_hc.runtime.disk import Keeper
from tests.runtime.test_keeper import kept, outcome
atexit.register(print, "at exit")
out, into = os.pipe()
os.set_blocking(into, False)
signal.set_wakeup_fd(into)
signal.signal(signal.SIGTERM, lambda *_: print("handled"))
threading.Thread(target=time.sleep, args=[0.5]).start()
print("buffered", end=" ")
with Keeper({str(tmp_path)!r}, 1) as keeper:
    def before():
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
        assert len(os.listdir("/dev/fd")) <= 7, os.listdir("/dev/fd")
        print("never seen")
    files = [open("/dev/null") for _ in range(20)]
    keeper.save_in_background(lambda: kept(1, before), {{}})
    print(type(outcome(keeper)).__name__)
    keeper.save_in_background(lambda: kept(2, lambda: os.kill(os.getpid(), signal.SIGTERM)), {{}})
    print(outcome(keeper).problem)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
        assert done.stderr == ""
        assert done.stdout.splitlines() == [
            "buffered Saved",
            "its process was killed by signal 15: is there enough memory?",
            "at exit",
        ]


class TestFailing:
    def test_an_error_in_the_child_comes_through(self, keeper: Keeper) -> None:
        keeper.save(kept(1), {})
        for problem in ("too\nbad", "ü" * 10**6):
            keeper.save_in_background(lambda text=problem: kept(2, lambda: int(text)), {})
            result = outcome(keeper)
            assert isinstance(result, Failed)
            assert result.problem.startswith("ValueError: invalid literal for int() with base 10: ")
            assert len(result.problem.encode()) <= child.MAX_PROBLEM + 3
            assert "\n" not in result.problem
        keeper.save_in_background(lambda: {"kept": object()}, {})  # type: ignore[dict-item,return-value]
        result = outcome(keeper)
        assert isinstance(result, Failed)
        assert "class 'object' is not registered" in result.problem
        assert value(keeper) == 1
        keeper.save_in_background(lambda: kept(5), {})
        assert outcome(keeper)[:2] == (5, keeper.path(5))
        assert value(keeper) == 5

    def test_kill_9_leaves_the_one_before(self, keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
        keeper.save(kept(1), {})
        # Killed before it writes, and with the whole temporary file written.
        keeper.save_in_background(lambda: kept(2, lambda: os.kill(os.getpid(), signal.SIGKILL)), {})
        first = outcome(keeper)
        monkeypatch.setattr(os, "replace", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        keeper.save_in_background(lambda: kept(3), {})
        for result in (first, outcome(keeper)):
            assert isinstance(result, Failed)
            assert "killed by signal 9" in result.problem
        assert sorted(os.listdir(keeper.folder)) == ["lock", "snapshot-00000001.snap"]
        assert value(keeper) == 1

    def test_one_that_takes_too_long_is_killed(self, tmp_path: Path) -> None:
        with Keeper(tmp_path, 1, limit=0.05) as keeper, gate() as (wait, _):
            keeper.save_in_background(lambda: kept(1, wait), {})
            began = time.monotonic()
            result = keeper.wait()
            assert isinstance(result, Failed)
            assert result.problem == "took longer than 0.05 seconds and was killed"
            assert time.monotonic() - began < 10
            assert keeper.numbers() == []

    def test_a_full_disk(self, keeper: Keeper) -> None:
        keeper.save(kept(1), {})

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

        keeper.save_in_background(lambda: kept(2, limit), {})
        result = outcome(keeper)
        assert isinstance(result, Failed)
        assert "snapshot-00000002.snap: cannot write: File too large" in result.problem
        assert sorted(os.listdir(keeper.folder)) == ["lock", "snapshot-00000001.snap"]
        keeper.save_in_background(lambda: kept(3), {})
        assert isinstance(outcome(keeper), Saved)
        assert value(keeper) == 3

    @pytest.mark.parametrize("works", [True, False])
    def test_a_status_that_somebody_else_took(self, keeper: Keeper, works: bool) -> None:
        keeper.save_in_background(lambda: kept(1, lambda: works or 1 // 0), {})
        assert keeper._child is not None
        os.waitpid(keeper._child.pid, 0)
        result = keeper.poll()
        assert isinstance(result, Saved if works else Failed)
        assert keeper.numbers() == [1] * works

    def test_closing_gives_up(self, tmp_path: Path) -> None:
        keeper = Keeper(tmp_path, 1)
        with gate() as (wait, _):
            keeper.save_in_background(lambda: kept(1, wait), {})
            child = keeper._child
            keeper.close()
        assert child is not None
        with pytest.raises(ProcessLookupError):
            os.kill(child.pid, 0)
        keeper.close()
        with Keeper(tmp_path, 1) as again:
            assert again.load_newest() is None


class TestLoading:
    def test_a_damaged_one_falls_back(self, keeper: Keeper) -> None:
        draw = random.Random(7)
        for number in (1, 2):
            keeper.save(kept(number), {})
        sound = Path(keeper.path(2)).read_bytes()
        for turn in range(60):
            place = draw.randrange(len(sound))
            damaged = bytearray(sound)
            damaged[place] ^= 1 << draw.randrange(8)
            Path(keeper.path(2)).write_bytes(damaged if turn % 2 else sound[:place])
            loaded = keeper.load_newest()
            assert loaded is not None
            assert loaded.number == 1
            assert set(loaded.parts["kept"].values.tolist()) == {1}
            ((path, why),) = loaded.skipped
            assert path == keeper.path(2)
            assert why.startswith(f"{path}: ")
        # The damaged one does not count among those that stay.
        for number in (3, 4):
            assert keeper.save(kept(number), {}) == number
            assert keeper.numbers() == list(range(1, number + 1))[:1] + list(range(3, number + 1))
        keeper.save(kept(5), {})
        assert keeper.numbers() == [3, 4, 5]

    def test_none_that_is_sound(self, keeper: Keeper) -> None:
        save_file(keeper.path(1), Kept(np.zeros(3, np.int64)))
        Path(keeper.path(2)).write_bytes(b"nothing")
        with pytest.raises(
            SnapshotError, match=r"none of 2 snapshots .*2.snap: .*: put one back from a backup"
        ):
            keeper.load_newest()
        Path(keeper.path(2)).unlink()
        with pytest.raises(SnapshotError, match="one model, not the state of a job"):
            keeper.load_newest()

    def test_what_killed_children_left_is_removed(self, tmp_path: Path) -> None:
        for name in (".snapshot-00000004.snap.17-0123abcd.tmp", "other.tmp", "snapshot-00000004.snap.bak"):
            (tmp_path / name).touch()
        with Keeper(tmp_path, 1) as keeper:
            assert sorted(os.listdir(tmp_path)) == ["lock", "other.tmp", "snapshot-00000004.snap.bak"]
            assert keeper.numbers() == []

    def test_a_folder_that_cannot_be_used(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(SnapshotError, match="file/state: cannot use the folder: Not a directory"):
            Keeper(tmp_path / "file" / "state", 1)


HOLDER = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
from stream_hc.runtime.disk import Keeper
from tests.runtime.test_keeper import kept
keeper = Keeper(sys.argv[2], 1)
keeper.save_in_background(lambda: kept(1, lambda: time.sleep(60)), {})
print(keeper._child.pid, flush=True)
time.sleep(60)
"""


class TestLock:
    def test_two_jobs_never_share_a_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lock, "PATIENCE", 0.05)
        with Keeper(tmp_path, 1):
            pid = os.getpid()
            assert (tmp_path / "lock").read_text() == f"{pid}\n"
            with pytest.raises(
                KeeperLocked, match=f"in use by the job with process id {pid}: stop it"
            ) as caught:
                Keeper(tmp_path, 1)
            assert caught.value.pid == pid
            (tmp_path / "lock").write_text("?")
            with pytest.raises(KeeperLocked, match="in use by another job"):
                Keeper(tmp_path, 1)
        with Keeper(tmp_path, 1):
            assert (tmp_path / "lock").read_text() == f"{pid}\n"

    def test_a_killed_job_takes_its_child_along(self, tmp_path: Path) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(ROOT), str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT
        ) as job:
            assert job.stdout is not None
            child = int(job.stdout.readline())
            os.kill(child, 0)
            job.kill()
            job.wait()
            with Keeper(tmp_path, 1) as keeper:  # waits for the child, which held the lock, too
                assert keeper.load_newest() is None
                assert not _runs(child)

    def test_it_waits_a_moment(self, tmp_path: Path) -> None:
        first = Keeper(tmp_path, 1)
        threading.Timer(0.05, first.close).start()
        with Keeper(tmp_path, 1) as second:
            assert second.numbers() == []


def _runs(pid: int) -> bool:
    """Whether the process still does anything: a zombie that nobody has asked for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.compiled
def test_the_stream_hardly_waits(tmp_path: Path) -> None:
    parts = {"kept": Kept(np.arange(100 * 2**20 // 8))}
    with Keeper(tmp_path, 1) as keeper:
        pauses = []
        for _ in range(3):
            began = time.perf_counter()
            keeper.save_in_background(lambda: parts, {})
            pauses.append(time.perf_counter() - began)
            assert isinstance(outcome(keeper), Saved)
        assert min(pauses) < 0.05
        assert load(keeper.path(3))["kept"].values[-1] == 100 * 2**20 // 8 - 1
