"""What a job is told: one struct for each table of the TOML file, with defaults and limits.

The docstrings are also what users read: `KEYS` takes the meaning of every key from them.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from stream_hc.runtime.config.http import HttpConfig
from stream_hc.runtime.config.kafka import KafkaConfig
from stream_hc.runtime.config.table import Costs, Count, Path, Positive, Seconds, Setting, Share, Table

__all__ = [
    "Config",
    "JudgeConfig",
    "LabelsConfig",
    "ModelConfig",
    "RefitConfig",
    "StateConfig",
    "StreamConfig",
]

Address = Annotated[str, Meta(pattern=r"^[a-z]+://[^\s/]+$")]


class StreamConfig(Table, frozen=True):
    """What is read and written.

    Attributes
    ----------
    documents
        JSON lines: a file, gzipped if its name ends in .gz, or - for standard input.
    labels
        A second file of JSON lines with labels that come later; they may also stand among the documents.
    follow
        Wait for more lines at the end of the files, as `tail -F` does.
    output
        Where predictions go; - is standard output.
    rejects
        Where records that cannot be used go.
    requests
        Where documents worth a label go.
    limit
        Stop after so many records.
    """

    documents: Path = "-"
    labels: Path | None = None
    follow: bool = False
    output: Path = "-"
    rejects: Path | None = None
    requests: Path | None = None
    limit: Count | None = None


class ModelConfig(Table, frozen=True):
    """Which learners there are.

    Attributes
    ----------
    taxonomy
        TSV or JSON file.
    learners
        Names; all of them learn, the first one is the champion at the beginning.
    settings
        Parameters by learner: a table for each, such as [model.settings.h-arow].
    n_features
        Hash buckets.
    sequences
        Texts are sequences of letters, such as proteins.
    costs
        Of the H-loss by which models are judged.
    """

    taxonomy: Path | None = None
    learners: Annotated[list[str], Meta(min_length=1)] = msgspec.field(default_factory=lambda: ["h-arow"])
    settings: dict[str, dict[str, Setting]] = msgspec.field(default_factory=dict)
    n_features: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 2**18
    sequences: bool = False
    costs: Costs = "uniform"


class LabelsConfig(Table, frozen=True):
    """How documents and labels wait for each other.

    Attributes
    ----------
    documents
        How many documents wait for their labels at most; the oldest give way.
    early
        How many labels wait for their documents at most; the oldest give way.
    seconds
        How long they wait at most.
    changed
        What to do with other labels for a document that was learned and is still in the window.
    """

    documents: Count = 100_000
    early: Count = 100_000
    seconds: Seconds = 30 * 86_400.0
    changed: Literal["ignore", "learn"] = "ignore"


class RefitConfig(Table, frozen=True):
    """When and how H-M³ is fitted to the window, in another process.

    Attributes
    ----------
    enabled
        Whether it is fitted at all.
    window
        Labelled documents kept.
    least
        Labelled documents in the window before the first fit.
    every
        Fit again after so many labelled documents.
    seconds
        Fit again after so much time.
    drift
        Fit again when the H-loss of the champion changes (ADWIN).
    loss
        What HM3 is trained for; "none" leaves the choice to the taxonomy, h_tilde needs a forest.
    costs
        Of the mistakes in that loss.
    C
        How much a loss in training counts against the size of the weights.
    tol
        HM3 stops when its duality gap is at most this share of the dual objective.
    max_seconds
        The ascent stops after so long and its model is used as it is.
    timeout
        Seconds after which a job is killed.
    max_memory
        Bytes the job may use.
    warm
        Begin with the dual variables of the fit before.
    in_step
        Wait for the job `lag` labelled documents after it began: slower, and the same on every machine, as
        long as no fit reaches `max_seconds`.
    lag
        See `in_step`.
    workers
        Processes that the documents of a fit are spread over; more than one needs the extra `distributed`.
        Each may use `max_memory`.
    scheduler
        Address of a Dask cluster to fit on instead, such as tcp://127.0.0.1:8786; trust it.
    """

    enabled: bool = False
    window: Count = 5_000
    least: Count = 1_000
    every: Count | None = 2_000
    seconds: Seconds | None = None
    drift: bool = True
    loss: Literal["h_tilde", "symmetric_difference"] | None = None
    costs: Costs = "uniform"
    C: Positive = 1.0
    tol: Positive = 0.05
    max_seconds: Seconds = 60.0
    timeout: Seconds = 300.0
    max_memory: Count = 4 * 2**30
    warm: bool = True
    in_step: bool = False
    lag: Count = 200
    workers: Annotated[int, Meta(ge=1, le=1024)] = 1
    scheduler: Address | None = None


class JudgeConfig(Table, frozen=True):
    """When another model becomes the champion.

    Attributes
    ----------
    enabled
        Whether models are swapped without being told.
    sample
        How many of the last labelled documents are compared.
    least
        How many documents both models must have predicted before they are compared.
    margin
        By which share of the champion's H-loss another model must be ahead.
    sureness
        By how many standard errors of the difference it must be ahead, too; half as many to go back.
    every
        Labelled documents between two looks.
    """

    enabled: bool = True
    sample: Count = 1_000
    least: Count = 200
    margin: Share = 0.01
    sureness: Annotated[float, Meta(ge=0, le=1e9)] = 2.0
    every: Count = 50


class StateConfig(Table, frozen=True):
    """Where the job keeps what it knows.

    Attributes
    ----------
    folder
        Snapshots, journal, log and models; without it nothing is kept.
    keep
        How many snapshots stay.
    every
        Save after so many records; it is always saved at the end.
    seconds
        Save after so much time; it is always saved at the end.
    """

    folder: Path | None = None
    keep: Count = 3
    every: Count | None = None
    seconds: Seconds | None = 60.0


class Config(Table, frozen=True):
    """A whole job."""

    stream: StreamConfig = StreamConfig()
    model: ModelConfig = ModelConfig()
    labels: LabelsConfig = LabelsConfig()
    refit: RefitConfig = RefitConfig()
    judge: JudgeConfig = JudgeConfig()
    state: StateConfig = StateConfig()
    http: HttpConfig = HttpConfig()
    kafka: KafkaConfig = KafkaConfig()
