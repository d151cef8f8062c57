"""Which classes a snapshot may name. A file never decides what is imported: this table and `register` do."""

import importlib
from collections.abc import Mapping
from typing import Any, Protocol, Self, TypeVar

from stream_hc.snapshot.errors import SnapshotError

__all__ = ["Snapshotable", "class_of", "kind_of", "register"]


class Snapshotable(Protocol):
    """What an object needs to be saved: its state out, and a new object from a state."""

    def state(self) -> Mapping[str, Any]:
        """Return everything the object is, as arrays and scalars; the arrays are copies."""

    @classmethod
    def from_state(cls, state: dict[str, Any], /) -> Self:
        """Return an object that goes on as the saved one would; ValueError if the state does not fit."""


C = TypeVar("C", bound=type[Snapshotable])

# Imported when first needed: the format itself depends on no learner.
BUILT_IN = {
    "ApproxHBayes": "stream_hc.learners",
    "Calibrated": "stream_hc.learners",
    "HAROW": "stream_hc.learners",
    "HM3": "stream_hc.maxmargin",
    "HPA": "stream_hc.learners",
    "HPerceptron": "stream_hc.learners",
    "HRLS": "stream_hc.learners",
    "LHPA": "stream_hc.learners",
    "NodePA": "stream_hc.learners",
    "PA": "stream_hc.learners",
    "Perceptron": "stream_hc.learners",
    "RankingPerceptron": "stream_hc.learners",
    "RankingSVM": "stream_hc.maxmargin",
    "SequenceVectorizer": "stream_hc.vectorize",
    "TextVectorizer": "stream_hc.vectorize",
}
_registered: dict[str, type[Snapshotable]] = {}


def register(cls: C) -> C:
    """Make a class loadable under its name; usable as a decorator.

    A class of the same module and name replaces the earlier one (a notebook cell run twice); another class of
    that name is refused with `SnapshotError`.

    Examples
    --------
    >>> import numpy as np
    >>> from stream_hc.snapshot import dump_bytes, load_bytes, register
    >>> @register
    ... class Counter:
    ...     def __init__(self, counts):
    ...         self.counts = counts
    ...     def state(self):
    ...         return {"counts": self.counts.copy()}
    ...     @classmethod
    ...     def from_state(cls, state):
    ...         return cls(state["counts"])
    >>> load_bytes(dump_bytes(Counter(np.array([3, 1])))).counts
    array([3, 1])
    """
    kind = cls.__name__
    known = _known(kind)
    if known is not None and known is not cls and (kind in BUILT_IN or _origin(known) != _origin(cls)):
        raise SnapshotError(f"kind {kind!r} already belongs to {'.'.join(_origin(known))}: rename the class")
    if kind not in BUILT_IN:
        _registered[kind] = cls
    return cls


def class_of(kind: str) -> type[Snapshotable]:
    """Return the class of that name, or raise SnapshotError."""
    cls = _known(kind)
    if cls is None:
        raise SnapshotError(f"unknown kind {kind!r}: import and register its class before loading")
    return cls


def kind_of(model: Snapshotable) -> str:
    """Return the name under which the object's class will be found again, or raise SnapshotError."""
    cls = type(model)
    if _known(cls.__name__) is not cls:
        raise SnapshotError(
            f"class {cls.__name__!r} is not registered: call stream_hc.snapshot.register with it"
        )
    return cls.__name__


def _known(kind: str) -> type[Snapshotable] | None:
    if kind not in BUILT_IN:
        return _registered.get(kind)
    try:
        found: type[Snapshotable] = getattr(importlib.import_module(BUILT_IN[kind]), kind)
    except (ImportError, AttributeError) as error:
        raise SnapshotError(f"kind {kind!r} is missing from this installation: {error}") from error
    return found


def _origin(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__
