"""The snapshot format: round trips, hostile files, failures while saving."""

import ast
import errno
import fcntl
import hashlib
import importlib
import io
import json
import math
import os
import pickle
import random
import signal
import stat
import struct
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from stream_hc.snapshot import (
    SnapshotError,
    SnapshotInfo,
    atomic,
    dump_bytes,
    inspect,
    kinds,
    load,
    load_bytes,
    reading,
    register,
    save,
    verify,
    writing,
)
from stream_hc.snapshot.header import read_head

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
]
PREFIX = struct.Struct("<8sIIQ")


class Base:
    def __init__(self, /, **values: Any) -> None:
        self.values = values

    def state(self) -> dict[str, Any]:
        return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in self.values.items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        return cls(**state)


@register
class Bag(Base):
    """Holds anything."""


@register
class Strict(Base):
    """Accepts a state with an array `w` of two numbers, and complains in several ways about others."""

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        if state["w"].shape != (2,):
            raise ValueError("w must have\ntwo numbers")
        return super().from_state(state)


def again(**values: Any) -> dict[str, Any]:
    found: Bag = load_bytes(dump_bytes(Bag(**values)))
    return found.values


def info_of(data: bytes) -> SnapshotInfo:
    return read_head(io.BytesIO(data), len(data))


def small() -> dict[str, Bag]:
    """Two parts; padding between arrays, an empty array, every kind of scalar."""
    return {
        "first": Bag(w=np.array([1.5, -0.0, np.nan]), on=np.array([True, False]), name="é", t=3, c=math.inf),
        "second": Bag(
            none=None, flag=True, rate=0.1, ids=np.arange(3, dtype=np.int16), none_yet=np.zeros((0, 2))
        ),
    }


