"""Several learners on the same data set, each from a fresh start."""

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc.checks import whole_number
from stream_hc.datasets import Dataset
from stream_hc.evaluate.comparison import Comparison
from stream_hc.evaluate.drivers import takes_rows
from stream_hc.evaluate.features import vectorize_dataset
from stream_hc.evaluate.protocols import holdout, progressive
from stream_hc.vectorize import SequenceVectorizer

__all__ = ["PROTOCOLS", "CompareProgress", "Protocol", "compare"]

Protocol = Literal["progressive", "two-thirds", "own", "train-rest"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
CompareProgress: TypeAlias = Callable[[str, int, int], None]
RowNumbers: TypeAlias = NDArray[np.int64]

DEFAULT_FEATURES = 2**18


def compare(
    models: Mapping[str, Any],
    dataset: Dataset,
    *,
    protocol: Protocol = "progressive",
    delay: int = 0,
    window: int = 1000,
    progress: CompareProgress | None = None,
    sequences: SequenceVectorizer | None = None,
) -> Comparison:
    """Judge every model on the same stream.

    Parameters
    ----------
    models
        Name -> model. A fresh copy of each is used, without what it may have learned, and the model itself
        is left alone. Learners of this package get the documents as rows (`vectorize_dataset` with their
        `n_features`), river models and pipelines get the texts or feature dicts themselves.
    dataset
        Documents, labels and taxonomy.
    protocol
        "progressive": predict, then learn, along the whole stream. The others learn some rows in one pass and
        then predict others: "two-thirds" the first two thirds against the last third, "own" the split that
        came with the data, "train-rest" its train rows against all the other rows.
    delay
        Documents between a prediction and the arrival of its labels; only with "progressive".
    window
        How many documents the windowed means look back.
    progress
        Called with the name of the model, the documents it has learned from and their total.
    sequences
        Makes the rows where the documents are sequences of letters; all learners need its `n_features`.

    Examples
    --------
    >>> from stream_hc import HPerceptron, NodePA
    >>> from stream_hc.datasets import make_news
    >>> news = make_news(300)
    >>> models = {"H-PERC": HPerceptron(news.taxonomy, 4096), "node PA": NodePA(news.taxonomy, 4096)}
    >>> comparison = compare(models, news)
    >>> [run.name for run in comparison.ranking]
    ['node PA', 'H-PERC']
    >>> print(comparison.to_markdown().splitlines()[0])
    | learner | zero-one | H-loss | normalized H | Δ-loss | micro-F1 | documents/s |
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f"unknown protocol {protocol!r}: choose one of {', '.join(PROTOCOLS)}")
    if not models:
        raise ValueError("there are no models to compare")
    if whole_number("delay", delay, 0) and protocol != "progressive":
        raise ValueError(f"a delay needs the protocol 'progressive', not {protocol!r}: leave it at 0")
    rows = None if protocol == "progressive" else _train_test(dataset, protocol)
    Y = dataset.taxonomy.encode(dataset.labels)
    matrices: dict[int, csr_array] = {}
    runs = []
    for name, model in models.items():
        X: Any = dataset.documents
        if takes_rows(model):
            n_features = getattr(model, "n_features", DEFAULT_FEATURES)
            if n_features not in matrices:
                train = None if rows is None else rows[0]
                matrices[n_features] = vectorize_dataset(dataset, n_features, train, sequences)
            X = matrices[n_features]
        options: dict[str, Any] = {
            "name": name,
            "window": window,
            "taxonomy": dataset.taxonomy,
            "progress": None if progress is None else partial(progress, name),
            "keep_predictions": False,
        }
        if rows is None:
            runs.append(progressive(_fresh(model), X, Y, delay=delay, **options))
        else:
            runs.append(holdout(_fresh(model), X, Y, *rows, **options))
    return Comparison(dataset.name, protocol, len(dataset), tuple(runs))


def _train_test(dataset: Dataset, protocol: Protocol) -> tuple[RowNumbers, RowNumbers]:
    train, test = dataset.train_test(own=protocol != "two-thirds")
    return train, np.setdiff1d(np.arange(len(dataset)), train) if protocol == "train-rest" else test


def _fresh(model: Any) -> Any:
    """Return an untrained copy: river's `clone`, or a deep copy where `fit` starts anew."""
    return model.clone() if hasattr(model, "clone") else copy.deepcopy(model)
