"""`stream-hc run`: JSON lines in, predictions out."""

from typing import Annotated

import typer

from stream_hc.cli.options import (
    CostsOption,
    FeaturesOption,
    LimitOption,
    SequencesOption,
    SetOption,
    learner_names,
)

__all__ = ["run"]


def run(
    source: Annotated[
        str,
        typer.Argument(metavar="INPUT", help="JSON lines, gzipped if it ends in .gz; - is standard input."),
    ] = "-",
    taxonomy: Annotated[
        str | None,
        typer.Option(
            "--taxonomy", "-t", metavar="FILE", help="TSV or JSON file; not needed where the snapshot exists."
        ),
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            "--learner",
            "-l",
            metavar="NAME",
            autocompletion=learner_names,
            help="[default: h-arow, or that of the snapshot]",
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE|-", help="Where predictions go.")
    ] = "-",
    snapshot: Annotated[
        str | None,
        typer.Option(
            "--snapshot",
            "-s",
            metavar="FILE",
            help="Continue from this file if it exists; save to it at the end.",
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
    n_features: FeaturesOption = None,
    settings: SetOption = None,
    sequences: SequencesOption = False,
    costs: CostsOption = "uniform",
    limit: LimitOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary at the end.")] = False,
) -> int:
    """Predict every document of a stream, and learn from those that carry labels.

    A document is a line {"id": ..., "text": ...}, or "features": {name: number} or "vector": [numbers]
    instead of "text"; "labels": [...] make it one to learn from. Each is predicted first and learned
    afterwards. In a pipe every line is answered at once.
    """
    from stream_hc.cli.making import Wanted  # noqa: PLC0415
    from stream_hc.cli.streaming import Job, stream  # noqa: PLC0415

    wanted = Wanted(taxonomy, learner, n_features, settings or [], costs, sequences)
    return stream(Job(source, wanted, output, snapshot, snapshot_every, rejects, limit, quiet))
