"""The clock of a stream: told at the same records, however the stream is cut, beside a slow twin."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.daemon.clock import Piece, StreamClock

SECONDS = 10.0

# Close to each other, far apart, none at all (negative), and the beginning of time.
stamps = st.lists(st.one_of(st.integers(0, 60_000), st.sampled_from([-1, 0, 5_000, 9_999_999])), max_size=30)


def records(stream):
    return [SimpleNamespace(timestamp=stamp, number=number) for number, stamp in enumerate(stream)]


def ticks_of(stream, seconds=SECONDS):
    """Return (record, time) of every tick: the rule, record by record, from the whole stream."""
    stamped = [(number, stamp / 1000) for number, stamp in enumerate(stream) if stamp >= 0]
    times = [
        (number, min(stamp, stamped[place - 1][1] if place else stamp))
        for place, (number, stamp) in enumerate(stamped)
    ]
    told = []
    for number, time in times:
        if time >= told[-1][1] + seconds if told else time > 0:
            told.append((number, time))
    return told


def ticks(pieces):
    """Return (record, time) of what was told, and the records in order."""
    pieces = list(pieces)
    told = [(piece.records[0].number, piece.now) for piece in pieces if piece.now is not None]
    return told, [record.number for piece in pieces for record in piece.records]


@given(stamps)
def test_the_time_is_told_where_the_rule_says(stream):
    told, numbers = ticks(StreamClock(0.0, None, SECONDS).pieces(records(stream)))
    assert told == ticks_of(stream)
    assert numbers == list(range(len(stream)))


@given(stamps, st.lists(st.integers(0, 30)), st.booleans())
def test_however_a_stream_is_cut_the_time_is_told_at_the_same_records(stream, cuts, begins_anew):
    clock, found, everything = StreamClock(0.0, None, SECONDS), [], records(stream)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for first, last in pairwise(places):
        found += clock.pieces(everything[first:last])
        if begins_anew:  # as after a restart: from what a snapshot has of it
            clock = StreamClock(clock.now, clock.stamp, SECONDS)
    assert ticks(found) == (ticks_of(stream), list(range(len(stream))))


@given(stamps)
def test_no_piece_is_empty_and_the_time_never_goes_back(stream):
    pieces = list(StreamClock(0.0, None, SECONDS).pieces(records(stream)))
    assert all(piece.records for piece in pieces)
    told = [piece.now for piece in pieces if piece.now is not None]
    assert told == sorted(told)
    assert all(later >= earlier + SECONDS for earlier, later in pairwise(told))


def test_a_single_wrong_stamp_moves_nothing():
    stream = records([100_000, 999_999_000, 101_000, 102_000])
    (piece,) = StreamClock(0.0, None, SECONDS).pieces(stream)
    assert piece == Piece(100.0, stream)


def test_the_clock_goes_on_from_what_was_told():
    clock = StreamClock(100.0, 108.0, SECONDS)
    stream = records([109_000, 111_000, 112_000])
    assert list(clock.pieces(stream)) == [Piece(None, stream[:2]), Piece(111.0, stream[2:])]
    assert (clock.now, clock.stamp) == (111.0, 112.0)


@pytest.mark.parametrize(("stamp", "is_told"), [(109_999, False), (110_000, True)])
def test_the_time_is_told_as_soon_as_so_much_has_passed(stamp, is_told):
    pieces = list(StreamClock(100.0, None, SECONDS).pieces(records([stamp])))
    assert (pieces[0].now is not None) == is_told


@pytest.mark.parametrize("stamp", [-1, 0, None])
def test_without_a_time_nothing_is_told(stamp):
    clock, stream = StreamClock(0.0, None, SECONDS), records([stamp] * 3)
    assert list(clock.pieces(stream)) == [Piece(None, stream)]
    assert clock.now == 0.0
    assert clock.stamp == (0.0 if stamp == 0 else None)


def test_no_records_are_no_piece():
    assert list(StreamClock(5.0, None, SECONDS).pieces([])) == []
