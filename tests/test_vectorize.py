import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import checks, compose
from sklearn.linear_model import SGDClassifier

from stream_hc import HPerceptron, Taxonomy, TextVectorizer, snapshot
from stream_hc.kernels.tokens import token_columns
from stream_hc.vectorize import from_dict, hash_features, hashing, words
from stream_hc.vectorize import text as text_module
from tests import naive

TEXTS = ["Rates rise, rates fall", "", "Der Zins fällt", "a b c", "x" * 5000, "漢字 かな 🙂 naïve", "rates"]


class TestHash:
    def test_golden(self):
        """Columns of stored models depend on these numbers: they must never change."""
        names = ["", "a", "football", "Fußball", "漢字", "two words", "x" * 100]
        golden = [2872998923, 444641715, 4145210112, 1245823895, 1862367541, 2997853078, 3842974242]
        assert hash_features(names).tolist() == golden

    @given(st.lists(st.text(max_size=8), max_size=6))
    def test_equals_the_slow_one(self, names):
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        assert hash_features(names).tolist() == naive.hash_tokens(encoded)

    def test_spreads_over_few_and_odd_numbers_of_columns(self):
        hashes = hash_features([f"word{i}" for i in range(20_000)]).astype(np.int64)
        for n_features in (16, 1000, 1024):
            counts = np.bincount(hashes % n_features, minlength=n_features)
            chi_square = ((counts - 20_000 / n_features) ** 2 / (20_000 / n_features)).sum()
            assert abs(chi_square - (n_features - 1)) < 5 * np.sqrt(2 * n_features)

    def test_a_full_cache_is_emptied_and_nothing_changes(self, monkeypatch):
        monkeypatch.setattr(hashing, "CACHE_SIZE", 3)
        monkeypatch.setattr(hashing, "_hash_of", {})
        names = ["a", "b", "c", "d", "e", "a"]
        for part in (names[:2], names[1:4], names, names[::-1]):
            assert hashing.hashes(part, 1000).tolist() == hash_features(part).tolist()
        assert len(hashing._hash_of) <= 6


class TestDict:
    def test_sorted_added_up_and_without_zeros(self):
        row = from_dict({5: 1.0, 2: 2.0, 13: 0.5, 7: 0.0}, n_features=8)
        assert row.indices.tolist() == [2, 5]
        assert row.values.tolist() == [2.0, 1.5]

    @given(st.dictionaries(st.text(max_size=3), st.floats(-10, 10, width=32), max_size=8), st.randoms())
    def test_order_of_the_dict_does_not_matter(self, x, random):
        shuffled = list(x.items())
        random.shuffle(shuffled)
        one, two = from_dict(x, 4), from_dict(dict(shuffled), 4)
        assert one.indices.tolist() == two.indices.tolist()
        assert one.values.tobytes() == two.values.tobytes()

    @given(
        st.dictionaries(
            st.one_of(st.text(max_size=3), st.integers()), st.floats(-10, 10, width=32), max_size=8
        ),
        st.sampled_from([1, 3, 2**18]),
    )
    def test_equals_the_slow_one(self, x, n_features):
        expected = {}
        for name in sorted(x, key=x.get):
            column = (name if isinstance(name, int) else naive.hash_tokens([name.encode()])[0]) % n_features
            expected[column] = expected.get(column, 0.0) + x[name]
        row = from_dict(x, n_features)
        used = [column for column in sorted(expected) if np.float32(expected[column]) != 0]
        assert row.indices.tolist() == used
        assert row.values.tolist() == [float(np.float32(expected[column])) for column in used]

    def test_two_finite_features_that_overflow_together(self):
        with pytest.raises(ValueError, match="finite"):
            from_dict({0: 9e11, 4: 9e11}, n_features=4)


SCRIPTS = {
    "latin": "Ångström, naïve façade; STRASSE ẞ ß ﬁne ǅungla",
    "greek": "ΟΔΥΣΣΕΥΣ Σίσυφος και Ἀθῆναι ΑΣ.",
    "cyrillic": "Съешь ещё этих мягких французских булок, ЁЖ",
    "turkish": "İSTANBUL ılık IŞIK dotted İi",
    "hebrew": "שָׁלוֹם עולם",
    "arabic": "السَّلامُ عليكم ٣٤٥ ـــ",
    "devanagari": "नमस्ते दुनिया क्षत्रिय",
    "thai": "สวัสดีชาวโลก ที่นี่",
    "chinese": "漢字仮名交じり文、東京 ｱｲｳ",
    "korean": "안녕하세요 세계 ㅋㅋ",
    "georgian": "საქართველო ᲗᲑᲘᲚᲘᲡᲘ",
    "math and emoji": "𝒜𝓁𝓅𝒽𝒶 x² ½ 👩‍👩‍👧 🙂🙂 a_b __ _ 1_000",
    "combining": "e\u0301te\u0301 a\u0308b \u0301\u0301 ki\u0307",
    "separators": "tab\tnew\nline\x00nul\u2028para\u00a0nbsp\u200bzero",
    "surrogates": "ab\ud800cd \udfff x\ud83d\ude42y",
    "edges": "é",
    "two": "éé",
    "last": "word",
    "empty": "",
    "blank": " \n ",
}


