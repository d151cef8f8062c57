"""The same rules in a hurry: a week passes in twelve seconds."""

import re

__all__ = ["SPANS", "shortened"]

# In the order of the true ones, so that what is longer stays longer.
SPANS = {
    "1m": "2s",
    "2m": "2s",
    "5m": "3s",
    "10m": "3s",
    "15m": "3s",
    "30m": "4s",
    "1h": "5s",
    "6h": "8s",
    "1w": "12s",
}

PLACES = re.compile(r"(?P<before>\[|\boffset |\bfor: |\binterval: )(?P<span>\d+\w+)")


def shortened(text: str) -> str:
    """Replace every span of time in rules or expressions by its short one.

    These are ranges, offsets, the `for` of alerts and the intervals of groups. Names and limits stay as they
    are; a span that is not in the table is a mistake.

    >>> shortened("mean1h > 1.25 * (mean1w offset 1h) and sum(increase(x[15m])) > 300")
    'mean1h > 1.25 * (mean1w offset 5s) and sum(increase(x[3s])) > 300'
    """
    return PLACES.sub(lambda found: found["before"] + SPANS[found["span"]], text)
