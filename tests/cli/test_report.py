"""`stream-hc report`: one page from a state folder, a snapshot, a log or a model; nothing is made up."""

import re
import shutil
from pathlib import Path

import pytest

from stream_hc import HAROW, Taxonomy, TextVectorizer, snapshot
from stream_hc.datasets import make_news
from stream_hc.runtime.node_counts import NodeCounts
from tests.cli.support import call
from tests.cli.test_inside import Inside, inside
from tests.runtime.streams import delayed, lines_of
from tests.runtime.test_report import Page

__all__ = ["inside"]  # a fixture

N = 460


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a job once for all tests."""
    path = tmp_path_factory.mktemp("report")
    news = make_news(N, seed=4)
    news.taxonomy.write(path / "tree.tsv")
    lines = [line.data + b"\n" for line in lines_of(delayed(news, 50))]
    (path / "docs.jsonl").write_bytes(b"".join([*lines, b"not json\n"]))
    run = ("run", "docs.jsonl", "-t", "tree.tsv", "-q", "--rejects", "bad.jsonl", "-o", "out.jsonl")
    learners = ("-l", "h-perceptron", "-l", "h-arow", "--set", "judge.every=50", "--n-features", "65536")
    result = call(*run, *learners, "--state", "state", cwd=path)
    assert result.returncode == 0, result.stderr
    return path


@pytest.fixture
def folder(tmp_path: Path, made: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "job"))


def page_of(inside: Inside, folder: Path, source: Path, *more: str) -> Page:
    code, out, err = inside("report", source, "-o", folder / "page.html", *more)
    assert (code, out) == (0, ""), err
    assert "page.html" in err
    html = (folder / "page.html").read_text(encoding="utf-8")
    assert "://" not in re.sub(r"<bdi>.*?</bdi>", "", html)
    return Page(html)


def test_a_state_folder_has_everything(inside: Inside, folder: Path) -> None:
    page = page_of(inside, folder, folder / "state", "--title", "My <run>")
    words = page.words()
    assert ("h1", "My <run>") in page.texts
    for heading in (
        "Recent H-loss",
        "Models",
        "Where mistakes begin",
        "Topics",
        "Words",
        "What waits",
        "Dead letters",
    ):
        assert ("h2", heading) in page.texts
    assert f"{N} documents filed in a taxonomy of" in words
    assert f"over {N - 50} labelled documents" in words
    assert "not_json" in words
    assert page.tags["polyline"] > 0
    assert "How fast it went" in words
    assert page.tags["script"] == 0


def test_a_snapshot_has_no_history_and_says_so(inside: Inside, folder: Path) -> None:
    (file,) = (folder / "state").glob("snapshot-*.snap")
    page = page_of(inside, folder, file)
    words = page.words()
    assert ("h1", file.name) in page.texts
    assert page.tags["polyline"] == 0
    assert "Losses along the stream, and when models were swapped: name the state folder" in words
    assert ("h2", "Topics") in page.texts
    assert ("h2", "Recent H-loss") not in page.texts
    swaps = snapshot.load(file)["progress"].happened.get("swap", 0)
    assert f"Swaps {swaps} " in words


def test_a_log_has_no_topics_and_says_so(inside: Inside, folder: Path) -> None:
    page = page_of(inside, folder, folder / "state" / "log.jsonl")
    assert ("h2", "Topics") not in page.texts
    assert ("h2", "Recent H-loss") in page.texts
    assert "Topics and words: a log has only losses and events." in page.words()
    log = (folder / "state" / "log.jsonl").read_bytes().splitlines(keepends=True)
    first = next(line for line in log if line.startswith(b'{"line":"standing"'))
    (folder / "short.jsonl").write_bytes(first)
    page = page_of(inside, folder, folder / "short.jsonl")
    assert ("h2", "Recent H-loss") not in page.texts
    assert "Losses along the stream: the log has a single standing so far." in page.words()


def test_a_job_that_is_writing_its_log_can_be_looked_at(inside: Inside, folder: Path) -> None:
    with open(folder / "state" / "log.jsonl", "ab") as log:
        log.write(b'{"line":"standing","docu')
    page = page_of(inside, folder, folder / "state")
    assert ("h2", "Recent H-loss") in page.texts
    (folder / "state" / "log.jsonl").write_bytes(b'{"line"')
    assert ("h2", "Recent H-loss") not in page_of(inside, folder, folder / "state").texts
    (folder / "state" / "log.jsonl").unlink()
    assert ("h2", "Topics") in page_of(inside, folder, folder / "state").texts


def test_a_snapshot_that_did_not_count_topics(inside: Inside, folder: Path) -> None:
    (file,) = (folder / "state").glob("snapshot-*.snap")
    parts = snapshot.load(file)
    del parts["nodes"]
    snapshot.save(folder / "old.snap", parts)
    page = page_of(inside, folder, folder / "old.snap")
    assert ("h2", "Topics") not in page.texts
    assert "a version that did not count it" in page.words()


def test_a_model_file_has_its_words(inside: Inside, folder: Path) -> None:
    run = (
        "run",
        folder / "docs.jsonl",
        "-t",
        folder / "tree.tsv",
        "-q",
        "-l",
        "hpa",
        "-s",
        folder / "m.snap",
    )
    inside(*run, "-o", folder / "x.jsonl", "--limit", "200")  # 50 documents, then labels in turn
    page = page_of(inside, folder, folder / "m.snap")
    words = page.words()
    assert "Model hpa HPA" in words
    assert "Learned 75 labelled documents" in words
    assert ("h2", "Words") in page.texts
    assert "a model file has the model alone" in words
    assert page.tags["span"] > 20


def test_a_model_without_words(inside: Inside, folder: Path) -> None:
    snapshot.save(folder / "alone.snap", HAROW(Taxonomy([("sport", None)]), n_features=64))
    assert "saved without its vectorizer" in page_of(inside, folder, folder / "alone.snap").words()


def test_the_page_may_go_to_standard_output(inside: Inside, folder: Path) -> None:
    code, out, err = inside("report", folder / "state" / "log.jsonl", "-o", "-")
    assert (code, err) == (0, "")
    assert out.startswith("<!DOCTYPE html>")
    assert inside("report", folder / "state" / "log.jsonl", "-o", "-")[1] == out


def test_what_cannot_be_reported_is_said(inside: Inside, folder: Path) -> None:
    code, _, err = inside("report", folder / "docs.jsonl", "-o", folder / "p.html")
    assert (code, err.count("\n")) == (3, 1)
    assert "not of the log of a job" in err
    assert not (folder / "p.html").exists()
    code, _, err = inside("report", folder / "nowhere", "-o", folder / "p.html")
    assert (code, err.count("\n")) == (3, 1)
    code, _, err = inside("report", folder / "state", "-o", folder / "nowhere" / "p.html")
    assert (code, "the folder does not exist" in err) == (3, True)


def test_parts_that_do_not_fit_together_are_refused(inside: Inside, folder: Path) -> None:
    (file,) = (folder / "state").glob("snapshot-*.snap")
    for name, other, message in (
        ("nodes", NodeCounts(3, 10), "counts other topics"),
        ("scores", NodeCounts(3, 10), "do not fit together"),
        ("vectorizer", TextVectorizer(n_features=8), "do not fit together"),
        ("learner h-arow", HAROW(Taxonomy([("sport", None)]), n_features=65536), "do not fit together"),
    ):
        snapshot.save(folder / "odd.snap", {**snapshot.load(file), name: other})
        code, _, err = inside("report", folder / "odd.snap", "-o", folder / "p.html")
        assert (code, err.count("\n")) == (4, 1), name
        assert message in err
    parts = snapshot.load(file)
    del parts[f"learner {parts['progress'].champion}"]
    snapshot.save(folder / "odd.snap", parts)
    assert "lacks the model that answers" in inside("report", folder / "odd.snap", "-o", "-")[2]
    model = HAROW(Taxonomy([("sport", None)]), n_features=64)
    snapshot.save(folder / "odd.snap", {"learner": model, "vectorizer": TextVectorizer(n_features=8)})
    assert "its vectorizer is not that of the model" in inside("report", folder / "odd.snap", "-o", "-")[2]
