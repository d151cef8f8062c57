"""Messages for the topics: predictions under the id of their document, letters byte for byte, events."""

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from kafka.consumer.fetcher import ConsumerRecord

from consumers.daemon.messages import ROOM, MessageMaker, letter_headers
from consumers.daemon.transactions import Message
from stream_hc import Taxonomy
from stream_hc.runtime.answers import Answers, Signature
from stream_hc.runtime.config import KafkaConfig
from stream_hc.runtime.events import Event
from stream_hc.runtime.jsonl import Line
from stream_hc.runtime.outcome import Outcome
from stream_hc.runtime.records import LabelRequest, RecordError
from stream_hc.vectorize import Rows

TREE = Taxonomy([("sport", None), ("tennis", "sport")])
LARGEST = 10_000
EVENT = Event("drift", documents=90, labelled=60)


def maker(partitions=1, **names):
    config = KafkaConfig(**{"requests": "wanted"} | names)
    return MessageMaker(config, {config.predictions: partitions}, LARGEST)


def answers(*ids):
    """Return predictions: sport, and for all but the first one tennis below it."""
    ptr = np.cumsum([0, 1, *[2] * (len(ids) - 1)])
    nodes = np.array([0, *[0, 1] * (len(ids) - 1)])
    scored = Rows(ptr, nodes.astype(np.int32), np.full(nodes.size, 0.5))
    return Answers(Signature(TREE, "h-arow"), list(ids), scored, np.arange(len(ids)))


def record(value, key=None, **more: Any):
    given = {"topic": "documents", "partition": 2, "offset": 77, "value": value, "key": key}
    assert given.keys() <= set(ConsumerRecord._fields)
    return SimpleNamespace(**given | more)


def letter(value, key=None):
    outcome = Outcome(rejects=[(Line(1, b""), RecordError("not_json", "it is no JSON"))])
    (made,) = maker().of_outcome(outcome, [record(b"another"), record(value, key)])
    return made


def test_predictions_are_lines_of_json_under_the_ids_of_their_documents():
    first, second, third = maker().of_outcome(Outcome(answers=[answers("a", "b"), answers("c")]), [])
    assert [each.key for each in (first, second, third)] == [b"a", b"b", b"c"]
    assert msgspec.json.decode(second.value) == {
        "id": "b",
        "labels": ["tennis"],
        "path_labels": ["sport", "tennis"],
        "scores": {"sport": 0.5, "tennis": 0.5},
        "model": "h-arow",
        "model_version": 1,
    }
    assert {(each.topic, each.partition, tuple(each.headers)) for each in (first, second, third)} == {
        ("predictions", 0, ())
    }


def test_among_several_partitions_the_key_leads():
    (message,) = maker(partitions=3).of_outcome(Outcome(answers=[answers("a")]), [])
    assert message.partition is None


def test_an_id_with_half_a_character_is_a_key_all_the_same():
    made = answers("d1")
    broken = Answers(made.signature, ["d\ud800"], made.scored, made.versions)
    lines = SimpleNamespace(ids=broken.ids, json_lines=made.json_lines)
    (message,) = maker().of_outcome(Outcome(answers=[lines]), [])
    assert message.key == b"d\xed\xa0\x80"


def test_a_letter_is_the_record_as_it_came():
    found = letter(b"\xff{", b"\x00key")
    told = {"reason": "not_json", "detail": "it is no JSON", "topic": "documents"}
    told |= {"partition": "2", "offset": "77"}
    assert found == Message(
        "dead-letters", b"\xff{", b"\x00key", 0, [(key, text.encode()) for key, text in told.items()]
    )


def test_a_letter_without_a_value_stays_without_if_it_has_a_key():
    assert letter(None, b"key").value is None
    # With neither, kafka-python would refuse it.
    assert letter(None).value == b""
    assert letter(b"").value == b""


@pytest.mark.parametrize("key", [None, b"k" * 100])
def test_a_letter_that_is_too_large_is_cut_and_says_how_large_it_was(key):
    room = LARGEST - ROOM - len(key or b"")
    whole, cut = letter(b"x" * room, key), letter(b"x" * room + b"y", key)
    assert whole.value == cut.value == b"x" * room
    assert "truncated" not in dict(whole.headers)
    assert dict(cut.headers)["truncated"] == str(room + 1).encode()


def test_a_key_that_is_too_large_leaves_nothing_of_the_value():
    assert letter(b"value", b"k" * LARGEST).value == b""


def test_headers_hold_what_utf8_cannot_and_no_more_than_a_little_text():
    found = dict(letter_headers(record(b"x"), "bad", "\ud800" + "é" * 600))
    assert found["detail"] == b"\\ud800" + "é".encode() * 499


def test_requests_go_out_under_the_id_of_the_document():
    request = LabelRequest("d7", {"tennis": 0.25})
    (message,) = maker().of_outcome(Outcome(requests=[request]), [])
    assert message == Message("wanted", b'{"id":"d7","nodes":{"tennis":0.25}}', b"d7")


def test_events_are_lines_of_the_log_without_their_end():
    (message,) = maker().of_log([EVENT])
    assert message.topic == "model-events"
    assert not message.value.endswith(b"\n")
    assert msgspec.json.decode(message.value, type=Event) == EVENT
    assert maker().of_outcome(Outcome(log=[EVENT]), []) == [message]


def test_all_of_an_outcome_goes_out_in_one_order():
    error = RecordError("not_json", "no")
    outcome = Outcome([answers("a")], [(Line(0, b""), error)], [LabelRequest("a", {})], [EVENT])
    found = maker().of_outcome(outcome, [record(b"{")])
    assert [each.topic for each in found] == ["predictions", "dead-letters", "wanted", "model-events"]


def test_topics_that_are_not_wanted_get_nothing():
    error = RecordError("not_json", "no")
    outcome = Outcome([answers("a")], [(Line(0, b""), error)], [LabelRequest("a", {})], [EVENT])
    found = maker(dead_letters=None, requests=None, events=None).of_outcome(outcome, [record(b"{")])
    assert [each.topic for each in found] == ["predictions"]
