"""The daemon beside a bare loop of kafka-python, on a broker of this machine, and where its time goes.

`make bench-kafka` writes `docs/kafka-speed.md`.
"""

import sys
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import msgspec
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata
from rich.console import Console

from bench.machine import machine
from bench.required import Verdict
from bench.rounds import progress
from bench.streams import news_like
from deploy.kafka.broker import Broker

__all__ = ["main"]

N, ROUNDS, BATCH = 60_000, 3, 5_000
LEAST_OF_BARE, MOST_SLOWER = 0.6, 0.2
BARE, DAEMON, PLAIN = "bare loop", "daemon", "daemon, no transactions"
PAGE = Path(__file__).with_name("kafka.md")
WRITTEN = Path(__file__).resolve().parent.parent / "docs" / "kafka-speed.md"
TOPICS = ("documents", "predictions", "dead-letters", "model-events")

Spent = dict[str, float]


def main() -> None:
    """Measure, print, write; exit with 1 where a requirement is missed."""
    stream = news_like(N)
    seconds: dict[str, list[float]] = defaultdict(list)
    with Broker() as broker, tempfile.TemporaryDirectory(prefix="stream-hc-bench-") as name:
        folder = Path(name)
        stream.taxonomy.write(folder / "tree.tsv")
        _fill(broker.bootstrap, stream)
        size = _daemon(broker.bootstrap, folder, transactions=True)["answer_bytes"]  # and warm
        with progress() as bar:
            task = bar.add_task("60,000 documents", total=3 * ROUNDS + 1)
            for _ in range(ROUNDS):
                for who, work in (
                    (BARE, lambda: _apart(_bare, broker.bootstrap, round(size))),
                    (DAEMON, lambda: _daemon(broker.bootstrap, folder, transactions=True)),
                    (PLAIN, lambda: _daemon(broker.bootstrap, folder, transactions=False)),
                ):
                    seconds[who].append(work()["seconds"])
                    bar.advance(task)
                    bar.refresh()
            spent = _daemon(broker.bootstrap, folder, transactions=True, profiled=True)
            bar.advance(task)
        kind = broker.kind
    of_bare = median(b / d for b, d in zip(seconds[BARE], seconds[DAEMON], strict=True))
    slower = median(d / p - 1 for d, p in zip(seconds[DAEMON], seconds[PLAIN], strict=True))
    verdicts = [
        Verdict("rate of the daemon ÷ rate of the bare loop", of_bare, LEAST_OF_BARE),
        Verdict("how much longer exactly once takes", slower, MOST_SLOWER, at_least=False),
    ]
    page = PAGE.read_text(encoding="utf-8").format(
        machine=machine(),
        broker=kind,
        n=f"{N:,}",
        batch=f"{BATCH:,}",
        size=round(size),
        rounds=ROUNDS,
        table="\n".join(
            f"| {who} | {median(each):.2f} | {N / median(each):,.0f} | "
            f"{median(b / s for b, s in zip(seconds[BARE], each, strict=True)):.2f} |"
            for who, each in seconds.items()
        ),
        spent=_spent_table(spent),
        required="\n".join(f"- {verdict}" for verdict in verdicts),
    )
    WRITTEN.write_text(page, encoding="utf-8")
    Console().print(page, markup=False, highlight=False)
    sys.exit(0 if all(verdict.met for verdict in verdicts) else 1)


def _fill(bootstrap: str, stream: Any) -> None:
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics({topic: {"num_partitions": 1} for topic in TOPICS}, wait_for_metadata=True)
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=50, batch_size=2**18)
    encode = msgspec.json.encode
    for number, (text, labels) in enumerate(zip(stream.texts, stream.labels, strict=True)):
        document = {"id": f"{number}", "text": text, "labels": sorted(labels)}
        producer.send("documents", encode(document), partition=0)
    producer.flush()
    producer.close()


def _bare(bootstrap: str, size: int) -> Spent:
    """Read every document and write a record as large as a prediction, with offsets, in transactions."""
    name = uuid.uuid4().hex
    source = TopicPartition("documents", 0)
    consumer = KafkaConsumer(
        "documents",
        bootstrap_servers=bootstrap,
        group_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=BATCH,
        max_partition_fetch_bytes=4 * 2**20,
        metrics_enabled=False,
    )
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        transactional_id=name,
        linger_ms=5,
        batch_size=2**18,
        metrics_enabled=False,
    )
    producer.init_transactions()
    while not consumer.assignment():
        consumer.poll(100, max_records=1)
    consumer.seek(source, 0)
    answer, read, began = b"x" * size, 0, perf_counter()
    while read < N:
        records = consumer.poll(1000).get(source, [])
        if not records:
            continue
        producer.begin_transaction()
        for record in records:
            producer.send("predictions", answer, b"%d" % record.offset, [], 0)
        read += len(records)
        committed = {source: OffsetAndMetadata(records[-1].offset + 1, "", -1)}
        producer.send_offsets_to_transaction(committed, consumer.group_metadata())
        producer.commit_transaction()
    seconds = perf_counter() - began
    producer.close()
    consumer.close()
    return {"seconds": seconds}


