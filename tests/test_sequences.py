"""Sequences: the k-mers of the definition, the hash of feature names, unit rows; bad input named."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc import HPA, SequenceVectorizer, Taxonomy, snapshot
from stream_hc.datasets import Dataset
from stream_hc.evaluate import vectorize_dataset
from stream_hc.kernels import tokens
from stream_hc.vectorize import hash_features
from tests import naive

sequences = st.lists(st.text(st.sampled_from("ACDEFGHIKLMNPQRSTVWY"), max_size=12), max_size=5)
lengths = st.tuples(st.integers(1, 4), st.integers(0, 3)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(sequences, lengths, st.booleans(), st.sampled_from([7, 64, 1000]))
def test_kmer_columns(texts, k, gapped, n_features):
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(data) for data in encoded], dtype=np.int64)
    buffer = np.frombuffer(b"".join(encoded), np.uint8)
    ptr, columns = tokens.kmer_columns(buffer, ends, n_features, *k, gapped)
    found = [columns[a:b].tolist() for a, b in pairwise(ptr)]
    assert found == naive.kmer_columns(texts, n_features, *k, gapped)


@given(sequences, lengths, st.booleans(), st.sampled_from(["raw", "log", "binary"]), st.booleans())
def test_rows_are_the_weighted_kmers(texts, k, gapped, tf, norm):
    vectorizer = SequenceVectorizer(512, k, gapped, tf, norm)
    X = vectorizer.transform(texts)
    assert X.shape == (len(texts), 512)
    columns = [(hash_features(vectorizer.kmers(text)) % 512).tolist() for text in texts]
    expected = naive.weigh_rows(columns, learn=False, tf=tf, idf=False, norm=norm)
    for row, text in enumerate(texts):
        part = slice(X.indptr[row], X.indptr[row + 1])
        found = dict(zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True))
        assert found == pytest.approx(expected[row], rel=1e-6)
        assert vectorizer.transform_one(text) == vectorizer.transform_one({"text": text}) == found
        if norm and text and len(text) >= k[0]:
            assert math.hypot(*found.values()) == pytest.approx(1, rel=1e-5)


def test_gaps_are_inside():
    assert SequenceVectorizer(k=(1, 3)).kmers("ABC") == ["A", "AB", "ABC", "A.C", "B", "BC", "C"]
    assert SequenceVectorizer(k=(4, 4), gapped=False).kmers("ABCDE") == ["ABCD", "BCDE"]
    assert SequenceVectorizer(k=(4, 4)).kmers("ABCD") == ["ABCD", "A.CD", "AB.D"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features"),
        ({"k": 3}, "k must be a pair"),
        ({"k": (3, 2)}, "the longest of k"),
        ({"k": (0, 2)}, "the shortest of k"),
        ({"gapped": 1}, "gapped must be True or False"),
        ({"norm": None}, "norm must be True or False"),
        ({"tf": "odd"}, "unknown tf 'odd'"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(ValueError, match=message):
        SequenceVectorizer(**options)


def test_bad_sequences():
    vectorizer = SequenceVectorizer()
    with pytest.raises(ValueError, match="row 1: a sequence must be written in ASCII letters"):
        vectorizer.transform(["MEL", "MÉL"])
    with pytest.raises(ValueError, match="row 0: a text must be a str, not bytes"):
        vectorizer.transform([b"MEL"])
    with pytest.raises(ValueError, match="expected a list of texts"):
        vectorizer.transform("MEL")


def test_a_snapshot_gives_the_same_rows():
    vectorizer = SequenceVectorizer(128, (2, 3), gapped=False, tf="raw", norm=False)
    again = snapshot.load_bytes(snapshot.dump_bytes(vectorizer))
    assert again.state() == vectorizer.state()
    assert (
        again.transform(["MELPNIM"]).toarray().tolist()
        == vectorizer.transform(["MELPNIM"]).toarray().tolist()
    )
    with pytest.raises(ValueError, match="unknown entries"):
        SequenceVectorizer.from_state({**vectorizer.state(), "surprise": 1})


def test_a_set_of_sequences_works_like_a_set_of_texts():
    tax = Taxonomy([("1", None), ("1.1", "1"), ("2", None), ("2.1", "2")])
    draw = np.random.default_rng(0)
    texts = ["".join(draw.choice(list("ACDE" if row % 2 else "FGHI"), 30)) for row in range(60)]
    data = Dataset(
        "proteins",
        tax,
        [*map(str, range(60))],
        texts,
        [frozenset({"1.1" if row % 2 else "2.1"}) for row in range(60)],
    )
    X = vectorize_dataset(data, sequences=SequenceVectorizer(1024))
    model = HPA(tax, 1024)
    predicted = tax.decode(model.predict_then_learn(X, data.labels))
    assert predicted[20:] == [tax.close(labels) for labels in data.labels[20:]]