@pytest.fixture
def fixed_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "created_by", lambda: "stream_hc test")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that is already there."""
    path = tmp_path / "model.snap"
    save(path, Bag(t=1))
    return path


def unpack(data: bytes) -> tuple[bytes, bytes]:
    """Return header and data section."""
    length = PREFIX.unpack_from(data)[2]
    return data[PREFIX.size : PREFIX.size + length], data[-(-(PREFIX.size + length + 32) // 64) * 64 :]


def pack(header: bytes, data: bytes = b"", *, version: int = 1, total: int | None = None) -> bytes:
    """Build a file with a correct checksum around any header."""
    start = -(-(PREFIX.size + len(header) + 32) // 64) * 64
    total = start + len(data) if total is None else total
    head = PREFIX.pack(b"\x89SHC\r\n\x1a\n", version, len(header), total) + header
    return (head + hashlib.sha256(head).digest()).ljust(start, b"\0") + data


def loads(data: bytes) -> bool:
    """Whether the bytes load; the only error that may come is a SnapshotError of one line."""
    try:
        load_bytes(data)
    except SnapshotError as error:
        message = str(error)
    else:
        return True
    assert len(message.splitlines()) == 1
    assert len(message) < 700
    return False


def encode(header: Any) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def edited(place: str, value: Any) -> bytes:
    """Return a snapshot with one header field set, or deleted (`...`), and the checksum made right."""
    header, data = unpack(dump_bytes(Bag(w=np.array([1.0, 2.0]), v=np.array([3], dtype=np.int8))))
    tree = node = json.loads(header)
    *parents, last = place.split()
    for name in parents:
        node = node[name]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return pack(encode(tree), data)


# Round trips


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (3, 0, 2), (1, 2, 3, 4)])
def test_every_dtype_and_rank_comes_back(dtype: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    found = again(a=values)["a"]
    assert found.dtype == values.dtype
    assert found.dtype.isnative
    assert found.shape == shape
    assert found.tobytes() == values.tobytes()
    assert found.flags.writeable
    assert found.flags.owndata
    assert found.flags.c_contiguous


@settings(deadline=None)
@given(
    hnp.arrays(st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)),
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
        st.none()
        | st.booleans()
        | st.integers(-(2**1024) + 1, 2**1024 - 1)
        | st.floats(allow_nan=False)
        | st.text(st.characters(exclude_categories=["Cs"])),
    ),
)
def test_any_state_comes_back_exactly(values: np.ndarray[Any, Any], scalars: dict[str, Any]) -> None:
    data = dump_bytes(Bag(**(scalars | {"array": values})), scalars)
    found = load_bytes(data)
    assert found.values.pop("array").tobytes() == values.tobytes()
    scalars.pop("array", None)
    assert {k: repr(v) for k, v in found.values.items()} == {k: repr(v) for k, v in scalars.items()}
    assert dump_bytes(Bag(**(scalars | {"array": values})), info_of(data).extra) == data


@settings(deadline=None)
@given(st.floats())
def test_floats_are_exact(value: float) -> None:
    found = again(x=value)["x"]
    assert math.isnan(found) if math.isnan(value) else struct.pack("<d", found) == struct.pack("<d", value)


@pytest.mark.parametrize(
    "value", ["", '日本 \U0001f600 \0 " \\ \n', 2**63, -(2**64), 2**1024 - 1, True, None, -0.0, 1.0]
)
def test_scalars_keep_value_and_type(value: Any) -> None:
    found = again(x=value)["x"]
    assert (type(found), repr(found)) == (type(value), repr(value))


def test_numpy_scalars_become_plain_ones() -> None:
    found = again(a=np.int64(3), b=np.float32(0.1), c=np.bool_(True), d=np.uint64(2**64 - 1))
    assert found == {"a": 3, "b": float(np.float32(0.1)), "c": True, "d": 2**64 - 1}
    assert [type(value) for value in found.values()] == [int, float, bool, int]


def test_other_memory_layouts_come_back_in_order() -> None:
    values = np.arange(12.0).reshape(3, 4)
    for variant in (np.asfortranarray(values), values[::2, ::-1], values.T, values.astype(">f8")):
        found = again(a=variant)["a"]
        assert np.array_equal(found, variant)
        assert found.dtype.isnative
    assert dump_bytes(Bag(a=np.asfortranarray(values))) == dump_bytes(Bag(a=values))


def test_arrays_larger_than_a_chunk(tmp_path: Path) -> None:
    values = np.random.default_rng(1).random(2**18 + 7)
    flags = values > 0.5
    save(tmp_path / "m", Bag(a=values, b=np.resize(flags, 2**20 + 3)))
    verify(tmp_path / "m")
    found = load(tmp_path / "m").values
    assert np.array_equal(found["a"], values)
    assert np.array_equal(found["b"], np.resize(flags, 2**20 + 3))


def test_large_arrays_are_not_copied_on_the_way(tmp_path: Path) -> None:
    values = np.ones(2**21)

    @register
    class Large(Base):
        def state(self) -> Any:
            return {"a": values}

    tracemalloc.start()
    try:
        save(tmp_path / "m", Large())
        verify(tmp_path / "m")
        assert tracemalloc.get_traced_memory()[1] < values.nbytes / 2
        assert load(tmp_path / "m").values["a"].sum() == 2**21
        assert tracemalloc.get_traced_memory()[1] < values.nbytes * 1.5
    finally:
        tracemalloc.stop()


def test_shape_of_what_was_saved_is_kept() -> None:
    one, several = Bag(t=1), {"b": Bag(t=1), "a": Strict(w=np.zeros(2))}
    assert isinstance(load_bytes(dump_bytes(one)), Bag)
    found = load_bytes(dump_bytes({"model": one}))
    assert isinstance(found["model"], Bag)
    found = load_bytes(dump_bytes(several))
    assert {name: type(part) for name, part in found.items()} == {"a": Strict, "b": Bag}


def test_equal_states_give_equal_bytes(tmp_path: Path) -> None:
    a, b = Bag(x=1, y=np.arange(3)), Bag(y=np.arange(3), x=1)
    assert dump_bytes(a) == dump_bytes(b)
    assert dump_bytes({"p": a, "q": b}, {"m": 1, "n": 2}) == dump_bytes({"q": a, "p": b}, {"n": 2, "m": 1})
    save(tmp_path / "a", a, extra={"n": 1})
    assert (tmp_path / "a").read_bytes() == dump_bytes(b, {"n": 1})


@pytest.mark.usefixtures("fixed_version")
def test_golden_bytes() -> None:
    data = dump_bytes(small(), {"documents": 7})
    assert data[:24].hex() == "895348430d0a1a0a01000000170300004004000000000000"
    assert (
        hashlib.sha256(data).hexdigest() == "575b72732930bf4284154dc2fcbd4cd704ac2fa5092b35a7b441792306dcc2f9"
    )


# What the header tells


def test_inspect_and_verify(tmp_path: Path) -> None:
    path = tmp_path / "m.snap"
    save(path, small(), extra={"documents": 7, "position": None})
    info = inspect(path)
    assert info == verify(path)
    assert info.format_version == 1
    assert info.created_by.startswith("stream_hc")
    assert info.extra == {"documents": 7, "position": None}
    assert info.total_bytes == path.stat().st_size
    assert not info.single
    assert [(part.name, part.kind) for part in info.parts] == [("first", "Bag"), ("second", "Bag")]
    assert info.parts[0].scalars == {"c": math.inf, "name": "é", "t": 3}
    on, w = info.parts[0].arrays
    assert (on.key, on.dtype, on.shape, on.offset, on.bytes) == ("on", "bool", (2,), 0, 2)
    assert (w.key, w.dtype, w.shape, w.offset, w.bytes) == ("w", "float64", (3,), 64, 24)
    assert on.sha256 == hashlib.sha256(b"\1\0").hexdigest()
    assert info.data_start % 64 == 0


def test_the_digest_names_the_content(tmp_path: Path) -> None:
    digests = set()
    for value in (1.0, 2.0, 1.0):
        save(tmp_path / "m", Bag(a=np.full(3, value)))
        digests.add(inspect(tmp_path / "m").sha256)
    assert len(digests) == 2


def test_inspect_needs_no_class_and_does_not_read_the_arrays(tmp_path: Path) -> None:
    data = bytearray(edited("parts model kind", "Nobody"))
    data[-1] ^= 1
    (tmp_path / "m").write_bytes(data)
    assert inspect(tmp_path / "m").parts[0].kind == "Nobody"
    with pytest.raises(SnapshotError, match="checksum"):
        verify(tmp_path / "m")


# What cannot be saved


@pytest.mark.parametrize(
    "value",
    [
        np.array([object()]),
        np.array(["text"]),
        np.array([1j]),
        np.zeros(1, dtype=[("a", "i4")]),
        np.zeros(1, dtype="M8[ns]"),
        np.zeros(1, dtype=np.float16),
        np.zeros((1,) * 5),
        np.ma.array([1.0], mask=[True]),
        np.array([2], dtype=np.uint8).view(bool),
        2**1024,
        10**5000,
        "\ud800",
        [1],
        {"a": 1},
        b"bytes",
        1j,
        np.timedelta64(1, "ns"),
        np.longdouble(1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_outside_the_format_are_refused_by_name(value: Any) -> None:
    with pytest.raises(SnapshotError, match="'culprit'"):
        dump_bytes(Bag(fine=1, culprit=value))


@pytest.mark.parametrize(
    "extra", [{"culprit": np.zeros(1)}, {"culprit": [1]}, {1: 1}, {"": 1}, {"k" * 201: 1}]
)
def test_extra_holds_scalars_only(extra: Any) -> None:
    with pytest.raises(SnapshotError, match="extra"):
        dump_bytes(Bag(), extra)


def test_unusable_models_are_refused() -> None:
    class Unregistered(Base):
        pass

    class NotADict(Base):
        def state(self) -> Any:
            return [1]

    register(NotADict)
    for model, problem in [
        (Unregistered(), "not registered"),
        (object(), "not registered"),
        (NotADict(), "returned a list"),
        ({}, "0 parts"),
        ({str(i): Bag() for i in range(257)}, "257 parts"),
        ({1: Bag()}, "a name must be"),
        ({"\udc00": Bag()}, "not valid Unicode"),
        (Bag(**{f"a{i}": np.zeros(1) for i in range(4097)}), "4097 arrays"),
        (Bag(text="x" * 2**24), "uint8 arrays"),
    ]:
        with pytest.raises(SnapshotError, match=problem):
            dump_bytes(model)  # type: ignore[arg-type]


def test_a_bad_state_leaves_no_trace(old: Path) -> None:
    with pytest.raises(SnapshotError, match=r"model\.snap: part 'model', array 'a': dtype object"):
        save(old, Bag(a=np.array([None])))
    assert_untouched(old)


def test_a_state_that_changes_while_it_is_written_gives_a_sound_file(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.zeros(3)

    class Alias(Base):
        def state(self) -> Any:
            return {"a": values}

    register(Alias)
    real = writing._write_array

    def meddle(stream: Any, array: Any) -> str:
        values[:] = 1.0
        return real(stream, array)

    monkeypatch.setattr(writing, "_write_array", meddle)
    data = dump_bytes(Alias())
    values[:] = 2.0
    assert load_bytes(data).values["a"].tolist() == [1.0, 1.0, 1.0]


# The registry


def test_registering_again() -> None:
    def define(module: str) -> Any:
        return type("Twice", (Base,), {"__module__": module})

    first = register(define("m"))
    second = register(define("m"))
    assert type(load_bytes(dump_bytes(second()))) is second
    with pytest.raises(SnapshotError, match="not registered"):
        dump_bytes(first())
    with pytest.raises(SnapshotError, match=r"'Twice' already belongs to m\.Twice"):
        register(define("other"))


def test_built_in_names_are_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"HPerceptron", "Perceptron", "HAROW", "NodePA", "TextVectorizer"} <= kinds.BUILT_IN.keys()
    monkeypatch.setitem(kinds.BUILT_IN, "PurePath", "pathlib")
    monkeypatch.setitem(kinds.BUILT_IN, "Gone", "pathlib")
    monkeypatch.setitem(kinds.BUILT_IN, "Lost", "stream_hc.no_such_module")
    with pytest.raises(SnapshotError, match="already belongs"):
        register(type("PurePath", (Base,), {}))
    for name in ("Gone", "Lost"):
        with pytest.raises(SnapshotError, match="missing from this installation"):
            load_bytes(edited("parts model kind", name))


@pytest.mark.parametrize("kind", ["os.system", "system", "Base", "stream_hc.learners", "__import__", "Bag "])
def test_unknown_kinds_are_named_and_not_imported(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", pytest.fail)
    with pytest.raises(SnapshotError, match=f"unknown kind '{kind}'"):
        load_bytes(edited("parts model kind", kind))


def test_a_state_that_does_not_fit_its_class(tmp_path: Path) -> None:
    states: list[tuple[dict[str, Any], str]] = [
        ({"w": np.zeros(3)}, "ValueError: w must have two numbers"),
        ({}, "KeyError: 'w'"),
        ({"w": 1}, "AttributeError"),
    ]
    for values, problem in states:
        save(tmp_path / "m", Strict(**values))
        with pytest.raises(SnapshotError, match=problem) as caught:
            load(tmp_path / "m")
        assert caught.value.__cause__ is not None
        assert "\n" not in str(caught.value)
        verify(tmp_path / "m")


def test_the_package_has_no_way_to_run_code_from_a_file() -> None:
    forbidden = {"pickle", "marshal", "shelve", "dill", "joblib", "eval", "exec", "compile", "__import__"}
    forbidden |= {"np.load", "np.save", "np.savez", "np.fromfile", "np.memmap"}
    for source in Path(reading.__file__).parent.glob("*.py"):
        tree = ast.parse(source.read_text())
        names = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)}
        names |= {
            alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
        names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not names & forbidden, source


# Hostile and damaged files


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
@settings(max_examples=300, deadline=None)
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


# Paths


def test_missing_files_and_special_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, problem in [
        ("missing", "No such file"),
        ("", "Is a directory"),
        ("fifo", "not a regular file"),
        ("/dev/zero", "not a regular file"),
    ]:
        for read in (load, inspect, verify):
            with pytest.raises(SnapshotError, match=problem) as caught:
                read(tmp_path / name)
            assert str(caught.value).startswith(str(tmp_path / name))
    with pytest.raises(SnapshotError) as caught:
        load(tmp_path / "missing")
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_saving_to_impossible_places(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, problem in [
        ("", "not a regular file"),
        ("fifo", "not a regular file"),
        ("no/such/m", "No such file"),
    ]:
        with pytest.raises(SnapshotError, match=problem) as caught:
            save(tmp_path / name, Bag())
        assert str(caught.value).startswith(str(tmp_path / name))
    assert os.listdir(tmp_path) == ["fifo"]
    with pytest.raises(SnapshotError, match="not a regular file"):
        save("/dev/null", Bag())


def test_symbolic_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "latest").symlink_to(tmp_path / "real" / "m")
    for t in (1, 2):
        save(tmp_path / "latest", Bag(t=t))
        assert load(tmp_path / "latest").values == {"t": t}
    assert (tmp_path / "latest").is_symlink()
    assert os.listdir(tmp_path / "real") == ["m"]


def test_relative_names_and_text_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save("m", Bag(t=1))
    assert load("m").values == {"t": 1}


def test_permissions(tmp_path: Path) -> None:
    path = tmp_path / "m"
    mask = os.umask(0o027)
    try:
        save(path, Bag())
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        save(path, Bag(t=1))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(mask)


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    save(path, Bag(a=np.zeros(2**15)))

    def truncate(_: str) -> Any:
        os.truncate(path, 2**15)
        return Bag

    monkeypatch.setattr(reading, "class_of", truncate)
    with pytest.raises(SnapshotError, match="became shorter"):
        load(path)


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dump_bytes(Bag(a=np.zeros(3)))

    def empty(*_: Any, **__: Any) -> Any:
        raise MemoryError("no room")

    monkeypatch.setattr(np, "empty", empty)
    with pytest.raises(SnapshotError, match="array 'a' needs 24 bytes of memory"):
        load_bytes(data)


# Atomicity


def assert_untouched(old: Path) -> None:
    assert load(old).values == {"t": 1}
    assert os.listdir(old.parent) == [old.name]


def no_space(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupt(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "place", ["os.fsync", "os.replace", "os.chmod", "stream_hc.snapshot.writing._write_array"]
)
def test_a_failure_leaves_the_old_file(place: str, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(place, no_space)
        with pytest.raises(SnapshotError, match=r"model\.snap: cannot write: No space left") as caught:
            save(old, Bag(a=np.zeros(1000)))
        assert isinstance(caught.value.__cause__, OSError)
    assert_untouched(old)
    with monkeypatch.context() as patch:
        patch.setattr(place, interrupt)
        with pytest.raises(KeyboardInterrupt):
            save(old, Bag(a=np.zeros(1000)))
    assert_untouched(old)


def test_a_folder_that_cannot_be_synced_is_reported(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_sync_folder", no_space)
    with pytest.raises(SnapshotError, match="its folder could not be synced: No space left"):
        save(old, Bag(t=2))
    assert load(old).values == {"t": 2}


def test_file_and_folder_reach_the_disk_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, os.replace

    def spy_fsync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def spy_replace(source: str, target: str) -> None:
        steps.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(os, "replace", spy_replace)
    save(tmp_path / "m", Bag())
    assert steps == ["file", "rename", "folder"]


KILLED = """
import os, signal, sys
import numpy as np
from stream_hc.snapshot import register, save, writing

