"""Documents in, predictions and rejects out: what is accepted, what is refused and why."""

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc.runtime import records
from stream_hc.runtime.records import (
    Document,
    Prediction,
    RecordError,
    Reject,
    parse_document,
    parse_record,
    parse_records,
)
from stream_hc.vectorize import LARGEST_FEATURE


def test_each_kind_of_document() -> None:
    assert parse_document(b'{"id": "1", "text": ""}') == Document("1", text="")
    assert parse_document(b'{"id": "1", "features": {"a": 1, "b": -2.5e3}}').features == {
        "a": 1.0,
        "b": -2500.0,
    }
    assert parse_document(b'{"id": "1", "vector": [0, 1.5]}').vector == [0.0, 1.5]
    full = parse_document(b'{"id": "1", "text": "x", "labels": ["a", "a"], "ts": 17, "unknown": {"b": [1]}}')
    assert (full.labels, full.ts) == (["a", "a"], 17)


def test_null_is_not_given_and_empty_labels_are() -> None:
    document = parse_document(b'{"id": "1", "text": "x", "features": null, "labels": null, "ts": null}')
    assert document == Document("1", text="x")
    assert parse_document(b'{"id": "1", "text": "x", "labels": []}').labels == []


BAD = {
    b"": "not_json",
    b"hello": "not_json",
    b'{"id": "1", "text": "x"': "not_json",
    b'{"id": "1", "text": "x"} {}': "not_json",
    b'{"id": "1", "features": {"a": NaN}}': "not_json",
    b'{"id": "1", "vector": [1, -Infinity]}': "not_json",
    b'{"id": "1", "text": "\\ud800"}': "not_json",
    b'{"id": "1", "text": "a\x00b"}': "not_json",
    b"[]": "wrong_type",
    b"7": "wrong_type",
    b'{"id": 1, "text": "x"}': "wrong_type",
    b'{"id": null, "text": "x"}': "wrong_type",
    b'{"id": "1", "text": ["x"]}': "wrong_type",
    b'{"id": "1", "features": [1]}': "wrong_type",
    b'{"id": "1", "features": {"a": "1"}}': "wrong_type",
    b'{"id": "1", "features": {"a": true}}': "wrong_type",
    b'{"id": "1", "features": {"a": {"b": 1}}}': "wrong_type",
    b'{"id": "1", "vector": [[1]]}': "wrong_type",
    b'{"id": "1", "text": "x", "labels": "sport"}': "wrong_type",
    b'{"id": "1", "text": "x", "labels": [1]}': "wrong_type",
    b'{"id": "1", "text": "x", "ts": [1]}': "wrong_type",
    b'{"text": "x"}': "missing_field",
    b'{"id": "", "text": "x"}': "empty_id",
    b'{"id": " \\t", "text": "x"}': "empty_id",
    b'{"id": "%s", "text": "x"}' % (b"i" * 513): "id_too_long",
    b'{"id": "1"}': "no_content",
    b'{"id": "1", "text": "x", "vector": []}': "several_contents",
    b'{"id": "1", "features": {"a": 1e39}}': "number_out_of_range",
    b'{"id": "1", "vector": [0, -3.5e38]}': "number_out_of_range",
    b'{"id": "1", "vector": [1e999]}': "number_out_of_range",
    b'{"id": "1", "features": {"a": %s}}' % (b"9" * 400): "number_out_of_range",
    b'{"id": "1", "text": "x", "ts": "%s"}' % (b"t" * 65): "bad_ts",
    b'{"id": "1", "text": "x", "ts": 99999999999999999999}': "bad_ts",
    b'{"id": "\xff", "text": "x"}': "not_utf8",
    b'{"id": "1", "text": "x", "ignored": "\xff"}': "not_utf8",
    b'{"id": "1", "text": "x", "deep": %s%s}' % (b"[" * 50_000, b"]" * 50_000): "too_deep",
}


