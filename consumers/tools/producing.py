"""The work behind `stream-hc kafka produce`: from what was typed to records in topics."""

import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass

from consumers.clients import administrator, explaining, partitions_of, reader, writer
from consumers.tools.feeding import Delay, Feed, Pace
from consumers.tools.inputs import Input, open_input
from consumers.tools.sending import Sending
from consumers.topics import create_missing
from stream_hc.cli.console import clean, progress_bar, say, watched
from stream_hc.cli.errors import Code
from stream_hc.cli.signals import Stopper
from stream_hc.runtime.config import KafkaConfig

__all__ = ["Wanted", "produce"]


@dataclass(frozen=True)
class Wanted:
    """What `produce` was asked to do, by the names of its options."""

    source: str
    delay: int | None = None
    delay_seconds: float | None = None
    rate: float | None = None
    limit: int | None = None
    strict: bool = False
    taxonomy_out: str | None = None
    quiet: bool = False


def produce(wanted: Wanted, config: KafkaConfig) -> int:
    """Send everything and return the exit code."""
    topics = config.documents, config.labels or config.documents
    began = time.monotonic()
    with ExitStack() as stack:
        stop = stack.enter_context(Stopper())
        stack.enter_context(explaining(config))
        _see_to_topics(config, topics)
        producer = stack.enter_context(writer(config))
        for topic in topics:
            producer.partitions_for(topic)  # or the first record would be late
        sending = Sending(producer, 2 * config.request_timeout)
        delay, pace = Delay(wanted.delay, wanted.delay_seconds), Pace(wanted.rate)
        feed = Feed(sending, topics, delay, pace, stop, wanted.strict)
        opened = open_input(wanted.source, wanted.limit, wanted.taxonomy_out, feed.wait)
        source = stack.enter_context(opened)
        shown = watched(output_is_stdout=False) and not wanted.quiet
        _run(feed, source, wanted.limit, shown, stack)
    if not wanted.quiet:
        say(_summary(feed, topics, time.monotonic() - began))
    if stop.signal == signal.SIGINT:
        return Code.INTERRUPTED
    return Code.REJECTED if feed.left_out else Code.FINE


def _see_to_topics(config: KafkaConfig, topics: tuple[str, str]) -> None:
    """Make what is missing, if that is wanted; what is not there then is told at once."""
    if config.create_topics:
        with administrator(config) as admin:
            made = create_missing(admin, config)
        if made:
            say(f"made the topics {', '.join(made)}")
    with reader(config) as consumer:
        partitions_of(consumer, dict.fromkeys(topics))


def _run(feed: Feed, source: Input, limit: int | None, shown: bool, stack: ExitStack) -> None:
    update = stack.enter_context(progress_bar(clean(source.name)[:16], source.total, shown))
    told = 0.0

    def progress() -> None:
        nonlocal told
        if shown and time.monotonic() - told > 0.1:
            told = time.monotonic()
            update(source.done(), f"{feed.documents:,} documents, {feed.labels:,} labels")

    feed.run(source.name, source.lines, limit, progress)


def _summary(feed: Feed, topics: tuple[str, str], seconds: float) -> str:
    rate = (feed.documents + feed.labels) / max(seconds, 1e-9)
    sent = [f"{feed.documents:,} documents to {topics[0]}"]
    if feed.labels:
        sent.append(f"{feed.labels:,} labels to {topics[1]}")
    told = [f"{', '.join(sent)} in {seconds:.1f} s ({rate:,.0f} records a second)"]
    if feed.odd:
        told.append(f"{feed.odd:,} are no records, sent as they are")
    if feed.left_out:
        told.append(f"{feed.left_out:,} lines left out: too long for a record")
    if feed.n_later:
        told.append(f"{feed.n_later:,} labels not sent")
    return "; ".join(told)
