import copy
import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from stream_hc import Taxonomy
from stream_hc.taxonomy import TaxonomyError, find_problems, truncate_rows
from tests import naive
from tests.strategies import dags, forests, label_sets

NEWS = Taxonomy(
    [("tennis", "sport"), ("sport", None), ("football", "sport"), ("politics", None), ("cup", "football")]
)
DIAMOND = Taxonomy(
    [("top", None), ("left", "top"), ("right", "top"), ("bottom", "left"), ("bottom", "right")]
)


def parent_lists(taxonomy):
    return [taxonomy.parents(node).tolist() for node in range(len(taxonomy))]


def columns(taxonomy, names):
    return {taxonomy.index(name) for name in names}


class TestShape:
    @given(st.one_of(forests(), dags()))
    def test_parents_come_before_children(self, taxonomy):
        for node, above in enumerate(parent_lists(taxonomy)):
            assert all(parent < node for parent in above)

    @given(forests())
    def test_siblings_are_neighbours(self, taxonomy):
        for siblings in [taxonomy.roots, *(taxonomy.children(node) for node in range(len(taxonomy)))]:
            assert siblings.tolist() == list(range(siblings[0], siblings[-1] + 1)) if siblings.size else True
        assert taxonomy.is_tree

    def test_worked_by_hand(self):
        assert NEWS.nodes == ("sport", "politics", "tennis", "football", "cup")
        assert NEWS.parent.tolist() == [-1, -1, 0, 0, 3]
        assert NEWS.parent.dtype == np.int32
        assert NEWS.depth.tolist() == [0, 0, 1, 1, 2]
        assert NEWS.roots.tolist() == [0, 1]
        assert NEWS.leaves.tolist() == [1, 2, 4]
        assert NEWS.children(0).tolist() == [2, 3]
        assert NEWS.ancestors("cup").tolist() == [0, 3]
        assert NEWS.subtree("sport").tolist() == [0, 2, 3, 4]
        assert NEWS.subtree(4).tolist() == [4]

    def test_diamond(self):
        assert not DIAMOND.is_tree
        assert DIAMOND.parents("bottom").tolist() == [1, 2]
        assert DIAMOND.ancestors("bottom").tolist() == [0, 1, 2]
        assert DIAMOND.depth.tolist() == [0, 1, 1, 2]
        with pytest.raises(ValueError, match=r"use parents\(node\)"):
            _ = DIAMOND.parent

    @given(st.one_of(forests(), dags()))
    def test_relations_equal_the_slow_ones(self, taxonomy):
        parents = parent_lists(taxonomy)
        for node in range(len(taxonomy)):
            above = naive.ancestors(node, parents)
            assert set(taxonomy.ancestors(node).tolist()) == above
            assert all(node in taxonomy.subtree(a) for a in above)
            assert taxonomy.depth[node] == 1 + max((taxonomy.depth[p] for p in parents[node]), default=-1)
            assert set(taxonomy.children(node).tolist()) == {c for c, up in enumerate(parents) if node in up}

    def test_flat(self):
        names = ["b", "a", "ß 漢字"]
        flat = Taxonomy.flat(names)
        built = Taxonomy([(name, None) for name in names])
        assert flat == built
        assert repr(flat) == repr(built)
        assert (
            flat.encode([{"a"}, set()]).toarray().tolist() == built.encode([{"a"}, set()]).toarray().tolist()
        )
        assert flat.depth.tolist() == [0, 0, 0]
        assert not flat.parent_ptr.flags.writeable
        for bad in (["a", "a"], ["a", ""], ["a", 3], [["a"]]):
            with pytest.raises(TaxonomyError, match=r"'a'|empty|str"):
                Taxonomy.flat(bad)

    def test_empty(self):
        empty = Taxonomy([])
        assert len(empty) == 0
        assert empty.encode([set()]).shape == (1, 0)
        assert empty.draw() == ""
        assert empty.costs("normalized").shape == (0,)

    def test_edge_pairs_may_be_lists(self):
        assert Taxonomy([["a", None], ["b", "a"]]).nodes == ("a", "b")


