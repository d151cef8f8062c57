"""Lines from files that grow, move and change, with stops anywhere: each exactly once, or a clear refusal."""

import gzip
import hashlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_hc.runtime.disk import (
    Position,
    Source,
    files,
    following,
    open_source,
    positions,
    sources,
    wait_for,
)
from stream_hc.runtime.jsonl import Line, LineReader, SourceError
from tests.strategies import examples

MAX_BYTES = 20
PIECES = st.lists(
    st.binary(max_size=12)
    | st.sampled_from(
        [b"\n", b"\r\n", b"line\n", b"\xef\xbb\xbf", b" \n", b"long line " * 4, b"a\nb\nc\nd\n"]
    ),
    max_size=12,
)
# How many lines to ask for, and whether to stop and go on from the position afterwards.
STEPS = st.lists(st.tuples(st.none() | st.integers(1, 4), st.booleans()), min_size=1, max_size=12)
SIZES = st.sampled_from([1, 2, 3, 7, 16, 1000])


def calm(path: Path) -> list[Line]:
    with open(path, "rb", buffering=0) as file:
        return [line for batch in LineReader(file, MAX_BYTES) for line in batch]


def again(position: Position | None) -> Position | None:
    """Bring the position through JSON, as a snapshot does."""
    assert position is not None
    return msgspec.json.decode(msgspec.json.encode(position), type=Position)


def texts(source: Source) -> list[str]:
    """Read until nothing comes."""
    found: list[str] = []
    while batch := source.read():
        found += [line.data.decode() for line in batch]
    return found


@contextmanager
def small(chunk: int, checked: int) -> Iterator[Path]:
    with (
        patch.object(files, "CHUNK", chunk),
        patch.object(following, "CHUNK", chunk),
        patch.object(positions, "CHUNK", chunk),
        patch.object(positions, "CHECKED", checked),
        TemporaryDirectory() as folder,
    ):
        yield Path(folder)


@settings(deadline=None, max_examples=examples(200))
@given(PIECES, STEPS, SIZES, SIZES, st.booleans())
def test_stops_anywhere_lose_nothing(
    pieces: list[bytes], steps: list[tuple[int | None, bool]], chunk: int, checked: int, packed: bool
) -> None:
    data = b"".join(pieces)
    with small(chunk, checked) as folder:
        plain, path = folder / "a", folder / ("a.gz" if packed else "a")
        plain.write_bytes(data)
        if packed:
            path.write_bytes(gzip.compress(data))
        found: list[Line] = []
        source = open_source(str(path), None, max_bytes=MAX_BYTES)
        for turn in range(1000):
            most, stop = steps[turn % len(steps)]
            batch = source.read(most)
            assert most is None or len(batch) <= most
            found += batch
            position = again(source.position)
            before = data[max(position.offset - checked, 0) : position.offset]
            assert position.digest == hashlib.sha256(before).hexdigest()
            if source.ended:
                break
            if stop:
                source.close()
                source = open_source(str(path), position, max_bytes=MAX_BYTES)
        assert source.ended
        assert source.done == source.size == path.stat().st_size
        assert (position.offset, position.number) == (len(data), mark(data))
        source.close()
        assert found == calm(plain)


def mark(data: bytes) -> int:
    """Lines of a file, with an unfinished last one."""
    return data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


@settings(deadline=None, max_examples=examples(200))
@given(PIECES, STEPS, SIZES, SIZES)
def test_a_growing_file_gives_each_line_when_it_has_ended(
    pieces: list[bytes], steps: list[tuple[int | None, bool]], chunk: int, checked: int
) -> None:
    with small(chunk, checked) as folder:
        path, found = folder / "a", []
        source = open_source(str(path), None, follow=True, max_bytes=MAX_BYTES)
        assert source.read() == []  # it does not exist yet
        path.touch()
        turn = 0
        for piece in [*pieces, b"\n"]:
            with path.open("ab") as file:
                file.write(piece)
            while True:
                most, stop = steps[turn % len(steps)]
                batch = source.read(most)
                found += batch
                turn += 1
                if stop:
                    position = again(source.position)
                    source.close()
                    source = open_source(str(path), position, follow=True, max_bytes=MAX_BYTES)
                if not batch:
                    break
        assert not source.ended
        assert not source.restarted
        source.close()
        assert found == calm(path)


def test_reads_do_not_wait_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1\n2\n\n4\nhal")
    with open_source(str(path), None, follow=True) as source:
        assert source.pending()
        assert source.read(2) == [Line(1, b"1"), Line(2, b"2")]
        assert source.pending()
        assert source.read() == [Line(4, b"4")]
        assert source.read() == []
        assert not source.pending()
        assert (source.done, source.size) == (7, 10)
        assert source.position == Position(
            str(path), path.stat().st_ino, 7, 4, hashlib.sha256(b"1\n2\n\n4\n").hexdigest()
        )
    with open_source(str(path), None) as source:
        assert texts(source) == ["1", "2", "4", "hal"]
        assert source.ended


