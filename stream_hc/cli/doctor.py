"""`stream-hc doctor`: whether everything is here that is needed; `stream-hc warmup`: compile it all."""

from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING, Annotated

import typer

from stream_hc.cli.configuring import SetOption, configured
from stream_hc.cli.errors import CliError, Code, usage_error

if TYPE_CHECKING:
    from stream_hc.runtime.config import Config

__all__ = ["GROUP", "doctor", "warmup"]

# Checks that other packages add, by name: each takes a configuration and what prints a line, and returns the
# exit code.
GROUP = "stream_hc.doctor"


def doctor(
    kafka: Annotated[
        bool, typer.Option("--kafka", help="Then look at the brokers, topics and rights of a job on Kafka.")
    ] = False,
    config: Annotated[
        str | None, typer.Option("--config", "-c", metavar="FILE", help="TOML file of the job, for --kafka.")
    ] = None,
    settings: SetOption = None,
) -> int:
    """Check the installation; every line says what is there and, if something is wrong, what to do."""
    from stream_hc.cli.checking import examine  # noqa: PLC0415

    if not kafka and (config is not None or settings):
        raise usage_error("--config and --set are for --kafka: say that, too")
    code = examine(typer.echo)
    if kafka:
        code = max(code, _added("kafka")(configured(config, settings or ()).config, typer.echo))
    return code


def _added(name: str) -> "Callable[[Config, Callable[[str], None]], int]":
    """Load the checks that another package adds."""
    for entry in metadata.entry_points(group=GROUP, name=name):
        try:
            found: Callable[[Config, Callable[[str], None]], int] = entry.load()
            return found
        except Exception as error:  # whatever it is, it is that package's fault
            problem = f"{entry.value} cannot be loaded ({type(error).__name__}: {error})"
            raise CliError(f"--{name}: {problem}: install stream_hc again", Code.BUG) from error
    raise CliError(f"--{name}: no package adds these checks: install stream_hc again", Code.BUG)


def warmup() -> None:
    """Compile every kernel and keep it, so that no later start waits: once after an installation.

    The compiled kernels lie beside the package, or where NUMBA_CACHE_DIR says.
    """
    from stream_hc.cli.warming import warm_up  # noqa: PLC0415

    warm_up()
