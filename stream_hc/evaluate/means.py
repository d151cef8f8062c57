"""Means along a stream: over everything so far, or over the last documents only."""

import numpy as np
from numpy.typing import NDArray

from stream_hc.checks import whole_number

__all__ = ["running_mean", "windowed_mean"]

Doubles = NDArray[np.float64]


def running_mean(values: Doubles) -> Doubles:
    """Return at every step the mean of the values so far.

    >>> running_mean(np.array([1.0, 0.0, 2.0]))
    array([1. , 0.5, 1. ])
    """
    return np.cumsum(values) / np.arange(1, values.size + 1)


def windowed_mean(values: Doubles, window: int) -> Doubles:
    """Return at every step the mean of the last `window` values, of all while there are fewer.

    The difference of two cumulative sums would carry the rounding of the whole stream into every window.
    Here the values are cut into blocks as long as the window: each window is the end of one block and the
    beginning of the next, so nothing is subtracted, and whole numbers are summed without any error.

    >>> windowed_mean(np.array([1.0, 0.0, 2.0, 4.0]), 2)
    array([1. , 0.5, 1. , 3. ])
    """
    whole_number("window", window, 1)
    if values.size == 0:
        return np.zeros(0)
    window = min(window, values.size)
    n_blocks = -(-values.size // window)
    blocks = np.zeros((n_blocks, window))
    blocks.reshape(-1)[: values.size] = values
    sums = np.cumsum(blocks, axis=1)
    ends = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1]
    sums[1:, :-1] += ends[:-1, 1:]
    counts = np.minimum(np.arange(1, values.size + 1), window)
    means: Doubles = sums.reshape(-1)[: values.size] / counts
    return means
