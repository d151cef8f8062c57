"""`stream-hc run`: answers, rejects, snapshots."""

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream_hc import snapshot
from stream_hc.datasets import Dataset, make_news
from tests.cli.support import call, call_all, lines_of, on_terminal, write_docs

pytestmark = pytest.mark.compiled

BOM = b"\xef\xbb\xbf"


@pytest.fixture(scope="module")
def news() -> Dataset:
    return make_news(1200, seed=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, news: Dataset) -> Path:
    path = tmp_path_factory.mktemp("run")
    news.taxonomy.write(path / "taxonomy.tsv")
    lines = write_docs(path / "docs.jsonl", news).splitlines(keepends=True)
    (path / "first.jsonl").write_bytes(b"".join(lines[:500]))
    (path / "second.jsonl").write_bytes(b"".join(lines[500:]))
    (path / "docs.jsonl.gz").write_bytes(gzip.compress(b"".join(lines)))
    (path / "crlf.jsonl").write_bytes(BOM + b"\r\n".join(line.rstrip() + b"\n" for line in lines)[:-1])
    (path / "tree.tsv").write_text("sport\t\ntennis\tsport\npolitics\t\n")
    return path


def test_a_stream_in_one_go_in_two_and_zipped(folder: Path, news: Dataset) -> None:
    whole, gz, crlf = call_all(
        *(
            ("run", folder / name, "-t", folder / "taxonomy.tsv", "-s", folder / f"{name}.snap")
            for name in ("docs.jsonl", "docs.jsonl.gz", "crlf.jsonl")
        )
    )
    assert [result.returncode for result in (whole, gz, crlf)] == [0, 0, 0]
    assert whole.stdout == gz.stdout == crlf.stdout
    predictions: list[dict[str, Any]] = lines_of(whole.stdout)
    assert [prediction["id"] for prediction in predictions] == news.ids
    assert list(predictions[0]) == ["id", "labels", "path_labels", "scores", "model", "model_version"]
    assert [prediction["model_version"] for prediction in predictions] == list(range(1200))
    assert {prediction["model"] for prediction in predictions} == {"h-arow"}
    for prediction in predictions:
        closed = news.taxonomy.close(prediction["path_labels"])
        assert set(prediction["path_labels"]) == closed == set(prediction["scores"])
        assert set(prediction["labels"]) == news.taxonomy.most_specific(closed)
    right = sum(
        set(prediction["path_labels"]) == news.taxonomy.close(given)
        for prediction, given in zip(predictions, news.labels, strict=True)
    )
    assert right > 400
    summary = whole.stderr.decode()
    assert summary.startswith("1200 documents, 1200 labelled, 0 rejected; H-loss ")
    assert f"zero-one {1 - right / 1200:.4f}; " in summary
    assert summary.endswith(" documents/s\n")
    assert summary.count("\n") == 1

    again = ("-t", folder / "taxonomy.tsv", "-s", folder / "half.snap", "-o", folder / "both.out")
    (folder / "both.out").write_text("from another life: a fresh start replaces it")
    first = call("run", folder / "first.jsonl", *again, "--learner", "h-arow")
    assert (first.returncode, first.stdout) == (0, b"")
    second = call("run", "-", *again, stdin=(folder / "second.jsonl").read_bytes())
    assert second.stderr.startswith(b"continuing from ")
    assert b"half.snap: h-arow, 500 documents learned\n" in second.stderr
    assert (folder / "both.out").read_bytes() == whole.stdout
    saved = (folder / "docs.jsonl.snap").read_bytes()
    assert (folder / "half.snap").read_bytes() == saved == (folder / "docs.jsonl.gz.snap").read_bytes()
    assert snapshot.inspect(folder / "half.snap").extra == {"documents": 1200, "learner": "h-arow"}


def test_options_of_the_learner_and_a_limit(folder: Path) -> None:
    taxonomy, docs = ("-t", folder / "taxonomy.tsv"), folder / "docs.jsonl"
    options = ("--learner", "node-pa", "--set", "C=0.5", "--n-features", "4096", "--costs", "normalized")
    args = ("run", docs, *taxonomy, *options, "--limit", "300")
    once, every = call_all(
        (*args, "-s", folder / "pa.snap"), (*args, "-s", folder / "pa2.snap", "--snapshot-every", "7", "-q")
    )
    assert (every.returncode, every.stderr) == (0, b"")
    learner = snapshot.load(folder / "pa.snap")["learner"]
    found = (type(learner).__name__, learner.C, learner.n_features, learner.n_learned)
    assert found == ("NodePA", 0.5, 4096, 300)
    assert once.stdout == every.stdout
    assert (folder / "pa.snap").read_bytes() == (folder / "pa2.snap").read_bytes()
    h_loss = float(once.stderr.split(b"H-loss ")[1].split(b",")[0])
    assert 0 < h_loss < 0.5  # uniform costs would give more than 1


MALFORMED = [
    (b"not json", "not_json"),
    (b'{"id": "1", "features": {"a": NaN}}', "not_json"),
    (b'{"id": "1", "text": "\xff"}', "not_utf8"),
    (b'{"text": "x"}', "missing_field"),
    (b'{"id": "", "text": "x"}', "empty_id"),
    (b'{"id": "1"}', "no_content"),
    (b'{"id": "1", "text": "x", "vector": [1]}', "several_contents"),
    (b'{"id": "1", "vector": ["1"]}', "wrong_type"),
    (b'{"id": "1", "vector": [1e39]}', "number_out_of_range"),
    (b'{"id": "1", "vector": [%s0]}' % (b"0," * 64), "vector_too_long"),
    (b'{"id": "1", "text": "x", "labels": ["\\u001b[31m[red]golf"]}', "unknown_label"),
    (b'{"id": "1", "text": "x", "deep": %s%s}' % (b"[" * 9000, b"]" * 9000), "too_deep"),
    (b'{"id": "1", "text": "%s"}' % (b"x" * 2**20), "line_too_long"),
]


