"""What every view of a model on one document offers: sums of weight times value, node by node."""

import abc
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from stream_hc.kernels import Bools, Doubles
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows

__all__ = ["NotLinearError", "View", "number"]


class NotLinearError(ValueError):
    """A model without weights for features: nothing can be said about single words."""


class View(abc.ABC):
    """What a model makes of one document.

    Parameters
    ----------
    model
        Any model with linear weights.
    taxonomy
        Its labels and their parents.
    row
        One document.

    Attributes
    ----------
    rule
        How the model decides, in one sentence.
    """

    rule: str

    def __init__(self, model: Any, taxonomy: Taxonomy, row: Rows) -> None:
        self.model = model
        self.taxonomy = taxonomy
        self.row = row
        self.x = row.values.astype(np.float64)
        self.X = csr_array((row.values, row.indices, row.indptr), shape=(1, model.n_features))

    @cached_property
    def on(self) -> Bools:
        """Which nodes are predicted."""
        on: Bools = np.zeros(len(self.taxonomy), np.bool_)
        on[self.model.predict_many(self.X).indices] = True
        return on

    @cached_property
    def margins(self) -> Doubles:
        """The margin of every node, as the model works it out."""
        return self._find_margins()

    def _find_margins(self) -> Doubles:
        return np.asarray(self.model.margins(self.X)[0], np.float64)

    @abc.abstractmethod
    def products(self, node: int) -> Doubles:
        """Return weight times value for each feature of the document; with the bias they make the total."""

    def total(self, node: int) -> float:
        """Return what the products and the bias add up to, as the model works it out."""
        return float(self.margins[node])

    def bias(self, node: int) -> float:
        """Return what a node says whatever the document is."""
        return 0.0

    def threshold(self, node: int) -> float | None:
        """Return what the margin has to exceed; None where more than the margin of the node decides."""
        return None

    def through(self, node: int) -> list[tuple[str, float]]:
        """Return how much of the total comes through which other node, where several have a say."""
        return []

    @abc.abstractmethod
    def reason(self, node: int) -> str:
        """Say why a node is on or off."""


def number(value: float) -> str:
    """Return a number with its sign.

    >>> number(0.5), number(-1.25)
    ('+0.500', '−1.250')
    """
    return f"{value:+.3f}".replace("-", "−")
