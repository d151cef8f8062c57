"""`stream-hc explain`: what was typed, which model, which document; on a terminal and as JSON."""

import gzip
import json
import math
from pathlib import Path

import pytest

from stream_hc import HAROW, Taxonomy, TextVectorizer, snapshot
from stream_hc.cli.explain_words import names_in
from stream_hc.runtime.records import Document
from stream_hc.vectorize import SequenceVectorizer, hash_features
from tests.cli.test_inside import Inside, inside

__all__ = ["inside"]  # a fixture

TREE = "sport\t\ntennis\tsport\npolitics\t\n"
DOCS = [
    {"id": "1", "text": "a racket on the court", "labels": ["tennis"]},
    {"id": "2", "text": "a vote on the law", "labels": ["politics"]},
    {"id": "3", "text": "another vote", "labels": ["politics"]},
    {"id": "4", "text": "the racket again"},
]


@pytest.fixture
def folder(tmp_path: Path, inside: Inside) -> Path:
    (tmp_path / "tree.tsv").write_text(TREE)
    lines = "".join(json.dumps(doc) + "\n" for doc in DOCS)
    (tmp_path / "docs.jsonl").write_text(lines)
    with gzip.open(tmp_path / "docs.jsonl.gz", "wt") as packed:
        packed.write("not json\n" + lines)
    run = ("run", tmp_path / "docs.jsonl", "-t", tmp_path / "tree.tsv", "-q", "--n-features", "4096")
    assert inside(*run, "-s", tmp_path / "m.snap", "-o", tmp_path / "m.out")[0] == 0
    job = ("-l", "h-perceptron", "-l", "h-arow", "--set", "judge.enabled=false")
    assert inside(*run, *job, "--state", tmp_path / "state", "-o", tmp_path / "s.out")[0] == 0
    return tmp_path


def test_the_words_along_the_path_add_up(inside: Inside, folder: Path) -> None:
    code, out, err = inside("explain", folder / "m.snap", "--text", "The racket!", "--json", "--top", "1")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["model"], found["kind"], found["labels"]) == ("h-arow", "HAROW", ["sport", "tennis"])
    assert [step["node"] for step in found["steps"]] == ["sport", "tennis"]
    for step in found["steps"]:
        (share,) = step["shares"]
        assert share["feature"] == "racket"
        assert step["n_rest"] == 1
        assert math.fsum([share["contribution"], step["bias"], step["rest"]]) == pytest.approx(step["margin"])


def test_it_is_what_the_stream_answers(inside: Inside, folder: Path) -> None:
    """The scores of the last document, which was predicted by the model as it is saved."""
    answer = json.loads((folder / "m.out").read_text().splitlines()[-1])
    found = json.loads(inside("explain", folder / "m.snap", folder / "docs.jsonl", "--id", "4", "--json")[1])
    assert found["id"] == answer["id"]
    assert found["labels"] == answer["path_labels"]
    scores = {step["node"]: round(step["margin"], 6) for step in found["steps"]}
    assert scores == pytest.approx(answer["scores"], abs=2e-6)


def test_people_see_bars(inside: Inside, folder: Path) -> None:
    code, out, _ = inside("explain", folder / "m.snap", "--text", "the racket")
    assert code == 0
    assert "● sport" in out
    assert "  ● tennis" in out
    assert "█" in out
    assert "exceeds the threshold" in out
    assert not [line for line in out.splitlines() if len(line) > 80]


