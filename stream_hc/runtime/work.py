"""A stream at work, wherever its records come from: decide, write down, process, save; go on after any end.

Whatever the records do not determine is written to the journal before it is carried out: which records came
next, the time, finished fits, requests. After a crash the newest snapshot is loaded and the journal is
followed: what is read again gives the same results.
"""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
    Place,
    Ranges,
    RefitDone,
    RefitFailed,
    Saved,
    StateFolder,
    Tick,
)
from stream_hc.runtime.fits import Fits
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.outcome import Fitted, Outcome
from stream_hc.runtime.pipeline import Pipeline, Processed
from stream_hc.runtime.processor import Processor
from stream_hc.runtime.refit import Refitter
from stream_hc.runtime.watcher import StopRequest, Watcher
from stream_hc.sharding import Shard
from stream_hc.snapshot import SnapshotError
from stream_hc.taxonomy import Taxonomy

__all__ = ["LONGEST_TICK", "LOOK_AROUND", "Work"]

LOOK_AROUND = 0.2  # seconds between two looks for finished fits, snapshots and requests while nothing comes
LONGEST_TICK = 60.0


class Work(ABC):
    """What every stream has in common: a processor, its state on disk, fits beside it, requests from outside.

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
    taxonomy
        If given, a state that was made for another one is refused.
    shard
        The one that `build` makes a processor of, if it is one: the state of another one is refused.

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
        watcher: Watcher[Any] | None = None,
        taxonomy: Taxonomy | None = None,
        shard: Shard | None = None,
    ) -> None:
        self.config = config
        self.counts: Counter[str] = Counter()
        self.refitter: Refitter | None = None
        self._build = build
        self._stop = stop
        self._watcher = Watcher[Any]() if watcher is None else watcher
        self._taxonomy = taxonomy
        self._shard = shard
        self._state: StateFolder | None = None
        self._taken = 0  # records handed to the processor
        self._requests_done: set[str] = set()
        self._fits = Fits(None, self.counts, self._watcher.note, self._watcher.fitted)
        self._looked = self._saved = 0.0
        self._is_live = False

    @property
    def is_live(self) -> bool:
        """Whether records are new: not those of the journal, which are done once more."""
        return self._is_live

    # What a transport adds

    @abstractmethod
    def _write_out(self, done: Processed) -> None:
        """Bring what came out to where it goes."""

    @abstractmethod
    def _follow(self, number: int, entry: Batch | Ranges) -> str | None:
        """Process again what came before the restart; say what is missing if not all of it can be read."""

    @abstractmethod
    def _place(self) -> Place:
        """Return how far everything is."""

    @property
    @abstractmethod
    def _outputs(self) -> Iterable[str]:
        """The files that must be on the disk before a snapshot is."""

    # Beginning

    def _open_state(self, stack: ExitStack) -> Place:
        """Load or build the processor, and all that is around it; return where it stood."""
        config, place = self.config, Place()
        folder = config.state.folder
        if folder is not None:
            self._state = stack.enter_context(StateFolder(config.state))
            place = self._state.place
        if config.refit.enabled:
            fits = stack.enter_context(TemporaryDirectory()) if folder is None else str(Path(folder) / FITS)
            self.refitter = Refitter(Path(fits), config.refit)
            told = self._watcher.note, self._watcher.fitted
            self._fits = Fits(self.refitter, self.counts, *told, folder is not None)
        fetch = self._fits.fetch if config.refit.enabled and config.refit.in_step else None
        loaded = None if self._state is None else self._state.loaded
        if loaded is None:
            self.processor = self._build(fetch)
        else:
            for path, problem in loaded.skipped:
                self._note("snapshots_damaged", f"going on from an earlier snapshot than {path}: {problem}")
            self._check_taxonomy(loaded.parts)
            self.processor = Processor.from_parts(loaded.parts, config, fetch, self._shard)
            check_built(self.processor, config)
        self._taken = self.processor.progress.records
        self._pipeline = stack.enter_context(Pipeline(self.processor))
        stack.callback(self._fits.stop)  # before the pipeline ends: a fit in step would keep it waiting
        return place

    def _check_taxonomy(self, parts: Mapping[str, Any]) -> None:
        """Refuse a state that was made for another taxonomy: a shard of it cannot be that of this one."""
        there = getattr(parts.get("window"), "taxonomy", None)
        if self._taxonomy is not None and there is not None and self._taxonomy != there:
            counts = f"{len(there)} nodes, now {len(self._taxonomy)}"
            remedy = "give the old one, or an empty state folder to begin anew"
            raise SnapshotError(f"{self.config.state.folder}: the taxonomy has changed ({counts}): {remedy}")

    def _begin_live(self) -> None:
        """Go over from following the journal to new records."""
        self._is_live = True
        request = self.processor.contest.request
        if request is not None and not self.config.refit.in_step:
            self._fits.start(request)
        self._saved = time.monotonic()
        self._watcher.live(self)

    def _replay(self) -> bool:
        """Follow the journal behind the snapshot; False if it does not fit all the way."""
        if self._state is None:
            return True
        self._fits.done = self._state.fits_done()
        for number, entry in self._state.journal.after(self._state.place.journal):
            if entry.at != self._taken:
                self._note("journal_gaps", f"the journal has a gap before entry {number}: going on without")
                return False
            if isinstance(entry, Batch | Ranges):
                missing = self._follow(number, entry)
                if missing is not None:
                    self._note("journal_gaps", f"{missing} cannot be read again: going on without")
                    return False
            else:
                self._flush()
                self._carry_out(entry, number)
        self._flush()
        return True

    # Going on

    def _process(self, source: str, lines: list[Line], tag: Any = None) -> None:
        self._taken += len(lines)
        self._deliver(self._pipeline.put(source, lines, tag))

    def _flush(self) -> None:
        self._deliver(self._pipeline.flush())

    def _deliver(self, done: Processed | None) -> None:
        if done is not None:
            self._write_out(done)
            self._watcher.processed(self, done)
            if done.outcome.fit is not None and self._is_live:
                self._fits.start(done.outcome.fit)

    def _see_to_the_rest(self) -> None:
        """See to what happens beside the records: finished fits, requests, snapshots."""
        self._watcher.looked(self)
        taken = None if self.config.refit.in_step else self._fits.take(self._taken)
        if taken is not None:
            self._decide(taken[0], model=taken[1])
        if self._state is not None:
            for request in self._state.requests(self._requests_done):
                self._decide(Command(self._taken, request.what, request.model, request.name), sync=True)
            self._see_to_snapshots(self._state, time.monotonic())

    @property
    def _tick_seconds(self) -> float:
        """How often the time is told: often enough for whatever depends on it."""
        spans = [self.config.labels.seconds, self.config.refit.seconds or LONGEST_TICK * 100]
        return max(1.0, min(LONGEST_TICK, *(span / 100 for span in spans)))

    def _decide(self, entry: Entry, sync: bool = False, model: HM3 | None = None) -> None:
        """Write down what was not in the records, and carry it out."""
        self._flush()
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
        self._deliver(Processed("", outcome, number))

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
            self._note_saved(result.number)
            self._fits.forget(state, self.processor.progress.fitted)
        elif isinstance(result, Failed):
            self._note("snapshot_failures", f"no snapshot: {result.problem}: the stream goes on")

    def _save_soon(self) -> None:
        """Save in the background, unless that is under way."""
        state = self._state
        if state is None:
            self._save()
        elif not state.keeper.busy:
            self._flush()
            self._saved = time.monotonic()
            self._watcher.save(self)
            state.save_in_background(self.processor.parts, self._place(), self._outputs)

    def _save(self) -> None:
        self._flush()
        self._watcher.save(self)
        if self._state is not None:
            self._take_snapshot(self._state, self._state.wait())
            self._note_saved(self._state.save(self.processor.parts(), self._place(), self._outputs))

    def _note_saved(self, number: int) -> None:
        self.counts["snapshots"] += 1
        self._saved_as(number)
        self._watcher.saved(self)

    def _saved_as(self, number: int) -> None:  # noqa: B027 (not everyone wants to know)
        """Take note of a snapshot that is complete and on the disk."""

    def _note(self, count: str, text: str) -> None:
        self.counts[count] += 1
        self._watcher.note(text)
