"""`stream-hc kafka dlq`: dead letters are shown whatever is in them, and go back once, byte for byte."""

import base64
import io
import json
import sys
import time
from types import SimpleNamespace

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaTimeoutError

from consumers.tools import replaying
from consumers.tools.letters import Letter
from consumers.tools.reading import Reading
from tests.kafka.tools import Tools

pytestmark = pytest.mark.kafka

HOSTILE = b'\xff\x1b[31m{"id": \x00\x9b"\n'


@pytest.fixture
def tools(kafka, monkeypatch, capfd):
    with Tools(kafka, monkeypatch, capfd) as made:
        yield made


@pytest.fixture
def several(kafka, monkeypatch, capfd):
    with Tools(kafka, monkeypatch, capfd, dead_letters=3) as made:
        yield made


def headers(reason, topic, offset=0, **more):
    told = {
        "reason": reason,
        "detail": f"because of {reason}",
        "topic": topic,
        "partition": 0,
        "offset": offset,
    }
    return [(name, str(value).encode()) for name, value in (told | more).items()]


def fill(tools):
    """Five letters: two of documents, one of labels, one from elsewhere, one that is not whole."""
    letters = tools.dead_letters
    tools.send(letters, HOSTILE, key=b"\xfe", headers=headers("not_utf8", tools.documents, 7))
    tools.send(letters, b"rates ri", headers=headers("not_json", tools.documents, 9))
    tools.send(letters, {"id": "a"}, key=b"a", headers=headers("unknown_label", tools.labels, 3))
    tools.send(letters, b"?", headers=headers("not_json", "payments", 1))
    tools.send(letters, b"{", headers=headers("not_json", tools.documents, 2, truncated=2_000_000))


def place(tools, least=0):
    """Return where the next replay begins; the brokers may take a moment to show what is committed."""
    group, end = f"{tools.group}.dlq", time.monotonic() + 20
    while True:
        found = tools.admin.list_group_offsets({group: None})[group]
        places = {partition.partition: at.offset for partition, at in found.items()}
        if sum(places.values()) >= least or time.monotonic() > end:
            return places
        time.sleep(0.05)


def test_what_comes_later_is_not_read_to_the_end(tools):
    partition = TopicPartition(tools.documents, 0)
    tools.send(tools.documents, b"now")
    consumer = KafkaConsumer(bootstrap_servers=tools.bootstrap, enable_auto_commit=False)
    try:
        reading = Reading(consumer, {partition: 0}, 10.0)
        tools.send(tools.documents, b"later")
        assert [record.value for records in reading.to_end() for record in records] == [b"now"]
        starved = Reading(consumer, {partition: 0}, 0.5, {partition: 3})  # nobody ever writes so much
        with pytest.raises(KafkaTimeoutError, match=f"no records of {tools.documents} for 0.5 s"):
            list(starved.to_end())
    finally:
        consumer.close(autocommit=False)


