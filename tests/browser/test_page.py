"""The live page in a real browser, during a real run: what it shows is what the stream does.

With STREAM_HC_SHOTS=docs the pictures of the documentation are made anew.
"""

import json
import os
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from stream_hc.cli.demo_stream import write_files
from tests.browser.conftest import HOSTILE
from tests.browser.live import LiveJob
from tests.http.serving import ask

pytestmark = pytest.mark.compiled

NUMBER = "return +(document.querySelector(arguments[0]).textContent.replace(/[^0-9.]/g, '') || 'NaN')"
IS_LIVE = "return document.querySelector('#state').textContent === 'live'"
HAS_LINES = "return document.querySelectorAll('#chart .line').length"
HAS_CELLS = "return document.querySelectorAll('#map .cell').length"
SHOTS = os.environ.get("STREAM_HC_SHOTS")


@pytest.fixture
def page(browser, live):
    """Return a browser that looks at the job; nothing may leave the machine, nobody may complain."""
    browser.complaints(), browser.requests()
    browser.use_colours("light")
    browser.resize(1280, 900)
    browser.open(live.url)
    browser.wait(IS_LIVE)
    browser.wait(HAS_LINES)
    browser.wait(HAS_CELLS)
    yield browser
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith((live.url, "data:", "chrome:"))] == []


def number(page, selector):
    return page.run(NUMBER, selector)


def test_the_curve_moves(page):
    drawn = "return document.querySelector('#chart .line.served').getAttribute('d')"
    labelled, line = number(page, "#labelled"), page.run(drawn)
    page.wait(
        "return +document.querySelector('#labelled').textContent.replace(/[^0-9]/g, '') > arguments[0]",
        labelled,
    )
    page.wait(f"{drawn} !== arguments[0]", line)
    assert (
        page.run("return document.querySelectorAll('#chart .line').length") >= 4
    )  # three learners, and what is served


def test_the_numbers_are_those_of_the_api(page, live):
    with live.held():
        status = ask(live.url + "api/status").json
        told = f"{status['labelled']:,} labelled so far"
        page.wait("return document.querySelector('#labelled').textContent === arguments[0]", told)
        assert float(page.text("#loss")) == pytest.approx(status["served"]["recent"], abs=0.00051)
        assert page.text("#champion") == status["champion"]["model"]
        assert page.text("#pending") == f"{status['pending']['documents']:,}"
        assert page.text("#dead") == f"{sum(status['dead_letters'].values()):,}"
        names = "return [...document.querySelectorAll('#models tbody th')].map((cell) => cell.textContent)"
        assert sorted(page.run(names)) == sorted(status["models"])
        assert page.run(names)[0] == status["champion"]["model"]
        depths = page.run("return document.querySelectorAll('#depths tbody tr').length")
        assert depths == len(status["by_depth"]["served"]["all"])


def test_a_click_on_a_topic_shows_its_numbers_and_mistakes(page, live):
    with live.held():
        page.click("#map .cell:not(.parent)")
        name = page.text("#node-name")
        found = ask(f"{live.url}api/node?name={quote(name, safe='')}").json
        recent = found["node"]["recent"]
        for each in ("support", "predicted"):
            assert page.text(f"#node-{each}") == f"{recent[each]:,}"
        for each in ("precision", "recall", "error"):
            shown = page.text(f"#node-{each}")
            assert (shown == "–") == (recent[each] is None)
            if recent[each] is not None:
                assert float(shown.removesuffix(" %")) == pytest.approx(100 * recent[each], abs=0.051)
        ids = page.run(
            "return [...document.querySelectorAll('.mistakes code')].map((code) => code.textContent)"
        )
        assert ids == [mistake["id"] for mistake in found["mistakes"]]
        assert page.run("return document.querySelector('#map [aria-pressed=true]').dataset.name") == name


def test_the_map_can_be_entered_and_left(page):
    before = page.run(HAS_CELLS)
    page.click("#map .cell.parent span")  # its name: below it are others
    name = page.text("#node-name")
    page.click("#node .act")
    page.wait("return document.querySelectorAll('#crumbs button').length === 2")
    assert page.text("#crumbs [aria-current]") == name
    inside = page.run("return [...document.querySelectorAll('#map .cell')].map((cell) => cell.dataset.name)")
    assert name not in inside
    page.click("#crumbs button")
    page.wait(f"{HAS_CELLS} === arguments[0]", before)


def test_everything_can_be_done_with_the_keyboard(page):
    page.run("document.querySelector('#chart').focus()")
    page.press("\ue012", "\ue012")  # to the left
    page.wait("return /labelled/.test(document.querySelector('#reading').textContent)")
    page.run("document.querySelector('#map .cell').focus()")
    first = page.run("return document.activeElement.dataset.name")
    page.press("\ue014")  # to the right
    second = page.run("return document.activeElement.dataset.name")
    assert second != first
    page.press("\ue007")  # Enter
    page.wait("return document.querySelector('#node-name')?.textContent === arguments[0]", second)
    time.sleep(4)  # whoever is there stays there while numbers change
    assert page.run("return document.activeElement.dataset.name") == second
    reached = page.run(
        "return [...document.querySelectorAll('#map .cell')].filter((cell) => cell.tabIndex === 0).length"
    )
    assert reached == 1


