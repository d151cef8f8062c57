import re
import xml.etree.ElementTree as ET
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc import Taxonomy
from stream_hc.evaluate.drawing import PALETTE
from stream_hc.runtime.events import Event, Score, Standing
from stream_hc.runtime.log import RunLog
from stream_hc.runtime.report import (
    Span,
    Summary,
    family,
    plot_run,
    sentence,
    styles_of,
    thin_out,
    write_report,
)
from stream_hc.runtime.report.chart import NARROW, WIDE, Chart, Curve, Lane, Size
from stream_hc.runtime.report.svg import draw_chart, ticks
from tests.runtime.sample_log import BACK, HM3_AGAIN, HM3_IN, make_log

VOID = {"meta", "br", "img", "hr", "input", "link"}
HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "&lt;b&gt; &amp; ]]> --> </style></svg></title>",
    "\u202eright\u200fto left\u2066",
    "שלום עולם",
    "w" * 5_000,
    "a\x00\x1b[31m\n\r\tb",
    "$x^2$ {0} %s 日本語 🙂",
    "",
]


class Page(HTMLParser):
    """Checks that tags nest, and collects what a test asks for."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open:
            self.texts.append((self.open[-1], data))

    def words(self) -> str:
        return " ".join(text for tag, text in self.texts if tag != "style")


def render(log: RunLog, tmp_path: Path, title: str = "A run", taxonomy: Taxonomy | None = None) -> str:
    path = tmp_path / "report.html"
    write_report(log, path, title, taxonomy)
    return path.read_text(encoding="utf-8")


def renamed(log: RunLog, names: list[str]) -> RunLog:
    """Give models, reasons, outcomes and details other names."""
    models = list(dict.fromkeys(model for standing in log.standings for model in standing.scores))
    new = {
        old: names[place % len(names)] + (old if place >= len(names) else "")
        for place, old in enumerate(models)
    }
    numbers = {name: place + 1 for place, name in enumerate(names)}
    replace = msgspec.structs.replace
    return RunLog(
        tuple(
            replace(
                s,
                champion=new[s.champion],
                scores={new[k]: v for k, v in s.scores.items()},
                outcomes=numbers,
                rejected=numbers,
            )
            for s in log.standings
        ),
        tuple(
            replace(
                e,
                model=new.get(e.model, e.model),
                before=new.get(e.before, e.before),
                detail=names[place % len(names)],
            )
            for place, e in enumerate(log.events)
        ),
    )


def test_it_says_what_happened(tmp_path: Path) -> None:
    log = make_log()
    page = Page(render(log, tmp_path, "News & <more>"))
    words, last = page.words(), log.standings[-1]
    assert ("h1", "News & <more>") in page.texts
    dd = [text for tag, text in page.texts if tag == "dd"]
    headline = [
        "12,500",
        "12,000",
        f"{last.served.mean:.3f}",
        f"{last.scores['h-arow'].mean:.3f}",
        "2",
        "6",
        "1",
        "11",
    ]
    assert [text for text in dd if text in headline] == headline
    assert f"served is {1 - last.served.mean / last.scores['h-arow'].mean:.1%} below it" in words
    for event in log.events:
        assert sentence(event) in words
    for model, score in last.scores.items():
        assert f"{model} {score.recent:.3f}" in words
    for word in (
        "joined",
        "expired",
        "orphan",
        "duplicate",
        "changed",
        "waiting documents",
        "not_json",
        "unknown_label",
    ):
        assert word in words
    assert page.tags["caption"] == page.tags["table"] == 5
    assert f"{last.by_depth[1] / last.served.scored:.3f}" in words


def test_it_needs_nothing_else_and_can_be_heard(tmp_path: Path) -> None:
    html = render(make_log(), tmp_path)
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(page.tags)
    loads = [
        (name, value) for _, name, value in page.attributes if name in ("src", "href", "xlink:href", "action")
    ]
    assert loads == [("href", "#content")]
    assert not any(name.startswith("on") for _, name, _ in page.attributes)
    assert not re.search(r"https?:|url\(|@import", html)
    assert "default-src 'none'" in html
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    named = [value for _, name, value in page.attributes if name == "aria-labelledby"]
    assert all(set(value.split()) <= set(ids) for value in named if value)
    assert len(named) == 8 + 6  # eight sections, three charts in two sizes
    assert page.tags["h1"] == 1
    assert ("html", "lang", "en") in page.attributes
    assert all(f"--c{number}: {color}" in html for number, color in enumerate(PALETTE))


def test_same_log_same_bytes(tmp_path: Path) -> None:
    assert render(make_log(), tmp_path) == render(make_log(), tmp_path)
    assert render(make_log(), tmp_path) != render(make_log(seed=8), tmp_path)


def test_names_are_only_ever_text(tmp_path: Path) -> None:
    log = make_log()
    hostile = renamed(log, HOSTILE)
    html = render(hostile, tmp_path, HOSTILE[0])
    page, calm = (
        Page(html),
        Page(render(renamed(log, [f"n{place}" for place in range(len(HOSTILE))]), tmp_path)),
    )
    assert page.tags["script"] == page.tags["img"] == 0
    tame = {(tag, name) for tag, name, _ in calm.attributes}
    assert {(tag, name) for tag, name, _ in page.attributes} <= tame
    assert page.tags["svg"] == calm.tags["svg"]
    assert page.tags["tr"] == calm.tags["tr"]
    assert ("h1", HOSTILE[0]) in page.texts
    assert ("bdi", HOSTILE[0]) in page.texts
    assert ("bdi", r"\u202eright\u200fto left\u2066") in page.texts
    assert not re.search("[\x00-\x08\x0b-\x1f\u200e\u200f\u202a-\u202e\u2066-\u2069]", html)
    assert "w" * 1_000 not in html
    for svg in re.findall(r"<svg.*?</svg>", html, re.S):
        ET.fromstring(svg)  # well-formed by the strict rules of XML, too


@given(st.lists(st.text(max_size=20), min_size=1, max_size=4, unique=True))
def test_any_names_at_all(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    page = Page(render(renamed(make_log(2_500, 500), names), tmp_path_factory.getbasetemp(), names[0] + "!"))
    assert page.tags["script"] == 0
    assert page.tags["h1"] == 1
    # Three charts in two sizes, the legends of two with every line, of one with what waits, and the models.
    assert page.tags["svg"] == 6 + 2 * len(["served", "h-arow", "h-perc", "hpa", "hm3-1"]) + 2 + 4


def test_the_taxonomy_adds_topics_by_depth(tmp_path: Path) -> None:
    tree = Taxonomy([("a", None), ("b", None), ("aa", "a"), ("ab", "a"), ("ba", "b"), ("aaa", "aa")])
    log = make_log(1_000)
    with_tree, without = Page(render(log, tmp_path, taxonomy=tree)), Page(render(log, tmp_path))
    assert "taxonomy of 6 topics" in with_tree.words()
    heads = [text for tag, text in with_tree.texts if tag == "th"]
    assert "Topics" in heads
    assert "Topics" not in without.words()
    rows = with_tree.words().split("depth 1")[1].split()
    assert rows[0] == "3"


EMPTY = Standing(0, 0, "m", 0, Score(0, 0.0, 0.0), {"m": Score(0, 0.0, 0.0)}, [], 0, 0, {}, {})
SMALL = {
    "nothing": RunLog(),
    "only an event": RunLog(events=(Event("drift", 3, 2),)),
    "before the first label": RunLog((EMPTY,)),
    "one point": RunLog((msgspec.structs.replace(EMPTY, labelled=5, served=Score(5, 0.0, 0.0)),)),
    "perfect": RunLog(
        tuple(
            msgspec.structs.replace(
                EMPTY, labelled=n, served=Score(n, 0.0, 0.0), scores={"m": Score(n, 0.0, 0.0)}
            )
            for n in (50, 100)
        )
    ),
    "not a number": RunLog(
        (msgspec.structs.replace(EMPTY, labelled=50, served=Score(50, float("nan"), float("nan"))),)
    ),
}


@pytest.mark.parametrize("kind", SMALL)
def test_small_logs_have_a_report_too(kind: str, tmp_path: Path) -> None:
    html = render(SMALL[kind], tmp_path)
    assert Page(html).tags["h2"] >= 3
    assert not re.search(r'(points|d|x|y)="[^"]*nan', html)


def test_a_hundred_fits_stay_readable(tmp_path: Path) -> None:
    standing = make_log(100).standings[0]
    rows = []
    for fit in range(100):
        scores = {"h-arow": Score(50 * fit + 50, 0.5, 0.5), f"hm3-{fit}": Score(50, 0.4, 0.4)}
        rows.append(
            msgspec.structs.replace(standing, labelled=50 * fit + 50, scores=scores, champion="h-arow")
        )
    page = Page(render(RunLog(tuple(rows), tuple(Event("drift", n, n) for n in range(1000))), tmp_path))
    words = page.words()
    assert "hm3: 99 earlier ones" in words
    assert "41 older models left out" in words
    assert "600 earlier events left out" in words


def boxes(svg: str) -> list[tuple[float, float, float, float]]:
    """Return where texts are, by a rough idea of their widths."""
    found = []
    for text in ET.fromstring(svg).iter("text"):
        width, x, y = 6.2 * len(text.text or ""), float(text.attrib["x"]), float(text.attrib["y"])
        left = x - {"start": 0, "middle": 0.5, "end": 1}[text.attrib.get("text-anchor", "start")] * width
        found.append((left, y - 10, left + width, y + 1))
    return found


@pytest.mark.parametrize("size", [WIDE, NARROW])
@pytest.mark.parametrize("end", [1, 7, 999, 12_000, 98_765_432])
def test_no_text_covers_another_or_is_cut_off(size: Size, end: int) -> None:
    curves = [Curve("served", [(end, 0.5)])]
    curves += [Curve("model" * n, [(1, 1.0), (end, 0.5 + n / 100)], (n, 0)) for n in range(1, 7)]
    lanes = [
        Lane(w, [Event("drift", n, n) for n in range(0, end, max(end // 40, 1))])
        for w in ("drift", "rollback")
    ]
    band = [(Span("m" * n, end * n // 9, end * (n + 1) // 9), n % 7) for n in range(9)]
    svg = draw_chart(Chart("k", "t", "a", curves, end, lanes, band), size)
    height = float(ET.fromstring(svg).attrib["viewBox"].split()[3])
    placed = boxes(svg)
    assert len(placed) > 8
    for place, (left, top, right, bottom) in enumerate(placed):
        assert left >= 0
        assert top >= 0
        assert right <= size.width
        assert bottom <= height
        for other in placed[:place]:
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart, (placed[place], other)


@given(st.floats(1e-6, 1e12), st.integers(2, 10))
def test_ticks_are_few_round_and_reach_the_top(high: float, most: int) -> None:
    marks = ticks(high, most)
    assert marks[0] == 0
    assert marks[-1] >= high * (1 - 1e-6)
    assert 2 <= len(marks) <= most + 2


def test_who_answered_when() -> None:
    spans = Summary(make_log()).champions()
    assert spans == [
        Span("h-arow", 0, HM3_IN),
        Span("hm3-1", HM3_IN, BACK),
        Span("h-arow", BACK, HM3_AGAIN),
        Span("hm3-3", HM3_AGAIN, 12_000),
    ]
    only_events = RunLog(events=(Event("swap", 9, 4, "b", "a"), Event("rollback", 20, 10, "a", "b")))
    assert Summary(only_events).champions() == [Span("a", 0, 4), Span("b", 4, 10)]


def test_the_best_single_model_has_seen_everything() -> None:
    best = Summary(make_log()).best_single()
    assert best is not None
    assert best[0] == "h-arow"  # hm3-3 has a lower mean, of the last documents alone
    assert Summary(RunLog()).best_single() is None


def test_colours_go_by_kind() -> None:
    styles = styles_of(["h-arow", "hm3-1", "hpa", "hm3-2", *(f"m{n}" for n in "abcdef")])
    assert styles["hm3-1"][0] == styles["hm3-2"][0]
    assert styles["hm3-1"] != styles["hm3-2"]
    assert styles["mf"][0] == styles["hm3-1"][0]
    assert len(set(styles.values())) == len(styles) - 1  # both hm3-2 and mf are dashed in the same colour
    assert family("-1") == "-1"


@given(st.integers(0, 500), st.integers(2, 50))
def test_thinning_out_keeps_the_ends(n: int, most: int) -> None:
    points = [(at, 0.5) for at in range(n)]
    kept = thin_out(points, most)
    assert len(kept) <= most
    assert kept[:1] == points[:1]
    assert kept[-1:] == points[-1:]


@pytest.mark.parametrize("log", [make_log(), renamed(make_log(), HOSTILE), *SMALL.values()])
def test_a_picture(log: RunLog, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots are an extra")
    from matplotlib.image import imread  # noqa: PLC0415  # after importorskip

    for name in ("one.png", "two.png"):
        plot_run(log, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    image = imread(tmp_path / "one.png")[:, :, :3]
    assert image.shape == (920, 1800, 3)
    assert (image[[0, -1]] == 1).all()
    assert (image[:, [0, -1]] == 1).all(), "something runs over the edge of the page"
    if Summary(log).models and len(log.standings) > 2:
        rgb = [int(PALETTE[1][at : at + 2], 16) / 255 for at in (1, 3, 5)]
        assert (abs(image - rgb).sum(axis=2) < 0.01).sum() > 200
