import hashlib
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc.datasets import Dataset, make_news
from stream_hc.datasets.newsworld import GOLDEN, SLOTS, mix, news_world

N = 10_000


@pytest.fixture(scope="module")
def news() -> Dataset:
    return make_news(N)


def digest(data: Dataset) -> str:
    return hashlib.sha256(
        b"".join(msgspec.json.encode(record) + b"\n" for record in data.records())
    ).hexdigest()


def words_of(documents: list[Any]) -> Counter[str]:
    return Counter(re.findall("[a-z]+", " ".join(documents).lower()))


# The same bytes everywhere


@pytest.mark.parametrize(
    ("seed", "drift", "expected"),
    [
        (0, "none", "5acd6c2af6c2d750d04e7c62772692fb995423ffd02212db0198f716803d576c"),
        (0, "gradual", "05fcb61e9f9e31ba9a4660867ff7a38037d20e063ed0b20c340f1433efc0a19e"),
        (0, "sudden", "bb1ba501720b3b5080c7001b7e1983bbff4d5e93284a186811a7965e72c2f35d"),
        (7, "none", "2ad882c304ec5bd908f61708d8e325e95008366e5c35f622deafa84a0d55f029"),
        (7, "gradual", "b8aa5e610101a51dec369a823a2bfe6fa70120bbe1018b4442bc5093fb34a69d"),
        (7, "sudden", "35b5cbb84f275e3eb9c98ba25b9f26bdc882452dee56930d9d1dfdb4dc40d579"),
    ],
)
def test_golden_documents(seed: int, drift: Any, expected: str) -> None:
    assert digest(make_news(200, seed, drift)) == expected


def test_golden_taxonomy(news: Dataset, tmp_path: Path) -> None:
    news.taxonomy.write(tmp_path / "taxonomy.tsv")
    content = (tmp_path / "taxonomy.tsv").read_bytes()
    assert (
        hashlib.sha256(content).hexdigest()
        == "e7b76a99e828da854de9bf0c6de0883aa21f86d3274bd9a1e826f2dfc5794cf3"
    )


def test_random_bits_are_splitmix64() -> None:
    # The first outputs of the reference implementation for the seed 1234567.
    counters = (np.arange(1, 6).astype(np.uint64) * np.uint64(GOLDEN)) + np.uint64(1234567)
    assert mix(counters).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 60), more=st.integers(0, 60), seed=st.integers(0, 2**64 - 1))
def test_a_longer_stream_begins_with_the_shorter(n: int, more: int, seed: int) -> None:
    assert make_news(n + more, seed).take(n) == make_news(n, seed)


def test_no_seam_between_chunks(news: Dataset) -> None:
    assert news.take(8_300) == make_news(8_300)


def test_seeds_differ_but_share_the_world(news: Dataset) -> None:
    other = make_news(300, seed=1)
    assert other.taxonomy == news.taxonomy
    assert not set(other.documents) & set(news.documents)


def test_none_is_no_drift() -> None:
    assert make_news(50, 3, "none") == make_news(50, 3) == make_news(50, 3, None)


def test_ten_thousand_documents_are_quick() -> None:
    times = []
    for seed in range(3):
        start = time.process_time()
        make_news(N, seed)
        times.append(time.process_time() - start)
    assert min(times) < 2


# What the stream looks like


def test_four_trees_of_about_a_hundred_topics(news: Dataset) -> None:
    taxonomy = news.taxonomy
    assert taxonomy.is_tree
    assert [taxonomy.nodes[root] for root in taxonomy.roots] == ["sport", "economy", "science", "society"]
    assert 90 <= len(taxonomy) <= 110
    assert taxonomy.depth.max() == 3
    assert all(re.fullmatch("[a-z]+( [a-z]+)*", name) for name in taxonomy.nodes)
    world = news_world()
    assert sorted(world.topics) == sorted(taxonomy.nodes)


def test_every_topic_uses_its_own_words() -> None:
    world = news_world()
    for before_after in world.words:
        for row in before_after[:-1]:
            assert row.shape == (SLOTS,)
            assert np.unique(row).size >= 10
    background = {world.vocabulary[word] for word in np.unique(world.words[0, -1])}
    assert len(background) > 300
    for topic in range(len(world.topics)):
        own = {world.vocabulary[word] for word in np.unique(world.words[0, topic])}
        assert own.isdisjoint(background)


def test_words_are_readable_and_sentences_look_like_sentences(news: Dataset) -> None:
    for document in news.documents[:500]:
        assert isinstance(document, str)
        for sentence in document.removesuffix(".").split(". "):
            assert re.fullmatch("[A-Z][a-z]+( [a-z]+){0,13}", sentence)


def test_lengths(news: Dataset) -> None:
    lengths = np.array([len(str(document).split()) for document in news.documents])
    assert lengths.min() >= 30
    assert lengths.max() <= 120
    assert 67 < lengths.mean() < 73


def test_ids_are_unique_and_ordered(news: Dataset) -> None:
    assert news.ids[0] == "news-0000001"
    assert news.ids[-1] == "news-0010000"
    assert sorted(set(news.ids)) == news.ids


