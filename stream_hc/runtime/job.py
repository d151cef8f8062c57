"""A job from beginning to end: read, decide, write down, process, write out, save; and go on after any end.

Whatever the records do not determine is written to the journal before it is carried out: which source the
next lines came from, the time, finished fits, requests. After a crash the newest snapshot is loaded, the
outputs are cut back to where they were then, and the journal is followed: what is read again gives the same
results.
"""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from stream_hc.maxmargin import HM3
from stream_hc.runtime.building import check_built
from stream_hc.runtime.config import Config
from stream_hc.runtime.contest import Fetch
from stream_hc.runtime.disk import (
    FITS,
    Batch,
    Command,
    Entry,
    Failed,
    Outlets,
    Place,
    RefitDone,
    RefitFailed,
    Saved,
    Source,
    StateFolder,
    Tick,
    open_source,
    wait_for,
)
from stream_hc.runtime.fits import Fits
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.outcome import Fitted, Outcome
from stream_hc.runtime.pipeline import Pipeline, Processed
from stream_hc.runtime.processor import Processor
from stream_hc.runtime.refit import Refitter
from stream_hc.runtime.watcher import StopRequest, Watcher
from stream_hc.snapshot import SnapshotError
from stream_hc.taxonomy import Taxonomy

__all__ = ["Job"]

LOOK_AROUND = 0.2  # seconds between two looks for finished fits, snapshots and requests while nothing comes
LONGEST_TICK = 60.0


