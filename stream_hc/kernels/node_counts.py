"""What became of each node: how many documents belong there, were filed there, both, were charged there."""

from numba import njit

from stream_hc.kernels import Ints, Longs

__all__ = ["CHARGED", "HITS", "PREDICTED", "SUPPORT", "count_nodes"]

SUPPORT, PREDICTED, HITS, CHARGED = range(4)  # columns of the counts


@njit(cache=True, nogil=True)
def count_nodes(
    counts: Longs,
    first: int,
    last: int,
    pred_ptr: Longs,
    pred_nodes: Ints,
    true_ptr: Longs,
    true_nodes: Ints,
    charged_ptr: Longs,
    charged_nodes: Ints,
) -> None:
    """Count rows `first` to `last` - 1; nodes ascend in each. Writes `counts`."""
    for row in range(first, last):
        k, end = pred_ptr[row], pred_ptr[row + 1]
        for place in range(true_ptr[row], true_ptr[row + 1]):
            node = true_nodes[place]
            counts[node, SUPPORT] += 1
            while k < end and pred_nodes[k] < node:
                k += 1
            if k < end and pred_nodes[k] == node:
                counts[node, HITS] += 1
        for place in range(pred_ptr[row], end):
            counts[pred_nodes[place], PREDICTED] += 1
        for place in range(charged_ptr[row], charged_ptr[row + 1]):
            counts[charged_nodes[place], CHARGED] += 1