@pytest.mark.parametrize("drift", ["none", "gradual", "sudden"])
def test_proportions(drift: Any) -> None:
    data = make_news(N, 5, drift)
    taxonomy = data.taxonomy
    leaves = {taxonomy.nodes[leaf] for leaf in taxonomy.leaves}
    several = [labels for labels in data.labels if len(labels) > 1]
    assert 0.25 < len(several) / N < 0.30
    assert max(map(len, data.labels)) == 3
    assert 0.17 < sum(not labels <= leaves for labels in data.labels) / N < 0.23
    roots = {taxonomy.nodes[root] for root in taxonomy.roots}
    assert sum(len(taxonomy.close(labels) & roots) > 1 for labels in several) > len(several) / 2
    counts = Counter(label for labels in data.labels for label in labels)
    assert set(counts) == set(taxonomy.nodes)


def test_popularity_is_skewed(news: Dataset) -> None:
    counts = sorted(Counter(label for labels in news.labels for label in labels).values(), reverse=True)
    assert sum(counts[:10]) > 0.3 * sum(counts)
    assert counts[0] > 10 * counts[60]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**64 - 1), drift=st.sampled_from([None, "none", "gradual", "sudden"]))
def test_labels_are_known_and_most_specific(seed: int, drift: Any) -> None:
    data = make_news(60, seed, drift)
    for labels in data.labels:
        assert labels
        assert data.taxonomy.most_specific(data.taxonomy.close(labels)) == labels


def test_labels_follow_from_the_words(news: Dataset) -> None:
    # The own words of a topic are far more frequent in its documents than elsewhere, but never a sure sign.
    inside = [text for text, labels in news if "livestock" in labels]
    outside = [text for text, labels in news if "livestock" not in labels]
    share_in = sum("Cattle" in text or "cattle" in text for text in map(str, inside)) / len(inside)
    share_out = sum("Cattle" in text or "cattle" in text for text in map(str, outside)) / len(outside)
    assert 0.5 < share_in < 1
    assert 0 < share_out < 0.1


# Drift


def distance(one: Counter[str], other: Counter[str]) -> float:
    """Return half the L1 distance of two word distributions."""
    n_one, n_other = one.total(), other.total()
    return sum(abs(one[word] / n_one - other[word] / n_other) for word in one | other) / 2


def about(data: Dataset, topic: str, first: int, last: int) -> list[Any]:
    return [
        document
        for document, labels in zip(data.documents[first:last], data.labels[first:last], strict=True)
        if labels == {topic}
    ]


@pytest.mark.parametrize(("drift", "start", "end"), [("sudden", 5_000, 5_000), ("gradual", 3_000, 7_000)])
def test_nothing_changes_before_the_drift(news: Dataset, drift: Any, start: int, end: int) -> None:
    data = make_news(N, 0, drift)
    assert data.documents[:start] == news.documents[:start]
    assert data.labels[:start] == news.labels[:start]
    same = sum(a == b for a, b in zip(data.documents[end:], news.documents[end:], strict=True))
    # The few that stay draw the same topic in both worlds, one that kept its words.
    assert same < 0.02 * (N - end)
    by_chance = distance(words_of(news.documents[end:]), words_of(news.documents[:start]))
    assert distance(words_of(data.documents[end:]), words_of(news.documents[end:])) > 2 * by_chance


def test_half_of_the_topics_change_their_words() -> None:
    world = news_world()
    own = np.array(
        [np.bincount(row, minlength=len(world.vocabulary)).argmax() for row in world.words[0, :-1]]
    )
    after = np.array(
        [np.bincount(row, minlength=len(world.vocabulary)).argmax() for row in world.words[1, :-1]]
    )
    assert 0.4 < np.mean(own != after) < 0.6
    assert sorted(own) == sorted(after)


def test_a_changed_topic_is_written_with_other_words() -> None:
    data = make_news(N, 0, "sudden")
    world = news_world()
    leaves = sorted({data.taxonomy.nodes[leaf] for leaf in data.taxonomy.leaves})
    moved = []
    for topic in leaves:
        row = world.topics.index(topic)
        early, late = about(data, topic, 0, N // 2), about(data, topic, N // 2, N)
        if len(early) > 60 and len(late) > 60:
            changed = not np.array_equal(np.unique(world.words[0, row]), np.unique(world.words[1, row]))
            moved.append((changed, distance(words_of(early), words_of(late))))
    assert min(gap for changed, gap in moved if changed) > max(
        (gap for changed, gap in moved if not changed), default=0
    )


def test_gradual_drift_grows_linearly(news: Dataset) -> None:
    data = make_news(N, 0, "gradual")
    other = [a != b for a, b in zip(data.documents, news.documents, strict=True)]
    share = [sum(other[first : first + 1_000]) / 1_000 for first in range(3_000, 7_000, 1_000)]
    assert share == pytest.approx([0.125, 0.375, 0.625, 0.875], abs=0.04)


def test_other_topics_become_popular() -> None:
    data = make_news(N, 0, "sudden")
    before = Counter(label for labels in data.labels[: N // 2] for label in labels)
    after = Counter(label for labels in data.labels[N // 2 :] for label in labels)
    top_before = {label for label, _ in before.most_common(10)}
    top_after = {label for label, _ in after.most_common(10)}
    assert len(top_before & top_after) <= 5


# Arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "at least 1"),
        ({"n": -5}, "at least 1"),
        ({"n": 2.5}, "at least 1"),
        ({"n": True}, "at least 1"),
        ({"seed": -1}, "from 0 to"),
        ({"seed": 2**64}, "from 0 to"),
        ({"seed": "0"}, "from 0 to"),
        ({"drift": "slow"}, "none, gradual, sudden"),
    ],
)
def test_bad_arguments_say_what_is_allowed(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_news(**arguments)
