"""`stream-hc run` among other processes: pipes, signals, terminals."""

import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from stream_hc import snapshot
from stream_hc.datasets import make_news
from tests.cli.support import call, on_terminal, start, write_docs

pytestmark = pytest.mark.compiled

LESSON = b'{"id": "%d", "text": "a racket", "labels": ["tennis"]}\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    path = tmp_path / "tree.tsv"
    path.write_text("sport\t\ntennis\tsport\npolitics\t\n")
    return path


def ask(process: "subprocess.Popen[bytes]", question: bytes) -> dict[str, object]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(question)
    answer: dict[str, object] = msgspec.json.decode(process.stdout.readline())
    return answer


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_answers_at_once_and_saves_when_told_to_stop(tree: Path, number: signal.Signals, code: int) -> None:
    path = tree.parent / "model.snap"
    with start("run", "-t", tree, "-s", path) as process:
        for row in range(3):
            answer = ask(process, LESSON % row)
            assert (answer["id"], answer["model_version"]) == (str(row), row)
        assert answer["labels"] == ["tennis"]
        assert process.stdin is not None
        process.stdin.write(b'{"id": "unfinished')
        assert not path.exists()
        process.send_signal(number)
        process.wait(timeout=30)  # `communicate` closes its input, and the end of it may be noticed first
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (code, b"")
    assert err.startswith(b"3 documents, 3 labelled, 0 rejected; ")
    assert snapshot.load(path)["learner"].n_learned == 3


def test_a_kill_leaves_the_last_snapshot(tree: Path) -> None:
    path = tree.parent / "model.snap"
    with start("run", "-t", tree, "-s", path, "--snapshot-every", "2") as process:
        for row in range(5):
            ask(process, LESSON % row)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert snapshot.load(path)["learner"].n_learned == 4
    result = call("run", "-s", path, stdin=LESSON % 9)
    assert result.returncode == 0
    assert msgspec.json.decode(result.stdout)["model_version"] == 4


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    news = make_news(3000)
    news.taxonomy.write(tmp_path / "taxonomy.tsv")
    write_docs(tmp_path / "docs.jsonl", news)
    with start(
        "run", tmp_path / "docs.jsonl", "-t", tmp_path / "taxonomy.tsv", "-s", tmp_path / "m"
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"id":"news-0000001"')
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
    assert not (tmp_path / "m").exists()


def test_progress_on_a_terminal_only(tmp_path: Path) -> None:
    news = make_news(2000)
    news.taxonomy.write(tmp_path / "taxonomy.tsv")
    write_docs(tmp_path / "docs.jsonl", news)
    args = ("run", tmp_path / "docs.jsonl", "-t", tmp_path / "taxonomy.tsv", "-o", tmp_path / "out.jsonl")
    code, screen = on_terminal(*args, stdout_too=True)
    assert code == 0
    assert "━" in screen
    assert " docs, H-loss " in screen
    assert "docs.jsonl" in screen
    assert "2000 documents, 2000 labelled, 0 rejected; " in screen.splitlines()[-1]
    piped = call(*args[:-1], tmp_path / "piped.jsonl")
    assert piped.stderr.isascii()
    assert piped.stderr.decode().strip().isprintable()
    assert (tmp_path / "piped.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
