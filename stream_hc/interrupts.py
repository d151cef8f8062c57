"""Ctrl-C while compiled code runs."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["plain_interrupts"]


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Let a Ctrl-C that comes while numba hands over arguments or results be a `KeyboardInterrupt` again.

    Numba goes on as if nothing had been raised, and Python then reports a `SystemError` because of it.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise
