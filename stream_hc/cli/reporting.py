"""`stream-hc report`: one page about a finished run."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["report"]


def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="STATE|SNAPSHOT|LOG",
            help="A state folder, a snapshot of a job, a model file, or a log.jsonl.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE|-", help="Where the page goes.")
    ] = "report.html",
    title: Annotated[
        str | None,
        typer.Option("--title", metavar="TEXT", help="Its heading.  [default: the name of SOURCE]"),
    ] = None,
) -> None:
    """Write one page of HTML about a run: losses, swaps, topics, words. It loads nothing and runs nothing.

    A state folder knows most: its log has the history, its newest snapshot the topics and the models. What
    a snapshot, a model or a log alone does not know is left out, and the page says so.
    """
    from stream_hc.cli.reported import write  # noqa: PLC0415

    write(source, output, title)
