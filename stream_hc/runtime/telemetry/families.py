"""Counters, gauges and histograms of one name each, filled a batch at a time.

Not those of `prometheus_client`: a batch of a thousand label delays is one call here, and counters come
without the time when they were made.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

__all__ = ["PREFIX", "Count", "Family", "Gauge", "Histogram"]

PREFIX = "streamhc_"


class Family(ABC):
    """What has one name.

    Parameters
    ----------
    name
        Without prefix, and without the `_total` of a counter.
    meaning
        For people.
    labels
        Names of the labels.
    """

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        self.name = PREFIX + name
        self.meaning = meaning
        self.labels = labels

    @abstractmethod
    def collected(self) -> Metric:
        """Return it as Prometheus wants it."""


class Count(Family):
    """A number for each combination of labels that only rises.

    >>> count = Count("letters", "Letters seen.", "letter")
    >>> count.add(2, "a")
    >>> count.add(1, "a")
    >>> count.values
    {('a',): 3.0}
    """

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        super().__init__(name, meaning, *labels)
        self.values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def add(self, amount: float, *labels: str) -> None:
        """Add to the number of these labels; nothing if the amount is negative by a rounding error."""
        self.values[labels] = self.values.get(labels, 0.0) + max(0.0, amount)

    def collected(self) -> Metric:
        """Return all numbers."""
        family = CounterMetricFamily(self.name, self.meaning, labels=self.labels)
        for labels, value in sorted(self.values.items()):
            family.add_metric(labels, value)
        return family


class Gauge(Family):
    """A number for each combination of labels that goes up and down."""

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        super().__init__(name, meaning, *labels)
        self.values: dict[tuple[str, ...], float] = {}

    def set(self, value: float, *labels: str) -> None:
        """Set the number of these labels."""
        self.values[labels] = value

    def replace(self, values: Mapping[Any, float]) -> None:
        """Set all numbers, by tuples of labels; labels that are not among them are gone."""
        self.values = dict(values)

    def collected(self) -> Metric:
        """Return all numbers."""
        family = GaugeMetricFamily(self.name, self.meaning, labels=self.labels)
        for labels, value in sorted(self.values.items()):
            family.add_metric(labels, value)
        return family


class Histogram(Family):
    """How many values there were up to each bound.

    >>> histogram = Histogram("size", "Sizes.", (1.0, 10.0))
    >>> histogram.observe([0.5, 1.0, 2.0, 50.0])
    >>> histogram.observe(5.0, times=3)
    >>> histogram.counts.tolist(), histogram.sum
    ([2, 4, 1], 68.5)
    """

    def __init__(self, name: str, meaning: str, bounds: Sequence[float]) -> None:
        super().__init__(name, meaning)
        self._bounds = np.array(bounds, np.float64)
        self.counts = np.zeros(self._bounds.size + 1, np.int64)
        self.sum = 0.0

    def observe(self, values: ArrayLike, times: int = 1) -> None:
        """Count some values, each so many times."""
        seen = np.atleast_1d(np.asarray(values, np.float64))
        places = np.searchsorted(self._bounds, seen)
        self.counts += times * np.bincount(places, minlength=self.counts.size)
        self.sum += times * float(seen.sum())

    def collected(self) -> Metric:
        """Return all counts, each with those below."""
        names = [*(f"{bound:g}" for bound in self._bounds), "+Inf"]
        buckets = list(zip(names, np.cumsum(self.counts).tolist(), strict=True))
        return HistogramMetricFamily(self.name, self.meaning, buckets=buckets, sum_value=self.sum)
