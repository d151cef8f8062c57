"""What hangs is given up: single calls, and the process as a whole, and nothing else."""

import subprocess
import sys
import threading
import time

import pytest
from kafka.errors import KafkaTimeoutError

from consumers.watchdog import Watchdog, timed


def test_a_call_in_time_returns_what_it_returns():
    assert timed(30.0, "adding", lambda *numbers: sum(numbers), 1, 2) == 3


@pytest.mark.parametrize("error", [ValueError("bad"), KafkaTimeoutError("of its own"), SystemExit(3)])
def test_what_a_call_raises_is_raised_where_it_is_waited_for(error):
    def fail():
        raise error

    with pytest.raises(type(error)) as raised:
        timed(30.0, "failing", fail)
    assert raised.value is error


def test_a_call_that_takes_too_long_is_left_behind():
    go_on, done = threading.Event(), threading.Event()

    def hang():
        go_on.wait(30)
        done.set()

    with pytest.raises(KafkaTimeoutError, match=r"hanging takes longer than 0\.05 s"):
        timed(0.05, "hanging", hang)
    # It goes on in a thread that nobody waits for at the end.
    (thread,) = [each for each in threading.enumerate() if each.name == "hanging"]
    assert thread.daemon
    go_on.set()
    assert done.wait(30)
    thread.join(30)


def test_it_ends_the_process_once_when_nothing_has_moved():
    ended = []
    with Watchdog(0.1, lambda: ended.append(time.monotonic())) as watchdog:
        watchdog._thread.join(30)
        assert not watchdog._thread.is_alive()
    assert len(ended) == 1


def test_while_something_moves_it_does_nothing():
    ended = threading.Event()
    with Watchdog(4.0, ended.set) as watchdog:
        until = time.monotonic() + 0.3
        before = watchdog._last
        while time.monotonic() < until:
            watchdog.beat()
            time.sleep(0.01)
        assert watchdog._last > before
        assert not ended.is_set()
    assert not watchdog._thread.is_alive()
    assert not ended.is_set()


def test_a_beat_puts_the_end_off():
    ended = []
    watchdog = Watchdog(0.6, lambda: ended.append(time.monotonic()))
    with watchdog:
        time.sleep(0.3)
        watchdog.beat()
        last = watchdog._last
        watchdog._thread.join(30)
    assert ended[0] - last > 0.6


def test_the_time_counts_from_when_it_is_entered():
    watchdog = Watchdog(600.0)
    watchdog._last -= 1000.0
    with watchdog:
        assert time.monotonic() - watchdog._last < 500.0


def test_by_itself_it_ends_the_process_with_a_code_of_its_own():
    code = "import time\nfrom consumers.watchdog import Watchdog\nwith Watchdog(0.1):\n    time.sleep(60)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert done.returncode == 7
    assert done.stderr.decode().endswith("error: nothing has moved for 0.1 s: ending, to be started again\n")


def test_what_it_says_before_it_ends(monkeypatch):
    said, codes = [], []
    monkeypatch.setattr("os.write", lambda place, text: said.append((place, text)))
    monkeypatch.setattr("os._exit", codes.append)
    Watchdog(90.0)._end_process()
    assert said == [(2, b"error: nothing has moved for 90 s: ending, to be started again\n")]
    assert codes == [7]
