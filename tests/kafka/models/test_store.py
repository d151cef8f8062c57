"""Models in files: written whole, pointed to, removed when they are old; what is wrong is one line."""

import builtins
import os

import msgspec
import pytest

from consumers.errors import KafkaProblem
from consumers.models.store import KEPT, ModelStore, StoreError, fetch
from tests.kafka.models.test_chunks import manifest_of


@pytest.fixture
def versions():
    """Return a function that describes a version."""

    def make(number, data):
        made = manifest_of(data, 4, version=f"v{number}")
        return msgspec.structs.replace(made, snapshot=number, saved=float(number))

    return make


def test_files_come_and_go(tmp_path, versions):
    store = ModelStore(str(tmp_path / "models"), "news-train-1-of-2")
    addresses = [store.put(versions(n, b"%d" % n), b"%d" % n) for n in range(1, 6)]
    assert [fetch(address, 10) for address in addresses] == [b"1", b"2", b"3", b"4", b"5"]
    other = ModelStore(str(tmp_path / "models"), "news-train-0-of-2")
    elsewhere = other.put(versions(9, b"9"), b"9")
    store.remove_old()
    folder = tmp_path / "models" / "news-train-1-of-2"
    assert sorted(os.listdir(folder)) == [f"{1000 * n:015d}-v{n}.snap" for n in range(6 - KEPT, 6)]
    assert fetch(elsewhere, 10) == b"9", "others are left alone"
    # The numbers of snapshots begin anew: it is the time that counts.
    late = store.put(msgspec.structs.replace(versions(1, b"again"), saved=77.0), b"again")
    store.remove_old()
    assert fetch(late, 10) == b"again"
    assert fetch(addresses[-1], 10) == b"5"
    assert len(os.listdir(folder)) == KEPT


def test_any_place_that_fsspec_knows(versions):
    store = ModelStore("memory://models/", "news")
    address = store.put(versions(7, b"seven"), b"seven")
    assert address == "memory://models/news/000000000007000-v7.snap"
    assert fetch(address, 5) == b"seven"
    store.remove_old()
    assert fetch(address, 5) == b"seven"


def test_errors_of_any_kind_name_the_file(monkeypatch, versions):
    store = ModelStore("memory://models/", "news")
    address = store.put(versions(7, b"seven"), b"seven")

    def odd(*_, **__):
        raise RuntimeError("the credentials have expired")

    for method in ("pipe_file", "cat_file", "ls"):
        monkeypatch.setattr(type(store._system), method, odd)
    for call in (lambda: store.put(versions(8, b"x"), b"x"), store.remove_old, lambda: fetch(address, 5)):
        with pytest.raises(StoreError, match=r"news.*: the credentials have expired"):
            call()


def test_what_cannot_be_read_or_written(tmp_path, versions):
    with pytest.raises(StoreError, match=r"none\.snap: not there"):
        fetch(str(tmp_path / "none.snap"), 5)
    (tmp_path / "long").write_bytes(b"123456")
    with pytest.raises(StoreError, match="6 bytes, not 5"):
        fetch(str(tmp_path / "long"), 5)
    with pytest.raises(StoreError, match="cannot read"):
        fetch(str(tmp_path), 2**40)
    store = ModelStore(str(tmp_path / "long" / "models"), "news")
    with pytest.raises(StoreError, match="cannot write"):
        store.put(versions(1, b"x"), b"x")
    with pytest.raises(StoreError, match="cannot remove old models"):
        ModelStore(str(tmp_path / "nothing"), "news").remove_old()
    with pytest.raises(KafkaProblem, match=r"kafka\.model_store: nothing://x/news: .*nothing"):
        ModelStore("nothing://x", "news")


def test_fsspec_is_an_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **options):
        if name == "fsspec":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(KafkaProblem, match=r"needs fsspec: pip install 'stream_hc\[distributed\]'"):
        ModelStore("models", "news")
