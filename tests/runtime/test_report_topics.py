"""The map of topics and the tables beside it: right numbers, sound shapes, nothing that runs."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc import Taxonomy
from stream_hc.learners.base import LabelRows
from stream_hc.runtime.log import RunLog
from stream_hc.runtime.node_counts import NodeCounts
from stream_hc.runtime.report import Topics, render_report, topics_of, words_section
from stream_hc.runtime.report import page as look
from stream_hc.runtime.report.topics import topics_section
from stream_hc.runtime.report.treemap import (
    BOUNDS,
    LEAST,
    NARROW_MAP,
    WIDE_MAP,
    Box,
    Tile,
    draw_treemap,
    squarified,
)
from tests.runtime.sample_log import make_log
from tests.runtime.test_report import HOSTILE, Page

TREE = Taxonomy([("sport", None), ("politics", None), ("tennis", "sport"), ("golf", "sport")])


def counted(support, predicted, hits, charged=None, n_documents=100) -> Topics:
    arrays = [np.array(each, np.int64) for each in (support, predicted, hits, charged or [0] * len(support))]
    return Topics(n_documents, *arrays)


TOPICS = counted([60, 30, 20, 0], [50, 40, 25, 10], [45, 30, 10, 0], [15, 10, 20, 10])


def test_precision_recall_and_error_follow_from_the_counts():
    assert [TOPICS.precision(node) for node in range(4)] == [45 / 50, 30 / 40, 10 / 25, 0.0]
    assert [TOPICS.recall(node) for node in range(4)] == [45 / 60, 1.0, 10 / 20, None]
    assert [TOPICS.error(node) for node in range(4)] == [1 - 45 / 65, 1 - 30 / 40, 1 - 10 / 35, 1.0]
    nothing = counted([0], [0], [0])
    assert (nothing.precision(0), nothing.recall(0), nothing.error(0)) == (None, None, None)


def test_counts_of_a_job_become_topics():
    counts = NodeCounts(n_nodes=2, size=4)
    rows = LabelRows(np.arange(7), np.array([0, 1, 0, 1, 0, 1], np.int32))
    other = LabelRows(np.arange(7), np.zeros(6, np.int32))
    counts.add(
        predicted=other,
        labels=rows,
        charged=LabelRows(np.zeros(7, np.int64), rows.nodes[:0]),
        first=0,
        last=6,
    )
    whole, recent = topics_of(counts)
    assert whole.n_documents == 6
    assert whole.support.tolist() == [3, 3]
    assert whole.predicted.tolist() == [6, 0]
    assert whole.hits.tolist() == [3, 0]
    assert recent.n_documents == 6


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=40), st.floats(10, 2000), st.floats(10, 2000))
def test_areas_are_shared_out_by_weight_without_overlap(weights, width, height):
    weights = sorted(weights, reverse=True)
    boxes = squarified(weights, Box(3.0, 5.0, width, height))
    total = sum(weights)
    for weight, box in zip(weights, boxes, strict=True):
        assert box.width * box.height == pytest.approx(weight / total * width * height, rel=1e-6)
        assert box.x >= 3 - 1e-6
        assert box.y >= 5 - 1e-6
        assert box.x + box.width <= 3 + width + 1e-6 * width
        assert box.y + box.height <= 5 + height + 1e-6 * height
    assert sum(box.width * box.height for box in boxes) == pytest.approx(width * height)


def test_no_two_parts_overlap():
    boxes = squarified([9.0, 5.0, 5.0, 2.0, 1.0, 0.5], Box(0, 0, 300, 200))
    for first in boxes:
        for second in boxes:
            if first is not second:
                across = min(first.x + first.width, second.x + second.width) - max(first.x, second.x)
                down = min(first.y + first.height, second.y + second.height) - max(first.y, second.y)
                assert min(across, down) < 1e-6
    assert squarified([], Box(0, 0, 3, 2)) == []


def drawn(tiles, size=WIDE_MAP):
    return ET.fromstring(draw_treemap(tiles, size).replace("&#x27;", "'"))


def boxes_of(svg):
    found = {}
    for group in svg.iter("g"):
        rect = group.find("rect")
        box = [float(rect.get(key)) for key in ("x", "y", "width", "height")]
        found[group.find("title").text.split(":")[0]] = (group.get("class"), *box)
    return found


def test_children_lie_in_their_parents_and_colours_tell_errors():
    tiles = [
        Tile("sport", -1, 60, 0.05, "a"),
        Tile("politics", -1, 30, 0.95, "b"),
        Tile("tennis", 0, 40, 0.3, "c"),
        Tile("golf", 0, 20, None, "d"),
        Tile("unseen", -1, 0, None, "e"),
    ]
    for size in (WIDE_MAP, NARROW_MAP):
        found = boxes_of(drawn(tiles, size))
        assert set(found) == {"sport", "politics", "tennis", "golf"}
        kinds = [found[name][0] for name in ("sport", "politics", "tennis", "golf")]
        assert kinds == ["tile e0", f"tile e{len(BOUNDS)}", "tile e2", "tile none"]
        _, x, y, width, height = found["sport"]
        for child in ("tennis", "golf"):
            _, cx, cy, cwidth, cheight = found[child]
            assert x <= cx
            assert y <= cy
            assert cx + cwidth <= x + width
            assert cy + cheight <= y + height
        areas = {name: box[3] * box[4] for name, box in found.items()}
        assert areas["sport"] / areas["politics"] == pytest.approx(2, rel=0.05)


def test_what_is_too_small_is_left_out():
    tiles = [Tile("large", -1, 10**7, 0.1, ""), *(Tile(f"t{n}", -1, 1, 0.5, "") for n in range(5_000))]
    svg = draw_treemap(tiles, WIDE_MAP)
    assert len(svg) < 20_000
    for _, _, _, width, height in boxes_of(drawn(tiles)).values():
        assert min(width, height) > LEAST / 2


def test_the_section_has_map_tables_and_all_topics():
    page = Page(topics_section(TREE, TOPICS, TOPICS))
    words = page.words()
    assert page.tags["svg"] == 2
    assert page.tags["details"] == 1
    assert "100 labelled documents" in words
    assert "90.0 %" in words  # precision of sport
    assert "75.0 %" in words  # its recall
    worst = [text for tag, text in page.texts if tag == "bdi"]
    assert worst[:2] == ["sport", "tennis"]  # the path to what cost most, 20 of the loss
    assert Page(topics_section(TREE, TOPICS._replace(n_documents=0))).tags["svg"] == 0


def test_a_topic_with_several_parents_is_drawn_once():
    dag = Taxonomy([("sport", None), ("health", None), ("yoga", "sport"), ("yoga", "health")])
    html = topics_section(dag, counted([5, 5, 5], [5, 5, 5], [5, 5, 5]))
    assert "A topic with several parents is drawn below the first." in html
    wide = html[html.index("<svg") : html.index("</svg>")]
    assert len(re.findall("<title>yoga: ", wide)) == 1


def test_hostile_names_stay_text():
    names = [name for name in HOSTILE if name]
    taxonomy = Taxonomy([(names[0], None), *((name, names[0]) for name in names[1:])])
    numbers = list(range(len(names) * 10, 0, -10))
    topics = counted(numbers, numbers, [number - 5 for number in numbers], numbers)
    words = {
        name: [(other, 0.5), (other[::-1], -0.25)] for name, other in zip(names, names[::-1], strict=True)
    }
    more = [words_section(words, names[1])]
    html = render_report(make_log(), names[0], taxonomy, (topics, topics), more, notes=names)
    page = Page(html)
    assert page.tags["script"] == page.tags["img"] == page.tags["b"] == 0
    assert not [name for _, name, _ in page.attributes if name.startswith("on") or name in ("src", "href=")]
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert "<script>alert(1)</script>" in page.words()
    assert max(map(len, (text for tag, text in page.texts if tag == "bdi"))) <= 80
    for svg in re.findall(r"<svg.*?</svg>", html, re.S):
        ET.fromstring(svg)


def test_words_for_and_against():
    page = Page(words_section({"sport": [("goal", 1.5), ("bank", -0.5)]}, "h-arow"))
    assert page.tags["del"] == 1
    assert ("td", "title", None) not in page.attributes
    assert ("span", "title", "+1.500") in page.attributes
    assert ("del", "title", "-0.500") in page.attributes
    assert "nothing was learned" in words_section({}, "h-arow")
    many = Page(words_section({f"t{n}": [("a", 1.0)] for n in range(40)}, "h-arow", 7))
    assert many.tags["details"] == 1
    assert "25 more topics" in many.words()
    assert "7 topics left out" in many.words()


def test_a_page_with_one_standing_draws_no_curves():
    log = make_log()
    one = RunLog((log.standings[-1],), ())
    page = Page(render_report(one, "One", happened={"swap": 3, "rollback": 1}, notes=["No history."]))
    assert page.tags["polyline"] == 0
    assert "What this page does not know No history." in page.words()
    assert "Swaps 3 1 rollback" in page.words()
    whole = Page(render_report(log, "All"))
    assert "What waits" in whole.words()
    assert whole.tags["polyline"] > 0


@pytest.mark.parametrize(
    ("colors", "texts"), [(look.ERRORS, look.ON_ERRORS), (look.DARK_ERRORS, look.ON_DARK_ERRORS)]
)
def test_text_on_the_map_can_be_read(colors, texts):
    assert len(colors) == len(texts) == len(BOUNDS) + 1
    for color, text in zip(colors, texts, strict=True):
        light, dark = sorted((luminance(color), luminance(text)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, color


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