class TestValue:
    @given(st.one_of(forests(), dags()))
    def test_round_trips(self, taxonomy):
        for copied in [
            Taxonomy(taxonomy.edges),
            Taxonomy.from_json(taxonomy.to_json()),
            pickle.loads(pickle.dumps(taxonomy)),
            copy.deepcopy(taxonomy),
        ]:
            assert copied == taxonomy
            assert copied.nodes == taxonomy.nodes
            assert hash(copied) == hash(taxonomy)
            assert repr(copied) == repr(taxonomy)

    def test_edges_in_any_order_are_the_same_dag(self):
        assert Taxonomy(DIAMOND.edges[:-2] + DIAMOND.edges[:-3:-1]) == DIAMOND

    def test_repr_is_deterministic_and_says_what_it_is(self):
        assert repr(NEWS).startswith("Taxonomy(forest, 5 nodes, 2 roots, 3 levels, ")
        assert repr(DIAMOND).startswith("Taxonomy(DAG, 4 nodes, 1 roots, 3 levels, ")
        assert "0x" not in repr(NEWS)

    def test_differs(self):
        assert Taxonomy([("a", None), ("b", None)]) != Taxonomy([("a", None), ("b", "a")])
        assert Taxonomy([("a", None)]) != "a"

    def test_is_immutable(self):
        with pytest.raises(AttributeError, match="does not change"):
            NEWS.nodes = ()
        with pytest.raises(AttributeError, match="does not change"):
            del NEWS.nodes
        for array in (NEWS.parent, NEWS.depth, NEWS.parent_idx, NEWS.child_ptr, NEWS.children(0), NEWS.roots):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0

        with pytest.raises(TypeError, match="does not support item assignment"):
            NEWS.column_of["golf"] = 9

    def test_numpy_names_become_plain(self):
        assert [type(name) for name in Taxonomy([(np.str_("a"), None)]).nodes] == [str]

    def test_contains_and_iterates(self):
        assert "cup" in NEWS
        assert "golf" not in NEWS
        assert list(NEWS) == list(NEWS.nodes)


