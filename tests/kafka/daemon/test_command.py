"""`stream-hc kafka consume` in this process: options, what it says, its page, and its exit codes."""

import os
import signal
import threading
import time
import urllib.request
from collections import Counter
from types import SimpleNamespace

import pytest

from consumers.daemon import Daemon, Fenced
from consumers.daemon.telling import TopicsTelemetry
from consumers.daemon.watching import ConsumeWatcher
from consumers.errors import KafkaProblem
from deploy.kafka.settings import free_port
from stream_hc.datasets import make_news
from stream_hc.runtime.events import Event
from stream_hc.runtime.outcome import Outcome
from stream_hc.runtime.pipeline import Processed
from tests.kafka.daemons import stream
from tests.kafka.tools import Tools

pytestmark = pytest.mark.kafka


class Consuming(Tools):
    """Calls the command with a taxonomy, a state folder and small models."""

    def __init__(self, kafka, monkeypatch, capfd, folder):
        super().__init__(kafka, monkeypatch, capfd)
        self.folder = folder
        make_news(10, seed=3).taxonomy.write(folder / "tree.tsv")

    def feed(self, n):
        for number, (text, labels) in enumerate(stream(n, 3)):
            self.send(self.documents, {"id": f"d{number}", "text": text, "labels": labels})

    def consume(self, *more):
        options = {"model__n_features": 1024, "kafka__events": "none", "kafka__session_timeout": 6}
        given = ("--taxonomy", self.folder / "tree.tsv", "--state", self.folder / "state")
        return self("consume", *given, *more, **options)


@pytest.fixture
def tools(kafka, monkeypatch, capfd, tmp_path):
    with Consuming(kafka, monkeypatch, capfd, tmp_path) as made:
        yield made


def test_it_says_what_it_reads_and_what_it_did(tools):
    tools.feed(20)
    code, out, err = tools.consume("--limit", 20)
    assert (code, out) == (0, "")
    assert f"reading {tools.documents}, {tools.labels} as {tools.group}, after 0 records" in err
    assert "20 documents, 20 labelled, 0 rejected" in err
    assert len(tools.read(tools.predictions, 20)) == 20


def test_quietly_it_says_only_what_somebody_should_know(tools):
    tools.feed(5)
    code, out, err = tools.consume("--limit", 5, "--quiet")
    assert (code, out) == (0, "")
    assert "reading" not in err
    assert "documents," not in err


def test_a_signal_ends_it_with_a_code_of_its_own_and_its_page_tells(tools):
    tools.feed(20)
    port, told = free_port(), {}

    def look():
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                for path in ("/readyz", "/metrics"):
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                        told[path] = answer.read().decode()
            except OSError:
                time.sleep(0.1)
                continue
            if "streamhc_documents_consumed_total 20.0" in told["/metrics"] and " 0.0" in lag_of(told):
                break
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        code, _, err = tools.consume("--http", port)
    finally:
        thread.join()
    assert code == 130
    assert f"live page: http://127.0.0.1:{port}" in err
    assert told["/readyz"] == "ready\n"
    assert 'streamhc_transactions_total{outcome="committed"}' in told["/metrics"]
    assert tools.documents in lag_of(told)


def lag_of(told):
    lines = told["/metrics"].splitlines()
    return " ".join(line for line in lines if line.startswith("streamhc_consumer_lag_records{"))


def test_without_a_state_folder_it_is_wrong_usage(tools):
    code, _, err = tools("consume")
    assert code == 2
    assert "--state is missing: a job on topics needs a folder for what it knows" in err


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (Fenced("another process is one now"), 6, "one now: this one ends, and must not be started again"),
        (KafkaProblem("no such thing: make it"), 3, "error: no such thing: make it"),
    ],
)
def test_what_ends_it_is_said_in_one_line(tools, monkeypatch, error, code, told):
    def run(self):
        raise error

    monkeypatch.setattr(Daemon, "run", run)
    found, _, err = tools.consume()
    assert found == code
    assert told in " ".join(err.split())
    assert "Traceback" not in err


def test_where_nothing_was_read_it_says_so(tools, monkeypatch):
    monkeypatch.setattr(Daemon, "run", lambda self: None)
    code, _, err = tools.consume()
    assert code == 0
    assert "nothing was read" in err


def test_options_reach_the_configuration(tools, monkeypatch):
    seen = []
    monkeypatch.setattr(Daemon, "run", lambda self: seen.append(self._config))
    tools.consume("--learner", "node-pa", "--learner", "hpa", "--refit", "--create-topics", "--limit", 7)
    (config,) = seen
    assert [each if isinstance(each, str) else each.name for each in config.model.learners] == [
        "node-pa",
        "hpa",
    ]
    assert config.refit.enabled
    assert config.kafka.create_topics
    assert config.kafka.bootstrap == tools.bootstrap
    assert config.stream.limit == 7
    assert config.state.folder == str(tools.folder / "state")
    assert not config.http.enabled


def test_what_happens_to_the_models_is_said(capfd):
    watcher = ConsumeWatcher(60.0)
    events = [
        Event("swap", 90, 60, "node-pa", "h-arow", "better"),
        Event("drift", 90, 60),
        Event("candidate", 90, 60, "fit-1"),
    ]
    watcher.processed(None, Processed("", Outcome(log=events), None))
    lines = capfd.readouterr().err.splitlines()
    assert lines == ["swap: node-pa after h-arow: better", "drift"]


def test_now_and_then_it_says_how_it_goes(capfd):
    watcher, job = ConsumeWatcher(0.0), SimpleNamespace(lag={"a": 1200, "b": 34})
    watcher.processed(job, Processed("", Outcome(), None))  # before it has begun there is nothing to say
    watcher.tally = SimpleNamespace(remark=lambda: "20 docs")
    watcher.processed(job, Processed("", Outcome(), None))
    assert capfd.readouterr().err == "20 docs, 1,234 records behind\n"


def test_one_that_stands_by_is_ready_and_one_that_begins_is_not_yet():
    told = []
    topics = TopicsTelemetry(SimpleNamespace(set_ready=told.append))
    topics.stand_by()
    topics.begin(None)
    assert told == [True, False]


def test_transactions_are_counted_once():
    told = []
    topics = TopicsTelemetry(
        SimpleNamespace(set_ready=told.append, transaction=lambda *what: told.append(what))
    )
    transactions = SimpleNamespace(counts=Counter(committed=2, aborted=1), seconds=0.5)
    job = SimpleNamespace(transactions=transactions, publisher=None)
    topics.processed(job, None)
    assert told == [("committed", 0.5), ("committed", 0.5), ("aborted", None)]
    job.transactions.counts["committed"] += 1
    topics.processed(job, None)
    assert told[3:] == [("committed", 0.5)]
