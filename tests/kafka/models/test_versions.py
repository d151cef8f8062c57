"""Models from snapshots: as the job had them, of one shard or of all, and what does not go together."""

import msgspec
import numpy as np
import pytest

from consumers.models.chunks import Assembler, Broken
from consumers.models.content import extract, joined, read_content
from consumers.models.manifest import ShardKey
from consumers.models.versions import Versions, newest_set
from consumers.predictor.served import ServedModel
from stream_hc import HM3, TextVectorizer, snapshot
from stream_hc.runtime.contenders import FittedModel
from stream_hc.runtime.jsonl import Line
from stream_hc.sharding import Plan
from stream_hc.snapshot import SnapshotError, dump_bytes
from tests.kafka.models.snapshots import PLAN, TREE, lines, processor, records, saved

KEYS = [ShardKey(number, 2) for number in range(2)]


def read(versions, written):
    """Hand records to versions; return what was refused."""
    assembler, refused = Assembler(), []
    for record in written:
        complete = assembler.add(record)
        if complete is not None:
            try:
                versions.add(complete)
            except Broken as problem:
                refused.append(str(problem))
    return refused


def shards(folder, n=(8, 8), **changes):
    return [
        record
        for key, count in zip(KEYS, n, strict=True)
        for record in records(saved(folder / f"{key}.snap", count, PLAN.shards[key.number]), key, **changes)
    ]


@pytest.mark.parametrize("learner", ["h-arow", "h-rls", "hpa"])
def test_a_model_is_that_of_the_snapshot(tmp_path, learner):
    versions = Versions()
    assert versions.whole() is None
    assert read(versions, records(saved(tmp_path / "a.snap", learner=learner))) == []
    [manifest], content = versions.whole()
    calm = processor(learner=learner)
    assert dump_bytes(content.model) == dump_bytes(calm.line_up.online[learner].learner)
    assert dump_bytes(content.vectorizer) == dump_bytes(calm.vectorizer)
    assert (manifest.model, manifest.learned, manifest.records) == (learner, 8, 8)


