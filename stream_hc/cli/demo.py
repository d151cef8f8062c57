"""`stream-hc demo`: see everything once."""

from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    documents: Annotated[
        int, typer.Option("--documents", metavar="N", min=100, help="Length of the stream.")
    ] = 12_000,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Folder for the files.")
    ] = "demo-output",
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Another stream.")] = 0,
    fast: Annotated[
        bool, typer.Option("--fast", help="As fast as it goes, even if somebody watches.")
    ] = False,
    stay: Annotated[
        bool, typer.Option("--stay", help="Keep the live page at the end, until Ctrl-C.")
    ] = False,
) -> int:
    """Run a whole job on synthetic news: late labels, a drift, fits in the background, swaps, a report.

    On a terminal the stream is slowed down so that people can watch. The folder then has everything to go on.
    """
    from stream_hc.cli.showing import show_demo  # noqa: PLC0415

    return show_demo(documents, output, seed, fast, stay)
