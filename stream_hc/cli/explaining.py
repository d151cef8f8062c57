"""`stream-hc explain`: which words of a document pushed it where it is filed."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["explain"]


def explain(
    where: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL|STATE",
            help="A model file, a snapshot of a job, or its state folder.",
            show_default=False,
        ),
    ],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|-",
            help="JSON lines with the document, gzipped if it ends in .gz; - is standard input.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="Explain this text.")] = None,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Which document of the file.  [default: the first]"),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(
            "--node",
            metavar="NODE",
            help="The way to this node, predicted or not; without a document its strongest words.",
        ),
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            "--learner", "-l", metavar="NAME", help="Which model of a job.  [default: the champion]"
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", metavar="N", min=0, help="Words to show at each node.")] = 8,
    json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """Show why a document gets its labels: the words that push the margins along the path.

    At every node the contributions of the words, and of all others together, add up to the margin. The model
    and its word counts are those of the snapshot: nothing is learned.
    """
    from stream_hc.cli.explained import Asked, show_why  # noqa: PLC0415

    show_why(Asked(where, source, text, id, node, learner, top, json))
