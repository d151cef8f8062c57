"""Commands that other packages add: entry points of the group `stream_hc.commands`, each a Typer app."""

from importlib import metadata
from typing import Any

import typer
from typer.core import TyperGroup

from stream_hc.cli.console import say

__all__ = ["GROUP", "ExtensibleGroup"]

GROUP = "stream_hc.commands"
COMPLETION = ("install_completion", "show_completion")


class ExtensibleGroup(TyperGroup):
    """The built-in commands, then those of plug-ins, which are imported only when they are asked for.

    A plug-in that cannot be loaded costs a warning and its command, nothing else.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        own = super().list_commands(ctx)
        return [*own, *sorted(name for name in _entry_points() if name not in own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by name, or None."""
        if cmd_name not in self.commands and cmd_name in _entry_points():
            command = _load(_entry_points()[cmd_name])
            if command is not None:
                self.commands[cmd_name] = command
        return super().get_command(ctx, cmd_name)


def _entry_points() -> dict[str, metadata.EntryPoint]:
    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


def _load(entry: metadata.EntryPoint) -> Any:
    try:
        app = entry.load()
        if not isinstance(app, typer.Typer):
            raise TypeError(f"{entry.value} is a {type(app).__name__}, not a typer.Typer")
        command = typer.main.get_command(app)
    except Exception as error:  # whatever it is, it is the plug-in's fault, and the other commands still work
        source = f" of {entry.dist.name}" if entry.dist is not None else ""
        say(f"warning: command {entry.name!r}{source} left out: {type(error).__name__}: {error}", "yellow")
        return None
    command.name = entry.name
    # Completion belongs to the outermost command.
    command.params = [option for option in command.params if option.name not in COMPLETION]
    return command
