"""What cannot be saved, and which classes may be loaded."""

import ast
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream_hc.snapshot import (
    SnapshotError,
    dump_bytes,
    kinds,
    load,
    load_bytes,
    reading,
    register,
    save,
    verify,
    writing,
)
from tests.snapshot.support import (
    Bag,
    Base,
    Strict,
    assert_untouched,
    edited,
)


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
