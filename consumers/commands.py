"""Commands of `stream-hc kafka` and their options; the work is in `consumers.tools`, imported when needed."""

from typing import Annotated

import typer

from consumers.options import (
    BootstrapOption,
    ConfigOption,
    QuietOption,
    SettingsOption,
    YesOption,
    configured,
)
from stream_hc.cli.errors import usage_error

__all__ = ["doctor", "produce", "reset", "tail"]


def produce(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="JSON lines, gzipped if it ends in .gz, or - for standard input; a folder with a data set; "
            "or synthetic news: news[:DOCUMENTS[:SEED[:none|gradual|sudden]]].",
            show_default=False,
        ),
    ],
    delay: Annotated[
        int | None,
        typer.Option("--delay", metavar="N", min=0, help="Send labels N documents later, on their own."),
    ] = None,
    delay_seconds: Annotated[
        float | None,
        typer.Option(
            "--delay-seconds", metavar="S", min=0, help="Send labels S seconds later, on their own."
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="N", min=0.001, help="Documents a second, at most.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Stop after so many documents.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at a line that cannot be used, instead of sending it.")
    ] = False,
    taxonomy_out: Annotated[
        str | None,
        typer.Option("--taxonomy-out", metavar="FILE", help="Write the taxonomy of a data set or the news."),
    ] = None,
    create_topics: Annotated[
        bool, typer.Option("--create-topics", help="Make the topics of the job that are missing.")
    ] = False,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
    settings: SettingsOption = None,
    quiet: QuietOption = False,
) -> int:
    """Send documents to the topic of documents, keyed by their ids, and labels where they belong.

    Without a delay the labels of a document stay in it. With one they are taken out and follow as
    {"id": ..., "labels": [...]} in the topic of labels. Lines of that kind go there in any case. Lines that
    are not JSON are sent as they are: a job has to cope with them. Every record is acknowledged.
    """
    from consumers.tools.producing import Wanted, produce  # noqa: PLC0415

    if delay is not None and delay_seconds is not None:
        raise usage_error("--delay counts documents, --delay-seconds time: choose one of them")
    wanted = Wanted(source, delay, delay_seconds, rate, limit, strict, taxonomy_out, quiet)
    made = ["kafka.create_topics=true"] if create_topics else []
    return produce(wanted, configured(config, bootstrap, [*(settings or ()), *made]).kafka)


def tail(
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Show those that are there already, too.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow/--no-follow", help="Wait for more, or show all that are there and stop."),
    ] = True,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Stop after so many predictions.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="A JSON object a line.")] = False,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
    settings: SettingsOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but the summary at the end.")] = False,
) -> int:
    """Show predictions as they are committed, one a line.

    Those whose labels have come are scored: the mean H-loss and zero-one loss stand at the end of the line.
    That needs the taxonomy of the job, from --config or --set model.taxonomy=FILE.
    """
    from consumers.tools.tailing import Wanted, tail  # noqa: PLC0415

    wanted = Wanted(from_beginning or not follow, follow, limit, json, quiet)
    return tail(wanted, configured(config, bootstrap, settings))


def reset(
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="PLACE",
            help="earliest, latest, a time such as 2026-01-31T12:00Z, snapshot (where the newest one was "
            "taken), or TOPIC:PARTITION=OFFSET with commas between.",
        ),
    ] = None,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Begin anew: put the state folder aside and forget the group."),
    ] = False,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
    settings: SettingsOption = None,
    yes: YesOption = False,
) -> int:
    """Move a job that does not run to another place in its topics.

    What was learned stays, unless --forget is said. Documents that are read again are predicted and learned
    again; those that are passed over never are. It shows what will happen and asks before anything is done.
    Killed at any moment, it has either moved the job or not: say it again.
    """
    from consumers.tools.resetting import reset  # noqa: PLC0415

    if to is None and not forget:
        raise usage_error("say where: --to earliest, latest, a time, snapshot or offsets; or --forget")
    return reset(configured(config, bootstrap, settings), to, forget, yes)


def doctor(
    config: ConfigOption = None, bootstrap: BootstrapOption = None, settings: SettingsOption = None
) -> int:
    """Check that the brokers answer, that the topics are as a job needs them, and that it has the rights."""
    from consumers.doctor import examine_kafka  # noqa: PLC0415

    return examine_kafka(configured(config, bootstrap, settings), typer.echo)
