"""The kernels around stored documents give what their twins give, and both ways to multiply the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc.kernels import documents as kernels
from stream_hc.kernels import rls
from stream_hc.learners.documents import DocumentStore
from stream_hc.learners.segments import Segments
from stream_hc.vectorize import feature_rows
from tests import naive_rls
from tests.strategies import N_FEATURES, dags, documents, forests, to_rows

some_documents = st.lists(documents, max_size=6)


def rows_of(xs):
    return feature_rows(to_rows(xs), N_FEATURES)


@given(some_documents)
def test_square_rows(xs):
    squares = np.empty(len(xs))
    rows = rows_of(xs)
    kernels.square_rows(rows.indptr, rows.values, squares)
    assert squares.tolist() == naive_rls.square_rows(xs)


@given(some_documents, some_documents)
def test_products(stored, xs):
    docs, rows = rows_of(stored), rows_of(xs)
    expected = naive_rls.multiply_rows(stored, xs)
    lookup = np.zeros(N_FEATURES, np.int32)
    walked, indexed = (np.full((len(xs), len(stored)), np.nan) for _ in range(2))
    kernels.multiply_rows(*docs, 0, len(stored), *rows, 0, len(xs), lookup, walked)
    assert walked.tolist() == expected
    assert not lookup.any()
    place = np.zeros(N_FEATURES, np.int32)
    kernels.index_documents(*rows, len(xs), np.zeros(0, np.int32), place)  # an older one, forgotten again
    older = np.unique(rows.indices)
    found, ends, members, entries = kernels.index_documents(*docs, len(stored), older, place)
    index = naive_rls.index_documents(stored)
    lists = {
        feature: list(zip(members[a:b].tolist(), entries[a:b].tolist(), strict=True))
        for feature, a, b in zip(found.tolist(), ends[:-1], ends[1:], strict=True)
    }
    assert lists == index
    kernels.multiply_indexed(place, ends, members, entries, len(stored), *rows, 0, len(xs), indexed)
    assert indexed.tolist() == naive_rls.multiply_indexed(index, len(stored), xs) == expected


@given(st.data())
def test_keep_used(data):
    n_documents = data.draw(st.integers(0, 8))
    first = data.draw(st.integers(0, n_documents))
    numbers = st.integers(0, n_documents - 1) if n_documents else st.nothing()
    lists = [sorted(one) for one in data.draw(st.lists(st.sets(numbers), min_size=1, max_size=4))]
    sizes = np.array([len(one) for one in lists], np.int64)
    ids = np.array([i for one in lists for i in one], np.int32)
    used = np.empty(n_documents - first, np.bool_)
    n_used = kernels.keep_used(np.cumsum(sizes) - sizes, sizes, ids, first, used)
    expected, expected_used = naive_rls.keep_used(lists, first, n_documents)
    assert used.tolist() == expected_used
    assert n_used == sum(expected_used)
    assert ids.tolist() == [i for one in expected for i in one]


@given(st.lists(st.integers(0, 5), max_size=5))
def test_move_segments(sizes):
    source = np.arange(sum(sizes) + 3)
    lengths = np.array(sizes, np.int64)
    begin, to = np.cumsum(lengths) - lengths, np.cumsum(lengths[::-1])[::-1] - lengths
    target = np.full(source.size, -1)
    kernels.move_segments(source, begin, lengths, target, to)
    assert target.tolist() == naive_rls.move_segments(
        source.tolist(), begin.tolist(), sizes, [-1] * source.size, to.tolist()
    )


@pytest.mark.parametrize("needs_all", [False, True])
@given(data=st.data())
def test_count_eligible(needs_all, data):
    taxonomy = data.draw(st.one_of(forests(), dags()))
    label_rows = data.draw(st.lists(st.sets(st.sampled_from(taxonomy.nodes), max_size=4), max_size=5))
    graph = rls.Graph(taxonomy.parent_ptr, taxonomy.parent_idx, needs_all)
    y_true = taxonomy.encode(label_rows).toarray()
    parents = [taxonomy.parents(node).tolist() for node in range(len(taxonomy))]
    columns = [set(taxonomy.columns(labels)) for labels in label_rows]
    assert rls.count_eligible(graph, y_true).tolist() == naive_rls.count_eligible(parents, columns, needs_all)


@given(st.lists(st.tuples(some_documents, st.integers(0, 2**6 - 1)), max_size=8), some_documents)
def test_a_store_multiplies_by_what_it_keeps(rounds, xs):
    """Documents come, some go again, wherever they are; the index follows."""
    store, kept, stamps, n_seen = DocumentStore(N_FEATURES), [], [], 0
    for number, (new, mask) in enumerate(rounds):
        first = len(kept) if number % 2 else 0
        store.add(rows_of(new), 0, len(new), np.arange(n_seen, n_seen + len(new)))
        kept += new
        stamps += range(n_seen, n_seen + len(new))
        n_seen += len(new)
        used = np.array([bool(mask >> (i % 6) & 1) for i in range(len(kept) - first)], np.bool_)
        store.keep(first, used)
        kept = kept[:first] + [x for x, wanted in zip(kept[first:], used, strict=True) if wanted]
        stamps = stamps[:first] + [t for t, wanted in zip(stamps[first:], used, strict=True) if wanted]
        if number % 3 == 0:
            store._renew_index()
    products = np.full((len(xs), len(kept)), np.nan)
    store.multiply(rows_of(xs), 0, len(xs), store.lookup, products)
    assert products.tolist() == naive_rls.multiply_rows(kept, xs)
    assert store.rows().values.tolist() == rows_of(kept).values.tolist()
    assert store.squares[: len(kept)].tolist() == naive_rls.square_rows(kept)
    assert store.stamps[: len(kept)].tolist() == stamps
    assert store.nbytes > 0


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), max_size=8))
def test_segments_keep_what_they_hold(rounds):
    segments = Segments(2, (np.int64, np.float32))
    segments.add_lists(3)
    held = [[], [], []]
    for needed in rounds:
        segments.reserve(np.array(needed, np.int64))
        for i, n in enumerate(needed):
            while len(held[i]) < n:
                at = segments.begin[i] + len(held[i])
                held[i].append(10 * i + len(held[i]))
                segments.arrays[0][at] = segments.arrays[1][at] = held[i][-1]
    sizes = np.array([len(one) for one in held], np.int64)
    for copy in segments.lists(sizes):
        assert copy.tolist() == pytest.approx([number for one in held for number in one])
    assert (segments.room >= sizes).all()
