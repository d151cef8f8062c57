"""States brought from one plan to another in the middle of a stream, in memory and in folders."""

import json
import os

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc import Taxonomy
from stream_hc.runtime import Config, Processor, build_processor
from stream_hc.runtime.config import ModelConfig, RefitConfig, StateConfig
from stream_hc.runtime.disk import KeeperLocked, Place, StateFolder, Tick
from stream_hc.runtime.resharding import folders as folders_module
from stream_hc.runtime.resharding import reshard, reshard_folders
from stream_hc.sharding import Plan
from stream_hc.snapshot import SnapshotError, dump_bytes, load_bytes
from tests.runtime.streams import jumbled, lines_of, news
from tests.runtime.test_sharded import assert_same, config_of, every_kind, feed, learner_of, plans, records
from tests.strategies import dags, examples, forests, size


def build(config, taxonomy, plan):
    shards = [None] if plan is None else plan.shards
    return [build_processor(config, taxonomy, shard=shard) for shard in shards]


def resharded(processors, plan, config):
    """Processors that go on by another plan, through snapshots."""
    made = reshard([load_bytes(dump_bytes(each.parts())) for each in processors], plan, config)
    shards = [None] if plan is None else plan.shards
    pairs = [(load_bytes(dump_bytes(parts)), shard) for parts, shard in zip(made, shards, strict=True)]
    return [Processor.from_parts(parts, config, shard=shard) for parts, shard in pairs]


@every_kind
@pytest.mark.parametrize("changed", ["ignore", "learn"])
@settings(max_examples=examples(30))
@given(st.data())
def test_a_stream_goes_on_as_if_it_had_always_been_cut_so(kind, changed, data):
    taxonomy = data.draw(forests() if kind == "h-perceptron" else st.one_of(forests(), dags()))
    old, new = (data.draw(st.one_of(st.none(), plans(taxonomy))) for _ in range(2))
    config = config_of(kind, changed)
    one = build_processor(config, taxonomy)
    found = data.draw(records(taxonomy))
    until = data.draw(st.integers(0, len(found)))
    before = build(config, taxonomy, old)
    for each in (one, *before):
        feed(each, found[:until])
    after = resharded(before, new, config)
    expected = feed(one, found[until:])
    for each in after:
        assert feed(each, found[until:]) == expected
    if new is None:
        assert dump_bytes(learner_of(after[0])) == dump_bytes(learner_of(one))
        if taxonomy.is_tree:  # what waits is judged by the same predictions
            assert dump_bytes(after[0].room) == dump_bytes(one.room)
            assert dump_bytes(after[0].nodes) == dump_bytes(one.nodes)
    else:
        assert_same(new, after, one)


@pytest.mark.parametrize("kind", ["h-arow", "h-perceptron", "node-pa"])
def test_shards_that_read_in_different_orders_keep_what_each_owner_knows(kind):
    data = news(size(120, 48))
    config = Config(
        model=ModelConfig(learners=[kind], n_features=2**12), refit=RefitConfig(enabled=False, window=500)
    )
    plan, lines = Plan.cut(data.taxonomy, 2), lines_of(jumbled(data, seed=5))
    one, other = build(config, data.taxonomy, plan)
    one.process(lines)
    other.process(lines[::-1])
    olds = [each.parts() for each in (one, other)]
    with pytest.raises(ValueError, match="in another order"):
        reshard(olds, None, config)
    [parts] = reshard(olds, None, config, any_order=True)
    whole = Processor.from_parts(load_bytes(dump_bytes(parts)), config)
    rows = whole.vectorizer.transform(["some words of the news", "goal minister market"])
    margins = learner_of(whole).margins(rows)
    for shard, each in zip(plan.shards, (one, other), strict=True):
        own = learner_of(each).margins(rows)[:, shard.own]
        assert margins[:, shard.columns[shard.own]].tolist() == own.tolist()
    # What waits has the predictions of its owners, by its id.
    waiting = whole.room._documents
    assert list(waiting) == list(one.room._documents)
    for name, document in waiting.items():
        found = set(np.frombuffer(document.predicted[0], np.int32).tolist())
        expected = set()
        for shard, each in zip(plan.shards, (one, other), strict=True):
            there = each.room._documents.get(name)
            nodes = (
                np.frombuffer(there.predicted[0], np.int32) if there is not None else np.zeros(0, np.int32)
            )
            expected |= set(shard.columns[nodes[shard.own[nodes]]].tolist())
        assert found >= expected
        assert whole.taxonomy.close({whole.taxonomy.nodes[n] for n in expected}) == {
            whole.taxonomy.nodes[n] for n in found
        }
    whole.process(lines_of(jumbled(data, seed=6)))  # and it goes on
    less = build(config, data.taxonomy, plan)[1]
    less.process(lines[:5])
    with pytest.raises(ValueError, match="records: not the same"):
        reshard([one.parts(), less.parts()], None, config, any_order=True)


