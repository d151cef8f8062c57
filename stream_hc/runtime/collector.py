"""The garbage collector of a process that does nothing but stream."""

import gc

__all__ = ["spare_what_stays"]

ALLOCATIONS = 20_000  # lists and other containers made before the young ones are looked at; Python: 700


def spare_what_stays() -> None:
    """Let the collector look neither at what is there now nor at every batch anew.

    Call it once, when everything is imported, in a process of one's own. A record makes a list of labels that
    is gone with its batch; at Python's own pace so many of them let the collector look through everything
    that was ever imported, again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS)
