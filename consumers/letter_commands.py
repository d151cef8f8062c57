"""`stream-hc kafka dlq`: see what a job could not use, and send it back once that is put right."""

from typing import Annotated

import typer

from consumers.options import BootstrapOption, ConfigOption, SettingsOption, YesOption, configured

__all__ = ["app"]

app = typer.Typer(
    help="See the records that a job could not use, or send them back.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

ReasonOption = Annotated[
    list[str] | None,
    typer.Option("--reason", metavar="WORD", help="Only those, such as not_json; repeat it."),
]


@app.command("list", short_help="Show the dead letters and why they are.")
def list_(
    reason: ReasonOption = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=1, help="Only the newest.  [default: 50, or all as JSON]"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="All of each, as a JSON object a line.")] = False,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
    settings: SettingsOption = None,
) -> int:
    """Show the records that were not used, oldest first, and count the reasons.

    A + marks those that a replay has not come to yet.
    """
    from consumers.tools.listing import list_letters  # noqa: PLC0415

    return list_letters(configured(config, bootstrap, settings).kafka, reason or (), limit, json)


@app.command(short_help="Send dead letters back to where they came from, once each.")
def replay(
    reason: ReasonOption = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Send so many at most.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TOPIC", help="Send all to this topic instead.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Begin with the first letter, as if none had been sent.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
    settings: SettingsOption = None,
    yes: YesOption = False,
) -> int:
    """Send dead letters back to the topics they came from, with their key and the very same bytes.

    Each is sent once, whatever happens on the way and however often this is said: the group GROUP.dlq keeps
    the place in the same transactions. Letters with other reasons than those asked for are passed over.
    """
    from consumers.tools.replaying import Wanted, replay  # noqa: PLC0415

    wanted = Wanted(frozenset(reason or ()), limit, to, again, dry_run, yes)
    return replay(wanted, configured(config, bootstrap, settings).kafka)
