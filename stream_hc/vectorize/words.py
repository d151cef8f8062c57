"""What a word character is: what Python's `re` takes for one, as a table the kernels can look into."""

import re
import sys
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import Bools

__all__ = ["TOKEN", "word_characters"]

TOKEN = re.compile(r"\w\w+")
ASCII = 128


def word_characters(buffer: NDArray[np.uint8]) -> Bools:
    """Return for every code point that can occur in these bytes whether it is a word character."""
    # The table of all Unicode takes a tenth of a second to build: texts in ASCII need not wait for it.
    return _table(ASCII if buffer.max(initial=0) < ASCII else sys.maxunicode + 1)


@cache
def _table(size: int) -> Bools:
    table = np.zeros(size, np.bool_)
    for run in re.finditer(r"\w+", "".join(map(chr, range(size)))):
        table[run.start() : run.end()] = True
    table.setflags(write=False)
    return table
