import io
import itertools
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from stream_hc.cli.live import LINE_EVERY, REFRESHES, SHARE, LiveView
from stream_hc.cli.live_chart import History, draw_lines
from stream_hc.cli.live_frame import draw_frame
from stream_hc.runtime.events import Event, Score, Standing
from stream_hc.runtime.log import RunLog
from stream_hc.runtime.report import WORDS
from tests.conftest import ROOT
from tests.runtime.sample_log import make_log

REFIT = {"epoch": 17, "seconds": 3.4, "dual_objective": 200.0, "duality_gap": 16.0}


class Clock:
    """Time that passes when it is told to; each look at it takes `step`."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def terminal(width: int = 80, height: int = 24) -> Console:
    return Console(
        file=io.StringIO(), width=width, height=height, force_terminal=True, color_system="truecolor",
        legacy_windows=False, _environ={"TERM": "xterm"},
    )  # fmt: skip


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def play(view: LiveView, log: RunLog, upto: int = 10**9) -> None:
    events = list(log.events)
    for standing in log.standings:
        if standing.labelled > upto:
            return
        while events and events[0].labelled <= standing.labelled:
            view.event(events.pop(0))
        view.update(standing, 5234.6, REFIT)


def frame(view: LiveView, width: int, height: int) -> list[str]:
    return ["".join(segment.text for segment in line) for line in draw_frame(view, width, height)]


def watched_view(upto: int = 10**9) -> LiveView:
    view = LiveView(True, terminal(), Clock())
    play(view, make_log(), upto)
    return view


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 40), (200, 60), (40, 12), (20, 5), (8, 2)])
def test_it_fits_the_terminal(width: int, height: int) -> None:
    view = watched_view()
    lines = frame(view, width, height)
    assert 1 <= len(lines) <= height
    assert max(map(cell_len, lines)) <= width
    if width >= 80:
        assert max(map(cell_len, lines)) > width - 4, "wide terminals are used"


def test_everything_is_there_on_a_small_terminal() -> None:
    shown = "\n".join(frame(watched_view(8_500), 80, 23))
    for wanted in ("9,000 documents", "5,235 a second", "500 wait for labels", "7 dead letters", "★ hm3-3"):
        assert wanted in shown
    assert "epoch 17, gap 8.0%, 3 s" in shown
    assert "swap          h-arow → hm3-3: H-loss 19.3 % lower on 300 documents" in shown
    assert sum(line.count("┤") for line in shown.splitlines()) == 3
    assert len(re.findall("[\u2801-\u28ff]", shown)) > 100
    assert shown.count("★") == 2  # in the table and at the end of the line
    assert len([line for line in shown.splitlines() if re.match(r" +[\d,]+ [a-z]", line)][-5:]) == 5


def test_the_champion_comes_first_and_the_others_by_their_loss() -> None:
    lines = frame(watched_view(8_500), 80, 23)
    first = next(place for place, line in enumerate(lines) if "recent" in line and "mean" in line)
    assert [line[3:10].strip() for line in lines[first + 1 : first + 6]] == [
        "served",
        "hm3-3",
        "h-arow",
        "h-perc",
        "hpa",
    ]
    bars = [line.count("━") for line in lines[first + 2 : first + 6]]
    assert bars == sorted(bars)


def test_before_the_first_standing() -> None:
    view = LiveView(True, terminal(), Clock())
    view.event(Event("refit", 5, 0, detail="asked for"))
    assert frame(view, 80, 24) == [" waiting for labelled documents", "         0 re-fit        asked for"]


def test_names_cannot_steer_the_terminal() -> None:
    standing = make_log(100).standings[0]
    evil = "\x1b[2J\x07evil\n\u202e" + "日本" * 50
    hostile = msgspec.structs.replace(
        standing, champion=evil, scores={evil: Score(9, 0.5, 0.5)}, rejected={evil: 1}
    )
    for shown in (True, False):
        console = terminal()
        with LiveView(shown, console, Clock()) as view:
            view.update(hostile, 1.0)
            view.event(Event("swap", 1, 1, evil, evil, evil))
        text = written(console)
        assert "\x1b[2J\x07" not in text
        assert "\u202e" not in text
        assert r"\x1b[2J\x07evil" in text
    assert max(map(cell_len, frame(view, 80, 24))) <= 80


def test_it_draws_at_most_so_often_and_takes_its_share() -> None:
    clock, console = Clock(), terminal()
    with LiveView(True, console, clock) as view:
        drawn = []
        for standing in make_log().standings:
            before = len(written(console))
            view.update(standing, 1.0)
            drawn.append(len(written(console)) > before)
            clock.now += 0.01
    assert 9 <= sum(drawn) <= 1.2 * REFRESHES + 1
    clock, console = Clock(step=0.02), terminal()  # every look at the clock is 20 ms later: a slow terminal
    with LiveView(True, console, clock) as view:
        n_drawn = 0
        for standing in make_log().standings:
            before = len(written(console))
            view.update(standing, 1.0)
            n_drawn += len(written(console)) > before
            clock.now += 0.08
    assert (n_drawn - 2) * 0.02 <= SHARE * clock.now  # the first ones are free
    assert n_drawn >= 3


def test_the_last_numbers_stay() -> None:
    console = terminal()
    with LiveView(True, console, Clock()) as view:
        play(view, make_log())
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written(console))
    assert re.findall(r"([\d,]+) documents   [\d,]+ labelled", text)[-1] == "12,500"
    assert written(console).endswith("\x1b[?25h")


def test_lines_where_nobody_watches() -> None:
    clock, log = Clock(), make_log()
    console = Console(file=io.StringIO(), width=80, color_system=None)
    with LiveView(False, console, clock) as view:
        for standing in log.standings:
            view.update(standing, 99.4, REFIT if standing.labelled == 5_000 else None)
            clock.now += 0.5
        for event in log.events:
            view.event(event)
    text = written(console)
    assert text.isascii()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
    lines = text.splitlines()
    events = [line for line in lines if " after " in line]
    numbers = [line for line in lines if line not in events]
    assert len(events) == len(log.events)
    assert events[4] == (
        "swap after 3,200 labelled documents: hm3-1 answers from now on instead of h-arow: "
        "H-loss 19.7 % lower on 700 documents"
    )
    assert len(numbers) == 120 * 0.5 // LINE_EVERY - 1 + 1  # the last when it ends
    assert numbers[-1].startswith("12,500 documents, 12,000 labelled, 99/s, hm3-3 answers, H-loss 0.")
    assert "500 wait for labels, 11 dead letters" in numbers[-1]


def test_nothing_is_said_of_nothing() -> None:
    console = Console(file=io.StringIO(), width=80)
    with LiveView(False, console, Clock()):
        pass
    assert written(console) == ""


def test_a_terminal_that_cannot_draw_gets_lines() -> None:
    dumb = Console(file=io.StringIO(), force_terminal=True, width=80, _environ={"TERM": "dumb"})
    ascii_only = Console(file=io.TextIOWrapper(io.BytesIO(), "ascii"), force_terminal=True, width=80)
    for console in (dumb, ascii_only):
        with LiveView(True, console, Clock()) as view:
            view.update(make_log(100).standings[0], 1.0)
            view.event(Event("drift", 10, 5))
        console.file.flush()
        text = console.file.buffer.getvalue().decode() if console is ascii_only else written(console)  # type: ignore[attr-defined]
        assert text.startswith("drift after 5 labelled documents: the H-loss of the champion has changed\n")
        assert "\x1b" not in text


SCRIPT = """
from stream_hc.cli.console import watched
from stream_hc.cli.live import LiveView
from tests.cli.test_live import make_log, play
with LiveView(watched(False)) as view:
    play(view, make_log(3_000))
