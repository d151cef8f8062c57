from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc.runtime.events import Event, Score, Standing
from stream_hc.runtime.jsonl import SourceError
from stream_hc.runtime.log import LogError, RunLog, encode_line, read_log
from tests.runtime.sample_log import make_log

finite = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 2**53)
scores = st.builds(Score, counts, finite, finite)
names = st.text(st.characters(exclude_categories=["Cs"]))
standings = st.builds(
    Standing, counts, counts, names, counts, scores, st.dictionaries(names, scores, max_size=3),
    st.lists(finite, max_size=3), counts, counts, *[st.dictionaries(names, counts, max_size=3)] * 2,
)  # fmt: skip
events = st.builds(Event, st.sampled_from(["drift", "swap", "dropped"]), counts, counts, names, names, names)


def write(path: Path, log: RunLog) -> Path:
    entries = sorted([*log.standings, *log.events], key=lambda entry: entry.documents)
    path.write_bytes(b"".join(map(encode_line, entries)))
    return path


@given(st.one_of(standings, events))
def test_a_line_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, entry: Event | Standing
) -> None:
    path = tmp_path_factory.getbasetemp() / "one.jsonl"
    line = encode_line(entry)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    path.write_bytes(line)
    log = read_log(path)
    assert [*log.standings, *log.events] == [entry]


def test_a_whole_log(tmp_path: Path) -> None:
    log = make_log()
    assert read_log(write(tmp_path / "log.jsonl", log)) == log


def test_what_a_restarted_job_wrote_again_counts_once(tmp_path: Path) -> None:
    log = make_log(3_000)
    path = write(tmp_path / "log.jsonl", log)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20] + lines[12:]))
    assert read_log(path) == log


def test_what_was_written_last_counts(tmp_path: Path) -> None:
    entries = [
        Event("drift", 10, 5),
        Event("swap", 30, 25, "a"),
        Event("refit", 20, 15),
        Event("swap", 30, 25, "b"),
    ]
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(map(encode_line, entries)))
    assert read_log(path).events == (entries[0], entries[2], entries[3])


GOOD = encode_line(Event("drift", 10, 5))


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (b'{"line":"event","what":"dri', "truncated"),
        (b'{"id": "7", "text": "a document"}', "missing required field `line`"),
        (b'{"line":"other"}', "Invalid value 'other'"),
        (b'{"line":"event","what":"party","documents":1,"labelled":1}', "party"),
        (b'{"line":"event","what":"drift","documents":"x","labelled":1}', "Expected `int`"),
        (b"\xff\xfe", "malformed"),
        (b"[" * 100_000, "delete the line"),
        (b'{"line":"event\nwhat', "line 3"),
    ],
)
def test_a_line_that_does_not_belong_there(tmp_path: Path, line: bytes, detail: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(GOOD + b"\n" + line + b"\n" + GOOD)
    with pytest.raises(LogError, match=r"line 3 is not of the log of a job: ") as caught:
        read_log(path)
    message = str(caught.value)
    assert detail in message
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < 500


def test_a_log_that_is_not_there_or_empty(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot read"):
        read_log(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_bytes(b"\n")
    with pytest.raises(LogError, match="nothing was written yet"):
        read_log(tmp_path / "empty.jsonl")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_json_cannot_hold_is_not_written(bad: float) -> None:
    standing = make_log(100).standings[0]
    for broken in (
        msgspec.structs.replace(standing, served=Score(1, bad, 0.0)),
        msgspec.structs.replace(standing, scores={"m": Score(1, 0.0, bad)}),
        msgspec.structs.replace(standing, by_depth=[bad]),
    ):
        with pytest.raises(ValueError, match="not finite"):
            encode_line(broken)
