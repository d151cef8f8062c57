"""`stream-hc kafka consume`: its options; the work is in `consumers.consuming`."""

from consumers.options import (
    BootstrapOption,
    ConfigOption,
    CreateTopicsOption,
    QuietOption,
    SettingsOption,
)
from stream_hc.cli.options import (
    HttpOption,
    LearnersOption,
    LimitOption,
    RefitOption,
    SchedulerOption,
    StateOption,
    TaxonomyOption,
    WorkersOption,
)

__all__ = ["consume"]


def consume(
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
    taxonomy: TaxonomyOption = None,
    learner: LearnersOption = None,
    state: StateOption = None,
    refit: RefitOption = False,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    create_topics: CreateTopicsOption = False,
    http: HttpOption = None,
    limit: LimitOption = None,
    settings: SettingsOption = None,
    quiet: QuietOption = False,
) -> int:
    """Predict the documents of a topic and learn from labels, each exactly once, whatever dies.

    Predictions, dead letters and the progress made are committed in one transaction: read them with
    isolation.level=read_committed. Start a second one: it stands by in the group, and takes over. SIGTERM
    finishes the batch, saves and ends with 0.
    """
    from consumers.consuming import consume  # noqa: PLC0415
    from stream_hc.cli.serving import split_address  # noqa: PLC0415

    host, port = (None, None) if http is None else split_address(http)
    options = {
        "kafka.bootstrap": bootstrap,
        "model.taxonomy": taxonomy,
        "model.learners": learner or None,
        "state.folder": state,
        "refit.enabled": refit or None,
        "refit.workers": workers,
        "refit.scheduler": scheduler,
        "kafka.create_topics": create_topics or None,
        "http.enabled": None if http is None else True,
        "http.host": host,
        "http.port": port,
        "stream.limit": limit,
    }
    return consume(config, options, settings or (), quiet)
