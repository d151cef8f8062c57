"""`stream-hc kafka predict`: its options; the work is in `consumers.predicting`."""

from typing import Annotated

import typer

from consumers.options import (
    BootstrapOption,
    ConfigOption,
    CreateTopicsOption,
    QuietOption,
    SettingsOption,
)
from stream_hc.cli.options import HttpOption, LimitOption

__all__ = ["predict"]


def predict(
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
    instance: Annotated[
        str | None,
        typer.Option(
            "--instance", metavar="NAME", help="Its name in the group: it keeps its place through a restart."
        ),
    ] = None,
    after: Annotated[
        int,
        typer.Option(
            "--after", metavar="N", min=0, help="Wait for a model that has learned from N documents."
        ),
    ] = 0,
    create_topics: CreateTopicsOption = False,
    http: HttpOption = None,
    limit: LimitOption = None,
    settings: SettingsOption = None,
    quiet: QuietOption = False,
) -> int:
    """Predict the documents of a topic with the models that trainers publish; nothing is learned here.

    Start as many as the topic has partitions: they share them, in the group GROUP-predict. Kill one, and the
    others take its partitions; each document still has exactly one prediction for those who read with
    isolation.level=read_committed. A newer model takes over between two batches.
    """
    from consumers.predicting import predict  # noqa: PLC0415
    from stream_hc.cli.serving import split_address  # noqa: PLC0415

    host, port = (None, None) if http is None else split_address(http)
    options = {
        "kafka.bootstrap": bootstrap,
        "kafka.create_topics": create_topics or None,
        "http.enabled": None if http is None else True,
        "http.host": host,
        "http.port": port,
        "stream.limit": limit,
    }
    return predict(config, options, settings or (), instance, after, quiet)
