"""Publishes the model of each snapshot, in a thread of its own: the stream does not wait for it."""

import os
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from kafka.errors import KafkaError

from consumers.errors import KafkaProblem, explained
from consumers.models.chunks import Record, chunks_of, count_chunks, digest_of, digests_of
from consumers.models.content import extract, headline
from consumers.models.manifest import ChunkKey, Manifest, ShardKey
from consumers.models.store import ModelStore, StoreError
from consumers.models.writing import MOST, ModelWriter
from consumers.patience import FENCED
from stream_hc.runtime.config import KafkaConfig

__all__ = ["Publisher"]

OVERHEAD = 1_000  # bytes of a record beside its value: key, headers, framing
FILE = "published.json"
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds until it is tried again


class Published(msgspec.Struct, frozen=True):
    """What this trainer has published last, which model of the snapshot it was, and the chunks by slot."""

    manifest: Manifest | None = None
    champion: str = ""
    chunks: tuple[int, int] = (0, 0)


class Offer(NamedTuple):
    """A snapshot of a job."""

    number: int
    job: str
    path: str


class Publisher:
    """Writes versions of one shard to the topic of models.

    Chunks first, then the manifest: a reader that has the manifest has all of it. If several snapshots are
    taken meanwhile, the newest is published. What cannot be published is tried again, and the stream goes on.

    Parameters
    ----------
    config, settings
        Of the clients; `config.models` names the topic.
    shard
        Of which model.
    folder
        The state folder: it remembers which of the two slots is complete.
    partitions
        How many the topic has: all records of a shard go to the same.
    largest
        Bytes that a record of the topic may have.
    note
        Called with what somebody should know, from the thread.

    Attributes
    ----------
    counts
        Versions "published", and attempts that "failed".
    """

    def __init__(
        self,
        config: KafkaConfig,
        settings: Mapping[str, Any],
        shard: ShardKey,
        folder: str,
        partitions: int,
        largest: int,
        note: Callable[[str], None],
    ) -> None:
        if config.models is None:
            raise KafkaProblem("kafka.models is none: name the topic of models")
        self._config = config
        partition = shard.number % max(1, partitions)
        self._writer = ModelWriter(config, settings, config.models, partition, largest)
        self._store = None if config.model_store is None else ModelStore(config.model_store, config.group)
        self._shard = shard
        self._file = Path(folder) / FILE
        self._chunk = max(1, min(largest, MOST) - OVERHEAD)
        self._note = note
        self.counts: Counter[str] = Counter()
        self._offer: Offer | None = None
        self._changed = threading.Condition()
        self._is_closing = self._is_busy = self._has_connected = self._has_published = False
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._thread.start()

    def offer(self, number: int, job: str, path: str) -> None:
        """Publish the model in a snapshot of a job soon, unless a newer one comes before."""
        with self._changed:
            self._offer = Offer(number, job, path)
            self._changed.notify_all()

    def close(self, seconds: float) -> None:
        """Let it finish for so long, then give up."""
        with self._changed:
            self._changed.wait_for(
                lambda: (self._offer is None and not self._is_busy) or self._is_closing, seconds
            )
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(2.0)

    def _run(self) -> None:
        wait = FIRST_WAIT
        while (offer := self._next()) is not None:
            problem = self._problem(offer)
            with self._changed:
                if problem is not None:
                    self.counts["failed"] += 1
                    self._offer = self._offer or offer
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._is_closing, wait)
                self._is_busy = False
                self._changed.notify_all()
            wait = FIRST_WAIT if problem is None else min(2 * wait, LONGEST_WAIT)
        self._writer.close()

    def _next(self) -> Offer | None:
        with self._changed:
            self._changed.wait_for(lambda: self._offer is not None or self._is_closing)
            if self._is_closing:
                return None
            offer, self._offer = self._offer, None
            self._is_busy = True
            return offer

    def _problem(self, offer: Offer) -> str | None:
        """Publish, and return what went wrong."""
        try:
            if not self._has_connected:  # whoever shuts this one out from here on has taken its place
                self._writer.connect()
                self._has_connected = True
            before = self._published()
            last, (records, champion) = before.manifest, headline(offer.path)
            is_new = last is None or (last.job, last.records, before.champion) != (
                offer.job,
                records,
                champion,
            )
            if is_new or not self._has_published:  # the topic may have been made anew meanwhile
                self._publish(offer, before)
                self._has_published = True
            elif last is not None and last.snapshot != offer.number:
                self._renew(offer, before, last)
            return None
        except FENCED:
            self._note(f"another process publishes the model of {self._config.group} now: this one does not")
            with self._changed:
                self._is_closing = True
            return None
        except KafkaError as error:
            problem = explained(error, self._config)
        except Exception as error:  # a store may raise anything; the stream goes on
            if not Path(offer.path).exists():
                return None  # so old that it is gone: a newer one is on its way
            problem = str(error) or type(error).__name__
        self._note(f"the model was not published: {problem}: trying again")
        return problem

    def _publish(self, offer: Offer, before: Published) -> None:
        model = extract(offer.path)
        slot, data = 0 if before.manifest is None else 1 - before.manifest.slot, model.data
        digests = digests_of(data, self._chunk)
        manifest = Manifest(
            version=f"{model.records}-{uuid.uuid4().hex[:12]}",
            job=offer.job,
            snapshot=offer.number,
            records=model.records,
            learned=model.learned,
            model=model.model,
            plan=model.plan,
            saved=model.saved,
            size=len(data),
            chunk=self._chunk,
            sha256=digest_of(digests),
            slot=slot,
            chunks=0 if self._store is not None else count_chunks(len(data), self._chunk),
        )
        if self._store is not None:
            manifest = msgspec.structs.replace(manifest, store=self._store.put(manifest, data))
        if self._is_closing:
            return
        # The file first: a slot that may have been begun is not taken for complete.
        chunks = list(before.chunks)
        chunks[slot] = max(manifest.chunks, chunks[slot])
        self._remember(msgspec.structs.replace(before, chunks=(chunks[0], chunks[1])))
        self._writer.write(self._records(manifest, data, digests, before.chunks[slot]))
        chunks[slot] = manifest.chunks
        self._remember(Published(manifest, headline(offer.path)[1], (chunks[0], chunks[1])))
        self.counts["published"] += 1
        if self._store is not None:
            try:
                self._store.remove_old()
            except StoreError as error:
                self._note(str(error))

    def _renew(self, offer: Offer, before: Published, last: Manifest) -> None:
        """Say that nothing has changed since: the model is as old as the snapshot that has it, too."""
        saved = os.stat(offer.path).st_mtime
        manifest = msgspec.structs.replace(last, snapshot=offer.number, saved=saved)
        self._writer.write([Record(str(self._shard), manifest.encode())])
        self._remember(msgspec.structs.replace(before, manifest=manifest))

    def _records(
        self, manifest: Manifest, data: bytes, digests: Sequence[bytes], before: int
    ) -> Iterator[Record]:
        if manifest.store is None:
            yield from chunks_of(self._shard, manifest, data, digests)
        # What an earlier, longer version left in this slot would stay for ever.
        for place in range(manifest.chunks, before):
            yield Record(str(ChunkKey(self._shard, manifest.slot, place)), None)
        # The last one: who has it has all of them.
        yield Record(str(self._shard), manifest.encode())

    def _published(self) -> Published:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=Published)
        except (OSError, msgspec.DecodeError):
            return Published()  # nothing was, or it was forgotten: then one version is published again

    def _remember(self, published: Published) -> None:
        beside = self._file.with_suffix(".tmp")
        with suppress(OSError):  # a full disk: a version is published again, that is all
            beside.write_bytes(msgspec.json.encode(published))
            beside.replace(self._file)
