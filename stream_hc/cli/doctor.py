"""`stream-hc doctor`: whether everything is here that is needed; `stream-hc warmup`: compile it all."""

import typer

__all__ = ["doctor", "warmup"]


def doctor() -> int:
    """Check the installation; every line says what is there and, if something is wrong, what to do."""
    from stream_hc.cli.checking import examine  # noqa: PLC0415

    return examine(typer.echo)


def warmup() -> None:
    """Compile every kernel and keep it, so that no later start waits: once after an installation.

    The compiled kernels lie beside the package, or where NUMBA_CACHE_DIR says.
    """
    from stream_hc.cli.warming import warm_up  # noqa: PLC0415

    warm_up()
