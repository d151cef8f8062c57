"""A job that dies at any step goes on as if nothing had happened: no line is lost, none comes twice."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream_hc.runtime.disk import Journal
from stream_hc.runtime.job import Job
from stream_hc.runtime.refit import Refitter
from tests.runtime.crashing import (
    STEPS,
    Points,
    SteppedJob,
    configured,
    results,
    run_with_crashes,
    running,
    write_stream,
)

ROOT = Path(__file__).resolve().parents[2]
ASKED = {20: "h-rls", 150: "node-pa"}  # after so many records somebody asks for that model


class Scene:
    """A stream and what comes of it when nothing happens."""

    def __init__(self, folder: Path, split: bool) -> None:
        self.folder = folder
        self.taxonomy = write_stream(folder, split=split)
        self.split = split
        self.points = Points()
        job = self.begin()
        with running(), self.points.installed():
            job.run()
        self.happened = job.processor.progress.happened
        self.calm = results(folder)

    def begin(self) -> SteppedJob:
        """Return a job that begins anew, whatever was there before."""
        shutil.rmtree(self.folder / "state", ignore_errors=True)
        self.asked = dict(ASKED)
        return self.go_on()

    def go_on(self) -> SteppedJob:
        config = configured(self.folder)
        if self.split:
            stream = msgspec.structs.replace(config.stream, labels=str(self.folder / "labels.jsonl"))
            config = msgspec.structs.replace(config, stream=stream)
        return SteppedJob(config, self.taxonomy, asked=self.asked)

    def crash(self, crashes: Sequence[int | tuple[str, int]]) -> list[str]:
        """Run through crashes and compare; return where they were."""
        self.begin()
        job, died = run_with_crashes(self.go_on, crashes)
        found = results(self.folder)
        different = [name for name, data in self.calm.items() if found[name] != data]
        assert not different, f"{different} after the crashes {died} at {crashes}"
        assert set(job.counts) <= {"snapshots", "refits_done"}, f"{job.counts} after {died}"
        assert not list((self.folder / "state" / "commands").iterdir())
        return died


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return Scene(tmp_path_factory.mktemp("crashes"), split=False)


@pytest.fixture(scope="module")
def split_scene(tmp_path_factory):
    return Scene(tmp_path_factory.mktemp("split"), split=True)


def test_a_calm_run_comes_by_every_step(scene):
    assert scene.points.count > 800
    steps = {f"{kind.__name__}.{name}" for kind, name in STEPS} | {"ftruncate", "fsync", "replace", "unlink"}
    assert steps <= {name.split()[-1] for name in scene.points.names}
    assert {"promoted", "refit", "candidate", "swap", "dropped"} <= scene.happened.keys()
    assert all(scene.calm.values())


@pytest.mark.compiled
def test_one_crash(scene):
    died = scene.crash([scene.points.count // 2])
    assert len(died) == 1


@pytest.mark.compiled
def test_a_crash_right_after_the_start_and_during_the_restart(scene):
    died = scene.crash([700, 5, 3, 20, 1, 40, 2])
    assert len(died) == 7


@pytest.mark.compiled
def test_a_crash_at_every_step(scene):
    """One after the other in any order; a run that does not come by the next one ends, and another begins."""
    draw = random.Random(1)
    left = sorted(scene.points.names)
    while left:
        draw.shuffle(left)
        died = scene.crash([(name, draw.randint(1, min(3, scene.points.names[name]))) for name in left])
        assert died
        left = [name for name in left if name not in died]


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(7))
def test_many_crashes(scene, seed):
    """Each time more than twenty points, drawn anew after the one before: together more than 200."""
    draw = random.Random(seed)
    died = scene.crash([draw.randint(1, 120) for _ in range(26)])
    assert len(died) > 22


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(2))
def test_many_crashes_with_labels_in_a_file_of_their_own(split_scene, seed):
    draw = random.Random(100 + seed)
    died = split_scene.crash([draw.randint(1, 120) for _ in range(26)])
    assert len(died) > 22


class LiveScene:
    """Fits that end whenever they like, and all that was decided and fitted since the beginning."""

    def __init__(self, folder: Path, seed: int, **state: Any) -> None:
        self.folder, self.draw = folder, random.Random(seed)
        self.taxonomy = write_stream(folder)
        self.asked = dict(ASKED)
        config = configured(folder)
        refit = msgspec.structs.replace(config.refit, in_step=False)
        self.config = msgspec.structs.replace(
            config, refit=refit, state=msgspec.structs.replace(config.state, **state)
        )

        self.is_over = False

    def patience(self) -> int:
        return 10**9 if self.is_over else self.draw.randint(0, 4)

    def run(self, n_crashes: int = 0) -> tuple[Job, list[str]]:
        """Run to the end; then a fit that is under way does not end any more."""
        crashes = [self.draw.randint(1, 150) for _ in range(n_crashes)]
        done = run_with_crashes(
            lambda: SteppedJob(self.config, self.taxonomy, self.asked), crashes, self.patience
        )
        self.is_over = True
        return done


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(3))
def test_the_journal_brings_a_model_at_the_same_document(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(Journal, "trim", lambda *_: None)
    monkeypatch.setattr(Refitter, "forget", lambda *_: None)
    scene = LiveScene(tmp_path / "job", seed, every=None if seed else 37)
    _, died = scene.run(n_crashes=6)
    assert died
    found = results(scene.folder)
    (scene.folder / "state").rename(tmp_path / "state")
    (scene.folder / "state").mkdir()
    shutil.copy(tmp_path / "state" / "journal.jsonl", scene.folder / "state")
    shutil.copytree(tmp_path / "state" / "fits", scene.folder / "state" / "fits")
    job, _ = scene.run()  # no snapshot: it follows the journal from the beginning
    assert job.processor.progress.happened["candidate"] >= 1
    assert "journal_gaps" not in job.counts
    assert results(scene.folder) == found


@pytest.mark.compiled
@pytest.mark.parametrize("in_step", [True, False])
def test_an_older_snapshot_does_as_well(tmp_path, in_step):
    """Whatever is forgotten on the way, each snapshot that is kept leads to the same end."""
    scene = LiveScene(tmp_path / "job", seed=9, keep=6)
    refit = msgspec.structs.replace(scene.config.refit, in_step=in_step)
    # Without a judge the fits come one after the other.
    judge = msgspec.structs.replace(scene.config.judge, enabled=in_step)
    scene.config = msgspec.structs.replace(scene.config, refit=refit, judge=judge)
    scene.run(n_crashes=6)
    found = results(scene.folder)
    newest = sorted((scene.folder / "state").glob("snapshot-*.snap"))
    kept = tmp_path / "kept"
    shutil.copytree(scene.folder, kept)
    for n_damaged in range(1, len(newest)):
        shutil.rmtree(scene.folder)
        shutil.copytree(kept, scene.folder)
        for path in newest[-n_damaged:]:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
        job, _ = scene.run()
        assert job.counts["snapshots_damaged"] == n_damaged
        assert not {"journal_gaps", "models_lost"} & job.counts.keys()
        assert results(scene.folder) == found
    assert len(newest) == 6
    assert len(found["state/log.jsonl"]) > 1000


class Killed:
    """A job in a process of its own."""

    def __init__(self, folder: Path) -> None:
        code = "import sys; from pathlib import Path; from tests.runtime.crashing import serve; "
        self.server = subprocess.Popen(
            [sys.executable, "-c", code + "serve(Path(sys.argv[1]))", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )
        self.folder = folder

    def run(self, is_enough: Callable[[], bool] | None = None) -> int:
        """Run to the end, or kill it when it has gone far enough; return its status."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write("go\n")
        self.server.stdin.flush()
        process = int(self.server.stdout.readline())
        if is_enough is not None:
            while not is_enough():
                time.sleep(0.0005)
            os.kill(process, signal.SIGKILL)
        return int(self.server.stdout.readline())

    def n_written(self) -> int:
        path = self.folder / "output.jsonl"
        return path.stat().st_size if path.exists() else 0

    def is_fitting(self) -> bool:
        return (self.folder / "state" / "fits" / "window-1.snap").exists()

    def is_saving(self) -> bool:
        return any(self.folder.glob("state/.snapshot-*.tmp"))


@pytest.mark.compiled
def test_a_process_that_is_killed(tmp_path):
    folder = tmp_path / "job"
    write_stream(folder, 400)
    job = Killed(folder)
    with job.server:
        assert job.run() == 0
        calm, total = results(folder), job.n_written()
        shutil.rmtree(folder / "state")
        (folder / "output.jsonl").unlink()
        draw = random.Random(4)
        targets = sorted(draw.randrange(total // 100, total * 9 // 10) for _ in range(12))
        statuses = [job.run(lambda target=target: job.n_written() >= target) for target in targets[:3]]
        statuses += [job.run(job.is_fitting), job.run(job.is_saving)]
        statuses += [job.run(lambda target=target: job.n_written() >= target) for target in targets[3:]]
        statuses += [job.run(job.is_saving)]
        assert statuses == [signal.SIGKILL] * 15
        assert job.run() == 0
        job.server.communicate()
    assert results(folder) == calm
    assert b'"candidate"' in calm["state/log.jsonl"]