def found_columns(vectorizer, texts):
    """The row pointers and columns of the compiled pass."""
    buffer, bounds = words.utf8(texts, vectorizer.lowercase)
    is_word = words.word_characters(buffer)
    return token_columns(buffer, bounds[1:], is_word, vectorizer.n_features, *vectorizer.ngrams)


def expected_columns(vectorizer, text):
    return [int(h) % vectorizer.n_features for h in hash_features(vectorizer.tokens(text))]


class TestTokens:
    @pytest.mark.parametrize("lowercase", [True, False])
    @pytest.mark.parametrize("ngrams", [(1, 1), (1, 3), (2, 2)])
    def test_every_script_alone_and_in_one_batch(self, lowercase, ngrams):
        vectorizer = TextVectorizer(lowercase=lowercase, ngrams=ngrams)
        texts = list(SCRIPTS.values())
        ptr, found = found_columns(vectorizer, texts)
        for row, text in enumerate(texts):
            expected = expected_columns(vectorizer, text)
            assert found[ptr[row] : ptr[row + 1]].tolist() == expected
            alone_ptr, alone = found_columns(vectorizer, [text])
            assert alone.tolist() == expected
            assert alone_ptr.tolist() == [0, len(expected)]

    @given(
        st.lists(st.text(st.characters(), max_size=20), max_size=5), st.sampled_from([(1, 1), (1, 2), (2, 3)])
    )
    def test_any_text(self, texts, ngrams):
        vectorizer = TextVectorizer(ngrams=ngrams)
        ptr, found = found_columns(vectorizer, texts)
        for row, text in enumerate(texts):
            assert found[ptr[row] : ptr[row + 1]].tolist() == expected_columns(vectorizer, text)

    def test_a_capital_sigma_does_not_see_the_next_text(self):
        assert words.utf8(["ΑΣ", "ΑΣ"], True)[0].tobytes().decode() == "ας" + "ας"

    def test_every_code_point_by_itself(self):
        """One token for each word character, none for the others: compared over all of Unicode."""
        table = words.word_characters(np.array([255], np.uint8))
        assert table.size == sys.maxunicode + 1
        assert table.sum() == len(re.findall(r"\w", "".join(map(chr, range(sys.maxunicode + 1)))))
        assert words.word_characters(np.array([65], np.uint8)).tolist() == table[:128].tolist()

    @pytest.mark.compiled
    @pytest.mark.parametrize(
        "text", ["word " * 1_000_000, "é" * 2_500_000, "ab" * 2_500_000, "漢字 " * 700_000]
    )
    def test_texts_of_five_megabytes(self, text):
        vectorizer = TextVectorizer()
        _, found = found_columns(vectorizer, [text, "the end"])
        tokens = vectorizer.tokens(text)
        assert found.size == len(tokens) + 2
        assert set(found[:-2].tolist()) == set(expected_columns(vectorizer, tokens[0]))


