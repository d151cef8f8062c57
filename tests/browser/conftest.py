"""A browser, and jobs to look at.

Without Chromium the tests are skipped and say why; where CI=true, that is a failure.
"""

import json
import os

import pytest

from stream_hc.cli.demo_stream import write_files
from stream_hc.taxonomy import Taxonomy
from tests.browser.driver import BROWSER, DRIVER, Browser
from tests.browser.live import LiveJob

# Whatever a page could do wrong with a name: end a tag, an attribute, a script; look like markup; be endless.
HOSTILE = [
    "<img src=x onerror=\"document.title='pwned'\">",
    "</script><script>document.title='pwned'</script>",
    "\"' onmouseover=\"document.title='pwned'\" x='",
    "javascript:alert(1)//&lt;b&gt;&amp;",
    "ünï\u202ecode \u2028 {{7*7}} ${7*7} 😀",
    "w" * 300,
]


@pytest.fixture(scope="session")
def browser():
    if BROWSER is None or DRIVER is None:
        reason = "no chromium and chromedriver: apt-get install chromium chromium-driver"
        if os.environ.get("CI") == "true":
            pytest.fail(f"in CI: {reason}", pytrace=False)
        pytest.skip(reason)
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A job with three learners on news: half of them are there at once, the rest comes bit by bit."""
    folder = tmp_path_factory.mktemp("live")
    write_files(folder, 2_000, 0)
    learners = ["--learner", "h-arow", "--learner", "node-pa", "--learner", "h-perceptron"]
    options = [
        "--taxonomy",
        "taxonomy.tsv",
        *learners,
        "--rejects",
        "rejects.jsonl",
        "--set",
        "judge.sample=200",
    ]
    with LiveJob(folder, *options, first=1_500, pause=0.2) as job:
        yield job


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A job whose every name is an attack."""
    folder = tmp_path_factory.mktemp("hostile")
    Taxonomy([(HOSTILE[0], None), *((name, HOSTILE[0]) for name in HOSTILE[1:])]).write(
        folder / "taxonomy.json"
    )
    records = [
        {
            "id": HOSTILE[k % 5] + str(k),
            "text": f"word{k % 11} word{k % 7}",
            "labels": [HOSTILE[k % len(HOSTILE)]],
        }
        for k in range(2_000)
    ]
    (folder / "stream.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    with LiveJob(folder, "--taxonomy", "taxonomy.json", first=400, pause=0.5) as job:
        yield job