@pytest.mark.parametrize("kind", ["h-arow", "h-rls"])
def test_news_through_many_plans(kind):
    data = news(size(240, 48))
    config = Config(
        model=ModelConfig(learners=[kind], n_features=2**12), refit=RefitConfig(enabled=False, window=500)
    )
    lines, one = lines_of(jumbled(data, seed=5)), build_processor(config, data.taxonomy)
    many, step = [build_processor(config, data.taxonomy)], len(lines) // 4
    for place, n_shards in enumerate((3, 5, 2, None)):
        plan = None if n_shards is None else Plan.cut(data.taxonomy, n_shards)
        part = lines[place * step : (place + 1) * step]
        many = resharded(many, plan, config)
        for each in (one, *many):
            each.process(part)
    assert dump_bytes(learner_of(many[0])) == dump_bytes(learner_of(one))
    assert dump_bytes(many[0].room) == dump_bytes(one.room)
    assert dump_bytes(many[0].nodes) == dump_bytes(one.nodes)
    assert many[0].room.n_documents > 0


TREE = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None), ("party", "politics")])
TWO, THREE = Plan.cut(TREE, 2), Plan.cut(TREE, 3)
CONFIG = config_of("h-arow")
LINES = lines_of([{"id": name, "text": "ace " + name, "labels": ["party"]} for name in "abc"])


def parts_of(plan=THREE, lines=LINES, config=CONFIG):
    processors = build(config, TREE, plan)
    for each in processors:
        each.process(lines)
    return [each.parts() for each in processors]


def test_the_order_of_the_states_is_free_and_they_stay_as_they_were():
    parts = parts_of()
    before = [dump_bytes(each) for each in parts]
    one, other = reshard(parts, TWO, CONFIG), reshard(parts[::-1], TWO, CONFIG)
    assert [dump_bytes(each) for each in one] == [dump_bytes(each) for each in other]
    assert [dump_bytes(each) for each in parts] == before
    assert one[0]["vectorizer"] is not one[1]["vectorizer"]  # each goes on by itself
    (same,) = reshard(parts_of(None), None, CONFIG)
    assert dump_bytes(same) == dump_bytes(parts_of(None)[0])
    assert one[0]["scores"].n_scored == 0


def test_what_is_missing_behind_or_of_another_plan_is_named():
    parts = parts_of()
    with pytest.raises(ValueError, match="of 3 shards these are missing: 0, 2"):
        reshard(parts[1:2], TWO, CONFIG)
    with pytest.raises(ValueError, match="shard 1 is there twice"):
        reshard([*parts, parts[1]], TWO, CONFIG)
    with pytest.raises(ValueError, match="shards are of different plans"):
        reshard([parts[0], *parts_of(TWO)], THREE, CONFIG)
    with pytest.raises(ValueError, match="2 states, 1 of them of a shard"):
        reshard([parts[0], *parts_of(None)], TWO, CONFIG)
    with pytest.raises(ValueError, match="0 states"):
        reshard([], TWO, CONFIG)
    behind = parts_of(lines=LINES[:2])
    with pytest.raises(ValueError, match="behind the others: shard 1 by 1 records and 1 learned"):
        reshard([parts[0], behind[1], parts[2]], TWO, CONFIG)
    mixed = parts_of(lines=LINES[::-1])
    with pytest.raises(ValueError, match=r"shards 0 and 2 differ in their part waiting: .* in another order"):
        reshard([*parts[:2], mixed[2]], TWO, CONFIG)
    with pytest.raises(ValueError, match="the plan is that of another taxonomy"):
        reshard(parts, Plan.cut(Taxonomy([("a", None), ("b", "a")]), 2), CONFIG)


def test_what_cannot_be_cut_is_refused():
    two = msgspec.structs.replace(CONFIG, model=ModelConfig(learners=["h-arow", "node-pa"], n_features=64))
    with pytest.raises(ValueError, match="one learner and no re-fits, not h-arow, node-pa"):
        reshard(parts_of(None, config=two), TWO, two)
    hpa = msgspec.structs.replace(CONFIG, model=ModelConfig(learners=["hpa"], n_features=64))
    with pytest.raises(ValueError, match="HPA cannot be sharded"):
        reshard(parts_of(None, config=hpa), TWO, hpa)
    with pytest.raises(SnapshotError, match="the snapshot has the learners h-arow, the configuration hpa"):
        reshard(parts_of(), TWO, hpa)
    other = msgspec.structs.replace(CONFIG.model, n_features=128)
    with pytest.raises(SnapshotError, match=r"made with model\.n_features = 64, not 128"):
        reshard(parts_of(), TWO, msgspec.structs.replace(CONFIG, model=other))
    waiting = parts_of(None, lines=lines_of([{"id": "a", "text": "ace"}]))
    (document,) = waiting[0]["waiting"]._documents.values()
    document.lineup, document.predicted = ("h-arow", "hm3-1"), (b"", b"")
    with pytest.raises(ValueError, match="predictions of models that are gone"):
        reshard(waiting, TWO, CONFIG)


# Folders

