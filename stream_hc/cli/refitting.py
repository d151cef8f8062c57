"""`stream-hc refit`: its options; the work is in `stream_hc.cli.refitted`."""

from pathlib import Path
from typing import Annotated

import typer

from stream_hc.cli.options import FeaturesOption, LimitOption, SchedulerOption, WorkersOption, cost_schemes

__all__ = ["refit"]


def refit(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A data set folder (or news[:DOCUMENTS...]), JSON lines with labels, or the --state folder "
            "or snapshot of a job, whose window is taken.",
            show_default=False,
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes.")],
    taxonomy: Annotated[
        str | None,
        typer.Option("--taxonomy", "-t", metavar="FILE", help="TSV or JSON file, for JSON lines."),
    ] = None,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    tol: Annotated[
        float, typer.Option("--tol", metavar="SHARE", help="Stop at a gap of this share of the objective.")
    ] = 0.01,
    C: Annotated[
        float, typer.Option("--C", metavar="X", help="How much a loss counts against large weights.")
    ] = 1.0,
    loss: Annotated[
        str | None,
        typer.Option(
            "--loss", metavar="NAME", help="h_tilde (forests) or symmetric_difference.  [default: the first]"
        ),
    ] = None,
    costs: Annotated[
        str,
        typer.Option(
            "--costs", metavar="SCHEME", autocompletion=cost_schemes, help="What a wrong node costs."
        ),
    ] = "uniform",
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", metavar="S", help="Stop after so long, whatever the gap.")
    ] = None,
    n_features: FeaturesOption = None,
    limit: LimitOption = None,
) -> int:
    """Fit H-M³ to labelled documents, with as many processes as you like, and write the model.

    Ctrl-C ends it early: the model is written as far as it has come, and its duality gap is told. With the
    same number of workers the same documents give the same bits, also if workers are lost on the way.
    """
    from stream_hc.cli.refitted import Wish, refit_and_write  # noqa: PLC0415

    how = {"tol": tol, "C": C, "costs": costs, "max_seconds": max_seconds}
    wish = Wish(source, taxonomy, n_features, limit, loss, how, workers, scheduler)
    return refit_and_write(wish, Path(output))
