"""`stream-hc taxonomy`: draw, validate, convert."""

from typing import Annotated

import typer

from stream_hc.cli.errors import Code

__all__ = ["app"]

app = typer.Typer(
    help="Draw, validate or convert a taxonomy file.", no_args_is_help=True, rich_markup_mode=None
)

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="TSV (child, tab, parent) or JSON.")]


@app.command()
def draw(
    file: FileArgument,
    depth: Annotated[
        int | None, typer.Option("--depth", metavar="N", min=0, help="Levels below the roots.")
    ] = None,
) -> None:
    """Draw the taxonomy as a tree."""
    from stream_hc.cli.making import read_taxonomy  # noqa: PLC0415

    typer.echo(read_taxonomy(file).draw(depth))


@app.command()
def validate(file: FileArgument) -> int:
    """List everything that is wrong with the file, one problem a line."""
    from stream_hc.cli.validating import describe, problems  # noqa: PLC0415

    found = problems(file)
    for problem in found:
        typer.echo(problem)
    if not found:
        typer.echo(describe(file))
    return Code.BAD_INPUT if found else Code.FINE


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="TSV or JSON file.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="JSON if it ends in .json, else TSV.")],
) -> None:
    """Write the taxonomy in the other form."""
    from stream_hc.cli.console import say  # noqa: PLC0415
    from stream_hc.cli.making import read_taxonomy, writable_folder  # noqa: PLC0415

    taxonomy = read_taxonomy(source)
    writable_folder(target)
    taxonomy.write(target)
    say(f"wrote {target}: {len(taxonomy)} nodes")
