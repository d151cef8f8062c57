"""A stream of topics: read, process, publish with the progress made, save; and go on after any end.

The order of the records of several partitions is written to the journal before they are processed. After a
crash the newest snapshot is loaded, the journal is followed, and what the brokers have committed is not
published again.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from kafka import TopicPartition
from kafka.errors import OffsetOutOfRangeError

from consumers.daemon.beginning import Beginning, Ends, begin_anew, go_on
from consumers.daemon.clock import Piece, StreamClock
from consumers.daemon.fetching import Fetching
from consumers.daemon.membership import Membership
from consumers.daemon.messages import MessageMaker
from consumers.daemon.reading import RecordReader, offsets_behind, ranges_of
from consumers.daemon.transactions import Transactions
from consumers.errors import KafkaProblem
from consumers.models.publishing import Publisher
from consumers.offsets import Named, Offsets, for_place, key_of, offsets_to_commit, partition_of
from consumers.patience import Interrupted
from stream_hc.runtime.config import Config
from stream_hc.runtime.contest import Fetch
from stream_hc.runtime.disk import LOG, Batch, JournalError, Outlets, Place, Ranges
from stream_hc.runtime.disk.lock import KeeperLocked
from stream_hc.runtime.events import Event, Standing
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.pipeline import Processed
from stream_hc.runtime.processor import Processor
from stream_hc.runtime.watcher import StopRequest, Watcher
from stream_hc.runtime.work import LOOK_AROUND, Work
from stream_hc.sharding import Shard
from stream_hc.snapshot import inspect
from stream_hc.taxonomy import Taxonomy

__all__ = ["KafkaJob"]

LAST_MODEL = 30.0  # seconds for the model at the end to be published


class Read(NamedTuple):
    """What comes along with some records: the entry that names them, and the offsets behind them."""

    number: int
    records: Sequence[Any]
    offsets: Offsets


class KafkaJob(Work):
    """The one process of a group that reads and learns.

    Parameters
    ----------
    config, build, stop, watcher, taxonomy
        As for `Work`; there has to be a state folder.
    membership
        That has been given the partitions.
    fetching
        Reads them.
    transactions
        Not yet open.
    messages
        Writes the messages.
    publisher
        Told of every snapshot, where the model is published.
    """

    def __init__(
        self,
        config: Config,
        build: Callable[[Fetch | None], Processor],
        membership: Membership,
        fetching: Fetching,
        transactions: Transactions,
        messages: MessageMaker,
        stop: StopRequest | None = None,
        watcher: Watcher["KafkaJob"] | None = None,
        taxonomy: Taxonomy | None = None,
        shard: Shard | None = None,
        publisher: Publisher | None = None,
    ) -> None:
        super().__init__(config, build, stop, watcher, taxonomy, shard)
        self.publisher = publisher
        self.membership = membership
        self.transactions = transactions
        self._messages = messages
        self._reader = RecordReader(fetching, config.kafka.batch, config.kafka.linger)
        self._offsets: Offsets = {}  # behind what is processed and published
        self._published = 0  # the last entry of the journal whose results are published
        self._committed: Offsets = {}  # behind what is published
        self._events: list[Event | Standing] = []  # not yet published
        self._decided = 0  # the last entry that is not in the records
        self._last_saved = 0  # records, when the last snapshot was begun

    def run(self) -> None:
        """Run until somebody wants it to stop, the limit is reached or the partitions are lost; then save."""
        with ExitStack() as stack:
            beginning = self._open(stack)
            self._watcher.begin(self)
            self._catch_up(beginning)
            self._begin_live()
            while self._go_on():
                pass
            self._flush()
            self._publish_events()
            self._fits.stop()
            self._save()
            if self.publisher is not None:
                self.publisher.close(LAST_MODEL)

    @property
    def lag(self) -> dict[TopicPartition, int]:
        """How many records of each partition are still to be read, as far as the brokers have said."""
        return self._reader.lag()

    # Beginning

    def _open(self, stack: ExitStack) -> Beginning:
        place = self._wait_for_state(stack)
        if self.publisher is not None:  # before the folder is another one's
            stack.callback(self.publisher.close, 0.0)
        # First shut out the one before: from then on what the group has committed stays as it is.
        stack.callback(self.transactions.close)
        self.transactions.open()
        kafka, folder = self.config.kafka, self.config.state.folder
        assert folder is not None
        assert self._state is not None
        patiently, membership = self.transactions.patiently, self.membership
        ends = patiently(lambda: Ends(membership.ends(first=True), membership.ends(first=False)))
        committed = patiently(lambda: membership.committed(ends.first))
        is_new = self._state.loaded is None
        if is_new:
            beginning = begin_anew(folder, kafka.group, committed, ends, kafka.start)
        else:
            is_fresh = self.processor.progress.records == 0
            beginning = go_on(place, is_fresh, kafka.group, committed, ends)
        self._named = Named(place.job or uuid.uuid4().hex, 0, "")
        self._offsets, self._published = dict(beginning.offsets), beginning.journal
        self._committed = dict(beginning.published)
        self._clock = StreamClock(self.processor.room.now, place.stamp, self._tick_seconds)
        lengths = None if is_new else place.lengths
        self._outlets = stack.enter_context(Outlets({"log": str(Path(folder) / LOG)}, lengths))
        if is_new:
            self._save()  # there is always a snapshot to go on from
        else:
            assert self._state.loaded is not None
            self._saved_as(self._state.loaded.number)
        patiently(lambda: self._reader.begin(self._offsets))
        return beginning

    def _wait_for_state(self, stack: ExitStack) -> Place:
        """Load the state; the one before may still hold it for a moment."""
        said = False
        while True:
            try:
                return self._open_state(stack)
            except KeeperLocked as error:
                if not said:
                    self._watcher.note(f"{error}: waiting")
                said = True
            self.membership.wait(0.5, self._is_stopped)
            if self._is_stopped():
                raise Interrupted("stopped while another process had the state folder")
            if self.membership.changed:
                self.membership.settle(self.membership.consumer.assignment(), self._is_stopped)

    def _catch_up(self, beginning: Beginning) -> None:
        """Process again what was published before, without publishing it."""
        followed = self._replay()
        left = {
            partition: (self._reader.position[partition], end)
            for partition, end in beginning.published.items()
            if self._reader.position[partition] < end
        }
        if left:  # a power cut took the end of the journal
            missing = ", ".join(key_of(partition) for partition in sorted(left))
            self._note("journal_gaps", f"the journal ends before what is published: reading on in {missing}")
            records = self._reader.take(left, self._is_stopped)
            for piece in self._clock.pieces(records):
                self._enter(self._published, piece)
            self._flush()
        if not followed or left:
            self._save()  # what it says from here on must not be followed again

    def _follow(self, number: int, entry: Batch | Ranges) -> str | None:
        if not isinstance(entry, Ranges):
            return f"{entry.lines} lines of {entry.source}"
        ranges = {partition_of(key): span for key, span in entry.ranges.items()}
        if not ranges.keys() <= self._reader.position.keys():
            return f"{entry.lines} records"
        try:
            records = self._reader.take(ranges, self._is_stopped)
        except OffsetOutOfRangeError as error:
            raise KafkaProblem(f"records are gone that the journal names ({error})") from error
        self.membership.look()
        if self._is_stopped():
            raise Interrupted("stopped while it caught up")
        if len(records) != entry.lines:
            gone = f"{entry.lines - len(records)} of {entry.lines} records in entry {number} of the journal"
            raise KafkaProblem(f"{gone} are gone: stream-hc kafka reset --to earliest goes on without them")
        for piece in self._clock.pieces(records):
            self._enter(number, piece)
        return None

    # Going on

    def _go_on(self) -> bool:
        """Do one thing; False if there is nothing to do any more."""
        limit = self.config.stream.limit
        if self._is_stopped() or (limit is not None and self._taken >= limit):
            return False
        self.membership.look()
        if self.membership.changed:
            self._settle()
        if time.monotonic() - self._looked >= LOOK_AROUND:
            self._looked = time.monotonic()
            self._see_to_the_rest()
        records = self._gather()
        if not records:
            self._flush()
            self._publish_events()
            return True
        for piece in self._clock.pieces(records):
            ranges = {key_of(partition): span for partition, span in ranges_of(piece.records).items()}
            self._write_down(Ranges(self._taken, len(piece.records), ranges))
            self._enter(self._journal_end, piece)
        every = self.config.state.every
        if every is not None and self._taken - self._last_saved >= every:
            self._save_soon()
        return True

    def _gather(self) -> list[Any]:
        limit = self.config.stream.limit
        most = self.config.kafka.batch if limit is None else limit - self._taken
        try:
            return self._reader.gather(0.0 if self._pipeline.busy else LOOK_AROUND, most)
        except OffsetOutOfRangeError as error:
            raise KafkaProblem(
                f"records were deleted before they were read ({error}): keep them longer (retention.ms); "
                "stream-hc kafka reset --to earliest goes on without them"
            ) from error

    def _settle(self) -> None:
        """See what the group has agreed on: new partitions are read from their beginning."""
        self._flush()
        more = self.membership.settle(self._offsets, self._is_stopped)
        if more:
            first = self.transactions.patiently(lambda: self.membership.ends(first=True))
            self._offsets |= {partition: first[partition] for partition in more}
        self.transactions.patiently(lambda: self._reader.begin(self._offsets))

    def _enter(self, number: int, piece: Piece) -> None:
        """Hand some records to the processor, after the time if it is told there."""
        if piece.now is not None:
            self._flush()
            self._deliver(Processed("", self.processor.tick(piece.now), number))
        lines = [Line(place, record.value or b"") for place, record in enumerate(piece.records)]
        self._process("", lines, Read(number, piece.records, offsets_behind(piece.records)))

    def _write_out(self, done: Processed) -> None:
        self._outlets.write(done.outcome, done.source)
        if not isinstance(done.tag, Read):
            if self._is_live or done.tag > self._published:
                self._events += done.outcome.log
                self._decided = done.tag
            return
        offsets = self._offsets | done.tag.offsets
        # By their offsets: numbers of the journal may be given again after a power cut or on a full disk.
        if any(end > self._committed.get(partition, 0) for partition, end in done.tag.offsets.items()):
            self._publish(done.tag.number, self._messages.of_outcome(done.outcome, done.tag.records), offsets)
        self._offsets = offsets

    def _publish_events(self) -> None:
        """Publish what was decided while no records came."""
        if self._events or self._decided > self._published:
            self._publish(max(self._decided, self._published), [], self._offsets)

    def _publish(self, number: int, messages: Sequence[Any], offsets: Mapping[TopicPartition, int]) -> None:
        if len(offsets) > 1 or self._decided > self._published:
            self._sync_journal()  # what it says cannot be found out again
        named = msgspec.structs.replace(self._named, journal=number)
        events = self._messages.of_log(self._events)
        self.transactions.publish([*events, *messages], offsets_to_commit(offsets, named))
        self._events, self._published, self._committed = [], number, dict(offsets)

    def _sync_journal(self) -> None:
        assert self._state is not None
        try:
            self._state.journal.sync()
        except JournalError as error:
            self._note("journal_failures", f"{error}: a power cut may change the order of records read again")

    # Saving

    def _save_soon(self) -> None:
        self._last_saved = self._taken
        self._flush()
        self._publish_events()  # a snapshot includes the entry: after a crash nobody would publish them
        super()._save_soon()

    def _save(self) -> None:
        self._flush()
        self._publish_events()
        super()._save()

    def _saved_as(self, number: int) -> None:
        assert self._state is not None
        digest = inspect(self._state.keeper.path(number)).sha256
        self._named = msgspec.structs.replace(self._named, snapshot=number, digest=digest)
        if self.publisher is not None:
            self.publisher.offer(number, self._named.job, self._state.keeper.path(number))

    def _place(self) -> Place:
        return Place(
            lengths=self._outlets.lengths,
            journal=self._journal_end,
            fitted=self.processor.progress.fitted,
            offsets=for_place(self._offsets.items()),
            job=self._named.job,
            stamp=self._clock.stamp,
        )

    @property
    def _journal_end(self) -> int:
        assert self._state is not None
        return self._state.journal.last

    @property
    def _outputs(self) -> Iterable[str]:
        return self._outlets.paths

    def _is_stopped(self) -> bool:
        return self._stop is not None and self._stop.requested