"""


def run_in_pty() -> Iterator[str]:
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", "PYTHONUTF8": "1"}
    seen: list[bytes] = []

    def drain() -> None:
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # the other end is closed
                return
            seen.append(data)

    reader = threading.Thread(target=drain)
    reader.start()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], stderr=theirs, stdout=subprocess.PIPE, env=env, cwd=ROOT
    )
    os.close(theirs)
    reader.join(timeout=10)
    os.close(ours)
    assert done.returncode == 0
    assert done.stdout == b""
    yield b"".join(seen).decode()


def test_on_a_real_terminal() -> None:
    for text in run_in_pty():
        assert "recent H-loss" in text
        assert "3,500" in text
        assert "\x1b[?25l" in text
        assert text.rstrip().endswith("\x1b[?25h")


def test_in_a_real_pipe() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout == ""
    assert "\x1b" not in done.stderr
    assert len(done.stderr.splitlines()) == len(make_log(3_000).events) + 1


def test_the_history_stays_small_and_keeps_the_newest() -> None:
    history = History(most=50)
    for at in range(1, 5_001):
        history.add(at, "a" if at < 2_500 else "b", {"m": at / 1000})
        assert len(history.rows) <= 50
        assert history.rows[-1][0] == at
    points = history.lines()["m"]
    gaps = [later[0] - earlier[0] for earlier, later in itertools.pairwise(points[:-1])]
    assert max(gaps) <= 2 * min(gaps)
    assert len(points) >= 20
    (first, a), (second, b) = history.champions(40)
    assert (a, b) == ("a", "b")
    assert abs(len(first) - 20) <= 2
    assert len(first) + len(second) == 40


@given(
    st.lists(
        st.tuples(st.integers(0, 1000), st.floats(0, 5)), min_size=1, max_size=30, unique_by=lambda p: p[0]
    ),
    st.integers(3, 60),
    st.integers(3, 16),
)
def test_a_line_is_drawn_from_its_first_to_its_last_point(
    points: list[tuple[int, float]], columns: int, rows: int
) -> None:
    points = sorted(points)
    grid = [
        "".join(text for text, _ in row) for row in draw_lines([("m", points)], columns, rows, 1000, 0.0, 5.1)
    ]
    assert [len(row) for row in grid] == [columns] * rows
    used = [column for column in range(columns) if any(row[column] != " " for row in grid)]
    first, last = (int(at / 1000 * (2 * columns - 1)) // 2 for at in (points[0][0], points[-1][0]))
    assert used == list(range(first, last + 1))  # without a hole


def test_later_lines_cover_earlier_ones() -> None:
    flat = [(0, 1.0), (100, 1.0)]
    rows = draw_lines([("under", flat), ("over", flat)], 10, 3, 100, 0.0, 2.0)
    assert {name for row in rows for _, name in row} == {"", "over"}


def test_a_standing_with_nothing_scored() -> None:
    empty = Standing(5, 0, "m", 0, Score(0, 0.0, 0.0), {"m": Score(0, 0.0, 0.0)}, [], 5, 0, {}, {})
    view = LiveView(True, terminal(), Clock())
    view.update(empty, 0.0, {"duality_gap": 3.0})
    shown = "\n".join(frame(view, 80, 24))
    assert "gap 3" in shown
    assert re.search(r"★ m +– +–", shown)


def test_every_happening_has_a_word() -> None:
    view = LiveView(True, terminal(), Clock())
    for what in WORDS:
        view.event(Event(what, 1, 1, "m"))
        assert WORDS[what] in frame(view, 80, 24)[-1]


def test_a_message_makes_room_for_itself_at_any_time() -> None:
    console, log = terminal(), make_log()
    with LiveView(True, console, Clock()) as view:
        play(view, log, 8_000)
        newest = msgspec.structs.replace(
            log.standings[-1], labelled=8_001, scores={"new": Score(1, 0.5, 0.5)}
        )
        view.update(newest, 1.0)  # not drawn yet, nor in the history
        console.print("hello")
        assert view.history.rows[-1][0] == 8_000
    assert "hello" in written(console)
    assert "new" in written(console)
