"""Every exit code, and every error as one clean line."""

import gzip
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import COMMAND, Result, call, call_all, environment, start

pytestmark = pytest.mark.compiled


def error_of(result: Result, code: int) -> str:
    text = result.stderr.decode()
    assert result.returncode == code, text
    assert text.startswith("error: "), text
    assert text.count("\n") == 1
    assert text.strip().isprintable()
    assert result.stdout == b""
    return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("errors")
    (path / "tree.tsv").write_text("sport\t\ntennis\tsport\n")
    (path / "other.tsv").write_text("sport\t\ngolf\tsport\npolitics\t\n")
    (path / "docs.jsonl").write_text('{"id": "1", "text": "a racket", "labels": ["tennis"]}\n')
    (path / "cut.jsonl.gz").write_bytes(gzip.compress(b"x" * 10_000)[:-8])
    saved = call("run", path / "docs.jsonl", "-t", path / "tree.tsv", "-s", path / "good.snap", "-q")
    assert (saved.returncode, saved.stderr) == (0, b"")
    data = (path / "good.snap").read_bytes()
    (path / "damaged.snap").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    return path


def test_wrong_usage(folder: Path) -> None:
    expected = {
        ("run", "--no-such-option"): "no such option: --no-such-option (see stream-hc run --help)",
        ("rum",): "no such command 'rum'",
        ("run", folder / "docs.jsonl"): "--taxonomy is missing",
        ("evaluate", "news:many"): "news:many: expected news[:DOCUMENTS",
    }
    for result, message in zip(call_all(*expected), expected.values(), strict=True):
        assert message in error_of(result, 2)
    bare = call()
    assert (bare.returncode, bare.stdout) == (2, b"")
    assert bare.stderr.startswith(b"Usage: stream-hc ")


def test_bad_input(folder: Path) -> None:
    docs, tree = folder / "docs.jsonl", ("-t", folder / "tree.tsv")
    expected = {
        ("run", folder / "none.jsonl", *tree): "none.jsonl: cannot read: No such file or directory",
        ("run", folder / "cut.jsonl.gz", *tree): "cut.jsonl.gz: not a sound gzip file",
        ("run", docs, "-t", folder / "no\x1b[31m"): "no\\x1b[31m: cannot read",
        ("evaluate", folder / "nowhere"): "nowhere: no such folder",
    }
    for result, message in zip(call_all(*expected), expected.values(), strict=True):
        assert message in error_of(result, 3)


def test_snapshots_that_do_not_fit(folder: Path) -> None:
    docs = folder / "docs.jsonl"
    expected = {
        ("run", docs, "-s", folder / "damaged.snap"): "damaged.snap: part 'vectorizer', array ",
        ("run", docs, "-s", folder / "good.snap", "-t", folder / "other.tsv"): "learned for another taxonomy",
        ("snapshot", "verify", folder / "damaged.snap"): "does not match its checksum",
    }
    before = (folder / "good.snap").read_bytes()
    for result, message in zip(call_all(*expected), expected.values(), strict=True):
        assert message in error_of(result, 4)
    assert (folder / "good.snap").read_bytes() == before


def test_interrupted() -> None:
    with start("compare", "news:150000") as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_output_that_cannot_be_written(folder: Path) -> None:
    arguments = ["run", str(folder / "docs.jsonl"), "-t", str(folder / "tree.tsv")]
    for redirect, message in (
        (">&-", "standard output is closed: name a file"),
        (">/dev/full", "standard output: cannot write: No space left on device"),
    ):
        command = ["bash", "-c", f'"$@" {redirect}', "bash", *COMMAND, *arguments]
        result = subprocess.run(command, capture_output=True, env=environment(), check=False, timeout=120)
        assert message in error_of(result, 3)
    assert "/dev/full: cannot write: No space left" in error_of(call(*arguments, "-o", "/dev/full"), 3)


def test_a_deeply_nested_taxonomy_is_bad_input(folder: Path) -> None:
    deep = folder / "deep.json"
    deep.write_bytes(b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b', "nodes": []}')
    for result in call_all(("taxonomy", "draw", deep), ("run", folder / "docs.jsonl", "-t", deep)):
        assert "deep.json: expected a taxonomy as" in error_of(result, 3)
    assert call("taxonomy", "validate", deep).returncode == 3
