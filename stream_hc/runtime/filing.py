"""File documents one after the other: predict each, then learn from it if it came with its labels.

A pure state machine: the same documents in the same order give the same answers and the same state, however
they are cut into batches. What is wrong with a document is found before anything changes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from stream_hc.learners import OnlineLearner
from stream_hc.losses.mistakes import as_rows, charged_by_h
from stream_hc.runtime.answers import Answers, Signature
from stream_hc.runtime.preparing import Prepared, Preparer
from stream_hc.runtime.records import Document, Prediction, RecordError
from stream_hc.taxonomy import CostScheme, Taxonomy
from stream_hc.vectorize import Rows, SequenceVectorizer, TextVectorizer, joined

__all__ = ["Filed", "Filer"]


NOTHING = Rows(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))


@dataclass(frozen=True)
class Filed:
    """What became of a batch: answers, errors by the place of their document, losses of those with labels."""

    answers: Answers
    errors: dict[int, RecordError]
    n_labelled: int
    h_loss: float
    zero_one: float

    @cached_property
    def outcomes(self) -> list[Prediction | RecordError]:
        """The answer or the error of each document, in order."""
        predictions = iter(self.answers.predictions())
        n_documents = len(self.answers) + len(self.errors)
        return [self.errors.get(row) or next(predictions) for row in range(n_documents)]


class Filer:
    """A learner and a vectorizer that answer documents and learn from those with labels.

    Texts go through the vectorizer, which counts every text it meets. Features and vectors are scaled to
    length 1; number j of a vector is column j. All three may come in one stream, but share their columns.

    Parameters
    ----------
    taxonomy
        That of the learner.
    learner
        Predicts and learns.
    vectorizer
        With as many features as the learner; a fresh one if not given.
    model
        The name of the learner in the predictions.
    costs
        Of the H-loss that `file` returns.

    Examples
    --------
    >>> from stream_hc import HAROW
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport")])
    >>> filer = Filer(tax, HAROW(tax, n_features=64), model="h-arow")
    >>> filed = filer.file([Document("1", "ace", labels=["tennis"]), Document("2", "ace")])
    >>> [outcome.path_labels for outcome in filed.outcomes], filer.version
    ([[], ['sport', 'tennis']], 1)
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        learner: OnlineLearner,
        vectorizer: TextVectorizer | SequenceVectorizer | None = None,
        model: str = "",
        costs: CostScheme = "uniform",
    ) -> None:
        vectorizer = TextVectorizer(n_features=learner.n_features) if vectorizer is None else vectorizer
        if learner.taxonomy != taxonomy:
            raise ValueError("the learner was made for another taxonomy")
        if vectorizer.n_features != learner.n_features:
            raise ValueError(
                f"the vectorizer has n_features={vectorizer.n_features}, the learner {learner.n_features}"
            )
        self.taxonomy = taxonomy
        self.learner = learner
        self.vectorizer = vectorizer
        self._costs = taxonomy.costs(costs)
        self._signature = Signature(taxonomy, model or type(learner).__name__)
        self._preparer = Preparer(taxonomy, vectorizer)

    @property
    def model(self) -> str:
        """The name of the learner in the predictions."""
        return self._signature.model

    @model.setter
    def model(self, name: str) -> None:
        self._signature = Signature(self.taxonomy, name)

    @property
    def version(self) -> int:
        """The number of documents learned from."""
        return self.learner.n_learned

    def parts(self) -> dict[str, Any]:
        """Return what `stream_hc.snapshot.save` takes; `from_parts` goes on from there."""
        return {"learner": self.learner, "vectorizer": self.vectorizer}

    @classmethod
    def from_parts(cls, parts: Mapping[str, Any], **options: Any) -> Self:
        """Go on with what `stream_hc.snapshot.load` returned; `ValueError` if it is something else.

        The options are `model` and `costs`.
        """
        if not isinstance(parts, Mapping) or parts.keys() != {"learner", "vectorizer"}:
            raise ValueError("not the snapshot of a filer: expected the parts 'learner' and 'vectorizer'")
        learner, vectorizer = parts["learner"], parts["vectorizer"]
        if not isinstance(vectorizer, TextVectorizer | SequenceVectorizer) or not hasattr(
            learner, "predict_then_learn"
        ):
            kinds = f"{type(learner).__name__} and {type(vectorizer).__name__}"
            raise ValueError(f"not the snapshot of a filer: found {kinds}")
        if learner.taxonomy is None:
            raise ValueError("the learner grows its labels one by one and has no taxonomy to file by")
        return cls(learner.taxonomy, learner, vectorizer, **options)

    def file(self, documents: Sequence[Document]) -> Filed:
        """Answer each document in order, and learn from those with labels."""
        return self._answer(self._preparer.prepare(documents))

    def file_all(self, batches: Iterable[Sequence[Document]]) -> Iterator[Filed]:
        """Do the same with one batch after the other; a second thread learns from one while the next is read.

        The vectorizer has then seen more texts than the learner: only after the last batch is the filer fit
        to be saved, or to go on with other documents.
        """
        with ThreadPoolExecutor(1, "learner") as learner:
            last: Future[Filed] | None = None
            for documents in batches:
                batch = self._preparer.prepare(documents)
                filed = None if last is None else last.result()
                last = learner.submit(self._answer, batch)
                if filed is not None:
                    yield filed
            if last is not None:
                yield last.result()

    def _answer(self, batch: Prepared) -> Filed:
        """Predict row by row, and learn from those with labels."""
        X, Y, is_labelled = batch.X, batch.Y, batch.is_labelled
        versions = self.version + np.cumsum(is_labelled) - is_labelled
        parts = [NOTHING]
        h_sum, wrong = 0.0, 0.0
        first = 0
        for labelled, run in groupby(is_labelled.tolist()):
            last = first + sum(1 for _ in run)
            if last - first < is_labelled.size:
                X, Y = batch.X[first:last], batch.Y[first:last]
            if labelled:
                scored = self.learner.predict_then_learn(X, Y, scores=True)
                h, zero_one = self._losses(scored, Y)
                h_sum, wrong = h_sum + h, wrong + zero_one
            else:
                scored = self.learner.predict_many(X, scores=True)
            parts.append(Rows(*as_rows(scored), scored.data))
            first = last
        ids = [document.id for document in batch.documents]
        stamps = [document.ts for document in batch.documents]
        answers = Answers(self._signature, ids, joined(parts), versions, stamps)
        return Filed(answers, batch.errors, int(is_labelled.sum()), h_sum, wrong)

    def _losses(self, scored: csr_array, Y: csr_array) -> tuple[float, float]:
        """Return the sums of H-loss and zero-one loss."""
        ptr, nodes = charged_by_h(self.taxonomy, as_rows(scored), as_rows(Y))
        # Where anything is wrong, there is a first mistake.
        return float(self._costs[nodes].sum()), float(np.count_nonzero(np.diff(ptr)))