@register
class Bag:
    def state(self):
        return {"a": np.zeros(10**6), "b": np.zeros(3)}
    @classmethod
    def from_state(cls, state):
        return cls()

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

real = writing._write_array
if sys.argv[2] == "write":
    writing._write_array = lambda stream, a: die() if a.size == 3 else real(stream, a)
else:
    setattr(os, sys.argv[2], die)
save(sys.argv[1], Bag())
"""


@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
def test_kill_leaves_the_old_file_and_the_next_save_cleans_up(moment: str, old: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(old), moment],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.wait(timeout=60) == -signal.SIGKILL
    assert load(old).values == {"t": 1}
    litter = [name for name in os.listdir(old.parent) if name != old.name]
    assert len(litter) == 1
    assert litter[0].startswith(f".model.snap.{child.pid}-")
    save(old, Bag(t=1))
    assert_untouched(old)


def test_only_abandoned_temporaries_of_the_same_file_are_removed(old: Path) -> None:
    folder = old.parent
    names = {
        "alive": ".model.snap.1-0123abcd.tmp",
        "dead": ".model.snap.999-0123abcd.tmp",
        "other": ".other.snap.999-0123abcd.tmp",
        "unlike": ".model.snap.999.tmp",
        "dots": ".modelxsnap.999-0123abcd.tmp",
    }
    for name in names.values():
        (folder / name).touch()
    (folder / ".model.snap.5-0123abcd.tmp").symlink_to(old)
    with (folder / names["alive"]).open("wb") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        save(old, Bag(t=1))
    assert load(old).values == {"t": 1}
    left = set(os.listdir(folder)) - {old.name, ".model.snap.5-0123abcd.tmp"}
    assert left == set(names.values()) - {names["dead"]}


def test_a_temporary_that_was_taken_for_abandoned_is_made_again(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock
    removed: list[str] = []

    def slow_flock(descriptor: int, operation: int) -> None:
        if not removed:
            removed.extend(name for name in os.listdir(old.parent) if name != old.name)
            (old.parent / removed[0]).unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", slow_flock)
    save(old, Bag(t=2))
    assert removed
    assert load(old).values == {"t": 2}
    assert os.listdir(old.parent) == [old.name]


def test_many_writers_and_readers_of_one_path(old: Path) -> None:
    def work(number: int) -> None:
        for _ in range(5):
            save(old, Bag(t=number, a=np.full(1000, number)))
            found = load(old).values
            assert (found["a"] == found["t"]).all()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, number) for number in range(4)]:
            done.result()
    assert os.listdir(old.parent) == [old.name]
