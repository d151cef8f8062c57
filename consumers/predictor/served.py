"""A model that was published, ready to answer: it never learns."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from consumers.models.content import Content
from consumers.models.manifest import Manifest
from stream_hc.maxmargin import HM3
from stream_hc.runtime.answers import Answers, Signature
from stream_hc.runtime.batches import prepare_batch
from stream_hc.runtime.contenders import Contender, FittedModel, OnlineModel
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.preparing import Preparer
from stream_hc.runtime.records import RecordError
from stream_hc.vectorize import Rows, SequenceVectorizer

__all__ = ["Answered", "ServedModel"]


class Answered(NamedTuple):
    """What became of some lines: the answers to documents, and lines that cannot be used, with the reason.

    Labels among them are passed over.
    """

    answers: Answers
    rejects: list[tuple[Line, RecordError]]


class ServedModel:
    """A version of the whole model.

    Parameters
    ----------
    manifests
        Of the version, or of those of its shards.
    content
        The model and its vectorizer.

    Attributes
    ----------
    learned
        How many labelled documents it knows; of shards, the one that knows least.
    saved
        Since when it can be had, in seconds since 1970; of shards, the oldest.
    """

    def __init__(self, manifests: Sequence[Manifest], content: Content) -> None:
        model, vectorizer = content.model, content.vectorizer
        assert model.taxonomy is not None
        assert vectorizer is not None
        self.manifests = tuple(manifests)
        self.model = manifests[0].model
        self.learned = min(manifest.learned for manifest in manifests)
        self.saved = min(manifest.saved for manifest in manifests)
        self.taxonomy = model.taxonomy
        self._contender: Contender = (
            FittedModel(model, self.learned) if isinstance(model, HM3) else OnlineModel(self.model, model)
        )
        self._preparer = Preparer(self.taxonomy, vectorizer, learns=False)
        self._signature = Signature(self.taxonomy, self.model)
        self._is_of_sequences = isinstance(vectorizer, SequenceVectorizer)

    def renew(self, manifests: Sequence[Manifest]) -> bool:
        """Take note that trainers have said once more that this is their newest; False if it is not."""
        if [each.version for each in manifests] != [each.version for each in self.manifests]:
            return False
        self.manifests = tuple(manifests)
        self.saved = min(manifest.saved for manifest in manifests)
        return True

    @property
    def name(self) -> str:
        """Its version in words: that of each shard."""
        return "+".join(manifest.version for manifest in self.manifests)

    def age(self, now: float) -> float:
        """Return how many seconds old it is."""
        return max(0.0, now - self.saved)

    def answer(self, lines: Sequence[Line]) -> Answered:
        """Answer the documents among some lines."""
        batch = prepare_batch(self._preparer, lines)
        predicted = self._contender.predict(batch.rows)
        versions = np.full(len(batch.ids), self.learned, np.int64)
        answers = Answers(self._signature, batch.ids, Rows(*predicted), versions, batch.stamps)
        return Answered(answers, batch.rejects)

    def warm_up(self) -> None:
        """Answer something: the first document should not wait for kernels."""
        text = b"MELP" if self._is_of_sequences else b"a word"
        self.answer([Line(0, b'{"id": "a", "text": "%s"}' % text)]).answers.json_lines()
