"""`stream-hc run`: JSON lines in, predictions out."""

from typing import Annotated

import typer

from stream_hc.cli.options import (
    FeaturesOption,
    HttpOption,
    LearnersOption,
    LimitOption,
    RefitOption,
    SchedulerOption,
    SequencesOption,
    StateOption,
    TaxonomyOption,
    WorkersOption,
    cost_schemes,
)

__all__ = ["run"]


def run(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT",
            help="JSON lines, gzipped if it ends in .gz; - is standard input.  [default: -]",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config", "-c", metavar="FILE", help="TOML file; options count more. See config init."
        ),
    ] = None,
    taxonomy: TaxonomyOption = None,
    learner: LearnersOption = None,
    labels: Annotated[
        str | None,
        typer.Option("--labels", metavar="FILE", help="JSON lines with labels that come later, by id."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more at the end of the files, like tail -F.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE|-", help="Where predictions go.  [default: -]"),
    ] = None,
    state: StateOption = None,
    refit: RefitOption = False,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    snapshot: Annotated[
        str | None,
        typer.Option(
            "--snapshot",
            "-s",
            metavar="FILE",
            help="One model file: continue from it if it exists; save to it at the end.",
        ),
    ] = None,
    snapshot_every: Annotated[
        int | None,
        typer.Option("--snapshot-every", metavar="N", min=1, help="Save after every so many lines, too."),
    ] = None,
    rejects: Annotated[
        str | None,
        typer.Option(
            "--rejects", metavar="FILE", help="Where lines that cannot be filed go, with the reason."
        ),
    ] = None,
    requests: Annotated[
        str | None,
        typer.Option(
            "--requests", metavar="FILE", help="Documents whose labels are worth asking for (h-rls)."
        ),
    ] = None,
    n_features: FeaturesOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Parameter of the learner, such as r=0.1, or any key, such as refit.every=500; repeat it.",
        ),
    ] = None,
    sequences: SequencesOption = False,
    costs: Annotated[
        str | None,
        typer.Option(
            "--costs",
            metavar="SCHEME",
            autocompletion=cost_schemes,
            help="What a mistake costs in the H-loss.  [default: uniform]",
        ),
    ] = None,
    limit: LimitOption = None,
    http: HttpOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary at the end.")] = False,
) -> int:
    """Predict every document of a stream, and learn from labels, at once or later.

    A document is a line {"id": ..., "text": ...}, or "features": {name: number} or "vector": [numbers]
    instead of "text". Its "labels": [...] may stand in it, or in a line {"id": ..., "labels": [...]} before
    or after. Each is predicted first and learned afterwards. In a pipe every line is answered at once.
    """
    from stream_hc.cli.streaming import Asked, stream  # noqa: PLC0415

    return stream(
        Asked(
            source,
            config,
            taxonomy,
            learner or (),
            output,
            snapshot,
            snapshot_every,
            rejects,
            labels,
            requests,
            follow,
            state,
            refit,
            workers,
            scheduler,
            n_features,
            settings or (),
            sequences,
            costs,
            limit,
            http,
            quiet,
        )
    )
