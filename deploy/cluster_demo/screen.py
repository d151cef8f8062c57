"""What people see while it runs: a picture that changes on a terminal, a line now and then elsewhere."""

import time
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from deploy.cluster_demo.diary import Diary, Entry, clock, listed
from deploy.cluster_demo.feeding import Feed
from deploy.cluster_demo.fleet import Doing, Fleet, Member
from deploy.cluster_demo.watching import Watch
from stream_hc.cli.console import out

__all__ = ["Screen"]

FRAME, LINE = 0.2, 5.0  # seconds between two pictures, and between two lines
SHOWN = 7  # of what happened
SIGNS = {"works": ("●", "green"), "stands by": ("○", "cyan"), "killed": ("✗", "bold red")}
WAITING = ("…", "yellow")


class Screen:
    """Shows how it goes, as often as it is useful, whenever it is asked to look."""

    def __init__(self, title: str, total: int, fleet: Fleet, feed: Feed, watch: Watch, diary: Diary) -> None:
        self._title, self._total = title, total
        self._fleet, self._feed, self._watch, self._diary = fleet, feed, watch, diary
        self._said = 0  # entries of the diary
        self._next = 0.0
        self._live = Live(console=out(), auto_refresh=False, transient=True) if out().is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def look(self) -> None:
        """Show what is new, if it is time."""
        for entry in self._diary.entries[self._said :] if self._live is None else ():
            out().print(_happened(entry), soft_wrap=True)
        self._said = len(self._diary.entries)
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + (LINE if self._live is None else FRAME)
        if self._live is None:
            out().print(self._line(), soft_wrap=True)
        else:
            self._live.update(self._picture(), refresh=True)

    def _line(self) -> str:
        kinds = [doing.kind for doing in self._fleet.doing().values()]
        words = ("works", "stands by", "starts", "waits", "killed")
        told = {"works": "at work", "stands by": "standing by", "starts": "starting", "waits": "waiting"}
        who = ", ".join(f"{kinds.count(word)} {told.get(word, word)}" for word in words if word in kinds)
        return f"{clock(self._diary.now()):>6}  {self._counts()}; {self._model()}; {who}"

    def _counts(self) -> str:
        behind = max(0, self._feed.sent - self._watch.n_predictions)
        return (
            f"{self._feed.sent:,} documents sent, {self._watch.n_predictions:,} predicted, {behind:,} behind"
        )

    def _model(self) -> str:
        age = self._watch.age()
        if age is None:
            return "no model has answered yet"
        return f"the model knows {self._watch.in_use:,} documents and is {age:.1f} s old"

    def _picture(self) -> RenderableType:
        head = Text.assemble(
            ("make demo-cluster", "bold"), (f"  {self._title}  {clock(self._diary.now())}", "dim")
        )
        recent = self._diary.entries[-SHOWN:]
        blank = Text("")
        return Group(head, blank, self._bars(), blank, self._who(), blank, *map(_happened, recent))

    def _bars(self) -> Table:
        sent, answered = self._feed.sent, self._watch.n_predictions
        behind, age = max(0, sent - answered), self._watch.age()
        grid = Table.grid(padding=(0, 2, 0, 0))
        for name, done, remark in [
            ("documents sent", sent, f"{sent:,} of {self._total:,}"),
            ("predictions", answered, f"{answered:,} committed, {behind:,} behind"),
            ("model in use", self._watch.in_use, f"{self._watch.in_use:,} documents learned"),
        ]:
            grid.add_row(f" {name}", ProgressBar(self._total, done, width=24), Text(remark))
        old = "" if age is None else f"{age:.1f} s"
        grid.add_row(" its age", Text("" if age is None else _bar(age), "yellow"), Text(old))
        return grid

    def _who(self) -> Table:
        grid = Table.grid(padding=(0, 2, 0, 0))
        for member, doing in self._fleet.doing().items():
            sign, style = SIGNS.get(doing.kind, WAITING)
            grid.add_row(Text(f" {sign}", style), Text(member.name), Text(_words(member, doing), style))
        return grid


def _bar(seconds: float) -> str:
    return "━" * min(24, round(seconds * 2))


def _words(member: Member, doing: Doing) -> str:
    if doing.kind == "works" and member.shard is not None:
        return f"learns shard {member.shard}, publishes models"
    if doing.kind == "works":
        return f"predicts {listed('partition', doing.partitions)}"
    if doing.kind == "killed" and member.killed is not None:
        return f"killed {time.time() - member.killed:.0f} s ago"
    return {"starts": "starts", "waits": "waits for a model"}.get(doing.kind, doing.kind)


def _happened(entry: Entry) -> Text:
    return Text.assemble((f"{clock(entry.at):>6}  ", "dim"), (entry.text, "bold red" if entry.is_bad else ""))
