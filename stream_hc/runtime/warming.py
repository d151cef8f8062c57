"""Every kernel is compiled, or loaded, before the first record comes: it should not wait for that."""

import msgspec

from stream_hc.learners import LEARNERS, OnlineLearner
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import Config, ModelConfig
from stream_hc.runtime.jsonl import Line
from stream_hc.taxonomy import Taxonomy

__all__ = ["compile_kernels"]

TREE = Taxonomy([("a", None), ("b", "a"), ("c", "a"), ("d", None)])


def compile_kernels(config: Config, learner: OnlineLearner | None = None) -> None:
    """Let a processor like that of a job, but for its taxonomy, do once what it will do all the time.

    If a learner is given, it is one of its kind that is meant; nothing happens to it.
    """
    if learner is not None:
        names = [name for name, kind in LEARNERS.items() if type(learner) is kind]
        config = msgspec.structs.replace(config, model=ModelConfig(learners=names))
    judge = msgspec.structs.replace(config.judge, every=1)
    refit = msgspec.structs.replace(config.refit, enabled=False)
    processor = build_processor(msgspec.structs.replace(config, judge=judge, refit=refit), TREE)
    text = "MELP" if config.model.sequences else "a word, then another one"
    documents = [{"id": name, "text": text} for name in "abc"]
    labels = [{"id": name, "labels": [name]} for name in "abc"]
    at_once = [document | {"labels": ["b"]} for document in documents]
    for records in (at_once, [*documents, *labels], documents):
        lines = [Line(number, msgspec.json.encode(record)) for number, record in enumerate(records, 1)]
        for answers in processor.process(lines).answers:
            answers.json_lines()