class TestErrors:
    @pytest.mark.parametrize(
        ("edges", "message"),
        [
            ([("a", "b"), ("b", "a")], "cycle: 'a' -> 'b' -> 'a'"),
            ([("a", "a")], "cycle: 'a' -> 'a'"),
            ([("r", None), ("a", "b"), ("b", "c"), ("c", "a"), ("a", "r")], "cycle"),
            ([("a", None), ("a", None)], "'a' is listed 2 times as a root"),
            ([("r", None), ("a", "r"), ("a", "r")], "'a' is listed 2 times under 'r'"),
            ([("r", None), ("a", "r"), ("a", None)], "'a' is listed as a root and under 'r'"),
            ([("a", "ghost")], "unknown parent 'ghost'"),
            ([("", None)], "must not be empty"),
            ([("  ", None)], "must not be empty"),
            ([("a", "")], "must not be empty"),
            ([(7, None)], "must be a str, not int"),
            ([("a", None), ("b", 7)], "must be a str, not int"),
            ([("a", None, "x")], "not a pair"),
            (["ab"], "not a pair"),
            ([(["a"], None)], "must be a str, not list"),
            ([("\ud800", None)], "valid Unicode"),
            ([("a", "x"), ("b", "y")], "and 1 more problem"),
            ([("a", ["x"])], "must be a str, not list"),
            (np.array([["a", "b"], ["b", "c"]]), "unknown parent 'c'"),
        ],
    )
    def test_bad_edges_are_named(self, edges, message):
        with pytest.raises(ValueError, match=message.replace("(", r"\(")):
            Taxonomy(edges)

    def test_all_problems_are_found(self):
        problems = find_problems([("a", "x"), ("b", "y"), ("c", None), ("c", None), ("d", "d")])
        assert len(problems) == 4
        assert find_problems(NEWS.edges) == []

    def test_unknown_labels_are_named_with_a_guess(self):
        for call in (NEWS.close, NEWS.truncate, NEWS.respects, NEWS.most_specific, NEWS.columns):
            with pytest.raises(TaxonomyError, match=r"'tenis'.*did you mean 'tennis'"):
                call({"tenis"})
        with pytest.raises(TaxonomyError, match="'golf'"):
            NEWS.close({"golf": False})
        with pytest.raises(TaxonomyError, match="row 1: unknown label 'golf'"):
            NEWS.encode([{"tennis"}, {"golf"}])
        with pytest.raises(TaxonomyError, match="'golf'"):
            NEWS.close(name for name in ["tennis", "golf"])
        with pytest.raises(TaxonomyError, match="unknown label 7"):
            NEWS.close([7])
        with pytest.raises(TaxonomyError, match="unknown label"):
            NEWS.close([["tennis"]])

    @pytest.mark.parametrize("labels", ["tennis", b"tennis", 3, None, np.array("tennis")])
    def test_labels_of_a_wrong_kind(self, labels):
        with pytest.raises(TaxonomyError, match="must be a set, a list or a dict"):
            NEWS.close(labels)

    def test_nodes_that_do_not_exist(self):
        with pytest.raises(TaxonomyError, match="node must be a whole number from 0 to 4, not 5"):
            NEWS.children(5)
        with pytest.raises(TaxonomyError, match="unknown label 'golf'"):
            NEWS.ancestors("golf")
        with pytest.raises(TaxonomyError, match="unknown label"):
            NEWS.index(["golf"])

    def test_damaged_or_odd_label_rows(self):
        for column in (10**9, 5, -3):
            damaged = NEWS.encode([{"sport"}])
            damaged.indices = np.array([column], np.int32)
            with pytest.raises(TaxonomyError, match="damaged"):
                NEWS.label_rows(damaged, close=True)
        for value in (np.nan, -1.0, 2.0):
            rows = np.zeros((3, 5))
            rows[1, 2] = value
            with pytest.raises(TaxonomyError, match="row 1: a label is"):
                NEWS.label_rows(rows)
        with pytest.raises(TaxonomyError, match="expected 0 and 1"):
            NEWS.label_rows(np.ones((1, 5), complex))

    def test_label_rows_of_a_wrong_shape(self):
        with pytest.raises(TaxonomyError, match=r"\(2, 4\) do not fit 5 nodes"):
            NEWS.decode(np.zeros((2, 4)))
        with pytest.raises(TaxonomyError, match="do not fit"):
            NEWS.decode(np.zeros(5))
        for wrong in ("tennis", None, {"tennis": True}):
            with pytest.raises(TaxonomyError, match="list of label sets"):
                NEWS.encode(wrong)


class TestLabels:
    @given(st.data())
    def test_closing_and_cutting_equal_the_slow_ones(self, data):
        taxonomy = data.draw(st.one_of(forests(), dags()))
        sets = data.draw(st.lists(label_sets(taxonomy), max_size=5))
        parents = parent_lists(taxonomy)
        given_columns = [columns(taxonomy, labels) for labels in sets]
        closed = naive.close_rows(given_columns, parents)
        cut = naive.truncate_rows(given_columns, parents)
        assert [columns(taxonomy, taxonomy.close(labels)) for labels in sets] == closed
        assert [columns(taxonomy, taxonomy.truncate(labels)) for labels in sets] == cut
        Y = taxonomy.encode(sets)
        assert Y.dtype == np.bool_
        assert Y.shape == (len(sets), len(taxonomy))
        assert [columns(taxonomy, labels) for labels in taxonomy.decode(Y)] == closed
        as_given = taxonomy.label_rows(sets)
        assert [columns(taxonomy, s) for s in taxonomy.decode(truncate_rows(taxonomy, as_given))] == cut
        for labels, whole in zip(sets, closed, strict=True):
            assert taxonomy.respects(labels) == (columns(taxonomy, labels) == whole)
            ends = columns(taxonomy, taxonomy.most_specific(taxonomy.close(labels)))
            assert naive.close_rows([ends], parents)[0] == whole

    def test_forms_of_labels(self):
        wanted = {"sport", "football", "cup"}
        for labels in ({"cup"}, ["cup", "cup"], ("cup",), frozenset({"cup"}), {"cup": True, "tennis": False}):
            assert NEWS.close(labels) == wanted
        assert NEWS.close(iter(["cup"])) == wanted

    def test_rows_in_many_forms_become_one(self):
        Y = NEWS.encode([{"cup"}, set()])
        doubled = coo_array(([True, True, True], ([0, 0, 0], [4, 4, 2])), shape=(1, 5))
        stored_zero = csr_array((np.array([True, False]), [4, 2], [0, 2]), shape=(1, 5))
        assert NEWS.decode(Y.toarray()) == [NEWS.close({"cup"}), set()]
        assert NEWS.decode(Y.toarray().astype(float)) == NEWS.decode(Y)
        assert NEWS.decode(doubled) == [{"cup", "tennis"}]
        assert NEWS.decode(stored_zero) == [{"cup"}]
        assert NEWS.decode(NEWS.label_rows(stored_zero, close=True)) == [NEWS.close({"cup"})]
        assert stored_zero.nnz == 2, "the caller's rows must not change"
        assert NEWS.decode(NEWS.label_rows({"cup"})) == [{"cup"}]


