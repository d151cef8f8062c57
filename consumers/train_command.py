"""`stream-hc kafka train`: its options; the work is in `consumers.training`."""

from typing import Annotated

import typer

from consumers.options import (
    BootstrapOption,
    ConfigOption,
    CreateTopicsOption,
    QuietOption,
    SettingsOption,
)
from consumers.trainer.options import ShardsOption, TrafficOption
from stream_hc.cli.options import (
    HttpOption,
    LearnersOption,
    LimitOption,
    RefitOption,
    StateOption,
    TaxonomyOption,
)

__all__ = ["train"]


def train(
    shards: ShardsOption = 1,
    shard: Annotated[
        int | None,
        typer.Option(
            "--shard", metavar="N", help="Train this one, from 0 on; without it all, a process each."
        ),
    ] = None,
    traffic: TrafficOption = None,
    show_plan: Annotated[
        bool, typer.Option("--show-plan", help="Show what each shard would train, and end.")
    ] = False,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
    taxonomy: TaxonomyOption = None,
    learner: LearnersOption = None,
    state: StateOption = None,
    refit: RefitOption = False,
    create_topics: CreateTopicsOption = False,
    http: HttpOption = None,
    limit: LimitOption = None,
    settings: SettingsOption = None,
    quiet: QuietOption = False,
    ends_with_input: Annotated[bool, typer.Option("--ends-with-input", hidden=True)] = False,
) -> int:
    """Learn from documents and labels, and publish the model for predictors after every snapshot.

    With several shards each trains a part of the taxonomy, siblings together, and the nodes above it: they
    exchange nothing, and joined they are the model that one would have become. Start a second trainer of a
    shard on the same folder: it stands by in the group, and takes over.
    """
    from consumers.training import Wanted, train  # noqa: PLC0415
    from stream_hc.cli.serving import split_address  # noqa: PLC0415

    host, port = (None, None) if http is None else split_address(http)
    options = {
        "kafka.bootstrap": bootstrap,
        "model.taxonomy": taxonomy,
        "model.learners": learner or None,
        "state.folder": state,
        "refit.enabled": refit or None,
        "kafka.create_topics": create_topics or None,
        "http.enabled": None if http is None else True,
        "http.host": host,
        "http.port": port,
        "stream.limit": limit,
    }
    wanted = Wanted(shards, shard, traffic, show_plan, ends_with_input, quiet)
    return train(wanted, config, options, settings or ())
