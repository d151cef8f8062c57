"""Damaged and hostile files."""

import hashlib
import json
import pickle
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc.snapshot import (
    SnapshotError,
    dump_bytes,
    inspect,
    load,
    load_bytes,
    verify,
)
from tests.snapshot.support import (
    DTYPES,
    PREFIX,
    Bag,
    Base,
    edited,
    encode,
    loads,
    pack,
    small,
    unpack,
)
from tests.strategies import examples


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    data = dump_bytes(small(), {"documents": 7})
    path = tmp_path / "m"
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        with pytest.raises(SnapshotError):
            load_bytes(bytes(damaged))
        if position % 7 == 0:
            path.write_bytes(damaged)
            with pytest.raises(SnapshotError):
                verify(path)


def test_every_truncation_is_found() -> None:
    data = dump_bytes(small())
    for length in range(len(data)):
        with pytest.raises(SnapshotError):
            load_bytes(data[:length])


@pytest.mark.parametrize("more", [b"\0", b"\0" * 64, b"x"])
def test_appended_bytes_are_refused(more: bytes) -> None:
    with pytest.raises(SnapshotError, match="bytes after the end"):
        load_bytes(dump_bytes(small()) + more)
    header, data = unpack(dump_bytes(small()))
    with pytest.raises(SnapshotError, match="the arrays take"):
        load_bytes(pack(header, data + more))


def test_padding_must_be_zero_even_with_good_checksums() -> None:
    header, data = unpack(dump_bytes(small()))
    damaged = bytearray(data)
    damaged[2] = 1  # "on" takes two bytes
    with pytest.raises(SnapshotError, match="padding"):
        load_bytes(pack(header, bytes(damaged)))


WRONG_ARRAY_FIELDS: dict[str, list[Any]] = {
    "dtype": [
        "O",
        "object",
        "V8",
        "M8[ns]",
        "<f8",
        "f8",
        "float16",
        "complex128",
        "i8,i8",
        "",
        1,
        None,
        [],
        {},
    ],
    "shape": [[-2], [2.0], [True], ["2"], [None], 2, "2", {}, None, [[2]], [1], [3], [2, 1, 1, 1, 1], []],
    "shape ": [[2**60], [2**32, 2**32], [2**63], [2**64 + 2], [0, 2**62], [0, 2**62, 2**62, 2**62]],
    "bytes": [-16, 0, 15, 17, 16.0, "16", None, 2**60, 2**63, 2**70],
    "offset": [0, 1, 63, 65, 128, -64, 64.0, "64", None, 2**63],
    "sha256": ["", "0" * 63, "G" * 64, "0" * 64, 0, None, []],
}


@pytest.mark.parametrize("field", WRONG_ARRAY_FIELDS)
def test_wrong_array_fields_are_refused(field: str) -> None:
    for value in [..., *WRONG_ARRAY_FIELDS[field]]:
        with pytest.raises(SnapshotError, match="array 'w'"):
            load_bytes(edited(f"parts model arrays w {field}", value))


PART: dict[str, Any] = {"arrays": {}, "kind": "Bag", "scalars": {}}
EMPTY = {"bytes": 0, "dtype": "int8", "offset": 0, "sha256": hashlib.sha256().hexdigest(), "shape": [0]}


