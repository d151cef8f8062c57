"""The journal: the same entries again, whatever tore its end, and never silently fewer."""

import os
import resource
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc.runtime.disk import (
    Batch,
    Command,
    Entry,
    Journal,
    JournalError,
    Numbered,
    RefitDone,
    RefitFailed,
    Tick,
)
from stream_hc.runtime.disk import journal as module

COUNT = st.integers(0, 2**62)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ENTRIES: st.SearchStrategy[Entry] = st.one_of(
    st.builds(Batch, COUNT, TEXT, COUNT),
    st.builds(Tick, COUNT, st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(RefitDone, COUNT, COUNT),
    st.builds(RefitFailed, COUNT, COUNT, TEXT, TEXT),
    st.builds(Command, COUNT, TEXT, TEXT),
)
THREE: list[Entry] = [
    Batch(0, "documents", 64),
    Tick(64, 1.25),
    RefitFailed(64, 1, "crashed", 'a "b"\n\x00 ü'),
]


def filled(path: Path, entries: list[Entry]) -> bytes:
    with Journal(path) as journal:
        for entry in entries:
            journal.append(entry)
    return path.read_bytes()


def all_after(path: Path, number: int = 0) -> list[tuple[int, Entry]]:
    with Journal(path) as journal:
        return list(journal.after(number))


@given(st.lists(ENTRIES, max_size=12), st.integers(0, 12), st.sampled_from([1, 3, 1000]))
def test_entries_come_back_after_any_number_and_trim(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry], trimmed: int, indexed: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    numbered = [Numbered(*pair) for pair in enumerate(entries, 1)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "INDEXED", indexed)
        filled(path, entries)
        with Journal(path) as journal:
            journal.trim(trimmed)
            first = max(min(trimmed, len(entries)), 1)
            assert path.read_bytes().count(b"\n") == len(entries[first - 1 :])
            assert journal.append(Tick(9, 9.0)) == len(numbered) + 1
            numbered.append(Numbered(len(numbered) + 1, Tick(9, 9.0)))
            with Journal(path) as other:
                for again in (journal, other):
                    for number in range(first - 1, len(numbered) + 1):
                        assert list(again.after(number)) == numbered[number:]
                    for number in range(first - 1):
                        with pytest.raises(
                            JournalError, match=f"entries {number + 1} to {first - 1} are missing"
                        ):
                            again.after(number)


def test_an_end_torn_at_any_byte_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    data = filled(path, THREE)
    start = data.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(data)):
        for garbage in (b"", b"\0" * 70, b"\n", b"\xff\n\0\n"):
            path.write_bytes(data[:end] + garbage)
            if data[:end] + garbage == data:
                continue
            with Journal(path) as journal:
                assert journal.last == 2
                assert journal.dropped == end + len(garbage) - start
                assert journal.append(THREE[2]) == 3
            assert path.read_bytes() == data
    path.write_bytes(data)
    with Journal(path) as journal:
        assert (journal.last, journal.dropped) == (3, 0)


def test_a_damaged_byte_anywhere_is_found(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    data = filled(path, THREE)
    start = data.rindex(b"\n", 0, -1) + 1
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        if place == start - 1:  # the last two look like one line
            assert all_after(path) == [(1, THREE[0])]
        elif place >= start:
            assert all_after(path) == list(enumerate(THREE[:2], 1))
        else:
            line = data.count(b"\n", 0, place) + 1
            with pytest.raises(
                JournalError, match=rf"journal.jsonl: line {line} is damaged: put the file back"
            ):
                Journal(path)


def test_lines_in_the_wrong_order_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    one, two, three = filled(path, THREE).splitlines(keepends=True)
    path.write_bytes(one + one + two)
    with pytest.raises(JournalError, match="line 2 is damaged"):
        Journal(path)
    path.write_bytes(one + three)
    with Journal(path) as journal:
        assert list(journal.after(2)) == [(3, THREE[2])]
        with pytest.raises(JournalError, match="entries 1 to 2 are missing"):
            journal.after(0)


def test_a_snapshot_may_know_more_than_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    filled(path, THREE[:1])
    with Journal(path) as journal:
        assert list(journal.after(5)) == []
        assert journal.append(THREE[1]) == 6
        assert list(journal.after(5)) == [(6, THREE[1])]
    with Journal(path) as journal, pytest.raises(JournalError, match="entries 2 to 5 are missing"):
        journal.after(1)


def test_entries_of_now_are_not_part_of_a_replay(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        for entry in THREE:
            journal.append(entry, sync=True)
        replay = journal.after(0)
        journal.append(Tick(0, 0.0))
        assert [entry for _, entry in replay] == THREE
        journal.sync()


def test_long_texts(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(RefitFailed(1, 2, "crashed", "ü" * 10**6))
        ((_, entry),) = journal.after(0)
        assert isinstance(entry, RefitFailed)
        assert entry.problem == "ü" * (module.MAX_PROBLEM - 1) + "…"
        with pytest.raises(JournalError, match=r"an entry of \d+ bytes, the limit is 65536"):
            journal.append(Command(1, "promote", "x" * 70_000))
        assert journal.append(Tick(1, 1.0)) == 2


def test_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal(path) as journal:
        journal.append(THREE[0])
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, limits[1]))
        try:
            with pytest.raises(JournalError, match=r"journal.jsonl: cannot write: File too large"):
                journal.append(THREE[1])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert journal.append(THREE[2]) == 2
    assert all_after(path) == [(1, THREE[0]), (2, THREE[2])]


def test_a_disk_that_cannot_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.jsonl"
    calls: list[int] = []

    def fail(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) not in passing:
            raise OSError(5, "Input/output error")

    with Journal(path) as journal:
        monkeypatch.setattr(os, "fsync", fail)
        passing: set[int] = set()
        with pytest.raises(JournalError, match="cannot sync: Input/output error"):
            journal.append(THREE[0], sync=True)
        journal.append(THREE[1])
        for number in (0, 3):  # the new file cannot be synced; it can, but its folder cannot
            passing.add(number)
            with pytest.raises(JournalError, match=r"journal.jsonl: cannot shorten"):
                journal.trim(2)
            assert journal.append(THREE[2]) == journal.last
            assert [number for number, _ in journal.after(1)] == list(range(2, journal.last + 1))
    assert [number for number, _ in all_after(path, 1)] == [2, 3, 4]
    assert path.read_bytes().count(b"\n") == 3


def test_unusable_files(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot read: Is a directory"):
        Journal(tmp_path)
    with pytest.raises(JournalError, match="no/journal: cannot write: No such file"):
        Journal(tmp_path / "no" / "journal")
    with Journal(tmp_path / "a") as journal:
        journal.append(THREE[0])
        replay = journal.after(0)
        (tmp_path / "a").write_bytes(b"x" * 200)
        with pytest.raises(JournalError, match="changed by somebody else"):
            list(replay)


def test_a_large_journal_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    n = 20_000
    with Journal(path) as journal:
        for number in range(n):
            journal.append(Batch(number, "documents", 1))
    size = path.stat().st_size
    tracemalloc.start()
    with Journal(path) as journal:
        assert sum(1 for _ in journal.after(0)) == n
        journal.trim(n - 5000)
        assert sum(1 for _ in journal.after(n - 100)) == 100
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size < size / 3
    assert peak < size / 2 < 2**20
