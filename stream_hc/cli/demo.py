"""`stream-hc demo`: see everything once."""

from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    documents: Annotated[
        int, typer.Option("--documents", metavar="N", min=100, help="Length of the stream.")
    ] = 10_000,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Folder for the files.")
    ] = "demo-output",
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Another stream.")] = 0,
) -> None:
    """Learn on synthetic news whose topics change half-way, and leave files to try the other commands on."""
    from stream_hc.cli.showing import show_demo  # noqa: PLC0415

    show_demo(documents, output, seed)