@pytest.mark.parametrize(
    ("place", "values"),
    [
        ("comment", ["unknown"]),
        ("created_by", [..., None, "", "x" * 201]),
        ("single", [..., 1, None, "true"]),
        ("extra", [..., [], None, {"": 1}, {"k" * 201: 1}]),
        ("extra a", [[], {}, {"float": "1.0"}, {"float": []}, {"float": "nan", "b": 1}, {"nan": 1}, 2**1024]),
        ("parts", [..., {}, [], None, {"": PART}, {"other": PART}]),
        ("parts second", [PART]),
        ("parts model", [..., [], None, PART]),
        ("parts model kind", [..., ["Bag"], None, "", "k" * 201]),
        ("parts model module", ["os"]),
        ("parts model scalars", [..., None, {"a": []}, {"w": 1}]),
        ("parts model arrays", [..., [], {}, None]),
        ("parts model arrays a", [EMPTY | {"offset": 64}, EMPTY | {"shape": []}]),
        ("parts model arrays v", [..., EMPTY]),
        ("parts model arrays v offset", [64, 16]),
        ("parts model arrays w", [..., None, {}, EMPTY]),
        ("parts model arrays w compression", ["none"]),
    ],
)
def test_wrong_header_fields_are_refused(place: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(SnapshotError):
            load_bytes(edited(place, value))


def test_huge_claims_allocate_nothing() -> None:
    data = edited(
        "parts model arrays w", EMPTY | {"offset": 64, "dtype": "float64", "shape": [2**57], "bytes": 2**60}
    )
    header, rest = unpack(data)
    claims = [
        data,
        pack(header, rest, total=2**60),
        PREFIX.pack(data[:8], 1, 2**32 - 1, len(data)) + data[24:],
        PREFIX.pack(data[:8], 1, 2**24 + 1, 2**25) + bytes(2**25 - 24),
    ]
    tracemalloc.start()
    try:
        for claim in claims:
            with pytest.raises(SnapshotError):
                load_bytes(claim)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_bool_bytes_must_be_0_or_1() -> None:
    with pytest.raises(SnapshotError, match="neither 0 nor 1"):
        load_bytes(edited("parts model arrays v dtype", "bool"))


def test_counts_are_limited() -> None:
    tree = {"created_by": "x", "extra": {}, "single": False}
    for n, good in [(4096, True), (4097, False)]:
        parts = {"p": PART | {"arrays": {str(i): EMPTY for i in range(n)}}}
        assert loads(pack(encode(tree | {"parts": parts}))) == good
    for n, good in [(256, True), (257, False)]:
        assert loads(pack(encode(tree | {"parts": {str(i): PART for i in range(n)}}))) == good


HEADER = (
    b'{"created_by":"x","extra":{%s},"parts":{"model":{"arrays":{},"kind":"Bag","scalars":{}}},"single":true}'
)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (HEADER % b'"a":1,"a":1', "duplicate key"),
        (HEADER % b'"a":{"float":"inf","float":"nan"}', "duplicate key"),
        (HEADER % b'"a":NaN', "NaN is not JSON"),
        (HEADER % b'"a":-Infinity', "is not JSON"),
        (HEADER % b'"a":1e999', "one form"),
        (HEADER % b'"a":1.50', "one form"),
        (HEADER % b'"a":-0', "one form"),
        (HEADER % b'"b":1,"a":2', "one form"),
        (HEADER % b' "a":1', "one form"),
        (HEADER % b'"a":"\\u0041"', "one form"),
        (HEADER % b'"a":"\\ud800"', "one form"),
        (HEADER % (b'"a":' + b"1" * 5000), "not valid JSON"),
        (HEADER % b'"a":"\xff"', "not valid JSON"),
        (HEADER % (b'"a":' + b"[" * 100_000 + b"]" * 100_000), "nested too deeply"),
        (HEADER % (b'"a":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000), "nested too deeply"),
        (b"", "not valid JSON"),
        (b"[]", "expected the fields"),
        (b"null", "expected the fields"),
        (b"{}", "expected the fields"),
        (b"{} {}", "not valid JSON"),
        (b"\xef\xbb\xbf{}", "not valid JSON"),
        ("{}".encode("utf-16"), "not valid JSON"),
        (pickle.dumps({}), "not valid JSON"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_json_is_refused(header: bytes, problem: str) -> None:
    with pytest.raises(SnapshotError, match=problem):
        load_bytes(pack(header))
    assert not loads(pack(header))


def test_the_header_used_above_is_good() -> None:
    assert isinstance(load_bytes(pack(HEADER % b'"a":1')), Bag)


def test_other_versions() -> None:
    header, data = unpack(dump_bytes(Bag()))
    with pytest.raises(SnapshotError, match="upgrade stream_hc"):
        load_bytes(pack(header, data, version=2))
    with pytest.raises(SnapshotError, match="version 0 does not exist"):
        load_bytes(pack(header, data, version=0))


@pytest.mark.parametrize(
    "data", [b"", b"\x89", b"{}", pickle.dumps(Base), b"\x93NUMPY\x01\0", b"PK\x03\x04" * 99, bytes(999)]
)
def test_other_files_are_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(data)
    for read in (load, inspect, verify):
        with pytest.raises(SnapshotError, match=r"m: .*not a stream_hc snapshot"):
            read(tmp_path / "m")


@settings(deadline=None)
@given(
    st.binary(max_size=300) | st.binary(max_size=300).map(lambda tail: b"\x89SHC\r\n\x1a\n\1\0\0\0" + tail)
)
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError):
        load_bytes(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(DTYPES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.randoms(use_true_random=False), JSON)
@settings(max_examples=examples(300), deadline=None)
def test_random_changes_of_a_header_give_only_snapshot_errors(chance: random.Random, value: Any) -> None:
    def edit(tree: dict[str, Any]) -> None:
        node: Any = tree
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            key = chance.choice(keys)
            if not isinstance(node[key], dict | list) or not node[key] or chance.random() < 0.1:
                break
            node = node[key]
        if chance.random() < 0.2:
            del node[key]
        else:
            node[key] = value

    header, data = unpack(dump_bytes(small(), {"n": 1}))
    tree = json.loads(header)
    edit(tree)
    try:
        changed = encode(tree)
    except UnicodeEncodeError:
        changed = json.dumps(tree).encode()
    loads(pack(changed, data))


@settings(deadline=None)
@given(st.data())
def test_random_bytes_in_a_header_give_only_snapshot_errors(data: st.DataObject) -> None:
    header, rest = unpack(dump_bytes(small(), {"n": 1}))
    start = data.draw(st.integers(0, len(header)))
    stop = data.draw(st.integers(start, min(len(header), start + 8)))
    changed = header[:start] + data.draw(st.binary(max_size=8)) + header[stop:]
    loads(pack(changed, rest))
