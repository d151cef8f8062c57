"""Processors of shards: fed the same lines, they become together what one processor becomes alone."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc import HAROW, HPA, NodePA, Taxonomy
from stream_hc.runtime import Config, Job, Processor, build_processor
from stream_hc.runtime.config import (
    JudgeConfig,
    LabelsConfig,
    ModelConfig,
    RefitConfig,
    StateConfig,
    StreamConfig,
)
from stream_hc.sharding import Plan, join_learners
from stream_hc.snapshot import SnapshotError, dump_bytes, load_bytes
from tests.runtime.streams import jumbled, lines_of, news
from tests.sharding import naive
from tests.strategies import dags, examples, forests, label_sets, size

KINDS = {
    "h-perceptron": {},
    "perceptron": {},
    "h-arow": {"threshold": "learned"},
    "node-pa": {},
    "h-rls": {"budget": 3},
}
every_kind = pytest.mark.parametrize("kind", KINDS)
WORDS = ["ace", "ball", "vote", "party", "net", "law"]


def config_of(kind, changed="ignore", **more):
    model = ModelConfig(learners=[kind], n_features=64, settings={kind: KINDS[kind]} if KINDS[kind] else {})
    labels = LabelsConfig(changed=changed, documents=5, early=3, seconds=20.0)
    return Config(
        **{
            "model": model,
            "labels": labels,
            "judge": JudgeConfig(every=2, sample=5),
            "refit": RefitConfig(window=6, enabled=False),
            **more,
        }
    )


@st.composite
def records(draw, taxonomy, max_size=25):
    """Documents and labels in any order, of few ids so that they meet, wait, change and come twice."""
    found, now = [], 0.0
    for _ in range(draw(st.integers(0, max_size))):
        name, labels = draw(st.sampled_from("abcdef")), sorted(draw(label_sets(taxonomy)))
        text = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=4)))
        match draw(st.integers(0, 9)):
            case 0 | 1 | 2:
                found.append({"id": name, "text": text})
            case 3 | 4:
                found.append({"id": name, "text": text, "labels": labels})
            case 5 | 6 | 7:
                found.append({"id": name, "labels": labels})
            case 8:
                found.append(draw(st.sampled_from([b"{", {"id": name, "labels": ["none"]}, {"id": name}])))
            case _:
                now += draw(st.sampled_from([1.0, 25.0]))
                found.append(now)  # a tick
    return found


def feed(processor, found):
    """Let records and ticks come; return what was rejected."""
    rejects, lines = [], []
    for number, record in enumerate([*found, None], 1):
        if record is None or isinstance(record, float):
            rejects += processor.process(lines).rejects
            lines = []
            if record is not None:
                processor.tick(record)
        else:
            lines.append(lines_of([record])[0]._replace(number=number))
    return [(line, error.reason, str(error)) for line, error in rejects]


def learner_of(processor):
    (model,) = processor.line_up.online.values()
    return model.learner


def assert_same(plan, shards, one):
    joined = join_learners(plan, [learner_of(each) for each in shards])
    assert dump_bytes(joined) == dump_bytes(learner_of(one))
    for each in shards:
        assert dump_bytes(each.vectorizer) == dump_bytes(one.vectorizer)
        assert each.room.census() == one.room.census()
        assert dump_bytes(each.contest.window) == dump_bytes(one.contest.window)
        assert each.progress == one.progress


def plans(taxonomy):
    return st.builds(Plan.cut, st.just(taxonomy), st.integers(1, min(4, len(naive.groups(taxonomy)))))


@every_kind
@pytest.mark.parametrize("changed", ["ignore", "learn"])
@settings(max_examples=examples(30))
@given(st.data())
def test_shards_join_to_what_one_processor_becomes(kind, changed, data):
    taxonomy = data.draw(forests() if kind == "h-perceptron" else st.one_of(forests(), dags()))
    plan, config = data.draw(plans(taxonomy)), config_of(kind, changed)
    one = build_processor(config, taxonomy)
    shards = [build_processor(config, taxonomy, shard=shard) for shard in plan.shards]
    for each, shard in zip(shards, plan.shards, strict=True):
        assert (each.taxonomy, each.whole, each.shard) == (shard.taxonomy, taxonomy, shard)
    found = data.draw(records(taxonomy))
    until = data.draw(st.integers(0, len(found)))
    expected = feed(one, found[:until])
    for each in shards:
        assert feed(each, found[:until]) == expected
    # A state that was saved and loaded goes on the same.
    saved = [load_bytes(dump_bytes(each.parts())) for each in shards]
    pairs = list(zip(saved, plan.shards, strict=True))
    shards = [Processor.from_parts(parts, config, shard=shard) for parts, shard in pairs]
    assert [dump_bytes(each.parts()) for each in shards] == [dump_bytes(parts) for parts in saved]
    expected = feed(one, found[until:])
    for each in shards:
        assert feed(each, found[until:]) == expected
    assert_same(plan, shards, one)


@pytest.mark.parametrize("kind", ["h-arow", "h-rls"])
def test_news_that_come_late_twice_and_changed(kind):
    data = news(size(300, 40))
    model = ModelConfig(learners=[kind], n_features=2**12)
    labels = LabelsConfig(changed="learn")
    config, plan = Config(model=model, labels=labels), Plan.cut(data.taxonomy, 4)
    lines = lines_of(jumbled(data, seed=3))
    one = build_processor(config, data.taxonomy)
    shards = [build_processor(config, data.taxonomy, shard=shard) for shard in plan.shards]
    for each in (one, *shards):
        each.process(lines)
    assert_same(plan, shards, one)
    for each in shards:  # what a shard answers and counts is what one processor does there, in a forest
        columns = each.shard.columns
        assert (each.nodes.all().counts == one.nodes.all().counts[columns]).all()


TREE = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None), ("party", "politics")])
PLAN = Plan.cut(TREE, 3)


def test_labels_of_other_shards_decide_what_has_changed():
    """No node of shard 1 changes between the two, but for the whole taxonomy the labels have."""
    first, second = {"id": "a", "labels": ["tennis"]}, {"id": "a", "labels": ["tennis", "party"]}
    shard = next(each for each in PLAN.shards if "party" not in each.taxonomy.nodes and each.number)
    processor = build_processor(config_of("node-pa", "learn"), TREE, shard=shard)
    processor.process(lines_of([{"id": "a", "text": "ace"}, first, first, second]))
    assert processor.room.census().outcomes == {"joined": 1, "duplicate": 1, "changed": 1}
    assert learner_of(processor).n_learned == 2


def test_losses_and_answers_are_those_of_the_nodes_of_the_shard():
    shard = next(each for each in PLAN.shards if "tennis" in each.taxonomy.nodes)
    model = msgspec.structs.replace(config_of("h-arow").model, costs="normalized")
    processor = build_processor(config_of("h-arow", model=model), TREE, shard=shard)
    document = {"id": "a", "text": "ace", "labels": ["tennis"]}
    processor.process(lines_of([document]))
    # A root that is missed costs its share of all roots, not of those that are in the shard.
    assert processor.contest.board.score("h-arow").mean == TREE.costs("normalized")[0] == 0.5
    (answers,) = processor.process(lines_of([document])).answers
    assert answers.predictions()[0].path_labels == ["sport", "tennis"]
    assert processor.nodes.n_nodes == 2


def test_the_state_of_another_shard_is_refused():
    config, other = config_of("node-pa"), Plan.cut(TREE, 2)
    parts = [build_processor(config, TREE, shard=shard).parts() for shard in PLAN.shards]
    with pytest.raises(SnapshotError, match=rf"that of shard 1 of 3 \(plan {PLAN.digest}\), not of shard 0"):
        Processor.from_parts(parts[1], config, shard=PLAN.shards[0])
    with pytest.raises(SnapshotError, match=r"that of shard 1 of 3 .*, not of a whole taxonomy"):
        Processor.from_parts(parts[1], config)
    with pytest.raises(SnapshotError, match=rf"not of shard 1 of 2 \(plan {other.digest}\)"):
        Processor.from_parts(parts[1], config, shard=other.shards[1])
    whole = build_processor(config, TREE).parts()
    assert "shard" not in whole
    with pytest.raises(SnapshotError, match="that of a whole taxonomy, not of shard 0 of 3"):
        Processor.from_parts(whole, config, shard=PLAN.shards[0])
    with pytest.raises(SnapshotError, match="do not fit together"):
        Processor.from_parts(
            {**parts[1], "nodes": parts[0]["nodes"], "learner node-pa": 7}, config, None, PLAN.shards[1]
        )


def test_what_a_shard_cannot_be():
    shard = PLAN.shards[0]
    two = ModelConfig(learners=["node-pa", "h-arow"], n_features=64)
    with pytest.raises(ValueError, match=r"one learner, not 2: leave one in model\.learners"):
        build_processor(config_of("node-pa", model=two), TREE, shard=shard)
    with pytest.raises(ValueError, match="HPA cannot be sharded"):
        Processor(TREE, {"hpa": HPA(shard.taxonomy)}, config=config_of("node-pa"), shard=shard)
    with pytest.raises(ValueError, match=r"set refit\.enabled = false"):
        build_processor(config_of("node-pa", refit=RefitConfig(enabled=True)), TREE, shard=shard)
    with pytest.raises(ValueError, match="that of another taxonomy"):
        build_processor(config_of("node-pa"), Taxonomy([("a", None)]), shard=shard)
    with pytest.raises(ValueError, match="made for another taxonomy"):
        Processor(TREE, {"node-pa": NodePA(TREE)}, config=config_of("node-pa"), shard=shard)
    dag = Taxonomy([("a", None), ("b", None), ("c", "a"), ("c", "b"), ("d", "c")])
    with pytest.raises(ValueError, match="a path may depend on nodes of other shards"):
        build_processor(config_of("h-perceptron"), dag, shard=Plan.cut(dag, 2).shards[0])
    assert Processor(TREE, {"h-arow": HAROW(TREE)}).whole == TREE


def test_a_job_goes_on_with_its_own_shard_alone(tmp_path):
    document = {"id": "a", "text": "ace", "labels": ["party"]}
    (tmp_path / "in.jsonl").write_text(json.dumps(document) + "\n")
    stream = StreamConfig(documents=str(tmp_path / "in.jsonl"), output=str(tmp_path / "out.jsonl"))
    config = config_of("node-pa", stream=stream, state=StateConfig(folder=str(tmp_path / "state")))

    def job(shard, taxonomy=TREE):
        return Job(
            config,
            lambda fetch: build_processor(config, taxonomy, fetch, shard),
            taxonomy=taxonomy,
            shard=shard,
        )

    job(PLAN.shards[1]).run()
    again = job(PLAN.shards[1])
    again.run()
    assert (again.processor.shard, again.processor.whole) == (PLAN.shards[1], TREE)
    assert again.processor.progress.documents == 1
    with pytest.raises(SnapshotError, match=r"that of shard 1 of 3 .*, not of shard 2 of 3"):
        job(PLAN.shards[2]).run()
    with pytest.raises(SnapshotError, match="not of a whole taxonomy"):
        job(None).run()
    other = Taxonomy([("a", None), ("b", "a")])
    with pytest.raises(SnapshotError, match=r"the taxonomy has changed \(4 nodes, now 2\)"):
        job(Plan.cut(other, 2).shards[1], other).run()
