"""What reaches the terminal: clean text, and a progress bar only where somebody can see it."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

__all__ = ["clean", "errors", "out", "progress_bar", "say", "watched"]


def clean(text: str) -> str:
    r"""Show what is not printable as an escape: a name from a file must not steer the terminal.

    >>> clean("sport\x1b[31m\n")
    'sport\\x1b[31m\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@cache
def errors() -> Console:
    """Return the one console on standard error: a progress bar on it makes room for messages."""
    return Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)


@cache
def out() -> Console:
    """Return the console on standard output, for tables and other things that people read."""
    return Console(markup=False, emoji=False, highlight=False)


def say(text: str, style: str = "") -> None:
    """Write one line to standard error, with the word before its first colon in a style."""
    line = Text(clean(text))
    line.stylize(style, 0, text.find(":") + 1)
    errors().print(line)


def watched(output_is_stdout: bool) -> bool:
    """Whether to show progress: standard error is a terminal, and no answers scroll by on the same one."""
    if not sys.stderr.isatty():
        return False
    return not (output_is_stdout and sys.stdout.isatty() and _device(sys.stdout.fileno()) == _device(2))


def _device(descriptor: int) -> int:
    return os.fstat(descriptor).st_rdev


Update = Callable[[float, str], None]


@contextmanager
def progress_bar(what: str, total: float | None, shown: bool, after: float = 0.0) -> Iterator[Update]:
    """Show a bar that vanishes at the end; yields a function that takes how much is done and a remark.

    With `after` it appears only once so many seconds have passed: short work needs none.
    """
    if not shown:
        yield lambda done, remark: None
        return
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=18),
        TextColumn("{task.fields[remark]}", markup=False),
        TimeElapsedColumn(),
        console=errors(),
        transient=True,
    )
    task = progress.add_task(what, total=total, remark="")
    began = time.perf_counter()

    def update(done: float, remark: str) -> None:
        progress.update(task, completed=done, remark=remark)
        if not progress.live.is_started and time.perf_counter() - began >= after:
            progress.start()

    if not after:
        progress.start()
    try:
        yield update
    finally:
        progress.stop()