class TestRotation:
    def rotate(self, path: Path, data: bytes) -> None:
        """As logrotate does: NAME.1 is the newest of the old ones."""
        old = sorted(path.parent.glob("log.*"), key=lambda other: -int(other.suffix[1:]))
        for other in old:
            other.rename(path.parent / f"log.{int(other.suffix[1:]) + 1}")
        path.rename(path.parent / "log.1")
        path.write_bytes(data)

    def test_the_old_file_is_finished_first(self, tmp_path: Path) -> None:
        path = tmp_path / "log"
        path.write_bytes(b"a\nb\n")
        with open_source(str(path), None, follow=True) as source, path.open("ab", buffering=0) as writer:
            assert texts(source) == ["a", "b"]
            path.rename(tmp_path / "log.1")
            assert source.read() == []
            writer.write(b"c\nd")
            assert texts(source) == ["c"]
            path.write_bytes(b"e\n")
            assert source.pending()
            # The last line has no end, and never will.
            assert [source.read(1), source.read(1)] == [[Line(4, b"d")], [Line(1, b"e")]]
            assert source.position is not None
            assert source.position.inode == path.stat().st_ino
            assert not source.pending()

    def test_what_comes_just_before_the_name_passes_on_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "log"
        path.write_bytes(b"a\n")
        with open_source(str(path), None, follow=True) as source:
            assert texts(source) == ["a"]
            successor = source._successor  # type: ignore[attr-defined]

            def late() -> object:
                with (tmp_path / "log.1").open("ab") as writer:
                    writer.write(b"late\n")
                return successor()

            self.rotate(path, b"b\n")
            with patch.object(source, "_successor", late):
                assert source.read() == [Line(2, b"late")]
            assert texts(source) == ["b"]

    @pytest.mark.parametrize("stop_after", range(8))
    @pytest.mark.parametrize("live", [True, False])
    def test_several_rotations_between_two_looks_or_runs(
        self, tmp_path: Path, stop_after: int, live: bool
    ) -> None:
        path = tmp_path / "log"
        path.write_bytes(b"a\nb\n\n")
        lines = ["a", "b", "c", "d", "e", "f", "g"]
        source = open_source(str(path), None, follow=True)
        found = [line.data.decode() for _ in range(min(stop_after, 2)) for line in source.read(1)]
        self.rotate(path, b"c\n\n")
        self.rotate(path, b"d\ne\n")
        self.rotate(path, b"f\ng\n")
        found += [line.data.decode() for _ in range(2, stop_after) for line in source.read(1)]
        if not live:
            position = again(source.position)
            source.close()
            source = open_source(str(path), position, follow=True)
        with source:
            # Without a line read before, the job had not even begun with the first file.
            assert found + texts(source) == (lines if stop_after else lines[5:])

    def test_names_with_dates(self, tmp_path: Path) -> None:
        path = tmp_path / "log"
        path.write_bytes(b"a\n")
        with open_source(str(path), None, follow=True) as source:
            assert texts(source) == ["a"]
            position = source.position
            path.rename(tmp_path / "log-20250130")
            (tmp_path / "log-20250131").write_bytes(b"b\n")
            (tmp_path / "log-20250129").write_bytes(b"earlier\n")
            (tmp_path / "log-20250131.gz").write_bytes(b"packed\n")
            (tmp_path / "log.notes").write_bytes(b"something else\n")
            path.write_bytes(b"c\n")
            assert texts(source) == ["b", "c"]
        with open_source(str(path), position, follow=True) as source:
            assert texts(source) == ["b", "c"]

    def test_a_file_that_is_gone_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "log"
        path.write_bytes(b"a\nb\n")
        with open_source(str(path), None, follow=True) as source:
            source.read(1)
            position = source.position
        path.rename(tmp_path / "log.1")
        path.write_bytes(b"c\n")
        with open_source(str(path), position, follow=True) as source:
            assert texts(source) == ["b", "c"]
        (tmp_path / "log.1").unlink()
        with pytest.raises(SourceError, match=r"log: not the file that was read up to byte 2, line 1: put"):
            open_source(str(path), position, follow=True)
        # Put back from a backup, it has another inode and the same bytes.
        (tmp_path / "log.1").write_bytes(b"a\nb\n")
        with open_source(str(path), position, follow=True) as source:
            assert texts(source) == ["b", "c"]

    def test_truncation_begins_anew(self, tmp_path: Path) -> None:
        path = tmp_path / "log"
        path.write_bytes(b"a\nb\nunfinis")
        with open_source(str(path), None, follow=True) as source:
            assert texts(source) == ["a", "b"]
            position = source.position
            (tmp_path / "log.1").write_bytes(path.read_bytes())
            os.truncate(path, 0)
            assert source.pending()
            assert source.read() == []
            assert source.restarted
            with path.open("ab") as writer:
                writer.write(b"c\n")
            assert source.read() == [Line(1, b"c")]
            assert not source.restarted
        # While the job was down, somebody copied and truncated: what it had not read is in the copy.
        with open_source(str(path), position, follow=True) as source:
            assert texts(source) == ["unfinis", "c"]


