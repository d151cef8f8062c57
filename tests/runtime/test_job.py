"""A job and the world around it: a full disk, a damaged snapshot, requests, other jobs, bad clocks."""

import errno
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream_hc.runtime import job as job_module
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import Config, LabelsConfig, ModelConfig, StateConfig, StreamConfig
from stream_hc.runtime.disk import (
    Batch,
    Journal,
    JournalError,
    Keeper,
    KeeperLocked,
    Place,
    RefitDone,
    StateFolder,
    Tick,
    commands,
)
from stream_hc.runtime.job import Job
from stream_hc.runtime.records import MAX_LINE_BYTES
from stream_hc.runtime.watcher import Watcher
from stream_hc.snapshot import SnapshotError
from stream_hc.taxonomy import Taxonomy
from tests.runtime.crashing import (
    SteppedJob,
    configured,
    results,
    run_with_crashes,
    running,
    write_stream,
)
from tests.runtime.streams import poison

TREE = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])


class Listener(Watcher):
    """Writes down what it is told, and takes its time for each batch."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.notes: list[str] = []
        self.seconds = seconds

    def processed(self, job, done):
        time.sleep(self.seconds)

    def note(self, text):
        self.notes.append(text)


class Stop:
    """A signal that comes when somebody says so."""

    def __init__(self) -> None:
        self.requested = False
        self.descriptor = None


def simple(folder: Path, **stream: Any) -> Config:
    """Return a job with one quick learner and a state folder."""
    given = {"documents": folder / "documents.jsonl", "output": folder / "output.jsonl"} | stream
    paths = {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}
    return Config(
        stream=StreamConfig(**paths),
        model=ModelConfig(learners=["h-perceptron", "node-pa"], n_features=64),
        state=StateConfig(folder=str(folder / "state"), seconds=None),
    )


def changed(config: Config, table: str, **values: Any) -> Config:
    tables = {table: msgspec.structs.replace(getattr(config, table), **values)}
    return msgspec.structs.replace(config, **tables)


def job_of(config: Config, **named: Any) -> SteppedJob:
    return SteppedJob(config, TREE, **named)


def write(path: Path, records: list, mode: str = "ab") -> None:
    with path.open(mode) as file:
        for record in records:
            file.write((record if isinstance(record, bytes) else json.dumps(record).encode()) + b"\n")


def documents(first: int, last: int) -> list[dict]:
    texts = ["a serve and an ace", "a vote in parliament"]
    return [{"id": f"d{k}", "text": texts[k % 2]} for k in range(first, last)]


def labels(first: int, last: int) -> list[dict]:
    return [{"id": f"d{k}", "labels": [["tennis"], ["politics"]][k % 2]} for k in range(first, last)]


def answered(folder: Path) -> list[str]:
    return [json.loads(line)["id"] for line in (folder / "output.jsonl").read_bytes().splitlines()]


# A disk that is full


@pytest.mark.compiled
def test_a_full_disk_stops_no_stream(tmp_path, monkeypatch):
    taxonomy = write_stream(tmp_path / "job")
    config = changed(configured(tmp_path / "job"), "refit", enabled=False)
    with running():
        SteppedJob(config, taxonomy).run()
    calm = results(tmp_path / "job")
    for path in (tmp_path / "job" / "state").iterdir():
        path.rmdir() if path.is_dir() else path.unlink()
    monkeypatch.setattr(job_module, "LOOK_AROUND", 0.0)
    parent, listener = os.getpid(), Listener(0.01)
    job = SteppedJob(config, taxonomy, watcher=listener)

    def fsync(descriptor: int) -> None:
        if os.getpid() != parent and job._taken < 120:  # in the process that writes the snapshot
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    job.run()
    assert job.counts["snapshot_failures"] >= 1
    assert job.counts["snapshots"] >= 2
    assert len(listener.notes) == job.counts["snapshot_failures"]
    assert all("No space left on device: the stream goes on" in note for note in listener.notes)
    assert results(tmp_path / "job") == calm
    assert not list((tmp_path / "job" / "state").glob(".*.tmp"))


@pytest.mark.compiled
@pytest.mark.parametrize("crashes", [[], [350], [600]])
def test_a_journal_that_cannot_be_written_stops_no_stream(tmp_path, monkeypatch, crashes):
    taxonomy = write_stream(tmp_path / "job")
    config = configured(tmp_path / "job")
    with running():
        SteppedJob(config, taxonomy).run()
    calm = results(tmp_path / "job")
    for path in [*(tmp_path / "job" / "state").rglob("*")][::-1]:
        path.rmdir() if path.is_dir() else path.unlink()
    append, listener = Journal.append, Listener()

    def failing(journal: Journal, entry: Any, sync: bool = False) -> int:
        if 40 <= entry.at < 60:
            raise JournalError("journal.jsonl: cannot write: No space left on device")
        return append(journal, entry, sync)

    monkeypatch.setattr(Journal, "append", failing)
    failures = []

    def make() -> Job:
        failures.append(SteppedJob(config, taxonomy, watcher=listener))
        return failures[-1]

    run_with_crashes(make, crashes)
    assert len(failures) == len(crashes) + 1
    assert sum(job.counts["journal_failures"] for job in failures) == 1
    assert [note for note in listener.notes if "until the next snapshot a crash may repeat decisions" in note]
    assert not any(job.counts["journal_gaps"] for job in failures)
    assert results(tmp_path / "job") == calm


def test_the_journal_begins_anew_with_the_snapshot_not_when_that_is_done(tmp_path, monkeypatch):
    write(tmp_path / "documents.jsonl", documents(0, 1))
    config = simple(tmp_path)
    with StateFolder(config.state) as state:
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "append", lambda *_: (_ for _ in ()).throw(JournalError("full")))
            assert state.write(Tick(0, 1.0)) == "full"
            assert state.write(Tick(0, 2.0)) is None  # said once
        assert state.is_broken
        processor = build_processor(config, TREE)
        state.save_in_background(processor.parts, Place(), [])
        assert state.write(Batch(0, "documents", 7)) is None
        assert [entry for _, entry in state.journal.after(0)] == [Batch(0, "documents", 7)]
        assert state.wait() is not None


def test_the_folder_knows_what_an_older_snapshot_needs(tmp_path):
    config = simple(tmp_path)
    parts = build_processor(config, TREE).parts()
    with StateFolder(config.state) as state:
        for number in (1, 2, 3):
            state.write(RefitDone(0, number))
            state.save(parts, Place(journal=number, fitted=number), [])
        assert state.warm_fits == {1, 2, 3}
    with StateFolder(config.state) as state:
        assert (state.oldest_entry, state.fits_done()) == (1, [(2, 2), (3, 3)])
        assert state.warm_fits == {1, 2, 3}


# Going on


def test_what_is_left_of_a_file_that_lost_its_end_is_processed(tmp_path):
    path = tmp_path / "documents.jsonl"
    write(path, documents(0, 40))
    listener = Listener()
    made: list[Job] = []

    def make() -> Job:
        made.append(job_of(simple(tmp_path), watcher=listener))
        if len(made) == 2:
            path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:15]))
        return made[-1]

    _, died = run_with_crashes(make, [70])
    assert died
    assert answered(tmp_path) == [f"d{k}" for k in range(15)]
    assert made[1].counts["journal_gaps"] == 1
    assert "lines of documents cannot be read again: going on without" in listener.notes[0]


def test_a_damaged_snapshot_is_passed_over_and_said(tmp_path):
    write(tmp_path / "documents.jsonl", documents(0, 30))
    job_of(changed(simple(tmp_path), "state", every=10)).run()
    calm = (tmp_path / "output.jsonl").read_bytes()
    newest = max((tmp_path / "state").glob("snapshot-*.snap"))
    newest.write_bytes(newest.read_bytes()[:-1])
    listener = Listener()
    again = job_of(simple(tmp_path), watcher=listener)
    again.run()
    assert again.counts["snapshots_damaged"] == 1
    assert listener.notes[0].startswith(f"going on from an earlier snapshot than {newest}: ")
    assert (tmp_path / "output.jsonl").read_bytes() == calm


def test_a_job_keeps_others_out_of_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("stream_hc.runtime.disk.lock.PATIENCE", 0.0)
    write(tmp_path / "documents.jsonl", documents(0, 3))
    with Keeper(tmp_path / "state", keep=1), pytest.raises(KeeperLocked, match=f"process id {os.getpid()}"):
        job_of(simple(tmp_path)).run()
    assert not (tmp_path / "output.jsonl").exists()
    job_of(simple(tmp_path)).run()
    assert answered(tmp_path) == ["d0", "d1", "d2"]


def test_a_limit_is_a_place_to_go_on_from(tmp_path):
    write(tmp_path / "documents.jsonl", documents(0, 50))
    for limit in (7, 30, 30, 12, 41, None):
        job_of(simple(tmp_path, limit=limit)).run()
        n_answered = len(answered(tmp_path))
        assert n_answered == {7: 7, 30: 30, 12: 30, 41: 41, None: 50}[limit]
    assert answered(tmp_path) == [f"d{k}" for k in range(50)]


def test_a_stop_ends_after_the_batch_and_saves(tmp_path):
    write(tmp_path / "documents.jsonl", documents(0, 50))
    stop = Stop()

    class Stopping(Watcher):
        def processed(self, job, done):
            stop.requested = bool(done.source)  # the first thing is the time

    job = job_of(simple(tmp_path), stop=stop, watcher=Stopping())
    job.run()
    assert answered(tmp_path) == [f"d{k}" for k in range(22)]  # the batch under way, and the one after it
    assert job.counts["snapshots"] == 1
    job_of(simple(tmp_path)).run()
    assert answered(tmp_path) == [f"d{k}" for k in range(50)]


def test_a_stop_before_the_beginning(tmp_path):
    write(tmp_path / "documents.jsonl", documents(0, 5))
    stop = Stop()
    stop.requested = True
    job_of(simple(tmp_path), stop=stop).run()
    assert answered(tmp_path) == []


def test_labels_in_a_second_file_and_both_are_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(job_module, "LOOK_AROUND", 0.01)
    stop = Stop()
    config = simple(tmp_path, labels=tmp_path / "labels.jsonl", follow=True)
    job = job_of(config, stop=stop)
    thread = threading.Thread(target=job.run)
    thread.start()

    def until(done) -> None:
        end = time.monotonic() + 20
        while not done() and time.monotonic() < end:
            time.sleep(0.01)
        assert done()

    try:
        write(tmp_path / "documents.jsonl", documents(0, 20))
        until(lambda: (tmp_path / "output.jsonl").exists() and len(answered(tmp_path)) == 20)
        write(tmp_path / "labels.jsonl", labels(0, 20))
        until(lambda: job.processor.progress.labelled == 20)
        write(tmp_path / "documents.jsonl", documents(20, 22))
        until(lambda: len(answered(tmp_path)) == 22)
    finally:
        stop.requested = True
        thread.join()
    last = [json.loads(line) for line in (tmp_path / "output.jsonl").read_bytes().splitlines()[-2:]]
    assert [each["labels"] for each in last] == [["tennis"], ["politics"]]
    assert job.processor.room.census()[:2] == (2, 0)


def test_a_clock_that_goes_back_is_not_believed(tmp_path):
    write(tmp_path / "documents.jsonl", [*documents(0, 33), *labels(0, 33)])
    config = msgspec.structs.replace(simple(tmp_path), labels=LabelsConfig(seconds=100.0))
    times = iter([5000.0, 5010.0, 20.0, 5020.0, 5.0, 5.0, *[5030.0] * 99])
    job = job_of(config, clock=lambda: next(times))
    with running():
        job.run()
    assert job.processor.room.now == 5030.0
    assert dict(job.processor.room.outcomes) == {"joined": 33}


def test_time_that_passes_between_two_runs_counts(tmp_path):
    write(tmp_path / "documents.jsonl", documents(0, 5))
    config = msgspec.structs.replace(simple(tmp_path), labels=LabelsConfig(seconds=100.0))
    job_of(config, clock=lambda: 1000.0).run()
    job = job_of(config, clock=lambda: 1200.0)
    job.run()
    assert dict(job.processor.room.outcomes) == {"expired": 5}


def test_every_kind_of_poison_is_rejected_once_with_its_reason(tmp_path):
    bad = [*poison(), b'{"id": "x", "text": "' + b"a" * MAX_LINE_BYTES + b'"}']
    good = documents(0, len(bad))
    write(tmp_path / "documents.jsonl", [line for pair in zip(bad, good, strict=True) for line in pair])
    config = simple(tmp_path, rejects=tmp_path / "rejects.jsonl")
    _, died = run_with_crashes(lambda: job_of(config), [60, 50, 80])
    assert len(died) == 3
    rejects = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_bytes().splitlines()]
    assert [each["line_number"] for each in rejects] == list(range(1, 2 * len(bad), 2))
    assert len({each["reason"] for each in rejects}) >= 12
    assert all(each["detail"] for each in rejects)
    assert answered(tmp_path) == [each["id"] for each in good]


def test_many_labels_do_not_push_each_other_out(tmp_path):
    """Two whole files: labels wait for their documents, but no more of them than may."""
    write(tmp_path / "documents.jsonl", documents(0, 400))
    write(tmp_path / "labels.jsonl", labels(0, 400))
    config = changed(simple(tmp_path, labels=tmp_path / "labels.jsonl"), "labels", early=30)
    job = job_of(config)
    job.run()
    assert job.processor.progress.labelled == 400
    assert dict(job.processor.room.outcomes) == {"joined": 400}


@pytest.mark.parametrize(
    ("table", "values", "problem"),
    [
        ("model", {"n_features": 128}, r"model\.n_features = 64, not 128"),
        ("model", {"costs": "sibling"}, r"model\.costs = uniform, not sibling"),
        ("model", {"sequences": True}, r"model\.sequences = False, not True"),
        ("model", {"settings": {"node-pa": {"C": 9.0}}}, r"settings\.node-pa\.C = 1\.0, not 9\.0"),
    ],
)
def test_a_state_is_not_used_with_other_settings(tmp_path, table, values, problem):
    write(tmp_path / "documents.jsonl", documents(0, 3))
    config = simple(tmp_path)
    job_of(config).run()
    with pytest.raises(SnapshotError, match=problem):
        job_of(changed(config, table, **values)).run()


# Requests


def test_requests_are_taken_once(tmp_path):
    write(tmp_path / "documents.jsonl", documents(0, 3))
    config, state = simple(tmp_path), tmp_path / "state"
    state.mkdir()
    commands.post(state, "promote", "node-pa")
    commands.post(state, "promote", "no-such-model")
    (state / "commands" / "0-bad.json").write_bytes(b"{")
    (state / "commands" / "1-large.json").write_bytes(b" " * 20_000)
    (state / "commands" / "2-bytes.json").write_bytes(b'{"what": "promote", "model": "\xff"}')
    (state / "commands" / "3-deep.json").write_bytes(b"[" * 9_000)
    listener = Listener()
    job = job_of(config, watcher=listener)
    job.run()
    assert job.processor.progress.champion == "node-pa"
    assert listener.notes == ["promote: there is no model no-such-model: choose one of node-pa, h-perceptron"]
    assert list((state / "commands").iterdir()) == []
    commands.post(state, "rollback")
    again = job_of(config)
    again.run()
    assert again.processor.progress.champion == "h-perceptron"
    assert again.processor.progress.happened == {"promoted": 1, "rollback": 1}
    third = job_of(config)
    third.run()
    assert third.processor.progress.happened == {"promoted": 1, "rollback": 1}


@pytest.mark.parametrize("point", [*range(30, 60)])
def test_a_request_is_taken_once_through_a_crash(tmp_path, point):
    write(tmp_path / "documents.jsonl", documents(0, 30))
    (tmp_path / "state").mkdir()
    commands.post(tmp_path / "state", "promote", "node-pa")
    job, _ = run_with_crashes(lambda: job_of(simple(tmp_path)), [point])
    assert job.processor.progress.happened == {"promoted": 1}
    models = [json.loads(line)["model"] for line in (tmp_path / "output.jsonl").read_bytes().splitlines()]
    assert models == ["node-pa"] * 30
    assert len((tmp_path / "state" / "log.jsonl").read_bytes().splitlines()) == 1


@pytest.mark.compiled
def test_fits_may_be_switched_off_while_one_is_under_way(tmp_path):
    taxonomy = write_stream(tmp_path / "job")
    config = changed(configured(tmp_path / "job"), "refit", in_step=False)
    config = changed(config, "stream", limit=100)
    with running(patience=lambda: 10**9):
        job = SteppedJob(config, taxonomy)
        job.run()
    assert job.processor.contest.request is not None
    off = changed(changed(config, "refit", enabled=False), "stream", limit=None)
    with running():
        again = SteppedJob(off, taxonomy)
        again.run()
    assert again.processor.progress.records > 200
