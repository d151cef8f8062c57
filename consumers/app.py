"""`stream-hc kafka`: a stream in topics. The entry point `kafka` of the group `stream_hc.commands`."""

import typer

from consumers import (
    commands,
    consume_command,
    letter_commands,
    predict_command,
    reshard_command,
    train_command,
)

__all__ = ["app"]

app = typer.Typer(
    help="Work on topics of Apache Kafka.",
    no_args_is_help=True,
    rich_markup_mode=None,  # it would take the brackets in JSON for markup
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("consume", short_help="Predict and learn from topics, exactly once.")(consume_command.consume)
app.command("train", short_help="Learn from topics and publish the model, in shards if wanted.")(
    train_command.train
)
app.command("predict", short_help="Predict with published models, any number side by side.")(
    predict_command.predict
)
app.command("produce", short_help="Send JSON lines or synthetic news to the topics.")(commands.produce)
app.command("tail", short_help="Show predictions as they come, and how wrong they are.")(commands.tail)
app.add_typer(letter_commands.app, name="dlq")
app.command("reshard", short_help="Cut the taxonomy of trainers into other shards.")(reshard_command.reshard)
app.command("reset", short_help="Move a job to another place in its topics.")(commands.reset)
app.command("doctor", short_help="Check the brokers, the topics and the rights.")(commands.doctor)
