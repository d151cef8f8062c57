"""Output that can be cut back, and what happens when it cannot be written."""

import os
import resource
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc.runtime.disk import FileSink, SinkError


@given(st.lists(st.binary(max_size=20)), st.lists(st.binary(max_size=20)))
def test_cutting_back_undoes_what_came_later(
    tmp_path_factory: pytest.TempPathFactory, first: list[bytes], later: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("sink") / "out"
    with FileSink(str(path), None) as sink:
        for block in first:
            sink.write(block)
        length = sink.length
        assert length == len(b"".join(first)) == path.stat().st_size
        for block in later:
            sink.write(block)
        sink.sync()
    with FileSink(str(path), length) as sink:
        assert sink.length == length
        sink.write(b"end")
        assert sink.length == path.stat().st_size
    assert path.read_bytes() == b"".join(first) + b"end"
    with FileSink(str(path), None):
        assert path.read_bytes() == b""


def test_missing_lines_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"one\n")
    with pytest.raises(
        SinkError, match="out: has 4 bytes, but 5 were written before: lines are missing: put"
    ):
        FileSink(str(path), 5)
    assert path.read_bytes() == b"one\n"
    with pytest.raises(SinkError, match="has 0 bytes, but 5"):
        FileSink(str(tmp_path / "gone"), 5)
    with pytest.raises(SinkError, match="no/folder: cannot write: No such file"):
        FileSink(str(tmp_path / "no/folder"), None)
    with pytest.raises(SinkError, match="/dev/null: has 0 bytes"):
        FileSink("/dev/null", 5)
    with FileSink(str(tmp_path / "new"), 0) as sink:
        assert sink.length == 0


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    with FileSink("/dev/full", None) as sink:
        assert sink.length is None
        sink.sync()
        with pytest.raises(SinkError, match="/dev/full: cannot write: No space left on device"):
            sink.write(b"one\n")


def test_half_a_write_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "out"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with FileSink(str(path), None) as sink:
        sink.write(b"12345\n")
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
        try:
            with pytest.raises(SinkError, match="out: cannot write: File too large"):
                sink.write(b"1234567\n")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (path.read_bytes(), sink.length) == (b"12345\n", 6)
        sink.write(b"1234567\n")
    assert path.read_bytes() == b"12345\n1234567\n"


def test_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    out, into = os.pipe()
    os.set_blocking(into, False)
    data = b"x" * 2**20  # more than the pipe holds
    with open(out, "rb") as reader, open(into, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        stdout.write("before\n")
        got: list[bytes] = []
        thread = threading.Thread(target=lambda: got.append(reader.read(len(data) + 7)))
        thread.start()
        with FileSink("-", 17) as sink:
            sink.write(data)
            assert sink.length is None
            sink.sync()
        thread.join()
        assert got == [b"before\n" + data]
        reader.close()
        with FileSink("-", None) as sink, pytest.raises(BrokenPipeError):
            sink.write(b"x")
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SinkError, match="closed"):
        FileSink("-", None)


def test_a_disk_that_cannot_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int, length: int = 0) -> None:
        raise OSError(5, "Input/output error")

    with FileSink(str(tmp_path / "out"), None) as sink, monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(SinkError, match="out: cannot sync: Input/output error"):
            sink.sync()
        patched.setattr(os, "ftruncate", fail)
        with pytest.raises(SinkError, match="out: cannot cut back: Input/output error"):
            FileSink(str(tmp_path / "out"), 0)