class TestCosts:
    def test_worked_by_hand(self):
        assert NEWS.costs("uniform").tolist() == [1, 1, 1, 1, 1]
        assert NEWS.costs("normalized").tolist() == [0.5, 0.5, 0.25, 0.25, 0.25]
        assert NEWS.costs("sibling").tolist() == [1, 1, 0.5, 0.5, 0.5]
        assert NEWS.costs("subtree").tolist() == [1, 1, 0.25, 0.5, 0.25]
        assert NEWS.costs([1, 2, 3, 4, 5]).dtype == np.float64

    @given(forests())
    def test_equal_the_formulas(self, taxonomy):
        normalized, sibling = taxonomy.costs("normalized"), taxonomy.costs("sibling")
        subtree = taxonomy.costs("subtree")
        for node in range(len(taxonomy)):
            up = taxonomy.parent[node]
            if up < 0:
                assert normalized[node] == 1 / taxonomy.roots.size
                assert sibling[node] == subtree[node] == 1
            else:
                assert normalized[node] == normalized[up] / taxonomy.children(up).size
                assert sibling[node] == sibling[up] / taxonomy.children(up).size
                root = next(a for a in taxonomy.ancestors(node) if taxonomy.parent[a] < 0)
                assert subtree[node] == taxonomy.subtree(node).size / taxonomy.subtree(root).size

    def test_errors(self):
        for scheme in ("normalized", "sibling", "subtree"):
            with pytest.raises(ValueError, match="forests only"):
                DIAMOND.costs(scheme)
        assert DIAMOND.costs("uniform").tolist() == [1, 1, 1, 1]
        with pytest.raises(ValueError, match="unknown costs 'free'"):
            NEWS.costs("free")
        with pytest.raises(ValueError, match="do not fit 5 nodes"):
            NEWS.costs([1, 2])
        for bad in (0, -1, np.nan, np.inf):
            with pytest.raises(ValueError, match="cost of 'cup'"):
                NEWS.costs([1, 1, 1, 1, bad])


