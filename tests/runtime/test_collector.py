"""What is there before the stream begins is not looked at again."""

import subprocess
import sys

SCRIPT = """
import gc
from stream_hc.runtime.collector import ALLOCATIONS, spare_what_stays
assert gc.get_threshold()[0] < 10_000  # who only imports it is left alone
ring = []; ring.append(ring)
spare_what_stays()
assert gc.get_freeze_count() > 1000 and gc.isenabled()
assert gc.get_threshold()[0] == ALLOCATIONS
class Ring: gone = False; __del__ = lambda self: setattr(Ring, "gone", True)
new = Ring(); new.itself = new; del new
[[] for _ in range(2 * ALLOCATIONS)]  # each is freed at once, the list of them is not garbage
kept = [[] for _ in range(2 * ALLOCATIONS)]
assert Ring.gone  # garbage of the stream itself still goes
print("fine")
"""


def test_what_stays_is_spared_and_new_garbage_goes() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.stdout == "fine\n", done.stderr
