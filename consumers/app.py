"""`stream-hc kafka`: a stream in topics. The entry point `kafka` of the group `stream_hc.commands`."""

import typer

from consumers import commands, consume_command, letter_commands

__all__ = ["app"]

app = typer.Typer(
    help="Work on topics of Apache Kafka.",
    no_args_is_help=True,
    rich_markup_mode=None,  # it would take the brackets in JSON for markup
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("consume", short_help="Predict and learn from topics, exactly once.")(consume_command.consume)
app.command("produce", short_help="Send JSON lines or synthetic news to the topics.")(commands.produce)
app.command("tail", short_help="Show predictions as they come, and how wrong they are.")(commands.tail)
app.add_typer(letter_commands.app, name="dlq")
app.command("reset", short_help="Move a job to another place in its topics.")(commands.reset)
app.command("doctor", short_help="Check the brokers, the topics and the rights.")(commands.doctor)
