"""`stream-hc evaluate` and `stream-hc compare`."""

from typing import Annotated

import typer

from stream_hc.cli.options import (
    DatasetArgument,
    DelayOption,
    FeaturesOption,
    JsonOption,
    LimitOption,
    PlotOption,
    ProtocolOption,
    SequencesOption,
    SetOption,
    WindowOption,
    learner_names,
)

__all__ = ["compare", "evaluate"]


def evaluate(
    dataset: DatasetArgument,
    learner: Annotated[
        str, typer.Option("--learner", "-l", metavar="NAME", autocompletion=learner_names, help="Which one.")
    ] = "h-arow",
    settings: SetOption = None,
    delay: DelayOption = 0,
    window: WindowOption = 1000,
    protocol: ProtocolOption = "progressive",
    plot: PlotOption = None,
    json: JsonOption = None,
    n_features: FeaturesOption = None,
    sequences: SequencesOption = False,
    limit: LimitOption = None,
) -> None:
    """Judge one learner on a data set: predict every document, then learn from it."""
    from stream_hc.cli.judging import Trial, judge, show  # noqa: PLC0415

    trial = Trial(dataset, [learner], settings or [], protocol, delay, window, n_features, limit, sequences)
    show(judge(trial, plot), trial, plot, json, markdown=False)


def compare(
    dataset: DatasetArgument,
    learner: Annotated[
        list[str] | None,
        typer.Option(
            "--learner",
            "-l",
            metavar="NAME[:KEY=VALUE,...]",
            autocompletion=learner_names,
            help="Such as h-arow or h-arow:r=1; repeat it.  [default: the quick ones]",
        ),
    ] = None,
    delay: DelayOption = 0,
    window: WindowOption = 1000,
    protocol: ProtocolOption = "progressive",
    plot: PlotOption = None,
    json: JsonOption = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table in Markdown.")] = False,
    n_features: FeaturesOption = None,
    sequences: SequencesOption = False,
    limit: LimitOption = None,
) -> None:
    """Judge several learners on the same data set, each from a fresh start."""
    from stream_hc.cli.judging import Trial, judge, show  # noqa: PLC0415
    from stream_hc.learners import QUICK  # noqa: PLC0415

    trial = Trial(dataset, learner or QUICK, [], protocol, delay, window, n_features, limit, sequences)
    show(judge(trial, plot), trial, plot, json, markdown)
