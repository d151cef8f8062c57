"""`stream-hc run --state`, `models`, `promote`, `rollback`: a job that is looked at and told what to do."""

import json
import signal
import time
from pathlib import Path

import pytest

from stream_hc.datasets import make_news
from tests.cli.support import call, lines_of, start
from tests.runtime.streams import delayed
from tests.runtime.streams import lines_of as encoded

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models")
    news = make_news(900, seed=2)
    news.taxonomy.write(path / "taxonomy.tsv")
    lines = [line.data + b"\n" for line in encoded(delayed(news, 60))]
    (path / "stream.jsonl").write_bytes(b"".join(lines))
    (path / "first.jsonl").write_bytes(b"".join(lines[:700]))
    return path


def job(folder: Path, name: str, state: str) -> list[str | Path]:
    learners = ["-l", "h-perceptron", "-l", "h-arow", "--set", "judge.enabled=false"]
    files = ["-t", folder / "taxonomy.tsv", "-o", folder / f"{state}.out", "--state", folder / state]
    return ["run", folder / name, *learners, *files]


def roles(folder: Path, state: str) -> dict[str, str]:
    result = call("models", folder / state, "--json")
    assert result.returncode == 0, result.stderr
    return {model["name"]: model["role"] for model in json.loads(result.stdout)}


def test_a_model_is_promoted_and_rolled_back(folder: Path) -> None:
    assert call(*job(folder, "stream.jsonl", "a")).returncode == 0
    assert roles(folder, "a") == {"h-perceptron": "champion", "h-arow": "learns"}
    shown = call("models", folder / "a").stdout.decode()
    assert "h-perceptron" in shown
    assert "840" in shown
    wrong = call("promote", folder / "a", "svm")
    assert (wrong.returncode, wrong.stderr.count(b"\n")) == (2, 1)
    assert b"there is no model 'svm': choose one of h-arow, h-perceptron" in wrong.stderr
    for command, champion in (
        (["promote", folder / "a", "h-arow"], "h-arow"),
        (["rollback", folder / "a"], "h-perceptron"),
    ):
        asked = call(*command)
        assert asked.returncode == 0
        assert b"when it is started" in asked.stderr
        assert call(*job(folder, "stream.jsonl", "a")).returncode == 0
        assert roles(folder, "a")[champion] == "champion"


def test_a_job_that_runs_is_told(folder: Path) -> None:
    (folder / "live.jsonl").write_bytes((folder / "first.jsonl").read_bytes())
    process = start(*job(folder, "live.jsonl", "b"), "--follow", "--set", "state.seconds=1")
    try:
        _until(lambda: list((folder / "b").glob("snapshot-*.snap")))
        asked = call("promote", folder / "b", "h-arow")
        assert b"at once" in asked.stderr
        _until(lambda: b'"promoted"' in (folder / "b" / "log.jsonl").read_bytes())
        with open(folder / "live.jsonl", "ab") as stream:
            stream.write((folder / "stream.jsonl").read_bytes()[(folder / "first.jsonl").stat().st_size :])
        _until(lambda: (folder / "b.out").read_bytes().count(b"\n") == 900)
        second = call(*job(folder, "stream.jsonl", "b"))
        assert second.returncode == 4
        assert b"process" in second.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0
    answers = lines_of((folder / "b.out").read_bytes())
    assert {answer["model"] for answer in answers[:100]} == {"h-perceptron"}
    assert {answer["model"] for answer in answers[-100:]} == {"h-arow"}


def test_a_folder_without_a_job(tmp_path: Path) -> None:
    result = call("models", tmp_path)
    assert (result.returncode, result.stderr.count(b"\n")) == (3, 1)
    assert b"no snapshots there" in result.stderr


def _until(done, patience: float = 60) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            if done():
                return
        except FileNotFoundError:
            pass
        assert time.monotonic() < end
        time.sleep(0.1)
