"""Filing: predict, then learn; the same whatever the batches; nothing half-changed by a bad document."""

from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc import HAROW, NodePA, Taxonomy, TextVectorizer
from stream_hc.datasets import make_news
from stream_hc.learners import LEARNERS
from stream_hc.losses import h_loss, zero_one
from stream_hc.runtime import Document, Filer, Prediction, RecordError
from stream_hc.snapshot import dump_bytes, load_bytes
from stream_hc.vectorize import from_dict

TREE = Taxonomy([("sport", None), ("tennis", "sport"), ("football", "sport"), ("politics", None)])
N_FEATURES = 256
WORDS = ["ace", "racket", "goal", "vote", "party", "match"]

contents = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=4).map(lambda words: {"text": " ".join(words)}),
    st.dictionaries(st.sampled_from(WORDS), st.floats(-3, 3, width=16), max_size=3).map(
        lambda features: {"features": features}
    ),
    st.lists(st.floats(-3, 3, width=16), max_size=6).map(lambda vector: {"vector": vector}),
)
labels = st.none() | st.lists(st.sampled_from([*TREE.nodes, *TREE.nodes, "unknown"]), max_size=3)
documents = st.lists(
    st.builds(lambda content, given: Document("d", **content, labels=given), contents, labels)
)


def filer_for(name: str = "h-arow", **options: Any) -> Filer:
    return Filer(TREE, LEARNERS[name](TREE, n_features=N_FEATURES), model=name, **options)


def as_bytes(outcomes: list[Prediction | RecordError]) -> list[bytes]:
    return [str(o).encode() if isinstance(o, RecordError) else msgspec.json.encode(o) for o in outcomes]


@settings(deadline=None)
@given(documents, st.lists(st.integers(0, 12)), st.sampled_from(sorted(LEARNERS)), st.booleans())
def test_batches_do_not_matter(docs: list[Document], cuts: list[int], name: str, ahead: bool) -> None:
    whole, piecewise = filer_for(name), filer_for(name)
    expected = whole.file(docs)
    ends = sorted({0, len(docs), *(cut for cut in cuts if cut < len(docs))})
    pieces = [docs[first:last] for first, last in pairwise(ends)]
    parts = list(piecewise.file_all(pieces)) if ahead else [piecewise.file(piece) for piece in pieces]
    assert as_bytes([outcome for part in parts for outcome in part.outcomes]) == as_bytes(expected.outcomes)
    assert dump_bytes(piecewise.parts()) == dump_bytes(whole.parts())
    assert sum(part.n_labelled for part in parts) == expected.n_labelled == whole.version
    assert sum(part.h_loss for part in parts) == expected.h_loss
    assert sum(part.zero_one for part in parts) == expected.zero_one


@settings(deadline=None)
@given(documents)
def test_scores_are_the_margins_before_learning(docs: list[Document]) -> None:
    filer, twin = filer_for(), filer_for()
    for document in docs:
        outcome = filer.file([document]).outcomes[0]
        if isinstance(outcome, Prediction):
            X = twin._preparer.prepare([document]).X
            margins = twin.learner.margins(X)[0]  # type: ignore[attr-defined]
            expected = {label: round(float(margins[TREE.index(label)]), 6) for label in outcome.path_labels}
            assert outcome.scores == expected
        twin = Filer.from_parts(load_bytes(dump_bytes(filer.parts())))


@settings(deadline=None)
@given(documents, st.integers(0, 20))
def test_going_on_from_a_snapshot(docs: list[Document], cut: int) -> None:
    whole, first = filer_for(), filer_for()
    expected = whole.file(docs).outcomes
    answers = first.file(docs[:cut]).outcomes
    second = Filer.from_parts(load_bytes(dump_bytes(first.parts())), model="h-arow")
    assert as_bytes(answers + second.file(docs[cut:]).outcomes) == as_bytes(expected)
    assert dump_bytes(second.parts()) == dump_bytes(whole.parts())


def test_predicts_first_and_learns_afterwards() -> None:
    filer = filer_for()
    document = Document("1", text="ace", labels=["tennis"], ts="noon")
    first, second = filer.file([document, document]).outcomes
    assert isinstance(first, Prediction)
    assert isinstance(second, Prediction)
    assert (first.path_labels, first.scores, first.model_version, first.ts) == ([], {}, 0, "noon")
    assert (second.labels, second.path_labels, second.model_version) == (["tennis"], ["sport", "tennis"], 1)
    assert filer.version == 2
    unlabelled = filer.file([Document("2", text="ace")]).outcomes[0]
    assert isinstance(unlabelled, Prediction)
    assert (unlabelled.model_version, unlabelled.ts, filer.version) == (2, msgspec.UNSET, 2)


