"""A line chart of Braille characters: each has 2 x 4 dots and one colour."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_hc.runtime.report import Points

__all__ = ["History", "Run", "draw_lines"]

BLANK = 0x2800
DOTS = np.array(
    [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]], np.uint8
)  # of a character, by column and row

Run = tuple[str, str]  # characters, and the name of the line that they belong to


class History:
    """The loss of each line so far; when there are too many points, every other one goes."""

    def __init__(self, most: int = 400) -> None:
        self._most = most
        self._step = 1
        self._seen = 0
        self.rows: list[tuple[int, str, dict[str, float]]] = []

    def add(self, at: int, champion: str, losses: Mapping[str, float]) -> None:
        """Take the losses after so many labelled documents."""
        if self.rows and at <= self.rows[-1][0]:
            self.rows.pop()
        elif self._seen % self._step and len(self.rows) > 1:
            self.rows.pop()  # the newest is always there, and replaced until it is one of those that stay
        self._seen += 1
        self.rows.append((at, champion, dict(losses)))
        if len(self.rows) > self._most:
            self.rows = self.rows[::2]
            self._step *= 2
            self._seen = 0

    def lines(self) -> dict[str, Points]:
        """Return points (labelled documents, loss) by name."""
        lines: dict[str, Points] = {}
        for at, _, losses in self.rows:
            for name, loss in losses.items():
                lines.setdefault(name, []).append((at, loss))
        return lines

    def champions(self, columns: int) -> list[Run]:
        """Return who answered, along the columns of a chart."""
        if not self.rows:
            return []
        at = np.array([row[0] for row in self.rows])
        places = np.minimum(np.searchsorted(at, np.linspace(0, at[-1], columns)), at.size - 1)
        names = list(dict.fromkeys(row[1] for row in self.rows))
        numbers = np.array([names.index(row[1]) for row in self.rows])
        return _runs("▀" * columns, numbers[places], names)


def draw_lines(
    lines: Sequence[tuple[str, Points]], columns: int, rows: int, end: int, low: float, high: float
) -> list[list[Run]]:
    """Return the rows of a chart from (0, `low`) to (`end`, `high`); later lines cover earlier ones."""
    bits = np.zeros((rows, columns), np.uint8)
    owner = np.full((rows, columns), -1)
    n_x, n_y = 2 * columns, 4 * rows
    for number, (_, points) in enumerate(lines):
        if not points:
            continue
        at, loss = np.array(points, np.float64).T
        first, last = (int(labelled / max(end, 1) * (n_x - 1)) for labelled in (at[0], at[-1]))
        x = np.arange(first, last + 1)
        value = np.interp(x / (n_x - 1) * end, at, loss)
        y = np.clip(np.rint((high - value) / (high - low) * (n_y - 1)), 0, n_y - 1).astype(np.int64)
        before = np.concatenate([y[:1], y[:-1]])
        top, length = np.minimum(before, y), np.abs(before - y) + 1  # upright pieces join steep lines
        dot_x = np.repeat(x, length)
        dot_y = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length - top, length)
        mine = np.zeros_like(bits)
        np.bitwise_or.at(mine, (dot_y // 4, dot_x // 2), DOTS[dot_x % 2, dot_y % 4])
        bits[mine > 0] = mine[mine > 0]
        owner[mine > 0] = number
    names = [name for name, _ in lines]
    characters = np.where(bits > 0, BLANK + bits.astype(np.uint32), ord(" ")).astype("<u4")
    return [_runs(characters[row].tobytes().decode("utf-32-le"), owner[row], names) for row in range(rows)]


def _runs(text: str, owner: NDArray[Any], names: Sequence[str]) -> list[Run]:
    """Cut a row into pieces of one colour; blanks have none."""
    cuts = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(text)]
    runs = []
    for first, last in itertools.pairwise(cuts):
        number = int(owner[first])
        runs.append((text[first:last], names[number] if number >= 0 else ""))
    return runs
