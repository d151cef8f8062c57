"""Options that several commands share, and what the shell may complete."""

from typing import Annotated

import typer

__all__ = ["FeaturesOption", "HttpOption", "LearnersOption", "LimitOption", "RefitOption", "SequencesOption"]
__all__ += [
    "SchedulerOption",
    "SetOption",
    "StateOption",
    "TaxonomyOption",
    "WorkersOption",
    "cost_schemes",
    "learner_names",
]


def learner_names(incomplete: str = "") -> list[str]:
    """Return the learners whose name begins like this."""
    from stream_hc.learners import LEARNERS  # noqa: PLC0415

    return [name for name in LEARNERS if name.startswith(incomplete)]


def cost_schemes(incomplete: str) -> list[str]:
    """Return the cost schemes whose name begins like this."""
    from typing import get_args  # noqa: PLC0415

    from stream_hc.taxonomy import CostScheme  # noqa: PLC0415

    return [name for name in get_args(CostScheme) if name.startswith(incomplete)]


def _protocols(incomplete: str) -> list[str]:
    from stream_hc.evaluate import PROTOCOLS  # noqa: PLC0415

    return [name for name in PROTOCOLS if name.startswith(incomplete)]


def _data_sets(incomplete: str) -> list[str]:
    return [name for name in ("news", "news:10000:0:sudden") if name.startswith(incomplete)]


TaxonomyOption = Annotated[
    str | None,
    typer.Option(
        "--taxonomy", "-t", metavar="FILE", help="TSV or JSON file; not needed where something was saved."
    ),
]
LearnersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--learner",
        "-l",
        metavar="NAME",
        autocompletion=learner_names,
        help="Repeat it: all learn, the best one answers.  [default: h-arow, or what was saved]",
    ),
]
StateOption = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="DIR", help="Keep everything there: after any end the job goes on exactly."
    ),
]
RefitOption = Annotated[
    bool, typer.Option("--refit", help="Fit H-M³ to recent documents in the background; swap if better.")
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        max=1024,
        help="Fit H-M³ with so many processes of this machine (extra distributed).  [default: 1]",
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="tcp://HOST:PORT", help="Fit H-M³ on the Dask cluster there, which you trust."
    ),
]
HttpOption = Annotated[
    str | None,
    typer.Option(
        "--http", metavar="[HOST:]PORT", help="Serve the live page and /metrics while it runs; try 9464."
    ),
]
FeaturesOption = Annotated[
    int | None,
    typer.Option("--n-features", metavar="N", min=1, max=2**31 - 1, help="Hash buckets.  [default: 262144]"),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Parameter of the learner, such as r=0.1 or C=1; repeat it."
    ),
]
SequencesOption = Annotated[
    bool,
    typer.Option("--sequences", help="Texts are sequences of letters, such as proteins: learn their k-mers."),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=1, help="Stop after so many documents.")
]
DatasetArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        autocompletion=_data_sets,
        help="A folder with docs.jsonl[.gz] and taxonomy.tsv or .json, or synthetic news: "
        "news[:DOCUMENTS[:SEED[:none|gradual|sudden]]].",
        show_default=False,
    ),
]
DelayOption = Annotated[
    int, typer.Option("--delay", metavar="N", min=0, help="Documents until the labels arrive.")
]
WindowOption = Annotated[
    int, typer.Option("--window", metavar="N", min=1, help="Documents in a windowed mean.")
]
ProtocolOption = Annotated[
    str,
    typer.Option(
        "--protocol",
        metavar="NAME",
        autocompletion=_protocols,
        help="progressive, two-thirds, own or train-rest: see the manual.",
    ),
]
PlotOption = Annotated[
    str | None, typer.Option("--plot", metavar="DIR", help="Draw running.png and by-depth.png there.")
]
JsonOption = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE|-", help="Write the numbers as JSON; - prints nothing else."),
]