PLACE = Place(offsets={"docs-0": 3, "labels-0": 0}, journal=0, job="old", stamp=5.0, lengths={"log": 7})


def folder(path, parts, place=PLACE):
    with StateFolder(StateConfig(folder=str(path))) as state:
        state.save(parts, place, ())
    return str(path)


@pytest.fixture
def sources(tmp_path):
    return [folder(tmp_path / f"old-{number}", parts) for number, parts in enumerate(parts_of())]


def targets_in(tmp_path, n):
    return [str(tmp_path / f"new-{number}") for number in range(n)]


def test_folders_go_on_where_the_old_ones_stopped(tmp_path, sources):
    targets, kept = targets_in(tmp_path, 2), {path: sorted(os.listdir(path)) for path in sources}
    os.mkdir(targets[1])  # may be there if it is empty
    assert reshard_folders(sources, targets, TWO, CONFIG) == [1, 1]
    jobs = set()
    expected = reshard(parts_of(), TWO, CONFIG)
    for path, shard, parts in zip(targets, TWO.shards, expected, strict=True):
        with StateFolder(StateConfig(folder=path)) as state:
            assert dump_bytes(state.loaded.parts) == dump_bytes(parts)
            assert list(state.journal.after(0)) == []
            place = state.place
        assert Processor.from_parts(state.loaded.parts, CONFIG, shard=shard).progress.records == 3
        assert (place.offsets, place.stamp, place.journal, place.lengths) == (PLACE.offsets, 5.0, 0, {})
        jobs.add(place.job)
    assert len(jobs | {"old", ""}) == 4
    assert {path: sorted(os.listdir(path)) for path in sources} == kept
    whole = str(tmp_path / "whole")
    assert reshard_folders(targets[::-1], [whole], None, CONFIG) == [1]
    with StateFolder(StateConfig(folder=whole)) as state:
        assert dump_bytes(learner_of(Processor.from_parts(state.loaded.parts, CONFIG))) == dump_bytes(
            parts_of(None)[0]["learner h-arow"]
        )


def test_folders_that_cannot_be_used(tmp_path, sources):
    targets = targets_in(tmp_path, 2)

    def refused(match, sources=sources, targets=targets, kind=ValueError):
        with pytest.raises(kind, match=match):
            reshard_folders(sources, targets, TWO, CONFIG)
        assert not any(os.path.exists(path) for path in targets_in(tmp_path, 2))

    refused("1 target folders for 2 shards", targets=targets[:1])
    refused("a folder of its own", targets=[targets[0], targets[0] + "/."])
    refused("a folder of its own", targets=[targets[0], sources[0]])
    refused("nowhere: no such folder", sources=[*sources[:2], str(tmp_path / "nowhere")])
    assert not (tmp_path / "nowhere").exists()
    os.mkdir(tmp_path / "empty")
    refused("empty: has no snapshot", sources=[*sources[:2], str(tmp_path / "empty")])
    refused("of 3 shards these are missing: 1", sources=[sources[0], sources[2]])
    parts = parts_of()[2]
    offsets = folder(
        tmp_path / "far", parts, msgspec.structs.replace(PLACE, offsets={"docs-0": 4, "labels-0": 0})
    )
    refused("in docs-0 .*old-0 is at 3, .*far at 4", sources=[*sources[:2], offsets])
    stamp = folder(tmp_path / "late", parts, msgspec.structs.replace(PLACE, stamp=6.0))
    refused("not read equally far: .*old-0 and .*late differ", sources=[*sources[:2], stamp])
    with StateFolder(StateConfig(folder=sources[1])) as state:
        refused("in use by the job with process id", kind=KeeperLocked)
        state.write(Tick(3, 9.0))
    refused("old-1: the journal has 1 entries behind the snapshot: start the job once more")


def test_a_target_that_holds_something_is_left_alone(tmp_path, sources):
    targets = targets_in(tmp_path, 2)
    os.mkdir(targets[1])
    (tmp_path / "new-1" / "notes.txt").write_text(json.dumps("mine"))
    with pytest.raises(ValueError, match="new-1: not an empty folder: choose a new one"):
        reshard_folders(sources, targets, TWO, CONFIG)
    assert os.listdir(targets[1]) == ["notes.txt"]
    assert not os.path.exists(targets[0])


def test_nothing_is_half_done(tmp_path, sources, monkeypatch):
    targets, real = targets_in(tmp_path, 2), StateFolder.save
    os.mkdir(targets[0])

    def failing(self, *rest):
        if self.path.name == "new-1":
            raise SnapshotError("no space left")
        return real(self, *rest)

    monkeypatch.setattr(folders_module.StateFolder, "save", failing)
    with pytest.raises(SnapshotError, match="no space left"):
        reshard_folders(sources, targets, TWO, CONFIG)
    assert os.listdir(targets[0]) == []
    assert not os.path.exists(targets[1])
    monkeypatch.undo()
    assert reshard_folders(sources, targets, TWO, CONFIG) == [1, 1]
