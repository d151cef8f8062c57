"""Parts of a snapshot as a snapshot of their own."""

import pytest

from stream_hc import HRLS, NodePA, Taxonomy, TextVectorizer
from stream_hc.snapshot import SnapshotError, copy_parts, dump_bytes, load_bytes, save

TREE = Taxonomy([("a", None), ("b", "a")])


@pytest.fixture
def parts(tmp_path):
    one, other = NodePA(TREE, n_features=32), HRLS(TREE, n_features=32)
    for model in (one, other):
        model.learn_one({3: 1.0, 5: 2.0}, {"b"})
    vectorizer = TextVectorizer(n_features=32)
    vectorizer.learn(["some words"])
    made = {"one": one, "other": other, "vectorizer": vectorizer}
    save(tmp_path / "all.snap", made, extra={"place": 7})
    return made


@pytest.mark.parametrize(
    "names",
    [
        {"one": "one"},
        {"other": "model", "vectorizer": "a"},
        {"one": "z", "other": "b", "vectorizer": "vectorizer"},
    ],
)
def test_they_are_what_saving_them_alone_gives(parts, tmp_path, names):
    copied = copy_parts(tmp_path / "all.snap", names)
    assert copied == dump_bytes({new: parts[old] for old, new in names.items()})
    assert sorted(load_bytes(copied)) == sorted(names.values())


def test_what_is_damaged_is_found_by_who_loads_it(parts, tmp_path):
    path = tmp_path / "all.snap"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # in the last array: that of the vectorizer
    path.write_bytes(data)
    assert load_bytes(copy_parts(path, {"one": "one"}))
    with pytest.raises(SnapshotError):
        load_bytes(copy_parts(path, {"vectorizer": "vectorizer"}))
    data[30] ^= 1  # in the header
    path.write_bytes(data)
    with pytest.raises(SnapshotError, match=r"all\.snap"):
        copy_parts(path, {"one": "one"})


def test_what_is_not_there(parts, tmp_path):
    with pytest.raises(SnapshotError, match="there is no part 'two'"):
        copy_parts(tmp_path / "all.snap", {"one": "one", "two": "two"})
    with pytest.raises(SnapshotError, match="cannot read"):
        copy_parts(tmp_path / "none.snap", {"one": "one"})