class Job:
    """A stream on this machine.

    Parameters
    ----------
    config
        All of it.
    build
        Makes the processor of a job that begins.
    stop
        Asked between two batches.
    watcher
        Told what happens.
    clock
        Tells the time, in seconds.
    taxonomy
        If given, a state that was made for another one is refused.
    append
        Write behind what the outputs hold, where there is no state folder to tell their lengths.

    Attributes
    ----------
    processor
        Where everything that was learned is; made when the job begins.
    counts
        What happened to snapshots, fits and the journal.
    """

    processor: Processor

    def __init__(
        self,
        config: Config,
        build: Callable[[Fetch | None], Processor],
        stop: StopRequest | None = None,
        watcher: Watcher | None = None,
        clock: Callable[[], float] = time.time,
        taxonomy: Taxonomy | None = None,
        append: bool = False,
    ) -> None:
        self.config = config
        self.counts: Counter[str] = Counter()
        self.sources: dict[str, Source] = {}
        self.refitter: Refitter | None = None
        self._build = build
        self._stop = stop
        self._watcher = Watcher() if watcher is None else watcher
        self._clock = clock
        self._taxonomy = taxonomy
        self._append = append
        self._state: StateFolder | None = None
        self._taken = 0  # lines handed to the processor
        self._requests_done: set[str] = set()
        self._fits = Fits(None, self.counts, self._watcher.note)
        self._ticked = self._looked = self._saved = 0.0
        self._is_live = False

    def run(self) -> None:
        """Run until the sources end, the limit is reached or somebody wants it to stop; then save."""
        with ExitStack() as stack:
            self._open(stack)
            self._watcher.begin(self)
            if not self._replay():  # what it says from here on must not be followed again
                self._save()
            self._is_live = True
            request = self.processor.contest.request
            if request is not None and not self.config.refit.in_step:
                self._fits.start(request)
            self._saved = time.monotonic()
            while self._go_on():
                pass
            self._deliver(self._pipeline.flush())
            self._fits.stop()
            self._save()

    # Beginning

    def _open(self, stack: ExitStack) -> None:
        config, place = self.config, Place()
        folder = config.state.folder
        if folder is not None:
            self._state = stack.enter_context(StateFolder(config.state))
            place = self._state.place
        if config.refit.enabled:
            fits = stack.enter_context(TemporaryDirectory()) if folder is None else str(Path(folder) / FITS)
            self.refitter = Refitter(Path(fits), config.refit)
            self._fits = Fits(self.refitter, self.counts, self._watcher.note, folder is not None)
        fetch = self._fits.fetch if config.refit.enabled and config.refit.in_step else None
        loaded = None if self._state is None else self._state.loaded
        if loaded is None:
            self.processor = self._build(fetch)
        else:
            for path, problem in loaded.skipped:
                self._note("snapshots_damaged", f"going on from an earlier snapshot than {path}: {problem}")
            self.processor = Processor.from_parts(loaded.parts, config, fetch)
            check_built(self.processor, config)
            if self._taxonomy is not None and self._taxonomy != self.processor.taxonomy:
                counts = f"{len(self.processor.taxonomy)} nodes, now {len(self._taxonomy)}"
                remedy = "give the old one, or an empty state folder to begin anew"
                raise SnapshotError(f"{folder}: the taxonomy has changed ({counts}): {remedy}")
        self._taken = self.processor.progress.records
        for name in ("documents", "labels"):
            path = getattr(config.stream, name)
            if path is not None:
                source = open_source(path, place.positions.get(name), config.stream.follow)
                self.sources[name] = stack.enter_context(source)
        lengths = None if loaded is None else place.lengths
        self._outlets = stack.enter_context(Outlets(config, lengths, self._append))
        self._pipeline = stack.enter_context(Pipeline(self.processor))
        stack.callback(self._fits.stop)  # before the pipeline ends: a fit in step would keep it waiting

    def _replay(self) -> bool:
        """Follow the journal behind the snapshot; False if it does not fit all the way."""
        if self._state is None:
            return True
        self._fits.done = self._state.fits_done()
        for number, entry in self._state.journal.after(self._state.place.journal):
            if entry.at != self._taken:
                self._note("journal_gaps", f"the journal has a gap before entry {number}: going on without")
                return False
            if isinstance(entry, Batch):
                lines = self._read_again(entry)
                self._process(entry.source, lines)
                if len(lines) < entry.lines:
                    missing = f"{entry.lines - len(lines)} lines of {entry.source}"
                    self._note("journal_gaps", f"{missing} cannot be read again: going on without")
                    return False
            else:
                self._deliver(self._pipeline.flush())
                self._carry_out(entry, number)
        self._deliver(self._pipeline.flush())
        return True

    def _read_again(self, entry: Batch) -> list[Line]:
        """Return the lines of a batch before the restart, or as many as there are."""
        source, lines = self.sources.get(entry.source), list[Line]()
        while source is not None and len(lines) < entry.lines and source.pending():
            lines += source.read(entry.lines - len(lines))
        return lines

    # Going on

    def _go_on(self) -> bool:
        """Do one thing; False if there is nothing to do any more."""
        if self._stop is not None and self._stop.requested:
            return False
        self._look_around()
        waiting = [name for name, source in self.sources.items() if source.pending()]
        if not waiting:
            self._deliver(self._pipeline.flush())
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
        self._deliver(self._pipeline.flush())
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

    def _process(self, source: str, lines: list[Line]) -> None:
        self._taken += len(lines)
        self._deliver(self._pipeline.put(source, lines))

    def _deliver(self, done: Processed | None) -> None:
        if done is not None:
            self._outlets.write(done.outcome, done.source)
            self._watcher.processed(self, done)
            if done.outcome.fit is not None and self._is_live:
                self._fits.start(done.outcome.fit)

    def _look_around(self) -> None:
        """See to what happens beside the records."""
        now = time.monotonic()
        if now - self._looked < LOOK_AROUND and self._looked:
            return
        self._looked = now
        time_now = self._clock()
        if not self._ticked or time_now - self._ticked >= self._tick_seconds():
            self._decide(Tick(self._taken, time_now))
            self._ticked = time_now
        taken = None if self.config.refit.in_step else self._fits.take(self._taken)
        if taken is not None:
            self._decide(taken[0], model=taken[1])
        if self._state is not None:
            for request in self._state.requests(self._requests_done):
                self._decide(Command(self._taken, request.what, request.model, request.name), sync=True)
            self._see_to_snapshots(self._state, now)

    def _tick_seconds(self) -> float:
        """Return how often the time is told: often enough for whatever depends on it."""
        spans = [self.config.labels.seconds, self.config.refit.seconds or LONGEST_TICK * 100]
        return max(1.0, min(LONGEST_TICK, *(span / 100 for span in spans)))

    def _decide(self, entry: Entry, sync: bool = False, model: HM3 | None = None) -> None:
        """Write down what was not in the records, and carry it out."""
        self._deliver(self._pipeline.flush())
        self._write_down(entry, sync)
        self._carry_out(entry, 0 if self._state is None else self._state.journal.last, model)

    def _write_down(self, entry: Entry, sync: bool = False) -> None:
        problem = None if self._state is None else self._state.write(entry, sync)
        if problem is not None:
            self._note("journal_failures", f"{problem}: until the next snapshot a crash may repeat decisions")

    def _carry_out(self, entry: Entry, number: int, model: HM3 | None = None) -> None:
        processor = self.processor
        if isinstance(entry, Tick):
            outcome = processor.tick(entry.now)
        elif isinstance(entry, RefitDone):
            self._fits.done.append((number, entry.number))
            fitted = self._fits.load(entry.number) if model is None else Fitted(entry.number, model)
            outcome = processor.finish_fit(fitted)
        elif isinstance(entry, RefitFailed):
            outcome = processor.finish_fit(Fitted(entry.number, None, f"{entry.outcome}: {entry.problem}"))
        else:
            assert isinstance(entry, Command)
            outcome = self._obey(entry)
        self._deliver(Processed("", outcome))

    def _obey(self, command: Command) -> Outcome:
        self._requests_done.add(command.name)
        if self._state is not None:  # at once: the next snapshot does not know that it was done
            self._state.forget_request(command.name)
        try:
            if command.what == "promote":
                return self.processor.promote(command.model)
            return self.processor.rollback()
        except ValueError as error:
            self._watcher.note(f"{command.what}: {error}")
            return Outcome()

    # Saving

    def _see_to_snapshots(self, state: StateFolder, now: float) -> None:
        self._take_snapshot(state, state.poll())
        seconds = self.config.state.seconds
        if seconds is not None and now - self._saved >= seconds:
            self._save_soon()

    def _take_snapshot(self, state: StateFolder, result: Saved | Failed | None) -> None:
        if isinstance(result, Saved):
            self.counts["snapshots"] += 1
            self._fits.forget(state, self.processor.progress.fitted)
        elif isinstance(result, Failed):
            self._note("snapshot_failures", f"no snapshot: {result.problem}: the stream goes on")

    def _save_soon(self) -> None:
        """Save in the background, unless that is under way."""
        state = self._state
        if state is None:
            self._save()
        elif not state.keeper.busy:
            self._deliver(self._pipeline.flush())
            self._saved = time.monotonic()
            self._watcher.save(self)
            state.save_in_background(self.processor.parts, self._place(), self._outlets.paths)

    def _save(self) -> None:
        self._deliver(self._pipeline.flush())
        self._watcher.save(self)
        if self._state is not None:
            self._take_snapshot(self._state, self._state.wait())
            self._state.save(self.processor.parts(), self._place(), self._outlets.paths)
            self.counts["snapshots"] += 1

    def _place(self) -> Place:
        positions = {name: source.position for name, source in self.sources.items()}
        journal = 0 if self._state is None else self._state.journal.last
        return Place(positions, self._outlets.lengths, journal, self.processor.progress.fitted)

    def _note(self, count: str, text: str) -> None:
        self.counts[count] += 1
        self._watcher.note(text)
