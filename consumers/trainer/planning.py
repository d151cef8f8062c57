"""How a taxonomy is cut for its trainers: the same files give the same plan, wherever it is made."""

import numpy as np

from stream_hc.cli.errors import usage_error
from stream_hc.kernels import Longs
from stream_hc.runtime.building import build_learners
from stream_hc.runtime.config import Config
from stream_hc.runtime.jsonl import SourceError, open_lines
from stream_hc.runtime.records import MAX_LINE_BYTES, Document, Label, parse_records
from stream_hc.sharding import Plan, check_shardable
from stream_hc.taxonomy import Taxonomy, TaxonomyError

__all__ = ["Traffic", "check_learners", "count_traffic", "make_plan"]

Traffic = tuple[Longs, int]  # documents of each node, and of all


def make_plan(taxonomy: Taxonomy, n_shards: int, traffic: str | None) -> Plan:
    """Cut a taxonomy; without a file that shows the traffic, all leaves count the same."""
    try:
        if traffic is None:
            return Plan.cut(taxonomy, n_shards)
        counts, n_documents = count_traffic(taxonomy, traffic)
        return Plan.cut(taxonomy, n_shards, counts, n_documents)
    except ValueError as error:
        raise usage_error(f"--shards {n_shards}: {error}") from None


def check_learners(config: Config, taxonomy: Taxonomy) -> None:
    """Refuse learners whose nodes cannot be trained apart, and what else shards cannot do."""
    if len(config.model.learners) > 1:
        names = ", ".join(config.model.learners)
        raise usage_error(f"the learners {names}: shards train one of them: choose it")
    if config.refit.enabled:
        raise usage_error("refit.enabled: H-M³ needs the whole taxonomy: leave it out, or train one shard")
    if config.kafka.start == "latest":
        raise usage_error("kafka.start = latest: shards would begin at different records: take earliest")
    try:
        for learner in build_learners(taxonomy, config.model).values():
            check_shardable(learner)
    except ValueError as error:
        raise usage_error(str(error)) from None


def count_traffic(taxonomy: Taxonomy, path: str) -> Traffic:
    """Count the documents of each node in a file of records: documents with labels, or labels alone."""
    counts, total = np.zeros(len(taxonomy), np.int64), 0
    try:
        with open_lines(path, MAX_LINE_BYTES) as batches:
            for lines in batches:
                items = parse_records([line.data for line in lines])
                labels = [
                    item.labels
                    for item in items
                    if isinstance(item, Document | Label) and item.labels is not None
                ]
                counts += np.asarray(taxonomy.encode(labels).sum(axis=0)).astype(np.int64)
                total += len(labels)
    except (TaxonomyError, SourceError, OSError) as error:
        raise usage_error(f"--traffic {path}: {error}") from None
    if total == 0:
        raise usage_error(f"--traffic {path}: no labels: give a file of documents with labels")
    return counts, total