def test_a_document_by_its_id_or_from_a_pipe(
    inside: Inside, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = inside("explain", folder / "state", folder / "docs.jsonl.gz", "--id", "2", "--json")
    assert code == 0
    assert json.loads(out)["labels"] == ["politics"]
    assert json.loads(out)["model"] == "h-perceptron"
    with open(folder / "docs.jsonl") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        code, out, _ = inside("explain", folder / "state", "-", "--learner", "h-arow", "--json")
    assert (json.loads(out)["id"], json.loads(out)["model"]) == ("1", "h-arow")


def test_a_node_that_was_not_predicted(inside: Inside, folder: Path) -> None:
    code, out, _ = inside(
        "explain", folder / "m.snap", "--text", "the racket", "--node", "politics", "--json"
    )
    (step,) = json.loads(out)["steps"]
    assert (code, step["node"], step["is_on"]) == (0, "politics", False)
    code, out, _ = inside("explain", folder / "state", "--text", "zebra")
    assert "Nothing is predicted. The roots that came closest" in out
    assert "nothing is known about this document" in out


def test_the_strongest_words_of_a_node(inside: Inside, folder: Path) -> None:
    code, out, _ = inside("explain", folder / "state", "-l", "h-arow", "--node", "politics", "--json")
    found = json.loads(out)
    assert (code, found["node"]) == (0, "politics")
    assert "vote" in [word["feature"] for word in found["strongest"]]
    code, out, _ = inside("explain", folder / "state", "--node", "politics")
    assert "the strongest weights of h-perceptron" in out
    assert "vote" in out


def test_learners_with_more_to_say(inside: Inside, folder: Path) -> None:
    run = (
        "run",
        folder / "docs.jsonl",
        "-t",
        folder / "tree.tsv",
        "-q",
        "-o",
        folder / "x",
        "--n-features",
        "512",
    )
    inside(*run, "-l", "ranking", "-s", folder / "r.snap")
    code, out, _ = inside(
        "explain", folder / "r.snap", "--text", "the racket " + "word " * 100, "--node", "tennis"
    )
    assert code == 0
    assert "through sport" in out
    assert "labels expected" in out
    assert "…\n" in out
    assert "−0.000" not in out
    code, out, _ = inside("explain", folder / "m.snap", "--node", "sport", "--top", "0")
    assert "No weights to show." in out


def test_features_and_vectors_have_their_names(inside: Inside, folder: Path) -> None:
    docs = [{"id": "f", "features": {"racket": 2.0, "court": 1.0}}, {"id": "v", "vector": [0.0, 1.0]}]
    (folder / "more.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    code, out, _ = inside("explain", folder / "m.snap", folder / "more.jsonl", "--json")
    assert code == 0
    assert json.loads(out)["steps"][0]["shares"][0]["feature"] == "racket"
    code, out, _ = inside("explain", folder / "m.snap", folder / "more.jsonl", "--id", "v", "--json")
    assert (code, json.loads(out)["n_features"]) == (0, 1)


def test_a_model_alone_takes_features_only(inside: Inside, folder: Path) -> None:
    model = HAROW(Taxonomy([("sport", None)]), n_features=64)
    model.learn_one({"racket": 1.0}, {"sport"})
    snapshot.save(folder / "alone.snap", model)
    (folder / "one.jsonl").write_text('{"id": "f", "features": {"racket": 2.0}, "labels": ["unknown"]}\n')
    code, out, _ = inside("explain", folder / "alone.snap", folder / "one.jsonl", "--json")
    assert (code, json.loads(out)["steps"][0]["shares"][0]["feature"]) == (0, "racket")
    code, _, err = inside("explain", folder / "alone.snap", "--text", "racket")
    assert code == 3
    assert "without its vectorizer" in err
    snapshot.save(folder / "words.snap", TextVectorizer(n_features=64))
    code, _, err = inside("explain", folder / "words.snap", "--text", "racket")
    assert code == 4
    assert "neither a model nor the state of a job: found TextVectorizer" in err


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ((), 2, "no document: give --text"),
        (("--text", "a", "--id", "1"), 2, "leave out FILE and --id"),
        (("--id", "1"), 2, "--id needs the JSON lines"),
        (("--text", "a", "--node", "golf"), 2, "there is no node 'golf'"),
        (("--text", "a", "--learner", "svm"), 2, "there is no model 'svm': choose one of h-arow"),
        (("DOCS", "--id", "99"), 3, "no document with the id '99'"),
        (("DOCS.gz",), 3, "line 1: "),
        (("missing.jsonl",), 3, "missing.jsonl: cannot read"),
    ],
)
def test_what_cannot_be_done_is_said(inside: Inside, folder: Path, args, code, message) -> None:
    given = [str(arg).replace("DOCS", str(folder / "docs.jsonl")) for arg in args]
    result = inside("explain", folder / "m.snap", *given)
    assert (result[0], result[1]) == (code, "")
    assert message in result[2]
    assert result[2].count("\n") == 1


def test_damaged_snapshots_are_passed_over(inside: Inside, folder: Path) -> None:
    (folder / "state" / "snapshot-00000099.snap").write_bytes(b"nonsense")
    assert inside("explain", folder / "state", "--text", "the racket")[0] == 0
    for path in (folder / "state").glob("snapshot-*.snap"):
        path.write_bytes(b"nonsense")
    code, _, err = inside("explain", folder / "state", "--text", "the racket")
    assert (code, err.count("\n")) == (3, 1)
    assert "no sound snapshot there" in err
    (folder / "empty").mkdir()
    assert "no snapshots there" in inside("explain", folder / "empty", "--text", "a")[2]


def test_names_from_outside_do_not_steer_the_terminal(inside: Inside, tmp_path: Path) -> None:
    evil = "ev\x1b[31mil"
    model = HAROW(Taxonomy([(evil, None)]), n_features=64)
    model.learn_one({"a\x1b]0;x\x07": 1.0}, {evil})
    snapshot.save(tmp_path / "m.snap", model)
    (tmp_path / "d.jsonl").write_text(
        json.dumps({"id": "\x1b[2J", "features": {"a\x1b]0;x\x07": 1.0}}) + "\n"
    )
    code, out, _ = inside("explain", tmp_path / "m.snap", tmp_path / "d.jsonl")
    assert code == 0
    assert "ev\\x1b[31mil" in out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_words_that_share_a_column_stand_together() -> None:
    vectorizer = TextVectorizer(n_features=1)
    vectorizer.learn(["first"])
    document = Document("1", "second third second")
    assert names_in(document, [0], vectorizer, 1) == {0: "second / third (shares a column with first)"}
    assert names_in(Document("1", "first"), [0], vectorizer, 1) == {0: "first"}
    long = "w" * 100
    vectorizer = TextVectorizer(n_features=1)
    vectorizer.learn([long])
    assert names_in(Document("1", long), [0], vectorizer, 1) == {0: long}
    assert names_in(document, [0], None, 1) == {0: "#0"}


def test_kmers_have_names() -> None:
    vectorizer = SequenceVectorizer(n_features=4096, k=(3, 3))
    columns = vectorizer.transform(["MELP"]).indices.tolist()
    names = names_in(Document("1", "MELP"), columns, vectorizer, 4096)
    assert sorted(names.values()) == ["E.P", "ELP", "M.L", "MEL"]
    assert all(int(hash_features([name])[0]) % 4096 == column for column, name in names.items())
