import gzip
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc.datasets import Dataset, DatasetError, load
from stream_hc.taxonomy import Taxonomy

Find = Callable[[str], Path]

TAXONOMY = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
TREE = "sport\t\ntennis\tsport\npolitics\t\n"
LINE = '{"id":"1","text":"an ace","labels":["tennis"]}'


def small(n: int = 7, splits: list[str] | None = None) -> Dataset:
    ids = [f"d{k}" for k in range(n)]
    return Dataset(
        "small", TAXONOMY, ids, [f"text {k}" for k in range(n)], [frozenset({"tennis"})] * n, splits
    )


def put(folder: Path, *lines: str, tree: str = TREE) -> Path:
    (folder / "docs.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    (folder / "taxonomy.tsv").write_text(tree, encoding="utf-8")
    return folder


# The data set itself


def test_iterates_over_pairs_for_river() -> None:
    data = small(2)
    assert list(data) == [("text 0", frozenset({"tennis"})), ("text 1", frozenset({"tennis"}))]
    assert len(data) == 2
    assert data.kind == "text"


def test_records_are_json_ready_and_sorted() -> None:
    data = Dataset("f", TAXONOMY, ["a"], [{"x": 1.5}], [frozenset({"tennis", "politics"})], ["train"])
    assert data.kind == "features"
    assert list(data.records()) == [
        {"id": "a", "features": {"x": 1.5}, "labels": ["politics", "tennis"], "split": "train"}
    ]


def test_take_shortens_everything() -> None:
    data = small(5, ["train", "test", "valid", "test", "unused"]).take(2)
    assert (data.ids, data.documents, data.splits) == (["d0", "d1"], ["text 0", "text 1"], ["train", "test"])
    assert len(small(3).take(10)) == 3
    with pytest.raises(DatasetError, match="at least 1"):
        small().take(0)


@pytest.mark.parametrize(
    ("n", "n_train"), [(1, 0), (2, 1), (3, 2), (7, 4), (9, 6), (300, 200), (18846, 12564)]
)
def test_two_thirds_of_the_stream_come_first(n: int, n_train: int) -> None:
    train, test = small(n).train_test(own=False)
    assert train.tolist() == list(range(n_train))
    assert test.tolist() == list(range(n_train, n))


@settings(deadline=None)
@given(n=st.integers(1, 50), fraction=st.floats(0.001, 0.999))
def test_a_split_cuts_the_stream_once(n: int, fraction: float) -> None:
    first, last = small(n).split(fraction)
    assert np.concatenate([first, last]).tolist() == list(range(n))
    assert abs(first.size - n * fraction) <= 1


@pytest.mark.parametrize("fraction", [0, 1, -0.5, math.nan])
def test_a_split_needs_a_proper_fraction(fraction: float) -> None:
    with pytest.raises(DatasetError, match="between 0 and 1"):
        small().split(fraction)


def test_own_split_adds_valid_to_train_and_leaves_others_out() -> None:
    train, test = small(5, ["test", "train", "unused", "valid", "test"]).train_test(own=True)
    assert train.tolist() == [1, 3]
    assert test.tolist() == [0, 4]


@pytest.mark.parametrize(
    ("splits", "message"), [(None, "no split of its own"), (["train"] * 7, "0 to test on")]
)
def test_own_split_must_exist(splits: list[str] | None, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        small(7, splits).train_test(own=True)


def test_unknown_label_names_document_and_label() -> None:
    with pytest.raises(DatasetError, match=r"'b'.*'golf'"):
        Dataset("x", TAXONOMY, ["a", "b"], ["s", "t"], [frozenset({"tennis"}), frozenset({"golf"})])


@pytest.mark.parametrize(
    ("ids", "documents", "labels", "splits", "message"),
    [
        ([], [], [], None, "no documents"),
        (["a"], ["s", "t"], [frozenset()], None, "1 ids but 2 documents"),
        (["a"], ["s"], [], None, "1 ids but 0 labels"),
        (["a"], ["s"], [frozenset()], ["train", "test"], "1 ids but 2 splits"),
        (["a", "b"], ["s", {"x": 1.0}], [frozenset(), frozenset()], None, "'b' is not of the same kind"),
        (["a"], [{"x": math.nan}], [frozenset()], None, "'a' has a feature that is not a finite number"),
    ],
)
def test_inconsistent_parts_are_refused(
    ids: list[str], documents: list[str], labels: list[frozenset[str]], splits: list[str] | None, message: str
) -> None:
    with pytest.raises(DatasetError, match=message):
        Dataset("x", TAXONOMY, ids, documents, labels, splits)


# Writing and reading

any_text = st.text(st.characters(codec="utf-8"), max_size=20)
names = st.lists(
    any_text.filter(lambda s: s.strip() and not s.startswith("\ufeff")), min_size=1, max_size=6, unique=True
)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    nodes = draw(names)
    edges = [(name, draw(st.sampled_from([None, *nodes[:k]]))) for k, name in enumerate(nodes)]
    n = draw(st.integers(1, 5))
    document: Any = draw(st.sampled_from([any_text, st.dictionaries(any_text, numbers, max_size=4)]))
    return Dataset(
        "folder",
        Taxonomy(edges),
        draw(st.lists(any_text, min_size=n, max_size=n)),
        draw(st.lists(document, min_size=n, max_size=n)),
        draw(st.lists(st.frozensets(st.sampled_from(nodes)), min_size=n, max_size=n)),
        draw(
            st.none()
            | st.lists(st.sampled_from(["train", "valid", "test", "unused"]), min_size=n, max_size=n)
        ),
    )


@settings(deadline=None)
@given(data=datasets(), gz=st.booleans())
def test_what_is_written_is_read_back_equal(
    data: Dataset, gz: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("data") / "folder"
    data.write(folder, gz=gz)
    assert load(folder) == data


def test_unicode_quotes_and_line_breaks_survive(tmp_path: Path) -> None:
    text = 'She said "été" \\ \n\t\u2028 emoji \N{TENNIS RACQUET AND BALL} \x00 end'
    tax = Taxonomy([('a "quoted" name', None), ("été\nsecond line", 'a "quoted" name')])
    data = Dataset(tmp_path.name, tax, ["№ 1"], [text], [frozenset({"été\nsecond line"})])
    data.write(tmp_path)
    assert (tmp_path / "taxonomy.json").is_file()
    assert load(tmp_path) == data


def test_gzip_bytes_do_not_depend_on_name_or_time(tmp_path: Path) -> None:
    small().write(tmp_path / "one", gz=True)
    small().write(tmp_path / "two", gz=True)
    first = (tmp_path / "one/docs.jsonl.gz").read_bytes()
    assert first == (tmp_path / "two/docs.jsonl.gz").read_bytes()
    assert first[3:8] == bytes(5)  # no name flag, time 0
    small().write(tmp_path / "one")
    assert (tmp_path / "one/docs.jsonl").read_bytes() == gzip.decompress(first)


def test_writing_replaces_the_other_form(tmp_path: Path) -> None:
    small(7).write(tmp_path)
    small(3).write(tmp_path, gz=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["docs.jsonl.gz", "taxonomy.tsv"]
    assert len(load(tmp_path)) == 3


def test_limit_stops_before_later_mistakes(tmp_path: Path) -> None:
    folder = put(tmp_path, LINE, LINE, "broken")
    assert len(load(folder, limit=2)) == 2
    with pytest.raises(DatasetError, match="limit is 0"):
        load(folder, limit=0)


def test_other_fields_and_blank_lines_are_ignored(tmp_path: Path) -> None:
    data = load(
        put(tmp_path, "", '{"id":"1","date":3,"features":{"x":1},"labels":[],"more":{"a":[null]}}', "  ")
    )
    assert data.documents == [{"x": 1.0}]
    assert data.labels == [frozenset()]
    assert data.splits is None
    assert data.name == tmp_path.name


GOOD = '{"id":"1","features":{"x":1.5},"labels":[]}'


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{", "truncated"),
        ("[1]", "Expected `object`"),
        ('{"id":"2","labels":[]}', 'give "text" or "features", found neither'),
        ('{"id":"2","labels":[],"text":"a","features":{}}', 'give "text" or "features", found both'),
        ('{"id":"2","labels":[],"text":"a"}', "texts and features in one file"),
        ('{"id":"2","features":{"x":1}}', "`labels`"),
        ('{"id":2,"features":{"x":1},"labels":[]}', "`str`"),
        ('{"id":"2","features":{"x":"1"},"labels":[]}', "`float`"),
        ('{"id":"2","features":{"x":true},"labels":[]}', "`float`"),
        ('{"id":"2","features":{"x":NaN},"labels":[]}', "without NaN or infinity"),
        ('{"id":"2","features":{"x":1e999},"labels":[]}', "out of range"),
        ('{"id":"2","features":{"x":1},"labels":["golf"]}', "unknown label 'golf'"),
        ('{"id":"2","deep":' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_line_is_named(bad: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError) as caught:
        load(put(tmp_path, GOOD, "", bad))
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'docs.jsonl'}, line 3: ")
    assert message in text
    assert "\n" not in text


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    put(tmp_path)
    (tmp_path / "docs.jsonl").write_bytes(b'{"id":"1","text":"\xff","labels":[]}')
    with pytest.raises(DatasetError, match="line 1: not UTF-8"):
        load(tmp_path)


def test_missing_and_ambiguous_files(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"no such folder.*docs\.jsonl"):
        load(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match=r"docs\.jsonl or docs\.jsonl\.gz is missing"):
        load(tmp_path)
    put(tmp_path)
    with pytest.raises(DatasetError, match=r"docs\.jsonl: the file is empty"):
        load(tmp_path)
    (tmp_path / "docs.jsonl.gz").write_bytes(b"")
    with pytest.raises(DatasetError, match="keep only the right one"):
        load(tmp_path)
    (tmp_path / "docs.jsonl.gz").unlink()
    (tmp_path / "taxonomy.tsv").unlink()
    with pytest.raises(DatasetError, match=r"taxonomy\.tsv or taxonomy\.json is missing"):
        load(tmp_path)


@pytest.mark.parametrize("damage", ["truncated", "not gzip", "broken"])
def test_a_damaged_gzip_file_is_named(damage: str, tmp_path: Path) -> None:
    small(500).write(tmp_path, gz=True)
    path = tmp_path / "docs.jsonl.gz"
    whole = path.read_bytes()
    content = {"truncated": whole[:-20], "not gzip": b"plain", "broken": whole[:12] + bytes(20) + whole[32:]}
    path.write_bytes(content[damage])
    with pytest.raises(DatasetError, match=r"docs\.jsonl\.gz"):
        load(tmp_path)


def test_a_bad_taxonomy_is_a_data_set_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"taxonomy\.tsv.*'golf'"):
        load(put(tmp_path, LINE, tree="tennis\tgolf\n"))


# Real data


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "kind", "n", "n_nodes", "n_train", "n_test"),
    [
        ("rcv1_k500", "features", 6_000, 103, 3_000, 3_000),
        ("rcv1_text", "text", 1_316, 103, None, None),
        ("reuters21578", "text", 11_367, 141, 7_775, 3_019),
        ("arxiv_2025", "text", 15_158, 138, None, None),
        ("newsgroups20", "text", 18_846, 38, 11_314, 7_532),
        ("inpi_patents", "text", 51_235, 6_101, None, None),
        ("inpi_patents_d", "text", 5_970, 1_853, None, None),
        ("cf_mesh", "text", 1_234, 3_591, None, None),
        ("ec_proteins", "text", 7_757, 3_007, None, None),
        ("enron_corr", "features", 1_648, 56, 988, 660),
        ("yeast_cellcycle_fun", "features", 3_757, 499, 2_476, 1_281),
        ("yeast_cellcycle_go", "features", 3_751, 4_125, 2_473, 1_278),
    ],
)
def test_real_data_sets_load(
    name: str, kind: str, n: int, n_nodes: int, n_train: int | None, n_test: int | None, real_data: Find
) -> None:
    data = load(real_data(name))
    assert (data.name, data.kind, len(data), len(data.taxonomy)) == (name, kind, n, n_nodes)
    if n_train is None:
        assert data.splits is None
    else:
        train, test = data.train_test(own=True)
        assert (train.size, test.size) == (n_train, n_test)


@pytest.mark.realdata
def test_newsgroups_load_fast(real_data: Find) -> None:
    folder = real_data("newsgroups20")
    times = []
    for _ in range(3):
        start = time.process_time()
        load(folder)
        times.append(time.process_time() - start)
    assert min(times) < 1.5


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["enron_corr", "rcv1_text"])
def test_real_data_survives_a_round_trip(name: str, tmp_path: Path, real_data: Find) -> None:
    data = load(real_data(name))
    data.write(tmp_path / name, gz=True)
    assert load(tmp_path / name) == data
    lines = gzip.decompress((tmp_path / name / "docs.jsonl.gz").read_bytes()).splitlines()
    assert [msgspec.json.decode(line)["id"] for line in lines] == data.ids
