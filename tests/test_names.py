"""The bounded dictionary of what columns stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc import TextVectorizer, snapshot
from stream_hc.datasets import make_news
from stream_hc.vectorize import hash_features
from tests import naive

WORDS = ["ab", "cd", "äh", "漢字", "x" * 70, "é" * 33, "ef", "gh"]


def all_names(vectorizer):
    """Column -> name, for every column that has one."""
    names = vectorizer.names_of(range(vectorizer.n_features))
    return {column: name for column, name in enumerate(names) if name is not None}


def column(vectorizer, term):
    return int(hash_features([term])[0]) % vectorizer.n_features


def name(vectorizer, term):
    return vectorizer.names_of([column(vectorizer, term)])[0]


@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=8),
    st.sampled_from([(1, 1), (1, 3), (2, 2)]),
    st.sampled_from([1, 2, 3, 5, 100]),
    st.sampled_from([3, 1000]),
    st.integers(0, 8),
)
def test_equals_the_twin_however_the_stream_is_cut(texts, ngrams, limit, n_features, cut):
    batch, cut_once, single = (TextVectorizer(n_features, ngrams=ngrams, names=limit) for _ in range(3))
    rows = batch.learn_transform(texts)
    parts = [cut_once.learn_transform(texts[:cut]), cut_once.learn_transform(texts[cut:])]
    for text in texts:
        single.learn_one({"text": text})
    assert all_names(batch) == naive.names_of_columns(texts, n_features, *ngrams, limit)
    assert snapshot.dump_bytes(batch) == snapshot.dump_bytes(cut_once) == snapshot.dump_bytes(single)
    assert np.concatenate([part.toarray() for part in parts]).tobytes() == rows.toarray().tobytes()
    unnamed = TextVectorizer(n_features, ngrams=ngrams, names=0)
    assert unnamed.learn_transform(texts).toarray().tobytes() == rows.toarray().tobytes()


def test_names_of_a_row():
    vectorizer = TextVectorizer(ngrams=(1, 2))
    X = vectorizer.learn_transform(["Rates rise", "Der Zins fällt"])
    assert sorted(vectorizer.names_of(X[[0]].indices)) == ["rates", "rates rise", "rise"]
    assert set(vectorizer.names_of(X[[1]].indices)) == {"der", "zins", "fällt", "der zins", "zins fällt"}
    assert vectorizer.names_of([]) == []
    cased = TextVectorizer(lowercase=False)
    cased.learn_one("Rates")
    assert cased.names_of(cased.transform(["Rates rates"]).indices).count("Rates") == 1
    assert name(cased, "rates") is None


def test_only_learning_names_columns():
    vectorizer = TextVectorizer()
    column = vectorizer.transform(["football"]).indices
    vectorizer.transform_one("football")
    assert vectorizer.names_of(column) == [None]
    vectorizer.learn_one("football")
    assert vectorizer.names_of(column) == ["football"]
    silent = TextVectorizer(names=0)
    silent.learn(["football"])
    assert silent.names_of(column) == [None]


def test_the_first_term_of_a_column_keeps_it():
    vectorizer = TextVectorizer(n_features=1)
    vectorizer.learn(["one two", "two", "two"])
    assert vectorizer.names_of([0]) == ["one"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y" * 64, "y" * 64),
        ("y" * 65, "y" * 64),
        ("é" * 33, "é" * 32),
        ("a" + "é" * 33, "a" + "é" * 31),
        ("漢" * 30, "漢" * 21),
        ("aa" + "𝒜" * 30, "aa" + "𝒜" * 15),
    ],
)
def test_long_words_are_cut_between_characters(text, expected):
    vectorizer = TextVectorizer()
    vectorizer.learn_one(text)
    assert name(vectorizer, text) == expected
    again = snapshot.load_bytes(snapshot.dump_bytes(vectorizer))
    assert name(again, text) == expected
    assert snapshot.dump_bytes(again) == snapshot.dump_bytes(vectorizer)


def test_long_ngrams_are_cut():
    vectorizer = TextVectorizer(ngrams=(2, 3))
    words = ["p" * 40, "q" * 22, "ré"]
    vectorizer.learn([" ".join(words), "b" * 64 + " cc"])
    assert name(vectorizer, " ".join(words)) == " ".join(words)[:64]
    assert name(vectorizer, "b" * 64 + " cc") == "b" * 64


def test_the_frequent_half_stays_and_a_dropped_name_comes_back():
    vectorizer = TextVectorizer(names=4)
    vectorizer.learn(["aa bb", "bb cc", "dd cc"])
    assert set(all_names(vectorizer).values()) == {"aa", "bb", "cc", "dd"}
    vectorizer.learn(["ee"])
    assert set(all_names(vectorizer).values()) == {"bb", "cc", "ee"}
    vectorizer.learn(["aa"])
    assert set(all_names(vectorizer).values()) == {"bb", "cc", "ee", "aa"}


@pytest.mark.compiled
def test_a_million_words_stay_within_the_bound_and_frequent_ones_keep_their_names():
    frequent = [f"common{k}" for k in range(100)]
    texts = [
        " ".join([*(f"rare{first + k}" for k in range(100)), *frequent[first // 100 % 4 :: 4]])
        for first in range(0, 1_000_000, 100)
    ]
    vectorizer = TextVectorizer(n_features=2**20, names=2**12)
    vectorizer.learn(texts)
    arrays = vectorizer._names.arrays
    assert sum(array.nbytes for array in arrays) <= 76 * 2**12 + 5 * 2**20 + 16
    assert 2**11 <= len(all_names(vectorizer)) <= 2**12
    assert sum(state.nbytes for state in vectorizer._names.state().values()) <= 69 * 2**12
    assert sum(name(vectorizer, word) == word for word in frequent) >= 99  # one may share its column


class TestState:
    @pytest.mark.parametrize("limit", [0, 50, 2**16])
    def test_round_trip_goes_on_identically(self, limit):
        texts = make_news(60, seed=3).documents
        vectorizer = TextVectorizer(n_features=2**14, ngrams=(1, 2), names=limit)
        vectorizer.learn(texts[:40])
        saved = snapshot.dump_bytes(vectorizer)
        again = snapshot.load_bytes(saved)
        assert snapshot.dump_bytes(again) == saved
        assert all_names(again) == all_names(vectorizer)
        for model in (vectorizer, again):
            model.learn(texts[40:])
        assert snapshot.dump_bytes(again) == snapshot.dump_bytes(vectorizer)
        assert len(all_names(again)) <= limit

    def test_a_full_table_is_restored_full(self):
        vectorizer = TextVectorizer(names=2)
        vectorizer.learn(["aa bb"])
        again = snapshot.load_bytes(snapshot.dump_bytes(vectorizer))
        for model in (vectorizer, again):
            model.learn(["cc bb"])
        assert all_names(again) == all_names(vectorizer)

    def test_errors_say_what_is_wrong(self):
        vectorizer = TextVectorizer(n_features=2**10, names=8)
        vectorizer.learn(["Rates rise", "der Zins fällt"])
        good = vectorizer.state()
        named, terms = good["named"], good["terms"]
        assert all_names(TextVectorizer.from_state(good)) == all_names(vectorizer)

        def encoded(names):
            return np.frombuffer("\n".join(names).encode(), np.uint8)

        names = terms.tobytes().decode().split("\n")
        unseen = np.setdiff1d(np.arange(2**10, dtype=np.int32), named)[:5]
        for change, message in [
            ({"names": 4}, "5 names, but at most names=4"),
            ({"names": -1}, "names must be a whole number"),
            ({"named": named.astype(np.int64)}, "int32 columns"),
            ({"named": named.reshape(1, -1)}, "int32 columns"),
            ({"terms": terms.astype(np.int32)}, "one of bytes"),
            ({"named": named[::-1].copy()}, "must ascend"),
            ({"named": named - 2**10}, "must ascend and lie"),
            ({"named": named + np.int32(2**10)}, "lie below n_features"),
            ({"named": unseen}, "no text had a term"),
            ({"named": named[1:].copy()}, "a name of 1 to 64 bytes for every"),
            ({"terms": terms[:0]}, "a name of 1 to 64 bytes for every"),
            ({"terms": encoded([*names[:-1], ""])}, "a name of 1 to 64 bytes"),
            ({"terms": encoded([*names[:-1], "x" * 65])}, "a name of 1 to 64 bytes"),
            ({"terms": encoded([*names[:-1], "\x1b[2J"])}, "word characters and blanks"),
            ({"terms": encoded(names[::-1])}, "does not belong to its column"),
            ({"terms": np.where(terms == 0xC3, np.uint8(0xFF), terms)}, "utf-8"),
        ]:
            with pytest.raises(ValueError, match=message):
                TextVectorizer.from_state({**good, **change})


@pytest.mark.parametrize("bad", [[0.5], [[1]], [-1], [2**10], [True], ["aa"], 3])
def test_columns_that_are_none(bad):
    vectorizer = TextVectorizer(n_features=2**10)
    with pytest.raises(ValueError, match="columns must"):
        vectorizer.names_of(bad)
