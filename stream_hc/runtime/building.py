"""A processor as the configuration describes it."""

from typing import Any

from stream_hc.learners import LEARNERS, OnlineLearner
from stream_hc.runtime.config import Config, ModelConfig
from stream_hc.runtime.contest import Fetch
from stream_hc.runtime.processor import Processor
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import SequenceVectorizer, TextVectorizer

__all__ = ["build_learners", "build_processor"]


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


def build_processor(config: Config, taxonomy: Taxonomy, fetch: Fetch | None = None) -> Processor:
    """Return a processor that has seen nothing."""
    model = config.model
    kind = SequenceVectorizer if model.sequences else TextVectorizer
    return Processor(
        taxonomy, build_learners(taxonomy, model), kind(n_features=model.n_features), config, fetch
    )
