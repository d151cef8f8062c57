"""A process that stands by in its group, and reads and learns while it is the one."""

import time
from collections.abc import Callable, Collection
from typing import Any

import msgspec
from kafka import KafkaAdminClient

from consumers.daemon.fetching import Fetching
from consumers.daemon.job import KafkaJob
from consumers.daemon.looking import Topics, look_first
from consumers.daemon.membership import LostPartitions, Membership
from consumers.daemon.messages import MessageMaker
from consumers.daemon.transactions import Transactions
from consumers.errors import KafkaProblem
from consumers.models.manifest import ShardKey
from consumers.models.publishing import Publisher
from consumers.patience import Interrupted, Patience
from consumers.settings import client_settings, warnings_of
from consumers.watchdog import Watchdog
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import Config
from stream_hc.runtime.contest import Fetch
from stream_hc.runtime.processor import Processor
from stream_hc.runtime.watcher import StopRequest, Watcher
from stream_hc.sharding import Shard
from stream_hc.taxonomy import Taxonomy

__all__ = ["Daemon"]

SOME_TIME = 1.0  # seconds


class Daemon:
    """Reads, or stands by, until somebody wants it to stop.

    Parameters
    ----------
    config
        All of it; there has to be a state folder.
    taxonomy
        Of a job that begins; not needed by one that goes on.
    stop
        Asked between two batches, and while it waits.
    watcher
        Told what happens.
    standing_by
        Called when another process reads.
    shard
        The part of the taxonomy that is trained here; all of it if not given.
    letters_about
        As for `MessageMaker`.
    kind
        What reads while it is the one.
    """

    def __init__(
        self,
        config: Config,
        taxonomy: Taxonomy | None,
        stop: StopRequest,
        watcher: Watcher[KafkaJob],
        standing_by: Callable[[], object] = lambda: None,
        shard: Shard | None = None,
        letters_about: Collection[str] | None = None,
        kind: Callable[..., KafkaJob] = KafkaJob,
    ) -> None:
        if config.state.folder is None:
            raise KafkaProblem("a job on topics needs a state folder: --state DIR, or state.folder")
        # The processor asks for labels only where somebody wants to hear of it.
        stream = msgspec.structs.replace(config.stream, requests=config.kafka.requests)
        self._config = msgspec.structs.replace(config, stream=stream)
        self._taxonomy = taxonomy
        self._stop = stop
        self._watcher = watcher
        self._standing_by = standing_by
        self._shard = shard
        self._letters_about = letters_about
        self._kind = kind
        self._settings = client_settings(config.kafka)
        self._patience = Patience(config.kafka, self._is_stopped, watcher.note)

    def run(self) -> None:
        """Run until somebody wants it to stop.

        Raises
        ------
        Fenced
            Another process has taken this one's place: do not start it again.
        KafkaProblem
            It cannot go on, and why.
        """
        kafka = self._config.kafka
        for warning in warnings_of(kafka):
            self._watcher.note(f"warning: {warning}")
        try:
            with Watchdog(kafka.stuck_after) as watchdog:
                topics = self._patience.until_done(self._look_first, self._sleep(watchdog.beat))
                membership = self._patience.until_done(
                    lambda: Membership(kafka, self._settings, watchdog.beat), self._sleep(watchdog.beat)
                )
                with membership:
                    self._take_part(membership, topics)
        except Interrupted as error:
            self._watcher.note(str(error))

    def _look_first(self) -> Topics:
        admin = KafkaAdminClient(**self._settings)
        try:
            return look_first(admin, self._config, self._watcher.note)
        finally:
            admin.close()

    def _take_part(self, membership: Membership, topics: Topics) -> None:
        said, since = False, time.monotonic()
        while not self._is_stopped():
            if not membership.stand_by():
                # At first nobody has partitions for a moment, until the topics are known.
                if not said and membership.is_stable and time.monotonic() > since + SOME_TIME:
                    self._watcher.note(f"standing by in the group {self._config.kafka.group}")
                    self._standing_by()
                    said = True
                continue
            said = False
            fetching = Fetching(self._config.kafka, self._settings, membership.beat)
            kafka, note = self._config.kafka, self._watcher.note
            transactions = Transactions(
                kafka, self._settings, membership, self._is_stopped, note, topics.largest
            )
            letters = topics.largest.get(kafka.dead_letters or "", 0)
            publisher = self._publisher(topics)
            job = self._kind(
                self._config,
                self._build,
                membership,
                fetching,
                transactions,
                MessageMaker(kafka, topics.partitions, letters, self._letters_about),
                self._stop,
                self._watcher,
                self._taxonomy,
                self._shard,
                publisher,
            )
            try:
                job.run()
                return
            except LostPartitions as error:
                self._watcher.note(f"not reading any more: {error}")
                since = time.monotonic()
            finally:
                fetching.close()
                if publisher is not None:
                    publisher.close(0.0)

    def _publisher(self, topics: Topics) -> Publisher | None:
        kafka, folder, shard = self._config.kafka, self._config.state.folder, self._shard
        if kafka.models is None or folder is None:
            return None
        key = ShardKey(0, 1) if shard is None else ShardKey(shard.number, shard.n_shards)
        sizes = topics.partitions[kafka.models], topics.largest[kafka.models]
        return Publisher(kafka, self._settings, key, folder, *sizes, self._watcher.note)

    def _build(self, fetch: Fetch | None) -> Processor:
        if self._taxonomy is None:
            raise KafkaProblem("--taxonomy is missing: name the file, or a --state folder that exists")
        return build_processor(self._config, self._taxonomy, fetch, self._shard)

    def _sleep(self, beat: Callable[[], Any]) -> Callable[[float], None]:
        def sleep(seconds: float) -> None:
            until = time.monotonic() + seconds
            while not self._is_stopped() and (left := until - time.monotonic()) > 0:
                beat()
                time.sleep(min(left, 0.2))

        return sleep

    def _is_stopped(self) -> bool:
        return self._stop.requested
