"""`stream-hc kafka produce`: lines and synthetic news arrive in their topics, all, in order and in time."""

import gzip
import json
import signal
import threading
import time

import pytest

from consumers.tools.feeding import Pace
from consumers.tools.lines import part
from stream_hc.taxonomy import Taxonomy
from tests.cli.support import start
from tests.kafka.tools import Tools

pytestmark = pytest.mark.kafka

DOCS = (
    b'{"id": "a", "text": "a racket", "labels": ["tennis"], "extra": 1e400}\n'
    b"rates rise ag\xff\n"
    b'{"id": "b", "text": "a vote"}\n'
    b'\n{"id": "a", "labels": ["sport"]}\n'
    b'{"id": 7, "text": "no key"}\n'
    b'{"id": "c", "features": {"x": 1}, "labels": ["politics"], "ts": 5}\n'
)


@pytest.fixture
def tools(kafka, monkeypatch, capfd):
    with Tools(kafka, monkeypatch, capfd) as made:
        yield made


@pytest.fixture
def docs(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_bytes(DOCS)
    return path


def values(records):
    return [record.value for record in records]


def test_lines_go_as_they_are_with_their_ids_as_keys(tools, docs):
    code, out, err = tools("produce", docs)
    assert (code, out) == (0, "")
    said = f"5 documents to {tools.documents}, 1 labels to {tools.labels} in "
    assert err.startswith(said)
    assert err.endswith("; 2 are no records, sent as they are\n")
    sent = tools.read(tools.documents, 5)
    lines = DOCS.splitlines()
    assert values(sent) == [lines[0], lines[1], lines[2], lines[5], lines[6]]
    assert [record.key for record in sent] == [b"a", None, b"b", None, b"c"]
    labels = tools.read(tools.labels, 1)
    assert [(record.key, record.value) for record in labels] == [(b"a", lines[4])]


def test_labels_follow_so_many_documents_later(tools, docs):
    code, _, err = tools("produce", docs, "--delay", "2", kafka__labels="none")
    assert code == 0
    assert f"5 documents to {tools.documents}, 3 labels to {tools.documents}" in err
    lines = DOCS.splitlines()
    assert values(tools.read(tools.documents, 8)) == [
        b'{"id":"a","text":"a racket","extra":1e400}',
        lines[1],
        lines[2],
        b'{"id":"a","labels":["tennis"]}',
        lines[4],
        lines[5],
        b'{"id":"c","features":{"x": 1},"ts":5}',
        b'{"id":"c","labels":["politics"]}',
    ]


def test_labels_follow_so_many_seconds_later_at_an_even_rate(tools, docs):
    began = time.monotonic()
    code, _, _ = tools("produce", docs, "--delay-seconds", "0.6", "--rate", "10")
    assert code == 0
    assert time.monotonic() - began > 1.0
    sent = tools.read(tools.documents, 5)
    stamps = [record.timestamp for record in sent]
    assert 350 < stamps[-1] - stamps[0] < 3000
    late = {record.key: record for record in tools.read(tools.labels, 3) if b"sport" not in record.value}
    for record in (sent[0], sent[-1]):
        assert 550 < late[record.key].timestamp - record.timestamp < 3000


def test_news_need_no_data(tools, tmp_path):
    tree = tmp_path / "topics.tsv"
    code, _, err = tools(
        "produce", "news:300:1:sudden", "--limit", "200", "--taxonomy-out", tree, "--delay", "0"
    )
    assert code == 0
    assert err.startswith(f"200 documents to {tools.documents}, 200 labels to {tools.labels}")
    taxonomy = Taxonomy.read(tree)
    for document, label in zip(tools.read(tools.documents, 200), tools.read(tools.labels, 200), strict=True):
        found, labels = json.loads(document.value), json.loads(label.value)
        assert found.keys() == {"id", "text"}
        assert (labels["id"], taxonomy.respects(taxonomy.close(labels["labels"]))) == (found["id"], True)
    assert tools("produce", tree, "--taxonomy-out", "x.tsv")[0] == 2


def test_a_line_that_is_too_long_is_left_out_and_told(tools, tmp_path):
    path = tmp_path / "docs.jsonl.gz"
    path.write_bytes(
        gzip.compress(b'{"id": "a", "text": "%s"}\n{"id": "b", "text": "y"}\n' % (b"x " * 600_000))
    )
    code, _, err = tools("produce", path)
    assert (code, err.endswith("; 1 lines left out: too long for a record\n")) == (5, True)
    assert tools.count(tools.documents) == 1


def test_the_longest_line_that_is_taken_fits_the_topic(tools, tmp_path):
    line = b'{"id": "a", "text": "'
    (tmp_path / "docs.jsonl").write_bytes(line + b"x" * (1_000_000 - len(line) - 2) + b'"}\n')
    assert tools("produce", tmp_path / "docs.jsonl")[0] == 0
    assert len(tools.read(tools.documents, 1)[0].value) == 1_000_000


def test_strict_stops_at_the_first_line_that_no_job_could_use(tools, docs):
    code, _, err = tools("produce", docs, "--strict")
    assert code == 3
    assert (
        err == f"error: {docs}:2: not_utf8: not UTF-8: write the file as UTF-8 (--strict: the lines before "
        "it were sent)\n"
    )


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["missing.jsonl"], 3, "error: missing.jsonl: cannot read: No such file or directory\n"),
        (["news:x"], 2, "error: news:x: expected news[:DOCUMENTS"),
        (["-", "--delay", "1", "--delay-seconds", "1"], 2, "error: --delay counts documents"),
    ],
)
def test_what_cannot_be_done_is_one_line(tools, options, code, said):
    ended, out, err = tools("produce", *options)
    assert (ended, out) == (code, "")
    assert err.startswith(said)
    assert err.count("\n") == 1


