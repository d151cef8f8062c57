"""Ask before something is done that cannot be undone."""

import sys

from stream_hc.cli.console import clean, errors
from stream_hc.cli.errors import usage_error

__all__ = ["confirm"]


def confirm(question: str, *answers: str) -> None:
    """Go on only if one of the answers is typed."""
    errors().print(f"{clean(question)} ", end="")
    typed = sys.stdin.readline().strip() if sys.stdin is not None else ""
    if typed not in answers:
        raise usage_error(f"nothing was done: type {answers[0]} to go on, or say --yes")