class TestList:
    def test_letters_are_shown_with_the_reason_and_where_they_came_from(self, tools):
        fill(tools)
        code, out, err = tools("dlq", "list")
        assert code == 0
        rows = [line.split() for line in out.splitlines() if line.startswith("+")]
        assert [row[1] for row in rows] == ["0", "1", "2", "3", "4"]
        assert rows[1][2].startswith("20")
        assert "not_json" in rows[1]
        assert not {"\x1b", "\x00", "\x9b"} & set(out)
        assert err == (f"5 dead letters in {tools.dead_letters}: 3 not_json, 1 not_utf8, 1 unknown_label\n")

    def test_some_of_them_can_be_asked_for(self, tools):
        fill(tools)
        code, out, err = tools("dlq", "list", "--reason", "not_json", "--limit", "2")
        assert (code, out.count("\n+")) == (0, 2)
        assert "rates ri" not in out
        assert err == f"3 dead letters in {tools.dead_letters}: 3 not_json; the newest 2 are shown\n"

    @pytest.mark.parametrize("limit", [(), ("--limit", "5")])
    def test_as_json_nothing_is_lost(self, tools, limit):
        fill(tools)
        _, out, _ = tools("dlq", "list", "--json", *limit)
        first, second, third, *_ = (json.loads(line) for line in out.splitlines())
        assert base64.b64decode(first["value_base64"]) == HOSTILE
        assert base64.b64decode(first["key_base64"]) == b"\xfe"
        assert (second["value"], second["key"], "value_base64" in second) == ("rates ri", None, False)
        assert (third["offset"], third["reason"], third["topic"]) == (2, "unknown_label", tools.labels)
        assert third["detail"] == "because of unknown_label"
        assert third["origin"] == "0:3"

    def test_what_somebody_else_wrote_there_is_shown_too(self, tools):
        tools.send(tools.dead_letters, b"x")
        tools.send(tools.dead_letters, None, key=b"k", headers=[("reason", b"\xff\x1b")])
        code, out, err = tools("dlq", "list")
        assert (code, out.count("\n+")) == (0, 2)
        assert err == f"2 dead letters in {tools.dead_letters}: 1 ?, 1 \\xff\\x1b\n"

    @pytest.mark.parametrize("timestamp", [-1, -(2**62), 2**62])
    def test_any_time_can_be_shown(self, timestamp):
        record = SimpleNamespace(
            headers=None, partition=0, offset=1, timestamp=timestamp, key=None, value=None
        )
        assert Letter.of(record).when == "?"

    def test_none_and_no_topic_are_one_line(self, tools):
        assert tools("dlq", "list") == (0, "", f"no dead letters in {tools.dead_letters}\n")
        code, _, err = tools("dlq", "list", kafka__dead_letters="no-such-topic")
        assert (code, err.count("\n")) == (3, 1)
        assert err.startswith("error: there is no topic no-such-topic")
        code, _, err = tools("dlq", "list", kafka__dead_letters="none")
        assert (code, err) == (2, "error: kafka.dead_letters is none: this job keeps no dead letters\n")


