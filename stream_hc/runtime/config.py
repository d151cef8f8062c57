"""What a streaming job is told: one struct for each table of the TOML file, with defaults and limits.

`load_config` in `configuring` fills them from a file, the environment and options. The docstrings are also
what users read: `KEYS` takes the meaning of every key from them.
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec import inspect as types

__all__ = [
    "KEYS",
    "TABLES",
    "Config",
    "JudgeConfig",
    "Key",
    "LabelsConfig",
    "ModelConfig",
    "RefitConfig",
    "StateConfig",
    "StreamConfig",
    "Table",
    "hidden",
    "summary_of",
]

Count = Annotated[int, Meta(ge=1, le=10**15)]
Seconds = Annotated[float, Meta(gt=0, le=1e9)]  # a lock can wait for no more than some 9e9
Positive = Annotated[float, Meta(gt=0, le=1e9)]
Share = Annotated[float, Meta(ge=0, lt=1)]
Costs = Literal["uniform", "normalized", "sibling", "subtree"]
Setting = str | int | float | bool | None
# No system takes a zero byte in a path; `extra` marks what is relative to the folder of a TOML file.
Path = Annotated[str, Meta(pattern=r"^[^\x00]+$", extra={"path": True})]

SECRET = ("password", "token", "secret")


def hidden(name: str, value: Any) -> Any:
    """Return what may be shown of the value of a key: secrets, also inside tables, become `***`.

    >>> hidden("broker.password", "tulip"), hidden("refit.window", 7), hidden("x", {"api_token": "tulip"})
    ('***', 7, {'api_token': '***'})
    """
    if isinstance(value, dict):
        return {key: hidden(f"{name}.{key}", item) for key, item in value.items()}
    return "***" if name.lower().endswith(SECRET) and value is not None else value


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file. Its `repr` shows no secret: it may end in a log."""

    def __repr__(self) -> str:
        shown = [f"{name}={hidden(name, getattr(self, name))!r}" for name in self.__struct_fields__]
        return f"{type(self).__name__}({', '.join(shown)})"


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
    settings: dict[str, dict[str, Setting]] = {}
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
        Wait for the job `lag` labelled documents after it began: slower, and the same on every machine.
    lag
        See `in_step`.
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
        By how many standard errors of the difference it must be ahead, too.
    every
        Labelled documents between two looks.
    """

    enabled: bool = True
    sample: Count = 1_000
    least: Count = 200
    margin: Share = 0.01
    sureness: Annotated[float, Meta(ge=0, le=1e9)] = 1.0
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


@dataclass(frozen=True)
class Key:
    """A key as its struct tells it.

    Attributes
    ----------
    table, field
        Of the TOML file.
    type
        As annotated.
    default
        Where nothing is said.
    meaning
        A sentence from the docstring.
    """

    table: str
    field: str
    type: Any
    default: Any
    meaning: str

    @property
    def name(self) -> str:
        """Return the dotted name."""
        return f"{self.table}.{self.field}"

    @property
    def variable(self) -> str:
        """Return the name in the environment."""
        return f"STREAM_HC_{self.table}_{self.field}".upper()

    @property
    def optional(self) -> bool:
        """Return whether it can be none."""
        return any(isinstance(kind, types.NoneType) for kind in self._kinds())

    @property
    def is_path(self) -> bool:
        """Return whether it names a file or folder."""
        return isinstance(self._kinds()[0], types.Metadata)

    @property
    def kind(self) -> types.Type:
        """Return the type without none and marks."""
        first = self._kinds()[0]
        return first.type if isinstance(first, types.Metadata) else first

    @property
    def allowed(self) -> str:
        """Say which values are fine."""
        allowed = "a path" if self.is_path else _allowed(self.kind)
        return f'{allowed}, or "none"' if self.optional else allowed

    def _kinds(self) -> tuple[types.Type, ...]:
        kind = types.type_info(self.type)
        return kind.types if isinstance(kind, types.UnionType) else (kind,)


def _allowed(kind: types.Type) -> str:
    if isinstance(kind, types.BoolType):
        return "true or false"
    if isinstance(kind, types.LiteralType):
        return f"one of {', '.join(map(str, kind.values))}"
    if isinstance(kind, types.ListType):
        return "a list of names, at least one"
    if isinstance(kind, types.DictType):
        return "a table of parameters for each learner"
    if isinstance(kind, types.IntType | types.FloatType):
        what = "a whole number" if isinstance(kind, types.IntType) else "a number"
        low = f"above {_number(kind.gt)} up" if kind.gt is not None else f"from {_number(kind.ge)}"
        high = f"below {_number(kind.lt)}" if kind.lt is not None else _number(kind.le)
        return f"{what} {low} to {high}"
    return "text"


def _number(limit: float | None) -> str:
    if limit is None:  # a key without a limit would let infinity and what no machine has through
        raise AssertionError("numbers have limits on both sides")
    digits = f"{limit:.0f}"
    return f"10^{len(digits) - 1}" if limit >= 1e6 and digits.strip("0") == "1" else digits


def summary_of(table: str) -> str:
    """Return what a table is about."""
    return (inspect.getdoc(TABLES[table]) or "").partition("\n")[0]


def _meanings(table: type[msgspec.Struct]) -> dict[str, str]:
    """Return the entries of the section `Attributes`, each as one line."""
    section = (inspect.getdoc(table) or "").partition("\nAttributes\n----------\n")[2]
    meanings: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if line and not line.startswith(" "):
            name = line
        elif line:
            meanings[name] = f"{meanings[name]} {line.strip()}" if name in meanings else line.strip()
    return meanings


def _keys() -> Iterator[Key]:
    for table, struct in TABLES.items():
        meanings, defaults = _meanings(struct), struct()
        for field in msgspec.structs.fields(struct):
            default = getattr(defaults, field.name)
            yield Key(table, field.name, field.type, default, meanings.get(field.name, ""))


TABLES: dict[str, type[msgspec.Struct]] = {table.name: table.type for table in msgspec.structs.fields(Config)}
KEYS: dict[str, Key] = {key.name: key for key in _keys()}
