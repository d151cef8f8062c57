"""A job on files from beginning to end: read, process, write out, save; and go on after any end.

After a crash the outputs are cut back to where they were at the newest snapshot, and written again.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from stream_hc.runtime.config import Config
from stream_hc.runtime.contest import Fetch
from stream_hc.runtime.disk import (
    LOG,
    Batch,
    Outlets,
    Place,
    Ranges,
    Source,
    Tick,
    open_source,
    wait_for,
)
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.pipeline import Processed
from stream_hc.runtime.processor import Processor
from stream_hc.runtime.watcher import StopRequest, Watcher
from stream_hc.runtime.work import LOOK_AROUND, Work
from stream_hc.sharding import Shard
from stream_hc.taxonomy import Taxonomy

__all__ = ["Job"]


class Job(Work):
    """A stream on this machine.

    Parameters
    ----------
    config, build, stop, watcher, taxonomy, shard
        As for `Work`.
    clock
        Tells the time, in seconds.
    append
        Write behind what the outputs hold, where there is no state folder to tell their lengths.
    """

    def __init__(
        self,
        config: Config,
        build: Callable[[Fetch | None], Processor],
        stop: StopRequest | None = None,
        watcher: Watcher["Job"] | None = None,
        clock: Callable[[], float] = time.time,
        taxonomy: Taxonomy | None = None,
        append: bool = False,
        shard: Shard | None = None,
    ) -> None:
        super().__init__(config, build, stop, watcher, taxonomy, shard)
        self.sources: dict[str, Source] = {}
        self._clock = clock
        self._append = append
        self._ticked = 0.0

    def run(self) -> None:
        """Run until the sources end, the limit is reached or somebody wants it to stop; then save."""
        with ExitStack() as stack:
            self._open(stack)
            self._watcher.begin(self)
            if not self._replay():  # what it says from here on must not be followed again
                self._save()
            self._begin_live()
            while self._go_on():
                pass
            self._flush()
            self._fits.stop()
            self._save()

    def _open(self, stack: ExitStack) -> None:
        stream = self.config.stream
        place = self._open_state(stack)
        for name in ("documents", "labels"):
            path = getattr(stream, name)
            if path is not None:
                source = open_source(path, place.positions.get(name), stream.follow)
                self.sources[name] = stack.enter_context(source)
        is_new = self._state is None or self._state.loaded is None
        folder = self.config.state.folder
        paths = {
            "output": stream.output,
            "rejects": stream.rejects,
            "requests": stream.requests,
            "log": None if folder is None else str(Path(folder) / LOG),
        }
        outlets = Outlets(paths, None if is_new else place.lengths, self._append, stream.labels is not None)
        self._outlets = stack.enter_context(outlets)

    def _follow(self, number: int, entry: Batch | Ranges) -> str | None:
        if isinstance(entry, Ranges):
            return f"{entry.lines} records of topics"
        source, lines = self.sources.get(entry.source), list[Line]()
        while source is not None and len(lines) < entry.lines and source.pending():
            lines += source.read(entry.lines - len(lines))
        self._process(entry.source, lines)
        return None if len(lines) == entry.lines else f"{entry.lines - len(lines)} lines of {entry.source}"

    def _write_out(self, done: Processed) -> None:
        self._outlets.write(done.outcome, done.source)

    def _go_on(self) -> bool:
        """Do one thing; False if there is nothing to do any more."""
        if self._stop is not None and self._stop.requested:
            return False
        self._look_around()
        waiting = [name for name, source in self.sources.items() if source.pending()]
        if not waiting:
            self._flush()
            if all(source.ended for source in self.sources.values()):
                return False
            descriptor = None if self._stop is None else self._stop.descriptor
            wait_for(self.sources.values(), LOOK_AROUND if self._is_watchful() else None, descriptor)
            return True
        name, most = self._choose(waiting)
        lines = self.sources[name].read(most)
        if lines:
            self._write_down(Batch(self._taken, name, len(lines)))
            self._process(name, lines)
        every, limit = self.config.state.every, self.config.stream.limit
        if every is not None and lines and self._taken % every == 0:
            self._save_soon()
        return limit is None or self._taken < limit

    def _choose(self, waiting: list[str]) -> tuple[str, int | None]:
        """Choose a source and how many lines to read at most.

        Labels come first, since what they teach is of use; but no more than find room to wait for documents.
        """
        if len(waiting) == 1:
            return waiting[0], self._most()
        self._flush()
        room = self.config.labels.early // 2 - self.processor.room.n_labels
        if room <= 0:
            return "documents", self._most()
        most = self._most()
        return "labels", room if most is None else min(room, most)

    def _most(self) -> int | None:
        """Return how many lines may be read until something is due after an exact number of them."""
        every, limit = self.config.state.every, self.config.stream.limit
        bounds = [] if every is None else [every - self._taken % every]
        return min([*bounds, *([] if limit is None else [max(0, limit - self._taken)])], default=None)

    def _is_watchful(self) -> bool:
        return self._state is not None or self.refitter is not None

    def _look_around(self) -> None:
        """See to what happens beside the records."""
        now = time.monotonic()
        if now - self._looked < LOOK_AROUND and self._looked:
            return
        self._looked = now
        time_now = self._clock()
        if not self._ticked or time_now - self._ticked >= self._tick_seconds:
            self._decide(Tick(self._taken, time_now))
            self._ticked = time_now
        self._see_to_the_rest()

    def _place(self) -> Place:
        positions = {name: source.position for name, source in self.sources.items()}
        journal = 0 if self._state is None else self._state.journal.last
        return Place(positions, self._outlets.lengths, journal, self.processor.progress.fitted)

    @property
    def _outputs(self) -> Iterable[str]:
        return self._outlets.paths
