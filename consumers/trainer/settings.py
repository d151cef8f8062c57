"""The configuration of a trainer, from that of the job which all its processes share."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from consumers.errors import KafkaProblem
from consumers.models.manifest import ShardKey
from consumers.predicting import MODELS
from stream_hc.runtime.config import Config

__all__ = ["letters_about", "shard_folder", "trainer_config", "trainer_group"]


def trainer_group(group: str, key: ShardKey) -> str:
    """Return the group of the trainers of a shard: one of them reads, the others stand by.

    >>> trainer_group("news", ShardKey(1, 4))
    'news-train-1-of-4'
    """
    return f"{group}-train-{key}"


def shard_folder(folder: str, key: ShardKey) -> str:
    """Return the state folder of a shard, which is 0-of-1 if there are no others."""
    return str(Path(folder) / str(key))


def trainer_config(config: Config, key: ShardKey) -> Config:
    """Return the configuration of a trainer.

    It publishes no predictions. Of the trainers of several shards the first one alone writes dead letters,
    and none of them events, since each knows a part of the losses only.
    """
    kafka, folder = config.kafka, config.state.folder
    if folder is None:
        raise KafkaProblem("a trainer needs a folder for what it knows: --state DIR, or state.folder")
    if key.n_shards > 1 and kafka.requests is not None:
        raise KafkaProblem("kafka.requests: shards cannot ask for labels: leave it out, or train one shard")
    own = msgspec.structs.replace(
        kafka,
        group=trainer_group(kafka.group, key),
        models=kafka.models or MODELS,
        predictions=None,
        dead_letters=kafka.dead_letters if key.number == 0 else None,
        events=kafka.events if key.n_shards == 1 else None,
    )
    state = msgspec.structs.replace(config.state, folder=shard_folder(folder, key))
    return msgspec.structs.replace(config, kafka=own, state=state)


def letters_about(config: Config) -> Sequence[str]:
    """Return the topics of whose records a trainer writes dead letters: predictors do it for documents."""
    kafka = config.kafka
    return [] if kafka.labels in (None, kafka.documents) else [str(kafka.labels)]
