import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_hc import Taxonomy
from stream_hc.evaluate import MEASURES, Run, plot_by_depth, plot_running, score
from stream_hc.evaluate.drawing import DPI, HEIGHT, PALETTE, WIDTH, shorten, spread

pytest.importorskip("matplotlib", reason="plots are an extra")

TREE = Taxonomy([("a", None), ("b", None), ("aa", "a"), ("ab", "a")])
DAG = Taxonomy([("a", None), ("b", None), ("ab", "a"), ("ab", "b")])


def make_run(name: str, n: int = 200, seed: int = 0, taxonomy: Taxonomy = TREE, window: int = 40) -> Run:
    rng = np.random.default_rng(seed)
    Y = rng.random((n, len(taxonomy))) < 0.3
    wrong = rng.random((n, len(taxonomy))) < np.linspace(0.5, 0.1, n)[:, None]
    return score(name, taxonomy, Y ^ wrong, Y, window=window)


def make_runs(n_runs: int = 3) -> list[Run]:
    return [make_run(f"learner {number}", seed=number) for number in range(n_runs)]


def pixels(path: Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Read a PNG: its size from the header, its pixels through matplotlib."""
    from matplotlib.image import imread  # noqa: PLC0415  # after importorskip

    return np.rint(imread(path) * 255).astype(np.uint8)[:, :, :3]


def chunks(data: bytes) -> list[bytes]:
    """Return the kinds of the chunks of a PNG, checking every checksum."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    kinds, at = [], 8
    while at < len(data):
        (size,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        assert (
            zlib.crc32(data[at + 4 : at + 8 + size])
            == struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0]
        )
        kinds.append(kind)
        at += 12 + size
    return kinds


def has_color(image: np.ndarray[Any, np.dtype[np.uint8]], color: str) -> bool:
    rgb = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)])
    return int((np.abs(image.astype(int) - rgb).sum(axis=2) == 0).sum()) > 50


DRAW = {
    "running": lambda runs, path: plot_running(runs, path, marks=[50, (100, "drift")]),
    "by depth": plot_by_depth,
}


@pytest.mark.parametrize("kind", DRAW)
def test_a_picture_with_something_in_it(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "plot.png"
    DRAW[kind](make_runs(3), path)
    image = pixels(path)
    assert image.shape[:2] == (round(HEIGHT * DPI), round(WIDTH * DPI))
    assert image.shape[1] == 1800
    for color in PALETTE[:3]:
        assert has_color(image, color)
    assert not has_color(image, PALETTE[3])
    assert np.unique(image.astype(int) @ [65536, 256, 1]).size > 100
    assert (image == 255).all(axis=2).mean() > 0.5
    edges = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
    assert (edges == 255).all(), "something runs over the edge of the page"


@pytest.mark.parametrize("kind", DRAW)
def test_same_runs_same_bytes(kind: str, tmp_path: Path) -> None:
    for name in ("one.png", "two.png"):
        DRAW[kind](make_runs(2), tmp_path / name)
    data = (tmp_path / "one.png").read_bytes()
    assert data == (tmp_path / "two.png").read_bytes()
    assert set(chunks(data)) <= {b"IHDR", b"pHYs", b"IDAT", b"IEND"}  # neither a date nor a version
    DRAW[kind](make_runs(3), tmp_path / "three.png")
    assert data != (tmp_path / "three.png").read_bytes()


@pytest.mark.parametrize("kind", DRAW)
def test_many_runs_with_long_names_stay_on_the_page(kind: str, tmp_path: Path) -> None:
    runs = [make_run("w" * 20 * (number % 3 + 1), seed=number) for number in range(13)]
    DRAW[kind](runs, tmp_path / "plot.png")
    image = pixels(tmp_path / "plot.png")
    assert (image[:, -1] == 255).all()
    assert all(has_color(image, color) for color in PALETTE)


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_and_any_window(measure: Any, tmp_path: Path) -> None:
    images = []
    for window in (1, 40, 10**6):
        plot_running([make_run("x")], tmp_path / "plot.png", measure=measure, window=window)
        images.append(pixels(tmp_path / "plot.png"))
    assert all(has_color(image, PALETTE[0]) for image in images)
    assert not np.array_equal(images[0], images[1])


def test_streams_of_one_document_and_without_a_mistake(tmp_path: Path) -> None:
    right = score("right", TREE, [{"a"}], [{"a"}])
    for draw in DRAW.values():
        draw([right, make_run("x", n=3)], tmp_path / "plot.png")
        draw([right], tmp_path / "plot.png")
        assert pixels(tmp_path / "plot.png").shape[1] == 1800


def test_a_dag_has_depths_too(tmp_path: Path) -> None:
    plot_by_depth([make_run("x", taxonomy=DAG)], tmp_path / "plot.png")
    with pytest.raises(ValueError, match="choose one of zero_one, h_loss, symmetric_difference"):
        plot_running([make_run("x", taxonomy=DAG)], tmp_path / "no.png", measure="normalized_h_loss")
    assert not (tmp_path / "no.png").exists()


def test_bad_arguments(tmp_path: Path) -> None:
    for draw in DRAW.values():
        with pytest.raises(ValueError, match="no runs to draw"):
            draw([], tmp_path / "no.png")
    with pytest.raises(ValueError, match=f"unknown measure 'x': choose one of {', '.join(MEASURES)}"):
        plot_running(make_runs(1), tmp_path / "no.png", measure="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="window must be a whole number of at least 1"):
        plot_running(make_runs(1), tmp_path / "no.png", window=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", DRAW)
def test_without_matplotlib_the_remedy_is_named(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as error:
        DRAW[kind](make_runs(1), tmp_path / "no.png")
    assert str(error.value) == 'plots need matplotlib: pip install "stream_hc[plot]"'
    assert error.value.__suppress_context__


def test_pyplot_is_left_alone(tmp_path: Path) -> None:
    before = "matplotlib.pyplot" in sys.modules
    plot_by_depth(make_runs(1), tmp_path / "plot.png")
    assert ("matplotlib.pyplot" in sys.modules) == before


@given(st.lists(st.floats(0, 1), min_size=1, max_size=25), st.floats(0.01, 0.2))
def test_labels_are_moved_apart_and_keep_their_order(positions: list[float], gap: float) -> None:
    moved = np.array(spread(positions, gap))
    room = min(gap, 1 / max(len(positions) - 1, 1))
    order = np.argsort(positions, kind="stable")
    assert (np.diff(moved[order]) >= room - 1e-9).all()
    assert moved.min() >= -1e-9
    assert moved.max() <= 1 + 1e-9
    if (np.diff(np.sort(positions)) >= gap).all():
        np.testing.assert_allclose(moved, positions, atol=1e-9)


def test_shorten() -> None:
    assert shorten("H-PERC") == "H-PERC"
    assert shorten("abcdef", longest=4) == "abc…"
