"""`stream-hc refit`: documents from everywhere, a model file, Ctrl-C, one line for each error."""

import pytest

from stream_hc import HM3, snapshot
from stream_hc.cli.refitted import Wish, refit_and_write
from stream_hc.datasets import make_news
from tests.cli.support import call, interrupted_on_terminal
from tests.runtime.test_refitting import until
from tests.strategies import size

N_DOCUMENTS = size(120, 12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "news"
    make_news(N_DOCUMENTS).write(path)
    return path


def wish(source, taxonomy=None, n_features=2048, limit=None, loss=None, workers=None, scheduler=None, **how):
    settings = {"tol": 0.05, "C": 1.0, "costs": "uniform", "max_seconds": None} | how
    return Wish(
        str(source), taxonomy and str(taxonomy), n_features, limit, loss, settings, workers, scheduler
    )


def test_folder_and_lines_give_the_same_model_and_it_can_be_used(folder, tmp_path, capsys):
    assert refit_and_write(wish(folder), tmp_path / "a.snap") == 0
    said = capsys.readouterr().err
    assert f"{N_DOCUMENTS:,} documents" in said.replace("\n", " ")
    assert "gap" in said
    refit_and_write(wish(folder / "docs.jsonl", folder / "taxonomy.tsv"), tmp_path / "b.snap")
    assert (tmp_path / "a.snap").read_bytes() == (tmp_path / "b.snap").read_bytes()
    parts = snapshot.load(tmp_path / "a.snap")
    assert isinstance(parts["learner"], HM3)
    data = make_news(N_DOCUMENTS)
    predicted = parts["learner"].predict_many(parts["vectorizer"].transform(data.documents))
    true = [data.taxonomy.close(labels) for labels in data.labels]
    wrong = sum(a != b for a, b in zip(data.taxonomy.decode(predicted), true, strict=True))
    assert wrong < N_DOCUMENTS / 2  # those it was trained on


@pytest.mark.compiled
def test_the_window_of_a_job_is_fitted(folder, tmp_path):
    state = tmp_path / "state"
    ran = call(
        "run",
        folder / "docs.jsonl",
        "-t",
        folder / "taxonomy.tsv",
        "--state",
        state,
        "--refit",
        "-o",
        "/dev/null",
    )
    assert ran.returncode == 0, ran.stderr
    done = call("refit", state, "-o", tmp_path / "model.snap", "--limit", "50")
    assert done.returncode == 0, done.stderr
    assert b"50 documents" in done.stderr
    assert call("snapshot", "verify", tmp_path / "model.snap").returncode == 0
    assert call("refit", tmp_path / "model.snap", "-o", tmp_path / "x.snap").returncode == 4


@pytest.mark.compiled
def test_workers_are_used(tmp_path):
    target = tmp_path / "model.snap"
    done = call("refit", "news:300", "-o", target, "--workers", "2", "--n-features", "4096")
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert snapshot.load(target)["learner"].duality_gap_ > 0.0


@pytest.mark.compiled
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_writes_what_there_is_and_tells_the_gap(workers, tmp_path):
    """On a terminal, where the key reaches all processes."""
    target = tmp_path / "model.snap"
    command = ["refit", "news:1500", "-o", target, "--workers", workers, "--C", "1e4", "--tol", "1e-14"]
    code, shown, left = interrupted_on_terminal(*command, when="epoch [1-9]")
    said = shown.rpartition("\x1b")[2].partition("interrupted: ")[2].splitlines()
    assert (code, len(said)) == (130, 1), shown
    model = snapshot.load(target)["learner"]
    assert said[0].startswith(f"written: {target}, 1,500 documents")
    assert f"gap {model.duality_gap_ / model.dual_objective_:.2%}" in said[0]
    assert model.dual_objective_ > 0.0
    until(lambda: not left())


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["news:50", "-o", "nowhere/x.snap"], 3, "the folder does not exist: make it first"),
        (["nothing", "-o", "x.snap"], 3, "nothing: no such folder"),
        (["docs.jsonl", "-o", "x.snap"], 2, "JSON lines need a taxonomy: give it with --taxonomy"),
        (["docs.jsonl", "-t", "tree.tsv", "-o", "x.snap"], 3, "docs.jsonl, line 1: "),
        (["news:50", "-t", "tree.tsv", "-o", "x.snap"], 2, "--taxonomy is for JSON lines"),
        (["news:50", "-o", "x.snap", "--loss", "big"], 2, "loss"),
        (["news:50", "-o", "x.snap", "--tol", "0"], 2, "tol"),
        (["news:50", "-o", "x.snap", "--workers", "2", "--scheduler", "tcp://127.0.0.1:9"], 2, "give one"),
    ],
)
def test_every_mistake_is_one_line(arguments, code, said, tmp_path):
    (tmp_path / "docs.jsonl").write_text('{"id": "1", "text": "a", "labels": ["unknown"]}\n')
    (tmp_path / "tree.tsv").write_text("a\t\n")
    done = call("refit", *arguments, cwd=tmp_path)
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (code, 1), lines
    assert lines[0].startswith("error: ")
    assert said in lines[0]
    assert not (tmp_path / "x.snap").exists()
