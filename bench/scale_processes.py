"""Predictors and trainers in processes of their own, that say after each batch how far they are."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.scale_model import Batch

__all__ = ["Machine", "Member", "cpu_seconds", "crew", "look", "resident"]

TICK = os.sysconf("SC_CLK_TCK")
PATIENCE = 90.0  # seconds until all of them read
WARM, LEAST = 2, 5  # batches of each: that do not count, and that do


class Machine(NamedTuple):
    """What was used by a moment: processor seconds of the broker, of everybody, and of nobody."""

    at: float
    broker: float
    busy: float
    idle: float


class Member(NamedTuple):
    """One of those at work: what it has said."""

    process: BaseProcess
    pipe: Connection
    said: list[Any]

    def hear(self) -> list[Any]:
        """Return all that it has said by now."""
        while self.pipe.poll():
            try:
                self.said.append(self.pipe.recv())
            except EOFError:
                break
        return self.said

    @property
    def batches(self) -> list[Batch]:
        """The batches it has done."""
        return [each for each in self.hear() if isinstance(each, Batch)]

    @property
    def holds(self) -> int:
        """How many partitions it reads now; -1 if it has not said so."""
        return next((each for each in reversed(self.hear()) if isinstance(each, int)), -1)


class Signals(NamedTuple):
    """What the members are told."""

    go: Any
    stop: Any

    @property
    def requested(self) -> bool:
        """Whether they shall end: a `StopRequest`."""
        return bool(self.stop.is_set())

    @property
    def descriptor(self) -> None:
        """There is none."""


@contextmanager
def crew(
    work: Callable[..., None], arguments: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[Any, list[Member]]]:
    """Start one process for each of the arguments; at the end they are stopped, and killed if they are slow.

    `work` is called with a pipe, signals and its arguments.
    """
    context = get_context("spawn")
    signals = Signals(context.Event(), context.Event())
    members = []
    try:
        for each in arguments:
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(theirs, signals, *each), daemon=True)
            process.start()
            theirs.close()
            members.append(Member(process, ours, []))
        yield signals, members
    finally:
        signals.stop.set()
        signals.go.set()
        for member in members:
            member.process.join(15.0)
            member.process.kill()
            member.process.join()


def await_all(members: Sequence[Member], ready: Callable[[list[int]], bool]) -> None:
    """Wait until what they hold is as it should be, and has been for a moment."""
    end, since = time.monotonic() + PATIENCE, 0.0
    while not since or time.monotonic() < since + 1.0:
        dead = [member for member in members if not member.process.is_alive()]
        if dead or time.monotonic() > end:
            raise RuntimeError(f"they are not all at work: {[member.holds for member in members]}")
        is_ready = ready([member.holds for member in members])
        since = (since or time.monotonic()) if is_ready else 0.0
        time.sleep(0.1)


def watch(members: Sequence[Member], broker: int, seconds: float) -> tuple[Machine, Machine]:
    """Let them work for so long, and for at least some batches each; return what was used at both ends."""
    _await_batches(members, WARM)
    before = look(broker)
    time.sleep(seconds)
    _await_batches(members, WARM + LEAST)
    return before, look(broker)


def _await_batches(members: Sequence[Member], n: int) -> None:
    end = time.monotonic() + PATIENCE
    while min(len(member.batches) for member in members) < n:
        if time.monotonic() > end or not all(member.process.is_alive() for member in members):
            # Or the topic is read to its end: then there should be more documents in it.
            raise RuntimeError(f"they do not go on: {[len(member.batches) for member in members]} batches")
        time.sleep(0.05)


def look(broker: int) -> Machine:
    """Return what was used until now."""
    numbers = [int(each) for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle = (numbers[3] + numbers[4]) / TICK
    return Machine(time.monotonic(), cpu_seconds(broker), sum(numbers) / TICK - idle, idle)


def cpu_seconds(pid: int) -> float:
    """Return the processor seconds of a process, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident(pid: int | str = "self") -> tuple[int, int]:
    """Return the bytes that a process has in memory, and the most that it ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return tuple(1024 * int(found[name].split()[0]) for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


# What runs in them


def predict(pipe: Connection, signals: Signals, config: Any, cores: Sequence[int] | None = None) -> None:
    """Be a predictor that begins when it is told to."""
    if cores is not None:
        os.sched_setaffinity(0, cores)
    from consumers.predicting import predictor_config  # noqa: PLC0415
    from consumers.predictor.predictor import Predictor  # noqa: PLC0415
    from consumers.predictor.watching import PredictWatcher  # noqa: PLC0415
    from stream_hc.runtime.collector import spare_what_stays  # noqa: PLC0415

    class Tally(PredictWatcher):
        def note(self, text: str) -> None:
            pass  # topics of a bench need not be as they should

        def reading(self, partitions: Sequence[str]) -> None:
            pipe.send(len(partitions))

        def answered(self, model: Any, answered: Any, seconds: float, transactions: Any) -> None:
            pipe.send(Batch(time.monotonic(), len(answered.answers), time.process_time(), seconds))

    class Gated(Predictor):
        def _gather(self, fetching: Any) -> list[Any]:
            if not signals.go.is_set():
                time.sleep(0.02)  # heartbeats go on meanwhile
                return []
            return super()._gather(fetching)

    spare_what_stays()
    Gated(predictor_config(config, None), signals, Tally(60.0, quiet=True)).run()


def answer(pipe: Connection, signals: Signals, data: bytes, lines: Sequence[bytes], n: int) -> None:
    """Be a predictor without a broker: answer the same lines again and again, so many at a time."""
    from bench.scale_world import manifest_of  # noqa: PLC0415
    from consumers.models.content import read_content  # noqa: PLC0415
    from consumers.predictor.served import ServedModel  # noqa: PLC0415
    from stream_hc.runtime.collector import spare_what_stays  # noqa: PLC0415
    from stream_hc.runtime.jsonl import Line  # noqa: PLC0415

    served = ServedModel([manifest_of(data)], read_content(data))
    served.warm_up()
    spare_what_stays()
    pipe.send(1)
    signals.go.wait()
    place = 0
    while not signals.requested:
        some = [Line(number, data) for number, data in enumerate(lines[place : place + n])]
        began = time.monotonic()
        served.answer(some).answers.json_lines()
        pipe.send(Batch(time.monotonic(), len(some), time.process_time(), time.monotonic() - began))
        place = (place + n) % len(lines)


def train(
    pipe: Connection, signals: Signals, config: Any, tree: str, key: tuple[int, int], traffic: Any = None
) -> None:
    """Be the trainer of a shard that begins when it is told to, and publishes nothing."""
    from consumers.daemon import Daemon  # noqa: PLC0415
    from consumers.daemon.job import KafkaJob  # noqa: PLC0415
    from consumers.models.manifest import ShardKey  # noqa: PLC0415
    from consumers.trainer.settings import letters_about, trainer_config  # noqa: PLC0415
    from stream_hc.runtime.collector import spare_what_stays  # noqa: PLC0415
    from stream_hc.runtime.pipeline import Processed  # noqa: PLC0415
    from stream_hc.runtime.watcher import Watcher  # noqa: PLC0415
    from stream_hc.sharding import Plan  # noqa: PLC0415
    from stream_hc.taxonomy import Taxonomy  # noqa: PLC0415

    class Tally(Watcher[KafkaJob]):
        def live(self, job: KafkaJob) -> None:
            pipe.send(1)
            signals.go.wait()

        def processed(self, job: KafkaJob, done: Processed) -> None:
            n = len(getattr(done.tag, "records", ()))
            pipe.send(Batch(time.monotonic(), n, time.process_time(), done.took.apply))

    taxonomy = Taxonomy.read(Path(tree))
    shard = None if key[1] == 1 else Plan.cut(taxonomy, key[1], *traffic).shards[key[0]]
    own = trainer_config(config, ShardKey(*key))
    own = msgspec.structs.replace(own, kafka=msgspec.structs.replace(own.kafka, models=None))
    spare_what_stays()
    Daemon(own, taxonomy, signals, Tally(), shard=shard, letters_about=letters_about(own)).run()