@pytest.mark.parametrize("n", [(8, 8), (8, 5), (3, 8)])
def test_shards_become_one_model(tmp_path, n):
    """Each node is as its owner has it, also where one shard is ahead."""
    versions = Versions()
    first, second = shards(tmp_path, n)[: len(shards(tmp_path, n)) // 2], shards(tmp_path, n)
    assert read(versions, first) == []
    assert versions.whole() is None, "one is missing"
    assert read(versions, second) == []
    manifests, content = versions.whole()
    served = ServedModel(manifests, content)
    assert (served.learned, served.taxonomy) == (min(n), TREE)
    rows = TextVectorizer(n_features=64).transform(["word1 word2", "word0", "word3 word1"])
    margins = content.model.margins(rows)
    for shard, count in zip(PLAN.shards, n, strict=True):
        alone = processor(count, shard).line_up.online["h-arow"].learner.margins(rows)
        np.testing.assert_array_equal(margins[:, shard.columns[shard.own]], alone[:, shard.own])
    if n == (8, 8):
        assert dump_bytes(content.model) == dump_bytes(processor().line_up.online["h-arow"].learner)
    assert dump_bytes(content.vectorizer) == dump_bytes(processor(n[0]).vectorizer)


def test_a_fitted_model_that_answers_is_published(tmp_path):
    calm = processor(8)
    model = HM3(TREE, n_features=64, max_epochs=2)
    model.fit(calm.vectorizer.transform(["word1 word2"] * 8), [["a1"]] * 8)
    calm.line_up.add("hm3-1", FittedModel(model, 6))
    calm.promote("hm3-1")
    snapshot.save(tmp_path / "a.snap", calm.parts())
    found = extract(str(tmp_path / "a.snap"))
    assert (found.model, found.learned, found.plan) == ("hm3", 6, "")
    versions = Versions()
    assert read(versions, records(str(tmp_path / "a.snap"))) == []
    served = ServedModel(*versions.whole())
    answered = served.answer([Line(0, b'{"id": "x", "text": "word1"}'), Line(1, b"{")])
    [prediction] = answered.answers.predictions()
    assert (prediction.model, prediction.model_version) == ("hm3", 6)
    assert [error.reason for _, error in answered.rejects] == ["not_json"]


def test_a_served_model_answers_as_the_job_would_and_never_learns(tmp_path):
    versions = Versions()
    read(versions, records(saved(tmp_path / "a.snap")))
    served = ServedModel(*versions.whole())
    before = dump_bytes(served._preparer.vectorizer)
    served.warm_up()
    found = served.answer([*lines(6, first=8), Line(9, b'{"id": "z", "labels": ["a1"]}')])
    assert [prediction.id for prediction in found.answers.predictions()] == [f"d{k}" for k in range(8, 14)]
    assert {prediction.model_version for prediction in found.answers.predictions()} == {8}
    assert dump_bytes(served._preparer.vectorizer) == before
    learner = processor().line_up.online["h-arow"].learner
    texts = [msgspec.json.decode(line.data)["text"] for line in lines(6, first=8)]
    expected = TREE.decode(learner.predict_many(processor().vectorizer.transform(texts)))
    assert [set(prediction.path_labels) for prediction in found.answers.predictions()] == expected
    assert served.age(served.saved + 5) == 5.0
    assert served.age(served.saved - 5) == 0.0
    assert served.name == "v1"


def test_what_does_not_go_together(tmp_path):
    versions, other = Versions(), Plan(TREE, 1 - PLAN.owner)
    good = shards(tmp_path)
    assert read(versions, good) == []
    kept = versions.whole()[0]
    wrong_cut = saved(tmp_path / "w.snap", 8, other.shards[0])
    assert read(versions, records(wrong_cut, KEYS[0], version="v2")) == []
    assert versions.whole() is None, "shards of two plans are no model"
    assert read(versions, records(str(tmp_path / "0-of-2.snap"), KEYS[0])) == []
    assert versions.whole()[0] == kept
    # A version of another shard, or of the whole, under this key.
    assert (
        "it holds shard 1 of 2"
        in read(versions, records(str(tmp_path / "1-of-2.snap"), KEYS[0], version="v3"))[0]
    )
    assert (
        "it holds shard 0 of 1"
        in read(versions, records(saved(tmp_path / "a.snap"), KEYS[0], version="v4"))[0]
    )
    assert (
        "shard 0 of 2"
        in read(versions, records(str(tmp_path / "0-of-2.snap"), KEYS[0], version="v5", plan="x"))[0]
    )
    # Other learners.
    odd = saved(tmp_path / "odd.snap", 8, PLAN.shards[1], "node-pa")
    assert read(versions, records(odd, KEYS[1], version="v6")) == []
    with pytest.raises(Broken, match="2 shards do not go together: the learner of shard 0 is HAROW"):
        versions.whole()


def test_the_newest_complete_cut_counts(tmp_path):
    [whole] = [records(saved(tmp_path / "a.snap"), saved=5.0)]
    versions = Versions()
    read(versions, whole)
    assert len(versions.whole()[0]) == 1
    two = shards(tmp_path, saved=7.0)
    read(versions, two[: len(two) // 2])
    assert len(versions.whole()[0]) == 1
    read(versions, two)
    assert len(versions.whole()[0]) == 2
    read(versions, records(str(tmp_path / "a.snap"), saved=9.0, version="v3"))
    assert [manifest.version for manifest in versions.whole()[0]] == ["v3"]
    assert newest_set({}) is None


def test_bytes_that_are_no_model(tmp_path):
    made = processor()
    learner, vectorizer = made.line_up.online["h-arow"].learner, made.vectorizer
    for parts, words in (
        (learner, "not those of a model"),
        ({"vectorizer": vectorizer}, "not those of a model"),
        ({"model": vectorizer}, "is no model that predicts"),
        ({"model": learner, "vectorizer": vectorizer, "shard": learner}, "is no shard"),
        ({"model": learner, "vectorizer": learner}, "is no vectorizer"),
        ({"model": learner}, "without its vectorizer"),
        ({"model": learner, "vectorizer": TextVectorizer(n_features=32)}, "same features"),
    ):
        with pytest.raises(SnapshotError, match=words):
            read_content(dump_bytes(parts))
    with pytest.raises(SnapshotError):
        read_content(b"nothing of the kind")
    snapshot.save(tmp_path / "model.snap", {"learner": learner})
    with pytest.raises(SnapshotError, match="not the snapshot of a job"):
        extract(str(tmp_path / "model.snap"))
    parts = {name: part for name, part in made.parts().items() if name != "learner h-arow"}
    snapshot.save(tmp_path / "less.snap", parts)
    with pytest.raises(SnapshotError, match="lacks the model h-arow"):
        extract(str(tmp_path / "less.snap"))
    content = read_content(extract(saved(tmp_path / "s.snap", 8, PLAN.shards[0])).data)
    with pytest.raises(ValueError, match="not one model of each shard"):
        joined([content])