def test_malformed_lines_are_put_aside(folder: Path) -> None:
    good = [
        b'{"id": "t", "text": "a racket", "labels": ["tennis"], "ts": 5}',
        b'{"id": "f", "features": {"vote": 2}, "labels": ["politics"]}',
        b'{"id": "v", "vector": [0, 3], "labels": []}',
        b'{"id": "t2", "text": "racket"}',
    ]
    content = b"\n".join([good[0], b"", *(line for line, _ in MALFORMED), *good[1:]])
    options = ("-t", folder / "tree.tsv", "--n-features", "64")
    aside = call("run", *options, "--rejects", folder / "rejects.jsonl", stdin=content)
    assert aside.returncode == 0
    predictions = lines_of(aside.stdout)
    assert [(p["id"], p.get("ts"), p["model_version"]) for p in predictions] == [
        ("t", 5, 0),
        ("f", None, 1),
        ("v", None, 2),
        ("t2", None, 3),
    ]
    assert predictions[3]["path_labels"] == ["sport", "tennis"]
    rejects: list[dict[str, Any]] = lines_of((folder / "rejects.jsonl").read_bytes())
    assert [reject["reason"] for reject in rejects] == [reason for _, reason in MALFORMED]
    assert [reject["line_number"] for reject in rejects] == list(range(3, 3 + len(MALFORMED)))
    assert [reject["truncated"] for reject in rejects] == [False] * 12 + [True]
    assert rejects[0]["line"] == "not json"
    assert rejects[2]["line"] == '{"id": "1", "text": "\\xff"}'
    assert len(rejects[-1]["line"]) == 1000
    shown = aside.stderr.decode().splitlines()
    assert len(shown) == 12
    assert shown[0].startswith("standard input:3: not_json: ")
    assert shown[10] == "standard input: 3 more rejected lines not shown"
    assert shown[11].startswith("4 documents, 3 labelled, 13 rejected; ")

    (folder / "bad.jsonl").write_bytes(b"\n".join([good[0], MALFORMED[10][0], good[3]]))
    code, screen = on_terminal("run", folder / "bad.jsonl", *options, stdout_too=True)
    assert code == 5
    assert "bad.jsonl:2: unknown_label: '\\x1b[31m[red]golf' is not in the taxonomy" in screen
    assert "\x1b[31m[red]" not in screen
    assert screen.count('"id":') == 2
    assert "━" not in screen  # answers scroll by: no bar between them


def test_sequences_go_on_from_their_snapshot(tmp_path: Path) -> None:
    """Two families of proteins, told apart by their k-mers; a text in other letters is put aside."""
    (tmp_path / "tree.tsv").write_text("enzyme\t\nlyase\tenzyme\nligase\tenzyme\n")
    kinds = {"lyase": "MKTAYIAKQR", "ligase": "GAVLWWPFCS"}
    lines = [
        f'{{"id": "{kind}{k}", "text": "{text[k % 5 :] + text}", "labels": ["{kind}"]}}'
        for k in range(30)
        for kind, text in kinds.items()
    ]
    wrong = '{"id": "wrong", "text": "Ωμέγα"}'
    (tmp_path / "docs.jsonl").write_text("\n".join([*lines[:40], wrong]), encoding="utf-8")
    (tmp_path / "more.jsonl").write_text("\n".join(lines[40:]), encoding="utf-8")
    how = ("-t", tmp_path / "tree.tsv", "-s", tmp_path / "model.snap", "--rejects", tmp_path / "bad.jsonl")
    first = call("run", tmp_path / "docs.jsonl", *how, "--sequences")
    assert first.returncode == 0
    assert lines_of((tmp_path / "bad.jsonl").read_bytes())[0]["reason"] == "not_a_sequence"
    again = call("run", tmp_path / "more.jsonl", *how)  # the snapshot knows that they are sequences
    assert [line["labels"] for line in lines_of(again.stdout)] == 10 * [["lyase"], ["ligase"]]
    texts = call("run", tmp_path / "more.jsonl", "-t", tmp_path / "tree.tsv", "-s", tmp_path / "text.snap")
    assert texts.returncode == 0
    refused = call("run", tmp_path / "more.jsonl", "-s", tmp_path / "text.snap", "--sequences")
    assert refused.returncode != 0
    assert b"has learned texts, not sequences: leave out --sequences" in refused.stderr


def test_sequences_are_judged_like_texts(tmp_path: Path) -> None:
    (tmp_path / "taxonomy.tsv").write_text("a\t\nb\t\n")
    lines = [
        f'{{"id": "{k}", "text": "{"MKTAY" if k % 2 else "GAVLW"}", "labels": ["{"ab"[k % 2]}"]}}'
        for k in range(40)
    ]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    commands = [
        (command, str(tmp_path), "-l", "node-pa", "--sequences", "--json", "-")
        for command in ("evaluate", "compare")
    ]
    for result in call_all(*commands):
        assert result.returncode == 0, result.stderr
        assert msgspec.json.decode(result.stdout)["runs"][0]["zero_one"] < 0.2