class TestReplay:
    def test_they_go_back_where_they_came_from_once_with_the_same_bytes(self, tools):
        fill(tools)
        code, out, err = tools("dlq", "replay", "--yes")
        assert (code, out) == (0, "")
        assert err == (
            f"dead letters sent: 2 to {tools.documents}, 1 to {tools.labels}; passed over: 1 from topics "
            "that this job does not read (see --to), 1 that were too long to be kept whole\n"
        )
        sent = [(record.key, record.value, record.headers) for record in tools.read(tools.documents, 2)]
        assert sent == [
            (b"\xfe", HOSTILE, [("replayed", b"0")]),
            (None, b"rates ri", [("replayed", b"1")]),
        ]
        (label,) = tools.read(tools.labels, 1)
        assert (label.key, label.value, label.headers) == (b"a", b'{"id": "a"}', [("replayed", b"2")])
        before = tools.count(tools.documents)
        assert tools("dlq", "replay", "--yes") == (0, "", "dead letters to be sent: none\n")
        assert tools.count(tools.documents) == before
        place(tools, 5)
        _, out, _ = tools("dlq", "list")
        assert "+" not in out

    def test_some_of_them_and_the_others_are_passed_over(self, tools):
        fill(tools)
        options = ("--reason", "not_json", "--to", tools.labels, "--limit", "1", "--yes")
        _, _, err = tools("dlq", "replay", *options)
        assert err == f"dead letters sent: 1 to {tools.labels}; passed over: 1 with other reasons\n"
        assert place(tools, 2) == {0: 2}
        _, _, err = tools("dlq", "replay", *options)
        assert err == f"dead letters sent: 1 to {tools.labels}; passed over: 1 with other reasons\n"
        assert place(tools, 4) == {0: 4}
        assert [record.value for record in tools.read(tools.labels, 2)] == [b"rates ri", b"?"]
        _, _, err = tools("dlq", "replay", "--again", "--reason", "unknown_label", "--yes")
        assert err.startswith(f"dead letters sent: 1 to {tools.labels}; passed over: 4 with other reasons")

    def test_a_dry_run_does_nothing(self, tools):
        fill(tools)
        _, _, err = tools("dlq", "replay", "--dry-run", "--reason", "not_utf8")
        assert err == f"dead letters to be sent: 1 to {tools.documents}; passed over: 4 with other reasons\n"
        assert (tools.count(tools.documents), place(tools)) == (0, {})

    @pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("no\n", 2), ("", 2)])
    def test_it_asks_first(self, tools, monkeypatch, typed, code):
        fill(tools)
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        ended, _, err = tools("dlq", "replay")
        assert ended == code
        assert "Send them? [yes/no]" in err
        assert place(tools, 0 if code else 5) == ({} if code else {0: 5})
        if code:
            assert err.endswith("error: nothing was done: type yes to go on, or say --yes\n")
            assert tools.count(tools.documents) == 0

    def test_letters_that_come_while_it_asks_are_not_sent(self, tools, monkeypatch):
        fill(tools)

        def slowly(*args):
            fill(tools)

        monkeypatch.setattr(replaying, "confirm", slowly)
        _, _, err = tools("dlq", "replay")
        assert f"dead letters sent: 2 to {tools.documents}, 1 to {tools.labels}" in err
        assert place(tools, 5) == {0: 5}

    def test_a_letter_that_comes_back_at_once_is_not_sent_again_and_again(self, tools):
        fill(tools)
        _, _, err = tools("dlq", "replay", "--to", tools.dead_letters, "--yes")
        assert "dead letters sent: 4 to" in err
        assert len(tools.read(tools.dead_letters, 9)) == 9

    @pytest.mark.parametrize("has_time", [True, False])
    def test_killed_in_the_middle_it_has_sent_nothing_twice(self, tools, monkeypatch, has_time):
        fill(tools)

        def killed(self):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(KafkaProducer, "commit_transaction", killed)
            if not has_time:
                patch.setattr(KafkaProducer, "abort_transaction", killed)
            assert tools("dlq", "replay", "--yes")[0] == 130
        assert place(tools) == {}
        assert tools("dlq", "replay", "--yes")[0] == 0
        sent = tools.read(tools.documents, 2)
        assert [record.value for record in sent] == [HOSTILE, b"rates ri"]
        # Between the two that were aborted, the mark of that, these two and theirs: there are no others.
        assert (sent[0].offset, tools.count(tools.documents)) == (3, 6)

    def test_who_comes_second_shuts_out_the_first(self, tools, monkeypatch):
        fill(tools)
        count = replaying._Replay.count
        second = []

        def overtaken(self):
            if not second:
                second.append(None)
                second.append(tools("dlq", "replay", "--yes"))
            return count(self)

        monkeypatch.setattr(replaying._Replay, "count", overtaken)
        code, _, err = tools("dlq", "replay", "--yes")
        assert second[1][0] == 0
        assert (code, err.count("\n")) == (3, 1)
        assert (len(tools.read(tools.documents, 2)), tools.count(tools.documents)) == (2, 3)

    def test_letters_in_several_partitions_keep_their_places(self, several):
        tools = several
        for number in range(9):
            told = headers("not_json", tools.documents, number)
            tools.send(tools.dead_letters, b"%d" % number, partition=number % 3, headers=told)
        seen = 0
        for left in (4, 4, 1, 0):
            _, _, err = tools("dlq", "replay", "--limit", "4", "--yes")
            seen += left
            assert (f"sent: {left} to" in err) == (left > 0)
            assert sum(place(tools, seen).values()) == seen
        assert sorted(record.value for record in tools.read(tools.documents, 9)) == [
            b"%d" % n for n in range(9)
        ]
        assert "0:2" in tools("dlq", "list")[1]

    def test_a_topic_that_is_not_there_is_one_line(self, tools):
        fill(tools)
        code, _, err = tools("dlq", "replay", "--to", "no-such-topic", "--yes")
        assert (code, err.count("\n")) == (3, 1)
        assert err.startswith("error: there is no topic no-such-topic")
        assert place(tools) == {}
