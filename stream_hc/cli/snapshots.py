"""`stream-hc snapshot`: inspect and verify."""

from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(
    help="Look into a snapshot, or check every byte of it.", no_args_is_help=True, rich_markup_mode=None
)

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="A snapshot.")]


@app.command()
def inspect(
    file: FileArgument, json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False
) -> None:
    """Show what a snapshot holds. Reads only the header: quick for a file of any size."""
    from stream_hc.cli.inspecting import as_json, show  # noqa: PLC0415
    from stream_hc.snapshot import inspect as read_header  # noqa: PLC0415

    info = read_header(file)
    if json:
        typer.echo(as_json(info))
    else:
        show(file, info)


@app.command()
def verify(file: FileArgument) -> None:
    """Check every byte of a snapshot against its checksums."""
    from stream_hc.cli.inspecting import verdict  # noqa: PLC0415
    from stream_hc.snapshot import verify as check  # noqa: PLC0415

    typer.echo(verdict(file, check(file)))
