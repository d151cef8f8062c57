"""`make demo-cluster`, as a person runs it: it comes to its end, counts right, and leaves nothing running."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploy.cluster_demo.job import DemoError, claim
from deploy.cluster_demo.story import Counted
from deploy.kafka.fetch import UnavailableError, find_kafka
from tests.deploy.support import ROOT
from tests.kafka.conftest import unavailable

pytestmark = [pytest.mark.compiled, pytest.mark.kafka]

COMMAND = [sys.executable, "-m", "deploy.cluster_demo"]
RIGHT = {"sent": 9, "predictions": 9, "twice": 0, "missing": 0, "strange": 0, "letters": 0}


@pytest.fixture
def begin(tmp_path):
    """Return a function that starts the demo; all its processes name the folder of the test."""
    started = []

    def begin(*options, **variables):
        command = [*COMMAND, "--output", str(tmp_path / "out"), *map(str, options)]
        environment = os.environ | {"TMPDIR": str(tmp_path), "COLUMNS": "100"} | variables
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes))
        return started[-1]

    yield begin
    for process in started:
        with process:
            process.kill()


@pytest.fixture
def broker():
    """Skip where there is none."""
    try:
        find_kafka()
    except UnavailableError as error:
        unavailable(str(error))


def left_behind(folder):
    """Return the command lines that name a folder, and what is left of brokers in it."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it has ended just now
    own = [line for line in lines if str(folder) in line]
    return own + [str(data) for data in folder.glob("stream-hc-kafka-*")]


def test_two_are_killed_and_every_document_is_answered_once(broker, begin, tmp_path):
    n_documents = 2_000
    process = begin("--documents", n_documents, "--rate", 200)
    said, complaints = process.communicate(timeout=170)
    logs = "".join(f"\n{log.name}:\n{log.read_text()}" for log in (tmp_path / "out").glob("*.log"))
    assert process.returncode == 0, said + complaints + logs
    assert complaints == ""
    assert left_behind(tmp_path) == []

    for what in (
        r"kill -9 trainer (\d)[ab], which learned shard \1\n",
        r"trainer (\d)[ab] has taken over shard \1, after \d+\.\d s\n",
        r"kill -9 predictor \d, which answered partitions \d and \d\n",
        r"the other predictors answer partitions \d and \d, after \d+\.\d s\n",
        r"\d documents sent, [\d,]+ predicted, \d+ behind; the model knows [\d,]+ documents and is \d",
    ):
        assert re.search(what, said), (what, said)
    story = " ".join(said.partition("What happened")[2].split())
    for what in (
        r"2,000 documents were sent in \d+ s",
        r"2,000 predictions are committed: 0 documents were answered twice, 0 not at all\.",
        r"At \d:\d\d trainer \d[ab] was killed .*\. Trainer \d[ab], which stood by, went on \d+\.\d s later",
        r"At \d:\d\d predictor \d was killed\. \d+\.\d s later the others answered its partitions \d and \d",
        r"The last models of the two shards have learned 2,000 and 2,000 documents",
        r"\d+ versions were published \(\d+ of shard 0 and \d+ of shard 1\)\.",
    ):
        assert re.search(what, story), (what, story)
    first, last = map(
        float, re.search(r"was (\d\.\d+) in the first .* and (\d\.\d+) in the last", story).groups()
    )
    assert 0 < last < first, "it has learned"

    advice = said.partition("What to try next")[2].split("\n")
    plan, log, broker = [line for line in advice if line.strip() and not line.startswith("  #")]
    for command, answer in ((plan, "shard"), (log, "reading documents, labels as")):
        tried = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
        assert tried.returncode == 0, tried.stderr
        assert answer in tried.stdout
    assert broker == "  make kafka"


def test_whoever_interrupts_it_leaves_nothing_behind(broker, begin, tmp_path):
    process = begin("--documents", 2_000, "--rate", 200)
    for line in process.stdout:
        if "trainers start" in line:
            break
    time.sleep(2.0)
    assert len(left_behind(tmp_path)) >= 8, "the broker, four trainers, three predictors"
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=30)
    assert (process.returncode, complaints) == (130, "stopped: nothing runs any more\n")
    assert left_behind(tmp_path) == []


def test_without_a_broker_it_says_so_in_one_line(begin, tmp_path):
    process = begin(PATH=str(tmp_path), JAVA_HOME="", XDG_CACHE_HOME=str(tmp_path))
    _, complaints = process.communicate(timeout=60)
    assert process.returncode == 3
    needs = "error: Apache Kafka needs Java 17 or newer and no Java is found: install openjdk-17-jre-headless"
    assert complaints == f"{needs}\n"


def test_the_files_of_others_stay(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "job.toml").write_text("[model]\n")
    with pytest.raises(DemoError, match="has files that are not of this demo: choose another --output"):
        claim(tmp_path / "out")
    assert (tmp_path / "out" / "job.toml").read_text() == "[model]\n"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({}, []),
        ({"twice": 1}, ["1 documents have several predictions"]),
        (
            {"missing": 2, "strange": 1},
            ["2 documents have no", "1 predictions are of documents that were never"],
        ),
        ({"letters": 3}, ["3 records are in the dead letters"]),
        ({"learned": [9, 8]}, ["the trainers have learned 9 and 8 of 9 documents"]),
    ],
)
def test_what_is_not_as_promised_is_named(wrong, told):
    found = Counted(**{**RIGHT, "learned": [9, 9], "losses": [0.5] * 4, **wrong}).problems()
    assert len(found) == len(told)
    assert all(line.startswith(begin) for line, begin in zip(found, told, strict=True))
