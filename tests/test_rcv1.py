import gzip
from pathlib import Path

import pytest

from stream_hc.datasets import DatasetError, load_rcv1

HIERARCHY = """\
parent: None   child: Root   child-description: Root
parent: Root   child: CCAT   child-description: CORPORATE/INDUSTRIAL
parent: CCAT   child: C15    child-description: PERFORMANCE
parent: C15    child: C151   child-description: ACCOUNTS/EARNINGS
parent: Root   child: ECAT   child-description: ECONOMICS
parent: Root   child: GCAT   child-description: GOVERNMENT/SOCIAL
parent: Root   child: MCAT   child-description: MARKETS
"""
TRAIN = "2286  864:0.0497399253756197 1523:0.044664135988103\n2287  937:0.1 864:0.05\n"
TEST = "26151  47219:0.25\n"
QRELS = "CCAT 2286 1\nC15 2286 1\nC151 2286 1\nECAT 2287 1\nGCAT 2287 1\nMCAT 26151 1\nUNUSED 99999 1\n"

VECTORS = ("lyrl2004_vectors_train.dat", "lyrl2004_vectors_test_pt0.dat")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rcv1.topics.hier.orig").write_text(HIERARCHY)
    (tmp_path / "rcv1-v2.topics.qrels").write_text(QRELS)
    (tmp_path / VECTORS[0]).write_text(TRAIN)
    (tmp_path / VECTORS[1]).write_text(TEST)
    return tmp_path


def test_reads_documents_topics_and_hierarchy(folder: Path) -> None:
    data = load_rcv1(folder, VECTORS)
    assert data.ids == ["2286", "2287", "26151"]
    assert data.documents == [
        {"864": 0.0497399253756197, "1523": 0.044664135988103},
        {"937": 0.1, "864": 0.05},
        {"47219": 0.25},
    ]
    assert data.labels == [
        frozenset({"CCAT", "C15", "C151"}),
        frozenset({"ECAT", "GCAT"}),
        frozenset({"MCAT"}),
    ]
    assert data.splits == ["train", "train", "test"]
    assert [rows.tolist() for rows in data.train_test(own=True)] == [[0, 1], [2]]


def test_the_children_of_root_become_roots(folder: Path) -> None:
    taxonomy = load_rcv1(folder).taxonomy
    assert "Root" not in taxonomy
    assert [taxonomy.nodes[root] for root in taxonomy.roots] == ["CCAT", "ECAT", "GCAT", "MCAT"]
    assert taxonomy.close({"C151"}) == {"CCAT", "C15", "C151"}


def test_by_default_the_training_file_alone(folder: Path) -> None:
    assert load_rcv1(folder).ids == ["2286", "2287"]


def test_limit_counts_over_all_files(folder: Path) -> None:
    assert load_rcv1(folder, VECTORS, limit=1).ids == ["2286"]
    assert load_rcv1(folder, VECTORS, limit=3).ids == ["2286", "2287", "26151"]
    with pytest.raises(DatasetError, match="limit is -1"):
        load_rcv1(folder, limit=-1)


def test_gzip_files_give_the_same(folder: Path) -> None:
    plain = load_rcv1(folder, VECTORS)
    for path in list(folder.iterdir()):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert load_rcv1(folder, VECTORS) == plain


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (VECTORS[0], TRAIN + "2288 864\n", "line 3: expected term:weight, found '864'"),
        (VECTORS[0], TRAIN + "2288 864:much\n", "line 3: expected term:weight, found '864:much'"),
        (
            VECTORS[0],
            TRAIN + "2288 864:nan\n",
            "line 3: document 2288 has a weight that is not a finite number",
        ),
        (
            VECTORS[0],
            TRAIN + "2288 864:1 864:2\n",
            "line 3: document 2288 has a term twice or without a number",
        ),
        (VECTORS[0], TRAIN + "2288 :1\n", "line 3: document 2288 has a term twice or without a number"),
        (
            VECTORS[0],
            "864:1 2286\n",
            "line 1: expected a document number and term:weight pairs, found '864:1'",
        ),
        (VECTORS[0], TRAIN + "\n2286 1:1\n", "line 4: document 2286 comes a second time"),
        (VECTORS[0], "", "no documents in lyrl2004_vectors_train.dat"),
        ("rcv1-v2.topics.qrels", "CCAT 2286\n", "line 1: expected topic, document number and 1"),
        ("rcv1-v2.topics.qrels", "CCAT 2286 0\n", "line 1: expected topic, document number and 1"),
        (
            "rcv1-v2.topics.qrels",
            "CCAT 2286 1\nXCAT 2287 1\n",
            "line 2: topic 'XCAT' is not in rcv1.topics.hier",
        ),
        ("rcv1-v2.topics.qrels", "CCAT 2286 1\n", "document 2287 has no topic"),
        ("rcv1.topics.hier.orig", HIERARCHY + "CCAT C15\n", "line 8: expected parent: P child: C"),
        ("rcv1.topics.hier.orig", "parent: C15 child: C151\n", "'C15'"),
    ],
)
def test_mistakes_are_named_in_one_line(folder: Path, name: str, content: str, message: str) -> None:
    (folder / name).write_text(content)
    with pytest.raises(DatasetError) as caught:
        load_rcv1(folder)
    text = str(caught.value)
    assert message in text
    assert name in text
    assert "\n" not in text


def test_missing_files_are_named(folder: Path) -> None:
    with pytest.raises(DatasetError, match=r"lyrl2004_vectors_test_pt1\.dat or .*\.gz is missing"):
        load_rcv1(folder, ["lyrl2004_vectors_test_pt1.dat"])
    with pytest.raises(DatasetError, match="no such folder"):
        load_rcv1(folder / "nowhere")


@pytest.mark.parametrize("vectors", ["lyrl2004_vectors_train.dat", ()])
def test_vectors_is_a_list_of_names(folder: Path, vectors: tuple[str, ...]) -> None:
    with pytest.raises(DatasetError, match="give a list of file names"):
        load_rcv1(folder, vectors)
