"""Lines from streams of bytes, whatever the pieces in which they come."""

import gzip
import io
import os
import sys
import threading
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc.runtime.jsonl import Line, LineReader, SourceError, open_lines


class Pieces:
    """A stream that hands out one piece at a time, as a pipe does."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]

    def read(self, size: int, /) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def read_all(*pieces: bytes, max_bytes: int = 1000) -> list[Line]:
    return [line for batch in LineReader(Pieces(pieces), max_bytes) for line in batch]


def test_line_ends_blank_lines_and_the_last_line() -> None:
    assert read_all(b"a\nb\r\n\n \t\r\nc\rd\n", b"e") == [
        Line(1, b"a"),
        Line(2, b"b"),
        Line(5, b"c\rd"),
        Line(6, b"e"),
    ]
    assert read_all(b"") == read_all(b"\n\n\r\n") == []


def test_byte_order_mark_only_at_the_beginning() -> None:
    bom = b"\xef\xbb\xbf"
    assert read_all(bom[:1], bom[1:] + b"a\n" + bom + b"b") == [Line(1, b"a"), Line(2, bom + b"b")]
    assert read_all(bom) == []


def test_too_long_lines_are_cut_and_marked() -> None:
    assert read_all(b"12345\n123456\n12345\r\n", max_bytes=5) == [
        Line(1, b"12345"),
        Line(2, b"12345", too_long=True),
        Line(3, b"12345"),
    ]
    assert read_all(b"12345\rx", max_bytes=5) == [Line(1, b"12345", too_long=True)]
    assert read_all(b" " * 6 + b"x\n", max_bytes=5)[0].too_long
    with pytest.raises(ValueError, match="max_bytes"):
        LineReader(Pieces([]), 0)


@given(
    st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"\r\n", b"\xef\xbb\xbf", b"long line " * 3]))
)
def test_pieces_do_not_matter(pieces: list[bytes]) -> None:
    whole = read_all(b"".join(pieces), max_bytes=20)
    assert read_all(*pieces, max_bytes=20) == whole
    assert read_all(*(bytes([byte]) for byte in b"".join(pieces)), max_bytes=20) == whole


def test_every_complete_line_is_handed_out_before_more_is_read() -> None:
    reader = iter(LineReader(Pieces([b"a\nb\nc", b"c\n", b"d"])))
    assert [line.data for line in next(reader)] == [b"a", b"b"]
    assert [line.data for line in next(reader)] == [b"cc"]
    assert [line.data for line in next(reader)] == [b"d"]


def test_an_endless_line_takes_no_memory() -> None:
    class Endless:
        left = 300

        def read(self, size: int, /) -> bytes:
            self.left -= 1
            return b"x" * size if self.left > 0 else b""

    tracemalloc.start()
    lines = [line for batch in LineReader(Endless()) for line in batch]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(line.number, line.too_long) for line in lines] == [(1, True)]
    assert peak < 8 * 2**20  # of 75 MiB


def test_waiting_can_end_the_stream_and_drops_the_unfinished_line() -> None:
    answers = iter([True, False])
    reader = LineReader(Pieces([b"a\nb", b"c\n"]), wait=lambda: next(answers))
    assert [line.data for batch in reader for line in batch] == [b"a"]


def test_plain_and_gzip_files(tmp_path: Path) -> None:
    data = b"".join(b"line %d\n" % number for number in range(100_000))
    (tmp_path / "a.jsonl").write_bytes(data)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(data))
    found = []
    for name in ("a.jsonl", "a.jsonl.gz"):
        with open_lines(str(tmp_path / name)) as lines:
            assert lines.size == (tmp_path / name).stat().st_size
            found.append([line for batch in lines for line in batch])
            assert lines.position() == lines.size
    assert found[0] == found[1]
    assert found[0][-1] == Line(100_000, b"line 99999")


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with (
        pytest.raises(SourceError, match="nothing: cannot read: No such file"),
        open_lines(str(tmp_path / "nothing")),
    ):
        pass
    with pytest.raises(SourceError, match="Is a directory"), open_lines(str(tmp_path)):
        pass
    whole = gzip.compress(b"a\n" * 1000)
    for number, data in enumerate((b"not gzip", whole[:-9], whole[:20] + b"xxxx" + whole[24:])):
        path = tmp_path / f"{number}.gz"
        path.write_bytes(data)
        with pytest.raises(SourceError, match=r"\.gz: not a sound gzip file"), open_lines(str(path)) as lines:
            list(lines)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    out, into = os.pipe()
    with open(out) as stdin, open(into, "wb", buffering=0) as writer:
        monkeypatch.setattr(sys, "stdin", stdin)
        with open_lines("-", wait=lambda descriptor: descriptor == out) as lines:
            assert lines.size is None
            batches = iter(lines)
            writer.write(b"one\ntw")
            assert next(batches) == [Line(1, b"one")]
            threading.Timer(0.05, writer.write, [b"o\n"]).start()
            assert next(batches) == [Line(2, b"two")]
            assert lines.position() == 0
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SourceError, match="closed"), open_lines("-"):
        pass


def test_reads_from_any_stream() -> None:
    assert [line.data for batch in LineReader(io.BytesIO(b"x\ny")) for line in batch] == [b"x", b"y"]
