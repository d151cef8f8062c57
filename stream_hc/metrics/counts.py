"""Weighted counts without rounding, so that what was added can be taken back to the last bit.

Floats cannot do that: 1e17 + 0.1 - 1e17 is 0. Every float is a fraction, though, and sums of fractions are
exact. Whole weights, by far the most common, are counted in int64, all others in `fractions.Fraction`.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_hc.kernels import Longs

__all__ = ["Counts", "Weight"]

Weight = int | float | Fraction

LARGEST_WHOLE = 2**20
"""Whole weights up to here are counted in int64, which then has room for 2⁴³ updates of a slot."""


class Counts:
    """A weighted count for each of `n_slots` slots, exact under `add` and its inverse.

    Examples
    --------
    >>> counts = Counts(3)
    >>> counts.add(np.array([0, 2, 2]), 1.0)
    >>> counts.add(np.array([1, 2]), 0.1)
    >>> counts.add(np.array([1, 2]), 1e17)
    >>> counts.add(np.array([1, 2]), 0.1, sign=-1)
    >>> counts.add(np.array([1, 2]), 1e17, sign=-1)
    >>> counts.numbers()
    array([1., 0., 2.])
    """

    def __init__(self, n_slots: int) -> None:
        self.whole: Longs = np.zeros(n_slots, np.int64)
        self.rest: dict[int, Fraction] = {}

    def add(self, slots: NDArray[np.signedinteger[Any]], weight: Weight, sign: int = 1) -> None:
        """Add the weight to each slot, as often as it is listed; `sign=-1` takes it away again."""
        exact = _exact(weight)
        if isinstance(exact, int) and exact <= LARGEST_WHOLE:
            np.add.at(self.whole, slots, sign * exact)
            return
        listed, times = np.unique(slots, return_counts=True)
        for slot, count in zip(listed.tolist(), times.tolist(), strict=True):
            value = self.rest.pop(slot, Fraction(0)) + sign * count * exact
            if value:  # what was taken back leaves no trace
                self.rest[slot] = value

    def numbers(self) -> NDArray[Any]:
        """Return the counts to calculate with: float64 if all weights were whole and small, else fractions.

        Ratios of fractions are exact too: neither 1e308 twice nor 5e-324 next to it is out of range.
        """
        if not self.rest:
            return self.whole.astype(np.float64)
        exact = [Fraction(count) + self.rest.get(slot, 0) for slot, count in enumerate(self.whole.tolist())]
        return np.array(exact, dtype=object)

    def state(self) -> dict[str, Any]:
        """Return the counts as an array and a text: exact, and equal for equal counts."""
        rest = " ".join(f"{slot}:{count}" for slot, count in sorted(self.rest.items()))
        return {"whole": self.whole.copy(), "rest": rest}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], n_slots: int) -> "Counts":
        """Return counts equal to those that gave the state."""
        whole = np.array(state["whole"], np.int64)
        if whole.shape != (n_slots,):
            raise ValueError(f"counts of shape {whole.shape} do not fit {n_slots} slots")
        pairs = (part.split(":") for part in state["rest"].split())
        counts = cls(n_slots)
        counts.whole = whole
        counts.rest = {int(slot): Fraction(count) for slot, count in pairs}
        if not all(0 <= slot < n_slots for slot in counts.rest):
            raise ValueError(f"counts outside their {n_slots} slots")
        return counts


def _exact(weight: Weight) -> int | Fraction:
    """Return the weight without rounding: an int where it is whole."""
    number = weight if isinstance(weight, int | Fraction) else float(weight)
    if not 0 <= number < math.inf:
        raise ValueError(f"a weight must be a finite number, 0 or more, not {weight!r}")
    return int(number) if number == int(number) else Fraction(number)
