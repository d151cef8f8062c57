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
        k, last_pred = pred_ptr[row], pred_ptr[row + 1]
        for place in range(true_ptr[row], true_ptr[row + 1]):
            node = true_nodes[place]
            while k < last_pred and pred_nodes[k] < node:
                counts[pred_nodes[k], PREDICTED] += 1
                k += 1
            counts[node, SUPPORT] += 1
            if k < last_pred and pred_nodes[k] == node:
                counts[node, PREDICTED] += 1
                counts[node, HITS] += 1
                k += 1
        for place in range(k, last_pred):
            counts[pred_nodes[place], PREDICTED] += 1
        for place in range(charged_ptr[row], charged_ptr[row + 1]):
            counts[charged_nodes[place], CHARGED] += 1