def test_what_is_seen_can_be_heard(page):
    assert "served" in page.run("return document.querySelector('#chart').getAttribute('aria-label')")
    unnamed = page.run(
        """return [...document.querySelectorAll('button, input, [role=group], section')]
        .filter((element) => !(element.textContent.trim() || element.getAttribute('aria-label')
            || element.labels?.length || element.getAttribute('aria-labelledby')))
        .map((element) => element.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    assert page.run(
        "return [...document.querySelectorAll('img')].every((image) => image.hasAttribute('alt'))"
    )
    assert page.run("return document.documentElement.lang") == "en"
    page.run("document.querySelector('details').open = true")
    page.click("#by-mean")
    page.wait("return document.querySelectorAll('#chart-table tbody tr').length > 1")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1920])
def test_nothing_is_cut_off(page, width, scheme):
    page.use_colours(scheme)
    page.resize(width, 900)
    page.wait("return document.querySelector('#chart svg').viewBox.baseVal.width <= arguments[0]", width)
    time.sleep(0.5)
    assert page.run("return document.documentElement.scrollWidth") <= width
    ink, paper = page.run(
        "const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]"
    )
    bright = [sum(map(int, colour[4:-1].split(","))) > 380 for colour in (ink, paper)]
    assert bright == [scheme == "dark", scheme == "light"]


def test_names_are_only_ever_text(browser, hostile):
    browser.complaints(), browser.requests()
    browser.resize(1280, 900)
    browser.open(hostile.url)
    browser.wait(IS_LIVE)
    browser.wait(HAS_CELLS)
    for name in HOSTILE:
        found = browser.run(
            """const cells = [...document.querySelectorAll('#map .cell')];
            const cell = cells.find((each) => each.dataset.name === arguments[0]);
            cell?.click(); return Boolean(cell)""",
            name,
        )
        assert found, name
        browser.wait("return document.querySelector('#node-name')?.textContent === arguments[0]", name)
    browser.wait("return document.querySelectorAll('.mistakes li').length")
    time.sleep(4)
    assert browser.run("return document.title") == "stream-hc"
    assert browser.run("return document.querySelectorAll('script').length") == 1
    assert browser.run("return document.querySelectorAll('img').length") == 1
    assert browser.run("return document.documentElement.scrollWidth") <= 1280
    attributes = "return [...document.querySelectorAll('*')].flatMap((each) => each.getAttributeNames())"
    assert [name for name in browser.run(attributes) if name.startswith("on")] == []
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith((hostile.url, "data:", "chrome:"))] == []


def test_a_token_is_asked_for_once(browser, tmp_path):
    (tmp_path / "taxonomy.tsv").write_text("sport\t\nnews\t\n")
    lines = [json.dumps({"id": str(k), "text": f"w{k % 3}", "labels": ["sport"]}) + "\n" for k in range(100)]
    (tmp_path / "stream.jsonl").write_text("".join(lines))
    (tmp_path / "token").write_text("a-token-of-some-length\n")
    options = ["--taxonomy", "taxonomy.tsv", "--set", f"http.token_file={tmp_path / 'token'}"]
    with LiveJob(tmp_path, *options) as job:
        browser.open(job.url)
        browser.wait("return !document.querySelector('#token-form').hidden")
        browser.run("document.querySelector('#token').value = 'not-the-right-token'")
        browser.click("#token-form button")
        browser.wait("return /not the token/.test(document.querySelector('#token-wrong').textContent)")
        browser.run("document.querySelector('#token').value = 'a-token-of-some-length'")
        browser.click("#token-form button")
        browser.wait(IS_LIVE)
        browser.wait("return document.querySelector('#documents').textContent.startsWith('100 ')")
        assert "a-token-of-some-length" not in browser.run("return document.documentElement.outerHTML")
        # When the job ends, the page says so.
        job.end()
        browser.wait("return /has ended/.test(document.querySelector('#state').textContent)")
    browser.open("about:blank")
    browser.complaints()  # that nobody answers is what the browser itself complains about


@pytest.mark.skipif(SHOTS is None, reason="pictures are made where STREAM_HC_SHOTS names a folder for them")
def test_pictures_for_the_documentation(browser, tmp_path):
    write_files(tmp_path, 8_000, 0)
    with LiveJob(tmp_path, "--config", "job.toml", first=13_000, pause=0.1) as job:
        browser.resize(1920, 1200)
        browser.open(job.url)
        browser.wait(
            "return /7,[0-9]{3} labelled/.test(document.querySelector('#labelled').textContent)", seconds=600
        )
        browser.click("#map .cell:not(.parent)")
        time.sleep(4)
        for width, height, scheme in ((1920, None, "light"), (800, 1500, "dark"), (360, 1500, "light")):
            browser.use_colours(scheme)
            browser.resize(width, height or 1200)
            time.sleep(3)
            browser.screenshot(Path(SHOTS or ".") / f"live-{width}.png", whole=height is None)
