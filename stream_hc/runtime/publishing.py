"""What goes out about the documents of a plan: answers of the champion, and requests for labels."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np
from scipy.sparse import csr_array

from stream_hc.learners import SecondOrderLearner
from stream_hc.runtime.answers import Answers, Signature
from stream_hc.runtime.batches import RecordBatch
from stream_hc.runtime.contenders import FittedModel, LineUp
from stream_hc.runtime.planning import Plan
from stream_hc.runtime.records import LabelRequest
from stream_hc.runtime.teaching import Taught
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows, sliced

__all__ = ["Publisher"]


class Publisher:
    """Writes answers and requests in the names of the models and nodes."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self._signatures: dict[str, Signature] = {}

    def answers(
        self,
        pieces: Iterable[tuple[str, int]],
        plan: Plan,
        batch: RecordBatch,
        taught: Taught,
        versions: Mapping[str, tuple[int, bool]],
    ) -> Iterator[Answers]:
        """Yield the answers to a plan; `pieces` say who answered up to which document.

        `versions` are those of the models before the plan, and whether they learned on the way.
        """
        until, first = np.array(plan.until, np.int64), 0
        for name, group in groupby(pieces, key=itemgetter(0)):
            last = max(document for _, document in group)
            if first < last:
                version, learns = versions[name]
                scored = sliced(Rows(*taught.predicted[name]), first, last)
                answered = slice(plan.first + first, plan.first + last)
                stamps = None if batch.stamps is None else batch.stamps[answered]
                signature = self._signature(name if learns else FittedModel.model)
                numbers = version + learns * until[first:last]
                yield Answers(signature, batch.ids[answered], scored, numbers, stamps)
            first = last

    def _signature(self, model: str) -> Signature:
        if model not in self._signatures:
            self._signatures[model] = Signature(self._taxonomy, model)
        return self._signatures[model]

    def requests(self, line_up: LineUp, plan: Plan, batch: RecordBatch, rows: Rows) -> Iterator[LabelRequest]:
        """Yield documents without labels from which a learner that knows doubt would learn."""
        learners = [each.learner for each in line_up.online.values()]
        learner = next((each for each in learners if isinstance(each, SecondOrderLearner)), None)
        places = [place for place, waiting in enumerate(plan.waiting) if waiting is not None]
        if learner is None or not places:
            return
        shape = (rows.indptr.size - 1, learner.n_features)
        asked = learner.query_many(csr_array((rows.values, rows.indices, rows.indptr), shape=shape)[places])
        names = self._taxonomy.nodes
        for place, (begin, end) in zip(places, pairwise(asked.indptr.tolist()), strict=True):
            if begin < end:
                nodes = [names[node] for node in asked.indices[begin:end]]
                margins = np.round(asked.data[begin:end].astype(np.float64), 6).tolist()
                name = batch.ids[plan.first + place]
                yield LabelRequest(name, dict(zip(nodes, margins, strict=True)))
