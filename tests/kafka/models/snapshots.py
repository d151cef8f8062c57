"""Snapshots of small jobs and shards, and their models as records, for tests of what is published."""

import msgspec

from consumers.models.chunks import Record, chunks_of, count_chunks, digest_of, digests_of
from consumers.models.content import extract
from consumers.models.manifest import Manifest, ShardKey
from stream_hc import Taxonomy, snapshot
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import Config, ModelConfig
from stream_hc.runtime.jsonl import Line
from stream_hc.sharding import Plan

TREE = Taxonomy([("a", None), ("b", None), ("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")])
PLAN = Plan.cut(TREE, 2)
WHOLE = ShardKey(0, 1)


def config(learner="h-arow"):
    return Config(model=ModelConfig(learners=[learner], n_features=64))


def lines(n, first=0):
    """Return documents with labels."""
    leaves = ("a1", "a2", "b1", "b2")
    records = [
        {"id": f"d{k}", "text": f"word{k % 4} word{k % 3}", "labels": [leaves[k % 4]]}
        for k in range(first, first + n)
    ]
    return [Line(place, msgspec.json.encode(record)) for place, record in enumerate(records)]


def processor(n=8, shard=None, learner="h-arow"):
    """Return a processor that has learned some documents."""
    made = build_processor(config(learner), TREE, shard=shard)
    made.process(lines(n))
    return made


def saved(path, n=8, shard=None, learner="h-arow"):
    """Save one, and return the path as text."""
    snapshot.save(path, processor(n, shard, learner).parts())
    return str(path)


def records(path, key=WHOLE, slot=0, chunk=500, version="v1", **changes):
    """Return what a trainer writes about a snapshot; `changes` are lies of the manifest."""
    model = extract(path)
    digests = digests_of(model.data, chunk)
    told = {"plan": model.plan, "saved": model.saved, "sha256": digest_of(digests)}
    manifest = Manifest(
        version=version,
        job="job",
        snapshot=1,
        records=model.records,
        learned=model.learned,
        model=model.model,
        size=len(model.data),
        chunk=chunk,
        slot=slot,
        chunks=count_chunks(len(model.data), chunk),
        **told | changes,
    )
    return [*chunks_of(key, manifest, model.data, digests), Record(str(key), manifest.encode())]