class TestFiles:
    @pytest.mark.parametrize("name", ["t.tsv", "t.json"])
    @pytest.mark.parametrize("taxonomy", [NEWS, DIAMOND, Taxonomy([("ß 漢字 🙂 'x'", None)])])
    def test_round_trip(self, tmp_path, name, taxonomy):
        taxonomy.write(tmp_path / name)
        assert Taxonomy.read(tmp_path / name) == taxonomy
        first = (tmp_path / name).read_bytes()
        taxonomy.write(tmp_path / name)
        assert (tmp_path / name).read_bytes() == first

    def test_tsv_as_people_save_it(self, tmp_path):
        (tmp_path / "t.tsv").write_bytes(b"\xef\xbb\xbfsport\t\r\n\r\ntennis\tsport\r\npolitics")
        assert Taxonomy.read(tmp_path / "t.tsv").nodes == ("sport", "politics", "tennis")

    def test_names_a_tsv_file_cannot_hold(self, tmp_path):
        odd = Taxonomy([("a\tb", None), ("c\nd", "a\tb")])
        with pytest.raises(ValueError, match=r"write a \.json file"):
            odd.write(tmp_path / "t.tsv")
        assert not (tmp_path / "t.tsv").exists()
        odd.write(tmp_path / "t.json")
        assert Taxonomy.read(tmp_path / "t.json") == odd
        with pytest.raises(ValueError, match=r"write a \.json file"):
            Taxonomy([("\ufeffa", None)]).write(tmp_path / "t.tsv")

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("t.tsv", b"a\t\nb\ta\tc\n", "t.tsv, line 2: expected child<TAB>parent"),
            ("t.tsv", b"a\t\n\tb\n", "line 2"),
            ("t.tsv", b"a\t\n\xff\ta\n", "line 2: not UTF-8"),
            ("t.tsv", b"a\tb\n", "t.tsv: node 'a' has the unknown parent 'b'"),
            ("t.json", b"[]", "t.json: expected a taxonomy as"),
            ("t.json", b'{"nodes": [{"name": 1}]}', "t.json: expected a taxonomy as"),
            ("t.json", b"\xff", "t.json"),
            ("t.json", b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b', "nodes": []}', "t.json"),
        ],
    )
    def test_bad_files_are_named(self, tmp_path, name, content, message):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TaxonomyError, match=message):
            Taxonomy.read(tmp_path / name)

    def test_missing_file(self, tmp_path):
        with pytest.raises(TaxonomyError, match=r"none\.tsv: cannot read the taxonomy"):
            Taxonomy.read(tmp_path / "none.tsv")

    def test_from_paths(self):
        taxonomy = Taxonomy.from_paths(["a/b/c", "a/d", "e", "a/b/c"])
        assert taxonomy.nodes == ("a", "e", "a/b", "a/d", "a/b/c")
        assert Taxonomy.from_paths(["x > y"], separator=" > ").nodes == ("x", "x > y")
        with pytest.raises(ValueError, match="a path must be a str, not 1"):
            Taxonomy.from_paths([1])
        for bad in ("a//b", "/a", "a/", ""):
            with pytest.raises(ValueError, match="empty part"):
                Taxonomy.from_paths([bad])


class TestDrawing:
    def test_forest(self):
        assert NEWS.draw().splitlines() == ["sport", "├── tennis", "└── football", "    └── cup", "politics"]
        assert NEWS.draw(max_depth=1).splitlines()[2] == "└── football … 1 more"

    def test_dag_draws_what_is_below_once(self):
        below = Taxonomy([*DIAMOND.edges, ("deep", "bottom")])
        assert below.draw().count("deep") == 1
        assert "bottom (see above)" in below.draw()

    def test_control_characters_do_not_reach_the_terminal(self):
        assert Taxonomy([("a\x1b[31m", None)]).draw() == r"a\x1b[31m"


@pytest.mark.compiled
@pytest.mark.parametrize("parent_of", [lambda i: (i - 1) // 10, lambda i: i - 1, lambda i: 0])
def test_a_hundred_thousand_nodes_in_under_two_seconds(tmp_path, parent_of):
    edges = [(f"node {i}", None if i == 0 else f"node {parent_of(i)}") for i in range(100_000)]
    seconds = []
    for _ in range(2):  # the best of two: the machine may be busy
        start = time.process_time()
        taxonomy = Taxonomy(edges)
        built = time.process_time() - start
        taxonomy.write(tmp_path / "large.tsv")
        start = time.process_time()
        assert Taxonomy.read(tmp_path / "large.tsv") == taxonomy
        seconds.append(max(built, time.process_time() - start))
    assert min(seconds) < 2
    Y = taxonomy.encode([{"node 99999"}] * 3)
    assert Y.nnz == 3 * (taxonomy.ancestors("node 99999").size + 1)
