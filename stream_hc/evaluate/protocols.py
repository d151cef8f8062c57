"""How a learner is judged: on the stream it learns from, or on documents held out."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stream_hc.checks import whole_number
from stream_hc.evaluate.drivers import Progress, RowNumbers, driver_for, last_step, taxonomy_of
from stream_hc.evaluate.run import Run, score
from stream_hc.taxonomy import Taxonomy

__all__ = ["holdout", "progressive"]

CHUNK = 4096


def progressive(
    model: Any,
    X: Any,
    Y: Any,
    *,
    delay: int = 0,
    window: int = 1000,
    name: str | None = None,
    taxonomy: Taxonomy | None = None,
    progress: Progress | None = None,
    chunk: int = CHUNK,
    keep_predictions: bool = True,
) -> Run:
    """Predict every document, and only then learn it: each is a test of what was learned before.

    The model goes on from what it knows already, and has learned the stream afterwards. With a delay the
    labels of a document arrive that many documents later; those still on the way at the end are not learned.

    Parameters
    ----------
    model
        A learner of this package, any river `MultiLabelClassifier`, or a river `Pipeline` that ends in one.
    X
        Sparse rows (n × n_features) for a learner of this package, taken in chunks; or a list of whatever
        the model takes (feature dicts, texts), taken one by one. Both give the same predictions.
    Y
        Labels: sparse rows (n × N) or label sets.
    delay
        Documents between a prediction and the arrival of its labels.
    window
        How many documents the windowed means of the result look back.
    name
        For tables and plots; the class of the model by default.
    taxonomy
        Labels and their parents, if the model does not know them.
    progress
        Called with the documents done and their total.
    chunk
        Documents between two calls of `progress` (or `delay`, if larger); of no influence on the result.
    keep_predictions
        Whether the result holds the predictions.

    Examples
    --------
    >>> from stream_hc import HPerceptron
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
    >>> X = [{"racket": 1.0}, {"vote": 1.0}, {"racket": 1.0}, {"vote": 1.0}]
    >>> Y = [{"tennis"}, {"politics"}, {"tennis"}, {"politics"}]
    >>> run = progressive(HPerceptron(tax, n_features=64), X, Y)
    >>> run.values("zero_one")
    array([1., 1., 0., 0.])
    >>> progressive(HPerceptron(tax, n_features=64), X, Y, delay=2).values("zero_one")
    array([1., 1., 1., 0.])
    """
    whole_number("delay", delay, 0)
    whole_number("window", window, 1)
    whole_number("chunk", chunk, 1)
    labels = taxonomy_of(model, taxonomy)
    driver = driver_for(model, X, Y, labels)
    predicted = driver.stream(delay, chunk, progress)
    return score(
        name or type(last_step(model)).__name__,
        labels,
        predicted,
        driver.Y,
        seconds=driver.seconds,
        delay=delay,
        window=window,
        keep_predictions=keep_predictions,
    )


def holdout(
    model: Any,
    X: Any,
    Y: Any,
    train: ArrayLike,
    test: ArrayLike,
    *,
    window: int = 1000,
    name: str | None = None,
    taxonomy: Taxonomy | None = None,
    progress: Progress | None = None,
    chunk: int = CHUNK,
    keep_predictions: bool = True,
) -> Run:
    """Learn the train rows in one pass, then predict the test rows with the model as it is.

    Parameters
    ----------
    model, X, Y, window, name, taxonomy, chunk, keep_predictions
        As for `progressive`. On sparse rows a model that learns in batches (`fit`, `predict_many`) will do.
    train, test
        Row numbers, in the order of learning and of the result; no row may be in both.
    progress
        Called with the train rows learned and their number; predicting the test rows takes little time.

    Examples
    --------
    >>> from stream_hc import HPerceptron
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
    >>> X = [{"racket": 1.0}, {"vote": 1.0}, {"racket": 1.0}, {"ballot": 1.0}]
    >>> Y = [{"tennis"}, {"politics"}, {"tennis"}, {"politics"}]
    >>> holdout(HPerceptron(tax, n_features=64), X, Y, train=[0, 1], test=[2, 3]).values("zero_one")
    array([0., 1.])
    """
    whole_number("window", window, 1)
    whole_number("chunk", chunk, 1)
    labels = taxonomy_of(model, taxonomy)
    driver = driver_for(model, X, Y, labels)
    train_rows = _row_numbers("train", train, driver.Y.shape[0])
    test_rows = _row_numbers("test", test, driver.Y.shape[0])
    both = np.intersect1d(train_rows, test_rows)
    if both.size:
        raise ValueError(f"{both.size} rows are in train and in test, row {both[0]} is the first")
    driver.learn(train_rows, chunk, progress)
    predicted = driver.predict(test_rows)
    return score(
        name or type(last_step(model)).__name__,
        labels,
        predicted,
        driver.Y[test_rows],
        seconds=driver.seconds,
        n_processed=train_rows.size + test_rows.size,
        window=window,
        keep_predictions=keep_predictions,
    )


def _row_numbers(name: str, rows: ArrayLike, n_rows: int) -> RowNumbers:
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or numbers.size == 0 or numbers.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a list of row numbers, and not empty")
    outside = numbers[(numbers < 0) | (numbers >= n_rows)]
    if outside.size:
        raise ValueError(f"{name} has row {outside[0]}: rows run from 0 to {n_rows - 1}")
    return numbers.astype(np.int64)
