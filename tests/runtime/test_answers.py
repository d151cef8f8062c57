"""Answers as lines of JSON are what msgspec makes of the answers as objects."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stream_hc import Taxonomy
from stream_hc.runtime import Prediction
from stream_hc.runtime.answers import Answers, Signature
from stream_hc.vectorize import Rows
from tests import naive

NAMES = ["sport", "tén\nis", '"football"', "\\", "日本 🎾"]
TREE = Taxonomy(
    [(NAMES[0], None), (NAMES[1], NAMES[0]), (NAMES[2], NAMES[0]), (NAMES[3], None), (NAMES[4], NAMES[3])]
)

characters = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
stamps = (
    st.none() | characters | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
)
margins = (
    st.floats(-1e6, 1e6, width=32)
    | st.floats(-2, 2, width=32)
    | st.floats(width=32, allow_nan=False, allow_infinity=False)
)
rows = st.dictionaries(st.integers(0, 4), margins)
Row = tuple[str, Any, dict[int, float], int]


def answers(given: list[Row], model: str) -> Answers:
    stamps = [ts for _, ts, _, _ in given]
    scores = [sorted(row.items()) for _, _, row, _ in given]
    flat = [pair for row in scores for pair in row]
    scored = Rows(
        np.cumsum([0, *map(len, scores)]),
        np.array([node for node, _ in flat], np.int32),
        np.array([margin for _, margin in flat], np.float32),
    )
    versions = np.array([version for *_, version in given], np.int64)
    ids = [name for name, *_ in given]
    # No stamp at all may be told in two ways.
    given_stamps = stamps if any(ts is not None for ts in stamps) or len(ids) % 2 else None
    return Answers(Signature(TREE, model), ids, scored, versions, given_stamps)


@settings(deadline=None)
@given(st.lists(st.tuples(characters, stamps, rows, st.integers(0, 2**62))), characters)
@example([("1", "null", {0: -0.0, 1: 1e-6, 2: -4e-7, 3: 0.1, 4: 999_999_936.0}, 10)], "m")
@example([("1", None, {0: 1e9, 1: 1e-6, 2: -3e38}, 9)], "m")
def test_the_lines_are_the_predictions(given: list[Row], model: str) -> None:
    made = answers(given, model)
    expected = naive.prediction_lines(
        [(name, ts) for name, ts, _, _ in given],
        [{node: float(np.float32(margin)) for node, margin in row.items()} for _, _, row, _ in given],
        [version for *_, version in given],
        model,
        TREE.nodes,
        [TREE.parents(node).tolist() for node in range(len(TREE))],
    )
    lines = made.json_lines().splitlines()
    assert [in_order(line) for line in lines] == [in_order(line) for line in expected]
    assert [in_order(line) for line in lines] == [
        in_order(msgspec.json.encode(p)) for p in made.predictions()
    ]
    assert len(made) == len(given)


def in_order(line: bytes | str) -> Any:
    """Read a line; the order of the fields counts, too."""
    record = msgspec.json.decode(line)
    return list(record.items()), list(record["scores"].items())


def test_a_number_has_six_decimals_at_most_and_one_at_least() -> None:
    (line,) = (
        answers([("a", None, {0: 1.0, 1: -0.25, 2: 1 / 3, 3: 123456.0, 4: 5e-6}, 7)], "m")
        .json_lines()
        .splitlines()
    )
    numbers = [
        pair.rpartition(b":")[2] for pair in line.partition(b'"scores":{')[2].partition(b"}")[0].split(b",")
    ]
    assert numbers == [b"1.0", b"-0.25", b"0.333333", b"123456.0", b"0.000005"]


def test_only_the_most_specific_nodes_are_labels() -> None:
    top, other, below = TREE.nodes[0], TREE.nodes[1], TREE.nodes[3]
    assert TREE.parents(3).tolist() == [0]
    (prediction,) = answers([("a", None, {0: 3.0, 1: 2.0, 3: 1.0}, 0)], "m").predictions()
    scores = {top: 3.0, other: 2.0, below: 1.0}
    assert prediction == Prediction("a", [other, below], [top, other, below], scores, "m", 0)


def test_no_answers() -> None:
    assert answers([], "m").json_lines() == b""


@pytest.mark.parametrize("length", [1, 5_000])
def test_long_names_have_room(length: int) -> None:
    tree = Taxonomy.flat(["x" * length])
    scored = Rows(np.array([0, 1]), np.array([0], np.int32), np.array([-999_999_900], np.float32))
    made = Answers(
        Signature(tree, "m" * length),
        ["i" * length],
        scored,
        np.array([2**62]),
        ["t" * length],
    )
    assert msgspec.json.decode(made.json_lines())["scores"] == made.predictions()[0].scores
