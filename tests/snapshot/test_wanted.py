"""Parts that nobody wants are passed over: unread, whatever they hold."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream_hc.snapshot import SnapshotError, dump_bytes, inspect, load, reading, save, verify
from tests.snapshot.support import Bag


def saved(path: Path) -> Path:
    """Parts of odd lengths, so that there is padding between them; one has no arrays, one an empty one."""
    parts = {
        "a": Bag(x=np.arange(3, dtype=np.uint8), t=1),
        "b": Bag(empty=np.zeros((0, 4)), x=np.arange(5.0)),
        "c": Bag(t=2),
        "d": Bag(x=np.ones(77, np.int8), y=np.arange(9, dtype=np.int16)),
    }
    save(path, parts, extra={"n": 4})
    return path


def damage(path: Path, part: str) -> None:
    """Turn over the last bit of a part."""
    info = inspect(path)
    array = next(each for each in info.parts if each.name == part).arrays[-1]
    data = bytearray(path.read_bytes())
    data[info.data_start + array.offset + array.bytes - 1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("names", ["", "a", "b", "c", "d", "ad", "bd", "abd", "abcd"])
def test_what_is_wanted_is_what_it_was(tmp_path: Path, names: str) -> None:
    path = saved(tmp_path / "parts.snap")
    every, some = load(path), load(path, wanted=set(names).__contains__)
    assert list(some) == list(names)
    for name in names:
        assert dump_bytes(some[name]) == dump_bytes(every[name])


def test_other_parts_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, read = saved(tmp_path / "parts.snap"), list[str]()
    real: Any = reading._read_array

    def noting(stream: Any, info: Any, part: Any, *rest: Any) -> None:
        read.append(part.name)
        real(stream, info, part, *rest)

    monkeypatch.setattr(reading, "_read_array", noting)
    load(path, wanted=lambda name: name == "d")
    assert read == ["d", "d"]


def test_a_damaged_part_is_refused_where_it_is_wanted_alone(tmp_path: Path) -> None:
    path = saved(tmp_path / "parts.snap")
    damage(path, "b")
    for name in "acd":
        assert load(path, wanted=lambda each, name=name: each == name).keys() == {name}
    for wanted in (None, lambda name: True, lambda name: name == "b", lambda name: name != "c"):
        with pytest.raises(SnapshotError, match="part 'b', array 'x': does not match its checksum"):
            load(path, wanted=wanted)
    with pytest.raises(SnapshotError):
        verify(path)


def test_the_padding_before_a_wanted_part_is_checked(tmp_path: Path) -> None:
    path = saved(tmp_path / "parts.snap")
    info = inspect(path)
    data = bytearray(path.read_bytes())
    data[info.data_start + info.parts[1].arrays[0].offset - 1] = 1  # behind a, before b
    path.write_bytes(data)
    with pytest.raises(SnapshotError, match="padding before it is not zero"):
        load(path, wanted=lambda name: name == "b")
    assert load(path, wanted=lambda name: name in "ad").keys() == {"a", "d"}


def test_parts_of_unknown_kinds_may_be_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who only wants a learner need not have loaded the classes of all the rest."""
    path = saved(tmp_path / "parts.snap")
    asked = list[str]()
    real = reading.class_of
    monkeypatch.setattr(reading, "class_of", lambda kind: asked.append(kind) or real(kind))
    load(path, wanted=lambda name: name == "c")
    assert asked == ["Bag"]


def test_a_single_object_is_always_wanted(tmp_path: Path) -> None:
    path = tmp_path / "one.snap"
    save(path, Bag(x=np.arange(4)))
    assert load(path, wanted=lambda name: False).values["x"].tolist() == [0, 1, 2, 3]