def test_losses_are_those_of_the_labelled() -> None:
    news = make_news(60)
    filer = Filer(news.taxonomy, NodePA(news.taxonomy, 1024))
    docs = [
        Document(doc_id, text=str(text), labels=sorted(given) if row % 3 else None)
        for row, (doc_id, (text, given)) in enumerate(zip(news.ids, news, strict=True))
    ]
    filed = filer.file(docs)
    rows = [row for row in range(60) if row % 3]
    predicted = [filed.outcomes[row].path_labels for row in rows]  # type: ignore[union-attr]
    true = [news.labels[row] for row in rows]
    assert filed.n_labelled == 40
    assert filed.h_loss == h_loss(news.taxonomy, predicted, true).sum()
    assert filed.zero_one == zero_one(news.taxonomy, predicted, true).sum()
    costly = Filer(news.taxonomy, NodePA(news.taxonomy, 1024), costs="normalized").file(docs)
    assert costly.h_loss == pytest.approx(h_loss(news.taxonomy, predicted, true, "normalized").sum())


def _same_column() -> list[str]:
    """Return two names with one column: values that are fine alone may be too large together."""
    names: dict[int, str] = {}
    for name in map(str, range(N_FEATURES + 1)):
        column = int(from_dict({name: 1.0}, N_FEATURES).indices[0])
        if names.setdefault(column, name) != name:
            return [names[column], name]
    raise AssertionError


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (Document("x", text="ace", labels=["tennis", "golf"]), "unknown_label"),
        (
            Document("x", features=dict.fromkeys(_same_column(), 9e11), labels=["tennis"]),
            "number_out_of_range",
        ),
        (Document("x", vector=[1.0] * (N_FEATURES + 1)), "vector_too_long"),
    ],
)
def test_a_bad_document_changes_nothing(document: Document, reason: str) -> None:
    lesson = Document("1", text="ace", labels=["tennis"])
    filer, calm = filer_for(), filer_for()
    outcomes = filer.file([lesson, document, lesson]).outcomes
    calm_outcomes = calm.file([lesson, lesson]).outcomes
    assert isinstance(outcomes[1], RecordError)
    assert outcomes[1].reason == reason
    assert as_bytes([outcomes[0], outcomes[2]]) == as_bytes(calm_outcomes)
    assert dump_bytes(filer.parts()) == dump_bytes(calm.parts())


def test_features_and_vectors_are_scaled_to_length_one() -> None:
    filer = filer_for()
    rows = [
        filer._preparer.row(Document("1", **content))
        for content in ({"features": {"a": 1e12, "b": 1e-38}}, {"text": "a"})
    ]
    assert rows[1] is None
    assert rows[0].values.tolist() == [1.0]  # type: ignore[union-attr]
    vector = filer._preparer.row(Document("1", vector=[0.0, 3.0, 0.0, 4.0]))
    assert vector.indices.tolist() == [1, 3]  # type: ignore[union-attr]
    np.testing.assert_allclose(vector.values, [0.6, 0.8], rtol=1e-6)  # type: ignore[union-attr]
    zero = filer._preparer.row(Document("1", vector=[0.0, 0.0]))
    assert zero.indices.size == 0  # type: ignore[union-attr]


def test_a_margin_of_zero_that_counts_as_a_prediction() -> None:
    filer = Filer(TREE, HAROW(TREE, n_features=N_FEATURES, cold_start="paper"))
    filed = filer.file([Document("1", text="ace", labels=list(TREE.nodes))])
    assert isinstance(filed.outcomes[0], Prediction)
    assert filed.outcomes[0].scores == dict.fromkeys(TREE.nodes, 0.0)
    assert (filed.h_loss, filed.zero_one) == (0.0, 0.0)


def test_parts_that_do_not_belong_together() -> None:
    learner, vectorizer = HAROW(TREE, n_features=64), TextVectorizer(n_features=32)
    with pytest.raises(ValueError, match="n_features=32, the learner 64"):
        Filer(TREE, learner, vectorizer)
    with pytest.raises(ValueError, match="another taxonomy"):
        Filer(Taxonomy([("a", None)]), learner)
    with pytest.raises(ValueError, match="expected the parts"):
        Filer.from_parts({"learner": learner})
    with pytest.raises(ValueError, match="found TextVectorizer and HAROW"):
        Filer.from_parts({"learner": vectorizer, "vectorizer": learner})
    with pytest.raises(ValueError, match="no taxonomy to file by"):
        Filer.from_parts({"learner": HAROW(n_features=64), "vectorizer": TextVectorizer(n_features=64)})


def test_nothing_to_file() -> None:
    assert filer_for().file([]).outcomes == []
    only_bad = filer_for().file([Document("1", text="x", labels=["?"])])
    assert (len(only_bad.outcomes), only_bad.n_labelled) == (1, 0)
