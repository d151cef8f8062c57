"""Options that all commands of `stream-hc kafka` share, and the configuration they make."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from stream_hc.cli.configuring import assignments, load

if TYPE_CHECKING:
    from stream_hc.runtime.config import Config

__all__ = ["BootstrapOption", "ConfigOption", "CreateTopicsOption", "QuietOption", "SettingsOption"]
__all__ += ["YesOption", "configured"]

ConfigOption = Annotated[
    str | None,
    typer.Option("--config", "-c", metavar="FILE", help="TOML file of the job; options count more."),
]
BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        metavar="HOST:PORT",
        help="Brokers to begin with, several with commas between.  [default: 127.0.0.1:9092]",
    ),
]
CreateTopicsOption = Annotated[
    bool, typer.Option("--create-topics", help="Make the topics that are missing.")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any key, such as kafka.documents=news; repeat it."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No summary at the end.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def configured(file: str | None, bootstrap: str | None, settings: Sequence[str] | None) -> "Config":
    """Return the configuration: what was typed counts more than the environment, and that than the file."""
    given = assignments(settings or ())
    typed = {name: f"--set {name}" for name in given}
    if bootstrap is not None:
        given["kafka.bootstrap"], typed["kafka.bootstrap"] = bootstrap, "--bootstrap"
    return load(file, given, typed).config
