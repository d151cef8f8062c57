"""What a version of a model consists of: taken out of a snapshot here, put to use there."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import stream_hc.runtime.processor  # noqa: F401 (snapshots are read by the names it registers)
from stream_hc.learners import OnlineLearner
from stream_hc.maxmargin import HM3
from stream_hc.runtime.processor import FITTED, ONLINE
from stream_hc.runtime.progress import Progress
from stream_hc.sharding import Plan, Shard, join_learners
from stream_hc.snapshot import SnapshotError, copy_parts, inspect, load, load_bytes
from stream_hc.vectorize import SequenceVectorizer, TextVectorizer

__all__ = ["Content", "Extract", "extract", "headline", "joined", "read_content"]

MODEL, VECTORIZER, SHARD = "model", "vectorizer", "shard"


class Extract(NamedTuple):
    """The model that answers in a snapshot, as bytes, and what is said about it."""

    model: str
    records: int
    learned: int
    plan: str
    saved: float
    data: bytes


class Content(NamedTuple):
    """A model, with the vectorizer of its documents; that of a shard but the first one comes without."""

    model: OnlineLearner | HM3
    vectorizer: TextVectorizer | SequenceVectorizer | None
    shard: Shard | None


def headline(path: str) -> tuple[int, str]:
    """Return how many records a snapshot includes, and who answers: if both are the same, so is the model.

    That takes a look at the header only.
    """
    progress = _progress(path)
    return progress.records, progress.champion


def _progress(path: str) -> Progress:
    scalars = {part.name: dict(part.scalars) for part in inspect(path).parts}
    if "progress" not in scalars:
        raise SnapshotError(f"{path}: not the snapshot of a job")
    return Progress.from_state(scalars["progress"])


def extract(path: str) -> Extract:
    """Take the model that answers out of the snapshot of a job; `SnapshotError` if there is none.

    Shards see the same documents, so their vectorizers are the same: the first one's is enough.
    """
    found = {part.name: dict(part.scalars) for part in inspect(path).parts}
    progress = _progress(path)
    name = progress.champion
    own = next((part for part in (ONLINE + name, FITTED + name) if part in found), None)
    if own is None:
        raise SnapshotError(f"{path}: the snapshot lacks the model {name}")
    is_shard = SHARD in found
    names = {own: MODEL} | ({SHARD: SHARD} if is_shard else {})
    if not is_shard or found[SHARD]["number"] == 0:
        names[VECTORIZER] = VECTORIZER
    plan = load(path, lambda part: part == SHARD)[SHARD].digest if is_shard else ""
    is_online = own == ONLINE + name
    learned = int(str(found[own]["t"])) if is_online else progress.fitted_versions[name]
    saved = os.stat(path).st_mtime
    data = copy_parts(path, names)
    return Extract(name if is_online else "hm3", progress.records, learned, plan, saved, data)


def read_content(data: bytes) -> Content:
    """Return what `extract` put into bytes; `SnapshotError` or `ValueError` for anything else."""
    parts: Any = load_bytes(data)
    if not isinstance(parts, Mapping) or MODEL not in parts:
        raise SnapshotError("the bytes are not those of a model")
    model, vectorizer, shard = (parts.get(name) for name in (MODEL, VECTORIZER, SHARD))
    if not isinstance(model, OnlineLearner | HM3) or model.taxonomy is None:
        raise SnapshotError(f"{type(model).__name__} is no model that predicts")
    if not isinstance(shard, Shard | None):
        raise SnapshotError(f"{type(shard).__name__} is no shard")
    if not isinstance(vectorizer, TextVectorizer | SequenceVectorizer | None):
        raise SnapshotError(f"{type(vectorizer).__name__} is no vectorizer")
    if vectorizer is None and (shard is None or shard.number == 0):
        raise SnapshotError("the model comes without its vectorizer")
    if vectorizer is not None and vectorizer.n_features != model.n_features:
        raise SnapshotError("model and vectorizer do not have the same features")
    return Content(model, vectorizer, shard)


def joined(parts: Sequence[Content]) -> Content:
    """Return the whole from the models of all its shards, in their order; `ValueError` if they do not fit.

    They need not have learned equally much: each node is as its owner has it.
    """
    if len(parts) == 1 and parts[0].shard is None:
        return parts[0]
    shards = [part.shard for part in parts if part.shard is not None]
    if [shard.number for shard in shards] != list(range(len(parts))) or shards[0].n_shards != len(parts):
        raise ValueError("not one model of each shard")
    models = [part.model for part in parts if isinstance(part.model, OnlineLearner)]
    whole = join_learners(Plan(shards[0].whole, shards[0].owner), models, level=False)
    return Content(whole, parts[0].vectorizer, None)
