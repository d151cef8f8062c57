"""Rows predicted and others learned in turn: the same bits as one by one, for every learner."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc import snapshot
from stream_hc.datasets import make_news
from stream_hc.evaluate import vectorize_dataset
from stream_hc.learners import LEARNERS, PathLearner
from stream_hc.learners.base import LabelRows
from stream_hc.losses.mistakes import as_rows
from stream_hc.vectorize import Rows, sliced
from tests.strategies import examples

NEWS = make_news(24, seed=4)
X = vectorize_dataset(NEWS, 512)
ROWS = Rows(*as_rows(X), X.data)


def labels_for(kind):
    sets = [sorted(labels)[:1] for labels in NEWS.labels] if issubclass(kind, PathLearner) else NEWS.labels
    return LabelRows(*as_rows(NEWS.taxonomy.encode([set(labels) for labels in sets])))


@settings(max_examples=examples(8), deadline=None)
@given(gaps=st.lists(st.integers(0, 3), max_size=12), left_over=st.integers(0, 3), paper=st.booleans())
@pytest.mark.parametrize("name", LEARNERS)
def test_in_turn_equals_one_by_one(name, gaps, left_over, paper):
    kind = LEARNERS[name]
    options = {"n_features": 512} | ({"cold_start": "paper"} if paper and "arow" in name else {})
    labels = labels_for(kind)
    until = np.cumsum([0, *gaps])[1:].astype(np.int64)
    n_taught = min(24, (int(until[-1]) if gaps else 0) + left_over)
    until = np.minimum(until, n_taught)
    taught = sliced(ROWS, 0, n_taught)
    given = LabelRows(labels.indptr[: n_taught + 1], labels.nodes[: labels.indptr[n_taught]])
    seen = sliced(ROWS, 24 - until.size, 24)
    quick, slow = kind(NEWS.taxonomy, **options), kind(NEWS.taxonomy, **options)
    predicted = quick.file_in_turn(seen, taught, given, until)
    n_learned, nodes, counts = 0, [], []

    def learn_up_to(last):
        for row in range(n_learned, last):
            part = slice(labels.indptr[row], labels.indptr[row + 1])
            one = LabelRows(np.array([0, labels.nodes[part].size]), labels.nodes[part])
            slow.file_rows(sliced(ROWS, row, row + 1), one)
        return last

    for place, last in enumerate(until.tolist()):
        n_learned = learn_up_to(last)
        answer = slow.file_rows(sliced(seen, place, place + 1))
        counts.append(answer.nodes.size)
        nodes += answer.nodes.tolist()
    learn_up_to(n_taught)
    assert np.diff(predicted.indptr).tolist() == counts
    assert predicted.nodes.tolist() == nodes
    assert quick.n_learned == n_taught
    assert snapshot.dump_bytes(quick) == snapshot.dump_bytes(slow)