def _daemon(bootstrap: str, folder: Path, transactions: bool, profiled: bool = False) -> Spent:
    return _apart(_daemon_here, bootstrap, str(folder), transactions, profiled)


def _daemon_here(bootstrap: str, folder: str, transactions: bool, profiled: bool) -> Spent:
    """Run a daemon that begins anew, from the first record to the last commit."""
    from consumers.daemon import Daemon  # noqa: PLC0415 (in a process of its own)
    from consumers.daemon.job import KafkaJob  # noqa: PLC0415
    from stream_hc.runtime.collector import spare_what_stays  # noqa: PLC0415
    from stream_hc.runtime.config import (  # noqa: PLC0415
        Config,
        KafkaConfig,
        ModelConfig,
        StateConfig,
        StreamConfig,
    )
    from stream_hc.runtime.pipeline import Processed  # noqa: PLC0415
    from stream_hc.runtime.watcher import Watcher  # noqa: PLC0415
    from stream_hc.taxonomy import Taxonomy  # noqa: PLC0415

    class Clock(Watcher[KafkaJob]):
        began = ended = answers = bytes = 0.0

        def begin(self, job: KafkaJob) -> None:
            self.began = perf_counter()

        def processed(self, job: KafkaJob, done: Processed) -> None:
            self.ended = perf_counter()
            if not self.answers and done.outcome.answers:
                self.answers = sum(map(len, done.outcome.answers))
                self.bytes = sum(len(each.json_lines()) for each in done.outcome.answers)

    class Never:
        requested, descriptor = False, None

    name = uuid.uuid4().hex
    config = Config(
        stream=StreamConfig(limit=N),
        model=ModelConfig(learners=["h-arow"]),
        state=StateConfig(folder=str(Path(folder) / name), seconds=None),
        kafka=KafkaConfig(
            bootstrap=bootstrap, group=name, labels=None, batch=BATCH, transactions=transactions
        ),
    )
    spare_what_stays()
    clock, spent = Clock(), dict[str, float]()
    daemon = Daemon(config, Taxonomy.read(Path(folder) / "tree.tsv"), Never(), clock)
    if profiled:
        spent = _watched()
    daemon.run()
    return spent | {"seconds": clock.ended - clock.began, "answer_bytes": clock.bytes / clock.answers}


def _watched() -> Spent:
    """Let the steps of the main thread add up what they take."""
    from bench.runtime import _time  # noqa: PLC0415
    from consumers.daemon.messages import MessageMaker  # noqa: PLC0415
    from consumers.daemon.reading import RecordReader  # noqa: PLC0415
    from consumers.daemon.transactions import Transactions  # noqa: PLC0415
    from stream_hc.runtime.pipeline import Pipeline  # noqa: PLC0415
    from stream_hc.runtime.processor import Processor  # noqa: PLC0415

    spent: Spent = defaultdict(float)
    for part, owner, name in (
        ("fetch and decode records", RecordReader, "gather"),
        ("parse and vectorise", Processor, "prepare"),
        ("wait for the models", Pipeline, "flush"),
        ("predictions to JSON", MessageMaker, "of_outcome"),
        ("send and commit", Transactions, "publish"),
    ):
        _time(spent, part, owner, name)
    return spent


def _spent_table(spent: Spent) -> str:
    total = spent["seconds"]
    parts = {name: value for name, value in spent.items() if name not in ("seconds", "answer_bytes")}
    parts["everything else"] = total - sum(parts.values())
    return "\n".join(
        f"| {name} | {1e6 * value / N:.1f} | {value / total:.0%} |" for name, value in parts.items()
    )


def _apart(work: Callable[..., Spent], *args: Any) -> Spent:
    """Return what some work returns in a process of its own."""
    ours, theirs = get_context("spawn").Pipe()
    worker = get_context("spawn").Process(target=_send, args=(theirs, work, args))
    worker.start()
    theirs.close()
    found: Spent = ours.recv()
    worker.join()
    return found


def _send(to: Connection, work: Callable[..., Spent], args: tuple[Any, ...]) -> None:
    to.send(dict(work(*args)))


if __name__ == "__main__":
    main()
