"""`stream-hc config`: check, show, init."""

import json as json_format
import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream_hc.cli.console import clean, out, say
from stream_hc.cli.errors import CliError, Code, usage_error

if TYPE_CHECKING:
    from stream_hc.runtime.config import Configured, Key

__all__ = ["app", "assignments", "configured", "load", "template", "toml_value"]

app = typer.Typer(
    help="Check or show the configuration of a job, or write a file to begin with.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

FileArgument = Annotated[
    str | None, typer.Argument(metavar="FILE", help="TOML file of a job.", show_default=False)
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Such as refit.window=5000 or h-arow.r=0.1; repeat it."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="A JSON object: key to value and origin.")]

WIDTH = 78  # of comments in a new file


@app.command(short_help="Show every value and its origin, and check all files.")
def check(file: FileArgument = None, settings: SetOption = None, json: JsonOption = False) -> int:
    """Show every value and its origin, and check that the files are there and the taxonomy is sound.

    Options count more than STREAM_HC_ variables, those more than the file, and that more than defaults.
    """
    from stream_hc.runtime.config import file_problems  # noqa: PLC0415

    job = configured(file, settings or ())
    _print(job, json)
    problems = file_problems(job)
    for problem in problems:
        say(f"error: {problem}", style="red")
    return Code.BAD_INPUT if problems else Code.FINE


@app.command()
def show(file: FileArgument = None, settings: SetOption = None, json: JsonOption = False) -> None:
    """Show every value and its origin; look at no other file."""
    _print(configured(file, settings or ()), json)


@app.command(short_help="Write a file with all keys to begin with.")
def init(
    file: Annotated[str, typer.Argument(metavar="FILE", help="To be written; - prints it.")] = "job.toml",
) -> None:
    """Write a file with every key, its meaning and its default, to be changed by hand."""
    if file == "-":
        typer.echo(template(), nl=False)
        return
    try:
        with open(file, "x", encoding="utf-8") as target:
            target.write(template())
    except FileExistsError:
        raise usage_error(f"{file}: exists already: choose another name") from None
    say(f"wrote {file}: change it, then try stream-hc config check {file}")


def configured(file: str | None, settings: Sequence[str] = ()) -> "Configured":
    """Return the configuration from a file, the environment and `--set`; say everything that is wrong."""
    options = assignments(settings)
    return load(file, options, {name: f"--set {name.removeprefix('model.settings.')}" for name in options})


def load(
    file: str | None, options: Mapping[str, Any], typed: Mapping[str, str] | None = None
) -> "Configured":
    """Return the configuration from a file, the environment and options; say everything that is wrong.

    All problems but the last are written here; the last one is the error that ends the command.
    """
    from stream_hc.runtime.config import ConfigError, load_config  # noqa: PLC0415

    try:
        return load_config(file, os.environ, options, typed)
    except ConfigError as error:
        *problems, last = error.problems
        for problem in problems:
            say(f"error: {problem}", style="red")
        raise CliError(last, Code.BAD_INPUT) from None


def assignments(settings: Sequence[str]) -> dict[str, str]:
    """Return `--set KEY=VALUE` by dotted name; a parameter of a learner may be named by the learner alone.

    >>> assignments(["refit.window=500", "h-arow.r=0.5"])
    {'refit.window': '500', 'model.settings.h-arow.r': '0.5'}
    """
    from stream_hc.learners import LEARNERS  # noqa: PLC0415

    given: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        name = name.strip()
        if not equals or "." not in name:
            raise usage_error(f"--set {name}: expected KEY=VALUE, such as refit.window=5000 or h-arow.r=0.1")
        given[f"model.settings.{name}" if name.partition(".")[0] in LEARNERS else name] = value
    return given


def _print(job: "Configured", as_json: bool) -> None:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from stream_hc.runtime.config import hidden  # noqa: PLC0415

    shown = {name: hidden(name, job.value(name)) for name in _names(job)}
    if as_json:
        found = {name: {"value": value, "origin": job.origin[name]} for name, value in shown.items()}
        typer.echo(json_format.dumps(found, indent=2, ensure_ascii=False))
        return
    table = Table("key", "value", "origin")
    for name, value in shown.items():
        if name == "model.settings" and value:
            continue  # its parameters follow one by one
        style = "dim" if job.origin[name] == "default" else "bold green"
        cells = (name, _plain(value), job.origin[name])
        table.add_row(*(Text(clean(cell), style=style, overflow="fold") for cell in cells))
    out().print(table)


def _names(job: "Configured") -> list[str]:
    """Return the keys in the order of the file, the parameters of learners behind `model.settings`."""
    from stream_hc.runtime.config import KEYS  # noqa: PLC0415

    parameters = [name for name in job.origin if name not in KEYS]
    names = list(KEYS)
    after = names.index("model.settings") + 1
    return names[:after] + parameters + names[after:]


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return value if isinstance(value, str) else toml_value(value).strip('"')


def toml_value(value: Any) -> str:
    """Return a value as it is written in a file.

    >>> toml_value(None), toml_value(True), toml_value(["h-arow"]), toml_value(60.0)
    ('"none"', 'true', '["h-arow"]', '60.0')
    """
    return json_format.dumps("none" if value is None else value, ensure_ascii=False)


def template() -> str:
    """Return a configuration of all keys, each with its meaning, set to its default behind a #."""
    from stream_hc.runtime.config import KEYS, TABLES, summary_of  # noqa: PLC0415

    parts = [
        "# A job of stream-hc. Every key is here with its default: take the # away and change the value.\n"
        '# "none" stands for nothing; paths are relative to the folder of this file.\n'
    ]
    for table in TABLES:
        parts.append(f"\n\n# {summary_of(table)}\n[{table}]\n")
        parts += [_entry(key) for key in KEYS.values() if key.table == table]
    return "".join(parts)


def _entry(key: "Key") -> str:
    from stream_hc.runtime.config import hidden  # noqa: PLC0415

    told = textwrap.wrap(
        f"{key.meaning} Takes {key.allowed}.", WIDTH, break_on_hyphens=False, break_long_words=False
    )
    lines = [f"# {line}" for line in told]
    return "\n".join(["", *lines, f"#{key.field} = {toml_value(hidden(key.name, key.default))}", ""])