class TestRefusals:
    @pytest.mark.parametrize("name", ["a", "a.gz"])
    @pytest.mark.parametrize("follow", [True, False])
    @pytest.mark.parametrize("data", [b"1\n2\n", b"1\n2\n4\n4\n5\n", b""])
    def test_a_file_that_changed(self, tmp_path: Path, name: str, follow: bool, data: bytes) -> None:
        path = tmp_path / name
        pack = gzip.compress if name == "a.gz" else bytes
        path.write_bytes(pack(b"1\n2\n3\n4\n"))
        with open_source(str(path), None, follow) as source:
            source.read(3)
            position = source.position
        path.write_bytes(pack(data))
        with pytest.raises(SourceError, match=f"{name}: not the file that was read up to byte 6, line 3"):
            open_source(str(path), position, follow)
        path.unlink()
        path.write_bytes(pack(b"1\n2\n3\n5\n"))  # the same as far as it was read
        with open_source(str(path), position, follow) as source:
            assert source.read() == [Line(4, b"5")]

    def test_a_last_line_that_went_on(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        path.write_bytes(b"1\n2")
        with open_source(str(path), None) as source:
            assert texts(source) == ["1", "2"]
            position = source.position
        with path.open("ab") as file:
            file.write(b"\r")
        with open_source(str(path), position) as source:
            assert texts(source) == []
        with path.open("ab") as file:
            file.write(b"\n3\n")
        with open_source(str(path), position) as source:
            assert source.read() == [Line(3, b"3")]
        path.write_bytes(b"1\n22\n3\n")
        with (
            open_source(str(path), position) as source,
            pytest.raises(SourceError, match="line 2 was read as the last one and has grown"),
        ):
            source.read()

    def test_unreadable_files_are_named(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match="nothing: cannot read: No such file"):
            open_source(str(tmp_path / "nothing"), None)
        for follow in (True, False):
            with pytest.raises(SourceError, match="cannot read: Is a directory"):
                open_source(str(tmp_path), None, follow)
        (tmp_path / "a.gz").write_bytes(gzip.compress(b"a\n" * 1000)[:-9])
        with (
            open_source(str(tmp_path / "a.gz"), None) as source,
            pytest.raises(SourceError, match="not a sound"),
        ):
            texts(source)


class TestWaiting:
    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        out, into = os.pipe()
        with open(out) as stdin, open(into, "wb", buffering=0) as writer:
            monkeypatch.setattr(sys, "stdin", stdin)
            with open_source("-", None, follow=True) as source:
                assert (source.read(), source.pending(), source.fileno()) == ([], False, out)
                assert (source.position, source.size, source.done) == (None, None, 0)
                assert not wait_for([source], 0.0)
                writer.write(b"one\ntwo\nth")
                assert wait_for([source])
                assert [source.read(1), source.read()] == [[Line(1, b"one")], [Line(2, b"two")]]
                threading.Timer(0.02, lambda: (writer.write(b"ree"), writer.close())).start()
                assert wait_for([source])
                last: list[Line] = []
                while not source.ended:
                    last += source.read()
                assert last == [Line(3, b"three")]
                assert not wait_for([source])
            os.fstat(out)  # not ours to close
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(SourceError, match="closed"):
            open_source("-", None)

    def test_a_named_pipe(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[b"x\ny\n"])
        writer.start()
        with open_source(str(tmp_path / "pipe"), None) as source:
            writer.join()
            assert wait_for([source])
            assert texts(source) == ["x", "y"]
            assert source.ended
            assert source.position is None

    def test_a_followed_file_and_a_stop(self, tmp_path: Path) -> None:
        path, (awake, waker) = tmp_path / "a", os.pipe()
        with open_source(str(path), None, follow=True) as source, patch.object(sources, "POLL", 0.01):
            assert (source.size, again(source.position)) == (
                None,
                Position(str(path), 0, 0, 0, hashlib.sha256().hexdigest()),
            )
            began = time.monotonic()
            assert not wait_for([source], 0.05)
            assert time.monotonic() - began >= 0.05
            threading.Timer(0.02, path.write_bytes, [b"x\n"]).start()
            assert wait_for([source], stop=awake)
            assert wait_for([source], 5.0)
            while not source.read():
                assert wait_for([source], 5.0)
            threading.Timer(0.02, os.write, [waker, b"!"]).start()
            assert not wait_for([source], stop=awake)
            assert os.read(awake, 9) == b"!"
        os.close(awake)
        os.close(waker)


def test_a_job_that_waited_for_a_file_finds_it_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with open_source(str(path), None, follow=True) as source:
        position = source.position
    path.write_bytes(b"x\n")
    with open_source(str(path), position, follow=True) as source:
        assert source.read() == [Line(1, b"x")]
