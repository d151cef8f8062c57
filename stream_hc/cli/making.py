"""Learners, data sets and filers from what was typed."""

import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from stream_hc import datasets, snapshot
from stream_hc.cli.errors import CliError, Code, usage_error
from stream_hc.datasets import Dataset
from stream_hc.datasets.news import Drift
from stream_hc.learners import LEARNERS, OnlineLearner
from stream_hc.runtime import Filer
from stream_hc.taxonomy import CostScheme, Taxonomy
from stream_hc.vectorize import SequenceVectorizer

__all__ = [
    "Wanted",
    "load_dataset",
    "load_filer",
    "make_filer",
    "make_learner",
    "name_of",
    "parameters",
    "read_taxonomy",
    "writable_folder",
]

N_FEATURES = 2**18


def parameters(name: str, settings: Sequence[str]) -> dict[str, Any]:
    """Return `--set name=value` as arguments of the learner.

    >>> parameters("h-arow", ["r=0.5", "cold_start=paper"])
    {'r': 0.5, 'cold_start': 'paper'}
    """
    if name not in LEARNERS:
        raise usage_error(f"there is no learner {name!r}: choose one of {', '.join(LEARNERS)}")
    allowed = [
        key for key in inspect.signature(LEARNERS[name]).parameters if key not in ("taxonomy", "n_features")
    ]
    given: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in allowed:
            raise usage_error(f"--set {setting}: {name} takes NAME=VALUE for {', '.join(allowed)}")
        given[key] = _value(value)
    return given


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def make_learner(
    name: str, taxonomy: Taxonomy, n_features: int | None = None, settings: Sequence[str] = ()
) -> OnlineLearner:
    """Return a fresh learner; what it says against its parameters is wrong usage."""
    given = parameters(name, settings)
    try:
        return LEARNERS[name](taxonomy, n_features=n_features or N_FEATURES, **given)
    except (ValueError, TypeError) as error:
        raise usage_error(f"{name}: {error}") from error


def name_of(learner: object) -> str:
    """Return the name by which the command line knows a learner."""
    names = [name for name, cls in LEARNERS.items() if type(learner) is cls]
    return names[0] if names else type(learner).__name__


def cost_scheme(name: str) -> CostScheme:
    """Return the name of a cost scheme, checked."""
    for scheme in get_args(CostScheme):
        if name == scheme:
            return cast(CostScheme, scheme)
    raise usage_error(f"there are no costs {name!r}: choose one of {', '.join(get_args(CostScheme))}")


def read_taxonomy(path: str) -> Taxonomy:
    """Read a taxonomy that has at least one node."""
    taxonomy = Taxonomy.read(path)
    if not len(taxonomy):
        raise CliError(f"{path}: the taxonomy has no nodes: write a line for each", Code.BAD_INPUT)
    return taxonomy


@dataclass(frozen=True)
class Wanted:
    """A filer as it was asked for; None where nothing was said."""

    taxonomy: str | None
    learner: str | None
    n_features: int | None
    settings: Sequence[str]
    costs: str
    sequences: bool = False


def make_filer(wanted: Wanted) -> Filer:
    """Return a filer that has learned nothing."""
    name = wanted.learner or "h-arow"
    parameters(name, wanted.settings)  # a typing mistake should not wait for a large taxonomy
    if wanted.taxonomy is None:
        raise usage_error("--taxonomy is missing: name the file, or a --snapshot that exists")
    tree = read_taxonomy(wanted.taxonomy)
    learner = make_learner(name, tree, wanted.n_features, wanted.settings)
    vectorizer = SequenceVectorizer(learner.n_features) if wanted.sequences else None
    return Filer(tree, learner, vectorizer, model=name, costs=cost_scheme(wanted.costs))


def load_filer(path: str, wanted: Wanted) -> Filer:
    """Return the filer in a snapshot, if it is what was asked for."""
    costs = cost_scheme(wanted.costs)
    parts = snapshot.load(path)
    try:
        filer = Filer.from_parts(parts, costs=costs)
    except ValueError as error:
        raise _unfitting(path, str(error)) from error
    filer.model = name_of(filer.learner)
    _check_taxonomy(path, filer, wanted.taxonomy)
    if wanted.learner is not None and wanted.learner != filer.model:
        parameters(wanted.learner, ())
        remedy = "leave out --learner, or use another --snapshot"
        raise _unfitting(path, f"holds {filer.model}, not {wanted.learner}: {remedy}")
    if wanted.sequences and not isinstance(filer.vectorizer, SequenceVectorizer):
        raise _unfitting(path, "has learned texts, not sequences: leave out --sequences")
    asked: dict[str, Any] = parameters(filer.model, wanted.settings) if wanted.settings else {}
    if wanted.n_features is not None:
        asked["n_features"] = wanted.n_features
    for key, value in asked.items():
        held = getattr(filer.learner, key)
        if held != value:
            problem = f"holds {filer.model} with {key}={held}, not {value}"
            raise _unfitting(path, f"{problem}: use another --snapshot")
    return filer


def _check_taxonomy(path: str, filer: Filer, wanted: str | None) -> None:
    tree = filer.taxonomy if wanted is None else read_taxonomy(wanted)
    if tree != filer.taxonomy:
        here, there = f"{wanted} ({len(tree)} nodes)", f"another taxonomy ({len(filer.taxonomy)} nodes)"
        remedy = "give the old one, or another --snapshot to begin anew"
        raise _unfitting(path, f"learned for {there} than {here}: {remedy}")


def _unfitting(path: str, problem: str) -> CliError:
    return CliError(f"{path}: {problem}", Code.BAD_SNAPSHOT)


def load_dataset(spec: str, limit: int | None = None) -> Dataset:
    """Return the data set in a folder, or synthetic news for `news[:documents[:seed[:drift]]]`."""
    kind, *fields = spec.split(":")
    if kind != "news":
        return datasets.load(spec, limit)
    count, seed, drift = [*fields, *("10000", "0", "none")[len(fields) :]][:3]
    wrong = usage_error(f"{spec}: expected news[:DOCUMENTS[:SEED[:{'|'.join(get_args(Drift))}]]]")
    if len(fields) > 3 or not (count.isdecimal() and seed.isdecimal()) or drift not in get_args(Drift):
        raise wrong
    news = datasets.make_news(int(count), int(seed), drift)  # type: ignore[arg-type]
    return news if limit is None else news.take(limit)


def writable_folder(path: str) -> None:
    """Raise at once where a file could not be written at the end."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise CliError(f"{path}: the folder does not exist: make it first", Code.BAD_INPUT)
    if not os.access(folder, os.W_OK):
        raise CliError(f"{path}: the folder is not writable", Code.BAD_INPUT)
