"""`stream-hc doctor`: whether everything is here that is needed."""

import typer

__all__ = ["doctor"]


def doctor() -> int:
    """Check the installation; every line says what is there and, if something is wrong, what to do."""
    from stream_hc.cli.checking import examine  # noqa: PLC0415

    return examine(typer.echo)