def test_topics_that_are_missing_are_made_if_that_is_wanted(tools, docs):
    tools.documents, tools.dead_letters = f"new-{tools.documents}", f"new-{tools.dead_letters}"
    code, _, err = tools("produce", docs, "--create-topics", kafka__events="none", kafka__partitions=2)
    assert code == 0
    assert err.startswith(f"made the topics {tools.dead_letters}, {tools.documents}\n5 documents to ")
    assert len(tools.read(tools.documents, 5)) == 5


def test_a_topic_that_is_not_there_is_named_at_once(tools, docs):
    began = time.monotonic()
    code, _, err = tools("produce", docs, kafka__documents="no-such-topic")
    assert (code, err.count("\n")) == (3, 1)
    assert err.startswith("error: there is no topic no-such-topic")
    assert time.monotonic() - began < 10


def test_no_broker_is_one_line(tools, docs):
    code, _, err = tools("produce", docs, "--bootstrap", "127.0.0.1:1", kafka__request_timeout=1)
    assert (code, err.count("\n")) == (3, 1)
    assert "no broker answers at 127.0.0.1:1" in err


def test_a_broker_that_goes_away_is_one_line_and_in_time(make_broker, monkeypatch, capfd, tmp_path):
    broker = make_broker()
    path = tmp_path / "docs.jsonl"
    path.write_bytes(b'{"id": "a", "text": "x"}\n' * 100_000)
    with Tools(broker, monkeypatch, capfd) as tools:
        killer = threading.Timer(2, broker.kill)
        killer.start()
        code, _, err = tools("produce", path, "--rate", "100", kafka__request_timeout=1)
        killer.join()
    assert (code, err.count("\n")) == (3, 1)
    assert f"no broker answers at {broker.bootstrap}" in err


def test_what_comes_through_a_pipe_is_sent_at_once_and_ctrl_c_ends_it(tools):
    given = ["kafka.documents=" + tools.documents, "kafka.labels=" + tools.labels]
    options = [word for setting in given for word in ("--set", setting)]
    process = start(
        "kafka", "produce", "-", "--delay-seconds", "0.1", "--bootstrap", tools.bootstrap, *options
    )
    try:
        process.stdin.write(b'{"id": "a", "text": "x", "labels": ["y"]}\n')
        assert values(tools.read(tools.labels, 1)) == [b'{"id":"a","labels":["y"]}']
        assert values(tools.read(tools.documents, 1)) == [b'{"id":"a","text":"x"}']
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert err.startswith(b"1 documents to ")
    assert err.count(b"\n") == 1


def test_pace_is_even_and_forgets_long_delays():
    pace, now, sent = Pace(100.0), 0.0, []
    for step in range(300):
        if step == 100:
            now += 5.0
        now = max(now, pace.due(now))
        sent.append(now)
    assert sent[99] == pytest.approx(0.99)
    assert sent[299] == pytest.approx(sent[99] + 5.0 + 1.99 - 0.1, abs=0.02)


@pytest.mark.parametrize(
    "line",
    [
        b"[1]",
        b'"text"',
        b"{}",
        b'{"id": null}',
        b'{"id": "a"} {}',
        b"[" * 100_000,
        b'{"id":"\\ud800","text":"x"}',
    ],
)
def test_what_is_no_record_keeps_its_bytes_and_has_no_key(line):
    assert part(line, apart=True) == (None, line, False, None)
