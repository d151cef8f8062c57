"""Arguments that are not what they should be: one error that names them."""

import math
import operator
from numbers import Real
from typing import Any, get_args

__all__ = ["finite", "one_of", "positive", "whole_number"]


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return a whole number in the given range, or raise a `ValueError` that names the argument.

    >>> whole_number("delay", -1, 0)
    Traceback (most recent call last):
    ...
    ValueError: delay must be a whole number of at least 0, not -1
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        allowed = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {allowed}, not {value!r}")
    return number


def finite(name: str, value: Any) -> float:
    """Return a finite number, or raise a `ValueError` that names the argument."""
    number = _number(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    return number


def positive(name: str, value: Any) -> float:
    """Return a positive finite number, or raise a `ValueError` that names the argument."""
    number = _number(value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, not {value!r}")
    return number


def one_of(name: str, value: Any, choices: Any) -> None:
    """Refuse what is none of the choices of a `Literal`, with a `ValueError` that names the argument.

    >>> from typing import Literal
    >>> one_of("eviction", "newest", Literal["oldest", "margin"])
    Traceback (most recent call last):
    ...
    ValueError: unknown eviction 'newest': choose one of oldest, margin
    """
    allowed = get_args(choices)
    if value not in allowed:
        raise ValueError(f"unknown {name} {value!r}: choose one of {', '.join(allowed)}")


def _number(value: Any) -> float:
    # True is a number to Python, but never what was meant.
    return math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
