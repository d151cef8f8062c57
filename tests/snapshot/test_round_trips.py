"""What is saved comes back, exactly; the header tells what it is."""

import hashlib
import math
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from stream_hc.snapshot import (
    SnapshotError,
    dump_bytes,
    inspect,
    load,
    load_bytes,
    register,
    save,
    verify,
)
from tests.snapshot.support import (
    DTYPES,
    Bag,
    Base,
    Strict,
    again,
    edited,
    info_of,
    small,
)


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
