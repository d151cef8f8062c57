"""What predictors and trainers are measured on: three taxonomies, documents and models in topics."""

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from kafka import KafkaAdminClient, KafkaProducer

import consumers.daemon  # noqa: F401 (first: it imports what the modules of models import)
from bench.streams import Stream, news_like
from consumers.models.chunks import Record, chunks_of, count_chunks, digest_of, digests_of
from consumers.models.content import MODEL, VECTORIZER, Content
from consumers.models.manifest import Manifest, ShardKey
from consumers.models.writing import MOST, ModelWriter
from consumers.predictor.served import ServedModel
from consumers.settings import client_settings
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import Config, KafkaConfig, ModelConfig, StateConfig
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.processor import Processor
from stream_hc.snapshot import dump_bytes

__all__ = ["KINDS", "LARGE", "MEDIUM", "PARTITIONS", "SMALL", "Kind", "Work", "World", "evaluated", "prepare"]

SMALL, MEDIUM, LARGE = "small", "medium", "large"
PARTITIONS = 8
DISTINCT = 12_000  # documents; a topic has them again and again, under other ids
LEARNER, N_FEATURES = "h-arow", 2**13
CHUNK = MOST - 1_000
ENCODE = msgspec.json.encode


class Kind(NamedTuple):
    """A taxonomy: how many nodes it has on each level."""

    levels: tuple[int, ...]


KINDS = {SMALL: Kind((4, 24, 60, 15)), MEDIUM: Kind((4, 20, 500)), LARGE: Kind((4, 20, 2_000))}


class Work(NamedTuple):
    """What a document is made of, on average: terms, nodes that are evaluated, bytes that travel."""

    terms: float
    evaluated: float
    document_bytes: float
    answer_bytes: float

    @property
    def products(self) -> float:
        """Weights that are looked at for a document."""
        return self.terms * self.evaluated


class World(NamedTuple):
    """One kind, ready to be measured on."""

    stream: Stream
    lines: list[bytes]  # without ids: see `documents`
    processor: Processor  # that has learned it
    data: bytes  # of the model, as it is published
    work: Work

    def documents(self, n: int, labels: bool, texts: int = 1) -> Iterator[bytes]:
        """Yield so many records, each of so many texts, with the labels of the first or without."""
        told, pool = self.stream.labels, self.stream.texts
        for number in range(n):
            place = number % (len(pool) - texts + 1)
            document = {"id": f"{number}", "text": " ".join(pool[place : place + texts])}
            yield ENCODE({**document, "labels": sorted(told[place])} if labels else document)


def prepare(name: str) -> World:
    """Draw a stream, learn it, and look at what a document is made of."""
    stream = news_like(DISTINCT, levels=KINDS[name].levels)
    config = job("", "")
    processor = build_processor(config, stream.taxonomy)
    lines = [
        ENCODE({"id": f"{number}", "text": text, "labels": sorted(labels)})
        for number, (text, labels) in enumerate(zip(stream.texts, stream.labels, strict=True))
    ]
    for first in range(0, len(lines), 2_000):
        _learn(processor, lines[first : first + 2_000])
    learner = processor.line_up.online[LEARNER].learner
    data = dump_bytes({MODEL: learner, VECTORIZER: processor.vectorizer})
    served = ServedModel([manifest_of(data)], Content(learner, processor.vectorizer, None))
    work = _work(processor, stream, lines, served)
    return World(stream, lines, processor, data, work)


def _learn(processor: Processor, lines: list[bytes]) -> None:
    processor.process([Line(place, data) for place, data in enumerate(lines)])


def _work(processor: Processor, stream: Stream, lines: list[bytes], served: ServedModel) -> Work:
    some, taxonomy = lines[:2_000], stream.taxonomy
    X = processor.vectorizer.transform(stream.texts[: len(some)])
    Y = processor.line_up.online[LEARNER].learner.predict_many(X)
    answers = served.answer([Line(place, data) for place, data in enumerate(some)]).answers
    children = np.bincount(taxonomy.parent[taxonomy.parent >= 0], minlength=len(taxonomy))
    return Work(
        X.nnz / len(some),
        evaluated(taxonomy.roots.size, children, Y.indices, len(some)),
        sum(map(len, some)) / len(some),
        len(answers.json_lines()) / len(some),
    )


def evaluated(n_roots: int, children: np.ndarray, answered: np.ndarray, n_documents: int) -> float:
    """Return how many nodes are looked at for a document: all roots, and the children of what is answered."""
    return n_roots + float(children[answered].sum()) / n_documents


def job(bootstrap: str, folder: str, **kafka: object) -> Config:
    """Return the configuration of a job, under a name of its own."""
    return Config(
        model=ModelConfig(learners=[LEARNER], n_features=N_FEATURES),
        state=StateConfig(folder=folder or None, seconds=None),
        kafka=KafkaConfig(
            bootstrap=bootstrap or "127.0.0.1:9092",
            group=uuid.uuid4().hex,
            labels=None,
            session_timeout=9.0,
            **kafka,
        ),  # type: ignore[arg-type]
    )


def topics(bootstrap: str, partitions: dict[str, int]) -> None:
    """Make topics; those of models are compacted."""
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(
            {
                name: {
                    "num_partitions": number,
                    "configs": {"cleanup.policy": "compact"} if name.startswith("models") else {},
                }
                for name, number in partitions.items()
            },
            wait_for_metadata=True,
        )


def fill(bootstrap: str, topic: str, partitions: int, documents: Iterable[bytes]) -> None:
    """Write documents to the partitions of a topic, in turn."""
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=50, batch_size=2**18, metrics_enabled=False
    )
    for number, value in enumerate(documents):
        producer.send(topic, value, partition=number % partitions)
    producer.flush()
    producer.close()


def manifest_of(data: bytes) -> Manifest:
    """Return what is said about a model."""
    return Manifest(
        version=uuid.uuid4().hex,
        job="bench",
        snapshot=1,
        records=DISTINCT,
        learned=DISTINCT,
        model=LEARNER,
        saved=1.0,
        size=len(data),
        chunk=CHUNK,
        sha256=digest_of(digests_of(data, CHUNK)),
        chunks=count_chunks(len(data), CHUNK),
    )


def publish(bootstrap: str, topic: str, data: bytes) -> None:
    """Write a version of a model to a topic, as a trainer does."""
    config = KafkaConfig(bootstrap=bootstrap, group=uuid.uuid4().hex)
    shard, manifest = ShardKey(0, 1), manifest_of(data)
    writer = ModelWriter(config, client_settings(config), topic, 0)
    writer.write(
        [*chunks_of(shard, manifest, data, digests_of(data, CHUNK)), Record(str(shard), manifest.encode())]
    )
    writer.close()


def write_taxonomy(world: World, folder: str) -> str:
    """Write the taxonomy to a file, and return its name."""
    path = Path(folder) / "tree.tsv"
    world.stream.taxonomy.write(path)
    return str(path)
