"""The work behind `stream-hc refit`: documents from wherever they are, a fit that can be watched, a file."""

import math
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.sparse import csr_array

from stream_hc import datasets, snapshot
from stream_hc.cli.console import progress_bar, say, watched
from stream_hc.cli.errors import CliError, Code, usage_error
from stream_hc.cli.finding import find
from stream_hc.cli.making import N_FEATURES, load_dataset, read_taxonomy, writable_folder
from stream_hc.datasets import Dataset, DatasetError
from stream_hc.evaluate import vectorize_dataset
from stream_hc.maxmargin import HM3
from stream_hc.maxmargin.crew import Workers, WorkersError
from stream_hc.maxmargin.distributed import dask_workers
from stream_hc.runtime.window import Window
from stream_hc.snapshot.format import MAGIC
from stream_hc.taxonomy import Taxonomy, TaxonomyError
from stream_hc.vectorize import SequenceVectorizer, TextVectorizer

__all__ = ["Wish", "refit_and_write"]


@dataclass(frozen=True)
class Wish:
    """What `stream-hc refit` was asked to do; `how` are parameters of `HM3`."""

    source: str
    taxonomy: str | None
    n_features: int | None
    limit: int | None
    loss: str | None
    how: dict[str, Any]
    workers: int | None
    scheduler: str | None


class Material(NamedTuple):
    """Rows with their labels, and what made the rows."""

    taxonomy: Taxonomy
    X: csr_array
    Y: csr_array
    vectorizer: TextVectorizer | SequenceVectorizer


def refit_and_write(wish: Wish, output: Path) -> int:
    """Fit, write the model and say how far it is from the best one; return the exit code."""
    if wish.scheduler is not None and wish.workers is not None:
        raise usage_error("--workers starts processes here, --scheduler takes a cluster: give one of them")
    writable_folder(str(output))
    material = _material(wish)
    model = _model(wish, material)
    try:
        with _workers(wish) as workers:
            is_whole = _fit(model, material, workers)
    except WorkersError as error:
        raise CliError(str(error), Code.BAD_INPUT) from error
    snapshot.save(output, {"learner": model, "vectorizer": material.vectorizer})
    gap = model.duality_gap_ / model.dual_objective_ if model.dual_objective_ else math.inf
    n_rows, seconds = material.X.shape[0], model.history_[-1]["seconds"]
    early = "" if is_whole else "interrupted: "
    say(
        f"{early}written: {output}, {n_rows:,} documents, {len(model.taxonomy)} nodes, objective "
        f"{model.dual_objective_:.6g}, gap {gap:.2%}, {len(model.history_) - 1} epochs, {seconds:.1f} s"
    )
    return Code.FINE if is_whole else Code.INTERRUPTED


def _model(wish: Wish, material: Material) -> HM3:
    taxonomy = material.taxonomy
    loss: Any = wish.loss or ("h_tilde" if taxonomy.is_tree else "symmetric_difference")
    try:
        return HM3(taxonomy, loss, n_features=material.X.shape[1], **wish.how)
    except TaxonomyError:
        raise
    except ValueError as error:
        raise usage_error(str(error)) from error


def _workers(wish: Wish) -> AbstractContextManager[Workers | None]:
    if wish.scheduler is not None:
        return dask_workers(scheduler=wish.scheduler)
    return dask_workers(wish.workers) if (wish.workers or 1) > 1 else nullcontext()


def _fit(model: HM3, material: Material, workers: Workers | None) -> bool:
    """Return whether it came to its end; it did not if somebody pressed Ctrl-C."""
    with progress_bar("fitting", 1.0, watched(output_is_stdout=False)) as update:
        try:
            model.fit(material.X, material.Y, progress=_teller(model.tol, update), workers=workers)
        except KeyboardInterrupt:
            if not hasattr(model, "history_"):  # nothing was found yet
                raise
            return False
    return True


def _teller(tol: float, update: Callable[[float, str], None]) -> Callable[[dict[str, float]], None]:
    """Return what shows an epoch: the bar is full when the gap is small enough."""

    def tell(entry: dict[str, float]) -> None:
        objective = entry["dual_objective"]
        gap = entry["duality_gap"] / objective if objective > 0.0 else math.inf
        done = 1.0 if gap <= tol else max(0.0, min(1.0, math.log(max(gap, tol)) / math.log(min(tol, 0.5))))
        remark = f"epoch {entry['epoch']:.0f}, objective {objective:.6g}, gap {gap:.2%}"
        update(done if gap < 1.0 else 0.0, remark)

    return tell


# Documents


def _material(wish: Wish) -> Material:
    path = Path(wish.source)
    if _is_job(path):
        if wish.taxonomy or wish.n_features:
            raise usage_error(f"{path} has its own taxonomy and features: leave the options out")
        return _of_window(path, wish.limit)
    if path.is_file():
        if wish.taxonomy is None:
            raise usage_error(f"{path}: JSON lines need a taxonomy: give it with --taxonomy")
        return _of_dataset(_of_lines(path, Path(wish.taxonomy), wish.limit), wish.n_features)
    if wish.taxonomy is not None:
        raise usage_error("--taxonomy is for JSON lines: a data set folder has its own")
    return _of_dataset(load_dataset(wish.source, wish.limit), wish.n_features)


def _is_job(path: Path) -> bool:
    if path.is_dir():
        return any(path.glob("snapshot-*.snap"))
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _of_window(path: Path, limit: int | None) -> Material:
    found = find(path)
    window = found.parts.get("window")
    if not isinstance(window, Window) or found.vectorizer is None:
        raise CliError(f"{path}: holds a model, not the window of a job: name its state", Code.BAD_SNAPSHOT)
    rows, n_nodes = window.arrays(), len(window.taxonomy)
    n_rows = rows.numbers.size
    if n_rows == 0:
        raise CliError(f"{path}: the window of the job is empty: let it see labels first", Code.BAD_INPUT)
    X = csr_array((rows.values, rows.indices, rows.indptr), shape=(n_rows, window.n_features))
    on = np.ones(rows.label_nodes.size, np.bool_)
    Y = csr_array((on, rows.label_nodes, rows.label_ptr), shape=(n_rows, n_nodes))
    newest = slice(0 if limit is None else max(0, n_rows - limit), None)
    return Material(window.taxonomy, X[newest], Y[newest], found.vectorizer)


def _of_lines(path: Path, taxonomy: Path, limit: int | None) -> Dataset:
    """Read a file as that of a data set: linked into a folder of its own, for the one reader there is."""
    read_taxonomy(str(taxonomy))  # says what is wrong by the name that was given
    docs = "docs.jsonl.gz" if path.suffix == ".gz" else "docs.jsonl"
    tree = "taxonomy.json" if taxonomy.suffix == ".json" else "taxonomy.tsv"
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(path.absolute(), Path(folder, docs))
        os.symlink(taxonomy.absolute(), Path(folder, tree))
        try:
            return datasets.load(folder, limit)
        except DatasetError as error:
            raise DatasetError(str(error).replace(str(Path(folder, docs)), str(path))) from error


def _of_dataset(dataset: Dataset, n_features: int | None) -> Material:
    vectorizer = TextVectorizer(n_features or N_FEATURES)
    if dataset.kind == "features":
        X = vectorize_dataset(dataset, vectorizer.n_features)
    else:
        # As it will weigh the documents that are predicted: by all that it has seen.
        texts = cast(list[str], dataset.documents)
        vectorizer.learn(texts)
        X = vectorizer.transform(texts)
    return Material(dataset.taxonomy, X, dataset.taxonomy.encode(dataset.labels), vectorizer)
