"""Paths, failures while saving, and what a kill leaves behind."""

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream_hc.snapshot import (
    SnapshotError,
    atomic,
    dump_bytes,
    inspect,
    load,
    load_bytes,
    reading,
    save,
    verify,
)
from tests.snapshot.support import (
    Bag,
    assert_untouched,
)


def test_missing_files_and_special_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, problem in [
        ("missing", "No such file"),
        ("", "Is a directory"),
        ("fifo", "not a regular file"),
        ("/dev/zero", "not a regular file"),
    ]:
        for read in (load, inspect, verify):
            with pytest.raises(SnapshotError, match=problem) as caught:
                read(tmp_path / name)
            assert str(caught.value).startswith(str(tmp_path / name))
    with pytest.raises(SnapshotError) as caught:
        load(tmp_path / "missing")
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_path_with_a_nul() -> None:
    for call in (load, inspect, verify, lambda path: save(path, Bag(t=1))):
        with pytest.raises(SnapshotError, match="cannot hold a NUL"):
            call("model\0.snap")


def test_saving_to_impossible_places(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, problem in [
        ("", "not a regular file"),
        ("fifo", "not a regular file"),
        ("no/such/m", "No such file"),
    ]:
        with pytest.raises(SnapshotError, match=problem) as caught:
            save(tmp_path / name, Bag())
        assert str(caught.value).startswith(str(tmp_path / name))
    assert os.listdir(tmp_path) == ["fifo"]
    with pytest.raises(SnapshotError, match="not a regular file"):
        save("/dev/null", Bag())


def test_symbolic_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "latest").symlink_to(tmp_path / "real" / "m")
    for t in (1, 2):
        save(tmp_path / "latest", Bag(t=t))
        assert load(tmp_path / "latest").values == {"t": t}
    assert (tmp_path / "latest").is_symlink()
    assert os.listdir(tmp_path / "real") == ["m"]


def test_relative_names_and_text_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save("m", Bag(t=1))
    assert load("m").values == {"t": 1}


def test_permissions(tmp_path: Path) -> None:
    path = tmp_path / "m"
    mask = os.umask(0o027)
    try:
        save(path, Bag())
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        save(path, Bag(t=1))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(mask)


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    save(path, Bag(a=np.zeros(2**15)))

    def truncate(_: str) -> Any:
        os.truncate(path, 2**15)
        return Bag

    monkeypatch.setattr(reading, "class_of", truncate)
    with pytest.raises(SnapshotError, match="became shorter"):
        load(path)


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dump_bytes(Bag(a=np.zeros(3)))

    def empty(*_: Any, **__: Any) -> Any:
        raise MemoryError("no room")

    monkeypatch.setattr(np, "empty", empty)
    with pytest.raises(SnapshotError, match="array 'a' needs 24 bytes of memory"):
        load_bytes(data)


def no_space(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupt(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "place", ["os.fsync", "os.replace", "os.chmod", "stream_hc.snapshot.writing._write_array"]
)
def test_a_failure_leaves_the_old_file(place: str, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(place, no_space)
        with pytest.raises(SnapshotError, match=r"model\.snap: cannot write: No space left") as caught:
            save(old, Bag(a=np.zeros(1000)))
        assert isinstance(caught.value.__cause__, OSError)
    assert_untouched(old)
    with monkeypatch.context() as patch:
        patch.setattr(place, interrupt)
        with pytest.raises(KeyboardInterrupt):
            save(old, Bag(a=np.zeros(1000)))
    assert_untouched(old)


def test_a_folder_that_cannot_be_synced_is_reported(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "sync_path", no_space)
    with pytest.raises(SnapshotError, match="its folder could not be synced: No space left"):
        save(old, Bag(t=2))
    assert load(old).values == {"t": 2}


def test_file_and_folder_reach_the_disk_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, os.replace

    def spy_fsync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def spy_replace(source: str, target: str) -> None:
        steps.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(os, "replace", spy_replace)
    save(tmp_path / "m", Bag())
    assert steps == ["file", "rename", "folder"]


KILLED = """
import os, signal, sys
import numpy as np
from stream_hc.snapshot import register, save, writing

@register
class Bag:
    def state(self):
        return {"a": np.zeros(10**6), "b": np.zeros(3)}
    @classmethod
    def from_state(cls, state):
        return cls()

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

real = writing._write_array
if sys.argv[2] == "write":
    writing._write_array = lambda stream, a: die() if a.size == 3 else real(stream, a)
else:
    setattr(os, sys.argv[2], die)
save(sys.argv[1], Bag())
"""


@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
def test_kill_leaves_the_old_file_and_the_next_save_cleans_up(moment: str, old: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(old), moment],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.wait(timeout=60) == -signal.SIGKILL
    assert load(old).values == {"t": 1}
    litter = [name for name in os.listdir(old.parent) if name != old.name]
    assert len(litter) == 1
    assert litter[0].startswith(f".model.snap.{child.pid}-")
    save(old, Bag(t=1))
    assert_untouched(old)


def test_only_abandoned_temporaries_of_the_same_file_are_removed(old: Path) -> None:
    folder = old.parent
    names = {
        "alive": ".model.snap.1-0123abcd.tmp",
        "dead": ".model.snap.999-0123abcd.tmp",
        "other": ".other.snap.999-0123abcd.tmp",
        "unlike": ".model.snap.999.tmp",
        "dots": ".modelxsnap.999-0123abcd.tmp",
    }
    for name in names.values():
        (folder / name).touch()
    (folder / ".model.snap.5-0123abcd.tmp").symlink_to(old)
    with (folder / names["alive"]).open("wb") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        save(old, Bag(t=1))
    assert load(old).values == {"t": 1}
    left = set(os.listdir(folder)) - {old.name, ".model.snap.5-0123abcd.tmp"}
    assert left == set(names.values()) - {names["dead"]}


def test_a_temporary_that_was_taken_for_abandoned_is_made_again(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock
    removed: list[str] = []

    def slow_flock(descriptor: int, operation: int) -> None:
        if not removed:
            removed.extend(name for name in os.listdir(old.parent) if name != old.name)
            (old.parent / removed[0]).unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", slow_flock)
    save(old, Bag(t=2))
    assert removed
    assert load(old).values == {"t": 2}
    assert os.listdir(old.parent) == [old.name]


def test_many_writers_and_readers_of_one_path(old: Path) -> None:
    def work(number: int) -> None:
        for _ in range(5):
            save(old, Bag(t=number, a=np.full(1000, number)))
            found = load(old).values
            assert (found["a"] == found["t"]).all()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, number) for number in range(4)]:
            done.result()
    assert os.listdir(old.parent) == [old.name]