class TestText:
    @pytest.mark.parametrize("lowercase", [True, False])
    def test_tokens_are_those_of_re(self, lowercase):
        for text in TEXTS:
            expected = re.findall(r"\w\w+", text.lower() if lowercase else text)
            assert TextVectorizer(lowercase=lowercase).tokens(text) == expected

    def test_ngrams(self):
        assert TextVectorizer(ngrams=(1, 2)).tokens("one two three") == [
            "one",
            "two",
            "three",
            "one two",
            "two three",
        ]
        assert TextVectorizer(ngrams=(3, 3)).tokens("one two") == []

    @pytest.mark.parametrize("tf", ["raw", "log", "binary"])
    @pytest.mark.parametrize(("idf", "norm"), [(True, True), (True, False), (False, True)])
    def test_weights_equal_the_formula(self, tf, idf, norm):
        vectorizer = TextVectorizer(n_features=64, tf=tf, idf=idf, norm=norm)
        columns = [[int(h) % 64 for h in hash_features(vectorizer.tokens(text))] for text in TEXTS]
        twin = naive.weigh_rows(columns, True, tf, idf, norm)
        X = vectorizer.learn_transform(TEXTS)
        assert X.dtype == np.float32
        assert X.shape == (len(TEXTS), 64)
        for row, expected in enumerate(twin):
            got = dict(zip(X[[row]].indices.tolist(), X[[row]].data.tolist(), strict=True))
            assert got == pytest.approx(expected, rel=1e-5)
        assert vectorizer.n_documents == len(TEXTS)

    def test_one_by_one_and_batch_give_the_same_row(self):
        batch, single = TextVectorizer(n_features=256), TextVectorizer(n_features=256)
        streamed = TextVectorizer(n_features=256)
        batch.learn(TEXTS)
        for text in TEXTS:
            single.learn_one(text)
        rows = batch.transform(TEXTS)
        for row, text in enumerate(TEXTS):
            for x in (text, {"text": text, "id": 1}):
                one = single.transform_one(x)
                assert list(one) == rows[[row]].indices.tolist()
                assert list(one.values()) == rows[[row]].data.tolist()
        parts = [streamed.learn_transform(TEXTS[:3]), streamed.learn_transform(TEXTS[3:])]
        whole = TextVectorizer(n_features=256).learn_transform(TEXTS)
        assert np.concatenate([part.data for part in parts]).tobytes() == whole.data.tobytes()

    def test_blocks_cannot_be_seen(self, monkeypatch):
        whole = TextVectorizer(n_features=256)
        expected = whole.learn_transform(TEXTS)
        monkeypatch.setattr(text_module, "BLOCK", 2)
        cut = TextVectorizer(n_features=256)
        with pytest.raises(ValueError, match="row 7: a text must be a str"):
            cut.learn([*TEXTS, 7])
        X = cut.learn_transform(TEXTS)
        for part in ("indptr", "indices", "data"):
            one, two = getattr(X, part), getattr(expected, part)
            assert (one.dtype, one.tobytes()) == (two.dtype, two.tobytes())
        assert X.shape == expected.shape
        assert snapshot.dump_bytes(cut) == snapshot.dump_bytes(whole)
        assert cut.transform([]).shape == (0, 256)

    def test_transform_changes_nothing_and_the_first_text_has_weights(self):
        vectorizer = TextVectorizer()
        before = snapshot.dump_bytes(vectorizer)
        assert vectorizer.transform(["bread and butter"]).nnz == 3
        assert snapshot.dump_bytes(vectorizer) == before
        assert vectorizer.learn_transform(["bread and butter"]).data.min() > 0

    def test_state_round_trip(self):
        vectorizer = TextVectorizer(n_features=512, ngrams=(1, 2), tf="raw")
        vectorizer.learn(TEXTS)
        again = snapshot.load_bytes(snapshot.dump_bytes(vectorizer))
        assert again.transform(TEXTS).toarray().tobytes() == vectorizer.transform(TEXTS).toarray().tobytes()
        good = vectorizer.state()
        for change in [
            {"columns": good["columns"][1:]},
            {"columns": good["columns"] + 512},
            {"seen_in": good["seen_in"] + 100},
            {"seen_in": -good["seen_in"]},
            {"seen_in": good["seen_in"].astype(np.float64)},
            {"columns": good["columns"][::-1].copy()},
            {"lowercase": "no"},
            {"ngrams": np.array([1.5, 2.5])},
            {"n_documents": -1},
            {"surprise": 1},
            {"tf": "odd"},
            {"n_features": 0},
        ]:
            with pytest.raises(ValueError, match=r"."):
                TextVectorizer.from_state({**good, **change})

    def test_errors(self):
        vectorizer = TextVectorizer()
        with pytest.raises(ValueError, match="list of texts"):
            vectorizer.transform("text")
        for lowercase in (True, False):
            with pytest.raises(ValueError, match="row 1: a text must be a str, not bytes"):
                TextVectorizer(lowercase=lowercase).transform(["a", b"b"])
        with pytest.raises(ValueError, match="row 2: a text must be a str, not NoneType"):
            vectorizer.learn(["a", "b", None])
        with pytest.raises(TypeError):
            vectorizer.learn(3)
        assert vectorizer.n_documents == 0
        for bad in ({"title": "x"}, 3):
            with pytest.raises(ValueError, match="a dict with a str under 'text'"):
                vectorizer.transform_one(bad)
        for arguments, message in [
            ({"n_features": 0}, "n_features"),
            ({"names": -1}, "names must be a whole number"),
            ({"ngrams": (2, 1)}, "ngrams"),
            ({"ngrams": (0, 1)}, "ngrams"),
            ({"ngrams": 2}, "ngrams must be a pair"),
            ({"norm": 1}, "norm must be True or False"),
            ({"tf": "odd"}, "unknown tf 'odd'"),
        ]:
            with pytest.raises(ValueError, match=message):
                TextVectorizer(**arguments)

    def test_surrogates_and_long_texts(self):
        assert TextVectorizer().transform(["ab\ud800cd", "word " * 100_000]).nnz == 3

    def test_rows_go_straight_into_scikit_learn(self):
        texts = ["the racket broke", "rates rise", "a racket and a ball", "rates fall"]
        vectorizer = TextVectorizer(n_features=2**10, names=2)
        for X in (vectorizer.learn_transform(texts), vectorizer.transform(texts)):
            assert X.indptr.dtype == X.indices.dtype == np.int32
            assert X.has_canonical_format
            model = SGDClassifier(random_state=0).partial_fit(X, [0, 1, 0, 1], classes=[0, 1])
            assert model.predict(X).tolist() == [0, 1, 0, 1]

    def test_river(self):
        for check in checks.yield_checks(TextVectorizer()):
            check(TextVectorizer())
        taxonomy = Taxonomy([("sport", None), ("tennis", "sport")])
        pipeline = compose.Pipeline(TextVectorizer(), HPerceptron(taxonomy))
        pipeline.learn_one("the racket was broken", {"tennis"})
        assert pipeline.predict_one("a racket") == {"sport": True, "tennis": True}