@pytest.mark.parametrize(("line", "reason"), BAD.items(), ids=lambda value: repr(value)[:60])
def test_bad_lines_have_a_reason_and_one_line_of_detail(line: bytes, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse_document(line)
    assert caught.value.reason == reason
    assert caught.value.detail.isprintable()
    assert 0 < len(caught.value.detail) < 200
    assert str(caught.value) == f"{reason}: {caught.value.detail}"


@pytest.mark.parametrize(
    ("reason", "limit", "content"),
    [
        ("too_many_features", "MAX_FEATURES", '"features": {"a": 1, "b": 2, "c": 3}'),
        ("vector_too_long", "MAX_VECTOR", '"vector": [1, 2, 3]'),
        ("too_many_labels", "MAX_LABELS", '"text": "", "labels": ["a", "b", "c"]'),
    ],
)
def test_sizes_are_bounded(reason: str, limit: str, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line = f'{{"id": "1", {content}}}'.encode()
    monkeypatch.setattr(records, limit, 3)
    parse_document(line)
    monkeypatch.setattr(records, limit, 2)
    with pytest.raises(RecordError, match=f"{reason}: 3 .* the limit is 2"):
        parse_document(line)


def test_lines_are_bounded() -> None:
    line = b'{"id": "1", "text": "x"}'
    assert parse_document(line, max_bytes=len(line)).id == "1"
    with pytest.raises(RecordError, match="line_too_long"):
        parse_document(line, max_bytes=len(line) - 1)


def test_largest_number_passes() -> None:
    assert parse_document(b'{"id": "1", "vector": [-1e12]}').vector == [-LARGEST_FEATURE]


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_line_does_anything_but_parse_or_raise(line: bytes) -> None:
    with suppress(RecordError):
        assert parse_document(line).id


def test_shape_of_what_goes_out() -> None:
    prediction = Prediction("1", ["b"], ["a", "b"], {"a": 1.0, "b": 0.5}, "h-arow", 7)
    assert msgspec.json.encode(prediction) == (
        b'{"id":"1","labels":["b"],"path_labels":["a","b"],"scores":{"a":1.0,"b":0.5},'
        b'"model":"h-arow","model_version":7}'
    )
    dated = msgspec.structs.replace(prediction, ts="2024-05-01T00:00:00Z")
    assert msgspec.json.encode(dated).endswith(b',"ts":"2024-05-01T00:00:00Z"}')
    reject = Reject(3, "not_json", "why", "the line")
    assert msgspec.json.decode(msgspec.json.encode(reject)) == {
        "line_number": 3,
        "reason": "not_json",
        "detail": "why",
        "line": "the line",
        "truncated": False,
    }


LINES = [
    b'{"id": "a", "text": "x"}',
    b'{"id": "a", "text": "x"} {"id": "b",',
    b'"text": "y"}',
    b'{"id": "b", "labels": []}',
    b'{"id": " ", "text": "x"}',
    b'{"id": "a", "text": "x", "ts": 7}',
    b'{"id": "a", "features": {"b": 1}}',
    b'{"id": "a", "text": "x", "labels": null, "other": [1, {}]}',
    b'{"id": "a"}',
    b"[1]",
    b"",
    b'{"id": "a", "text": "\xff"}',
    b'{"id": "a", "text": "x"}{"id": "b", "text": "y"}',
    b'{"id": "c", "text": "\\ud800"}',
]


@given(st.lists(st.sampled_from(LINES), max_size=200))
def test_together_they_are_read_as_one_by_one(lines):
    def alone(line):
        try:
            return parse_record(line)
        except RecordError as error:
            return error.reason, error.detail

    found = [
        (each.reason, each.detail) if isinstance(each, RecordError) else each for each in parse_records(lines)
    ]
    expected = [alone(line) for line in lines]
    assert [_plain(each) for each in found] == [_plain(each) for each in expected]


def _plain(record):
    if isinstance(record, Document):
        return record.id, record.text, record.features, record.vector, record.labels, record.ts
    return record
