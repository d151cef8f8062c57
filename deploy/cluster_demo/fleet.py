"""Trainers and predictors, each a process with a log: started, killed, and what they say they do."""

import re
import signal
import sys
import time
from pathlib import Path
from typing import Literal, NamedTuple

from deploy.cluster_demo.job import PARTITIONS, SHARDS, DemoError, Stage
from deploy.kafka.process import Process

__all__ = ["Doing", "Fleet", "Member"]

Kind = Literal["starts", "waits", "stands by", "works", "killed"]
READING = re.compile(r"reading .* after (\d+) records")
ENDING = 20.0  # seconds


class Doing(NamedTuple):
    """What a process does, by its last words; the partitions are those of a predictor."""

    kind: Kind
    partitions: tuple[int, ...] = ()


class Member:
    """One process; `shard` is that of a trainer, and None for a predictor."""

    def __init__(self, name: str, shard: int | None, command: list[str], log: Path) -> None:
        self.name, self.shard, self.log = name, shard, log
        self.killed: float | None = None  # when, in seconds since 1970
        self._process = Process(name, command, log)

    def start(self) -> None:
        """Start it, or start it again."""
        self.killed = None
        self._process.start()

    def kill(self) -> None:
        """Kill it as `kill -9` does; the time is taken when it is certainly dead."""
        self._process.kill()
        self.killed = time.time()

    def ask_to_end(self) -> None:
        """Let it save what it knows and end."""
        if self._process.alive:
            self._process.signal(signal.SIGTERM)

    def await_end(self) -> None:
        """Wait until it has ended, and kill it if that takes too long; asked twice it would save nothing."""
        end = time.monotonic() + ENDING
        while self._process.alive and time.monotonic() < end:
            time.sleep(0.05)
        self._process.kill()

    def doing(self) -> Doing:
        """Return what it does.

        Raises
        ------
        DemoError
            It has ended by itself.
        """
        if self.killed is not None:
            return Doing("killed")
        lines = self._process.output().splitlines()
        if not self._process.alive:
            last = lines[-1] if lines else "it said nothing"
            raise DemoError(f"{self.name} has ended by itself: {last}")
        return next(filter(None, map(_meaning, reversed(lines))), Doing("starts"))


def _meaning(line: str) -> Doing | None:
    if READING.match(line):
        return Doing("works")
    if line.startswith("predicting "):
        return Doing("works", tuple(sorted(map(int, re.findall(r":(\d+)", line)))))
    if line.startswith(("standing by in the group", "not reading any more")):
        return Doing("stands by")
    return Doing("waits") if line.startswith("waiting for a model") else None


class Fleet:
    """Two trainers for each shard, of which one stands by, and some predictors.

    Processes die with the thread that starts them, so that none is left behind: make and start them in the
    main one.
    """

    def __init__(self, stage: Stage, n_predictors: int) -> None:
        address = ["--config", str(stage.job), "--bootstrap", stage.config.kafka.bootstrap]
        command = [sys.executable, "-m", "stream_hc.cli", "kafka"]
        self.members = []
        for shard in range(SHARDS):
            for letter in "ab":
                wanted = [*command, "train", "--shards", str(SHARDS), "--shard", str(shard), *address]
                log = stage.folder / f"trainer-{shard}{letter}.log"
                self.members.append(Member(f"trainer {shard}{letter}", shard, wanted, log))
        for number in range(1, n_predictors + 1):
            log = stage.folder / f"predictor-{number}.log"
            self.members.append(Member(f"predictor {number}", None, [*command, "predict", *address], log))

    def start(self) -> None:
        """Start all of them."""
        for member in self.members:
            member.start()

    def doing(self) -> dict[Member, Doing]:
        """Return what each of them does."""
        return {member: member.doing() for member in self.members}

    def is_in_order(self) -> bool:
        """Whether each shard is learned by one, while the others stand by, and all predictors predict."""
        doing, kinds = self.doing(), dict[int | None, list[str]]()
        for member, now in doing.items():
            kinds.setdefault(member.shard, []).append(now.kind)
        shared = sorted(number for now in doing.values() for number in now.partitions)
        predicting = set(kinds.pop(None)) == {"works"} and shared == list(range(PARTITIONS))
        return predicting and all(sorted(two) == ["stands by", "works"] for two in kinds.values())

    def stop(self) -> None:
        """Let all end; those who stand by first, or they would take over."""
        doing = self.doing()
        waiting = [member for member, now in doing.items() if now.kind != "works"]
        for group in (waiting, [member for member in self.members if member not in waiting]):
            for member in group:
                member.ask_to_end()
            for member in group:
                member.await_end()

    def close(self) -> None:
        """Kill what still runs."""
        for member in self.members:
            member.kill()
