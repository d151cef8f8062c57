"""Options of the commands that know shards."""

from typing import Annotated

import typer

__all__ = ["ShardsOption", "TrafficOption"]

ShardsOption = Annotated[
    int, typer.Option("--shards", metavar="K", help="Into how many parts the taxonomy is cut.")
]
TrafficOption = Annotated[
    str | None,
    typer.Option(
        "--traffic",
        metavar="FILE",
        help="JSON lines with labels, for shards of equal work; without it every leaf is as frequent.",
    ),
]
