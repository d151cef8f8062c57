"""A processor as the configuration describes it."""

from typing import Any

from stream_hc.learners import LEARNERS, OnlineLearner
from stream_hc.runtime.config import Config, ModelConfig
from stream_hc.runtime.contest import Fetch
from stream_hc.runtime.processor import Processor
from stream_hc.sharding import Shard
from stream_hc.snapshot import SnapshotError
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import SequenceVectorizer, TextVectorizer

__all__ = ["build_learners", "build_processor", "check_built"]


def build_learners(taxonomy: Taxonomy, config: ModelConfig) -> dict[str, OnlineLearner]:
    """Return fresh learners by name; `ValueError` says what is wrong with the settings of one."""
    learners: dict[str, OnlineLearner] = {}
    for name in config.learners:
        if name not in LEARNERS:
            raise ValueError(f"there is no learner {name}: choose one of {', '.join(LEARNERS)}")
        try:
            settings: dict[str, Any] = dict(config.settings.get(name, {}))
            learners[name] = LEARNERS[name](taxonomy, n_features=config.n_features, **settings)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{name}: {error}") from error
    return learners


def build_processor(
    config: Config, taxonomy: Taxonomy, fetch: Fetch | None = None, shard: Shard | None = None
) -> Processor:
    """Return a processor that has seen nothing: of a shard, if there is one, of the whole `taxonomy`.

    Examples
    --------
    >>> from stream_hc.sharding import Plan
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
    >>> shards = Plan.cut(tax, 2).shards
    >>> [build_processor(Config(), tax, shard=shard).taxonomy.nodes for shard in shards]
    [('sport', 'politics'), ('sport', 'tennis')]
    """
    model = config.model
    kind = SequenceVectorizer if model.sequences else TextVectorizer
    learners = build_learners(taxonomy if shard is None else shard.taxonomy, model)
    return Processor(taxonomy, learners, kind(n_features=model.n_features), config, fetch, shard)


def check_built(processor: Processor, config: Config) -> None:
    """Raise `SnapshotError` if a processor from a snapshot is not what the configuration describes."""
    model, vectorizer = config.model, processor.vectorizer
    pairs: list[tuple[str, Any, Any]] = [
        ("n_features", vectorizer.n_features, model.n_features),
        ("sequences", isinstance(vectorizer, SequenceVectorizer), model.sequences),
        ("costs", processor.progress.costs, model.costs),
    ]
    for name, settings in model.settings.items():
        learner = processor.line_up.online[name].learner
        pairs += [(f"settings.{name}.{key}", getattr(learner, key), value) for key, value in settings.items()]
    for key, there, here in pairs:
        if there != here:
            problem = f"the snapshot was made with model.{key} = {there}, not {here}"
            raise SnapshotError(f"{problem}: use it as it was, or an empty state folder to begin anew")
