"""What a word is: what Python's `re` takes for one; and texts as bytes that the kernels can read."""

import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from stream_hc.kernels import Bools, Bytes, Longs

__all__ = ["terms", "text_of", "utf8", "word_characters"]

TOKEN = re.compile(r"\w\w+")
ASCII = 128


def terms(text: str, shortest: int, longest: int) -> list[str]:
    """Return the runs of `shortest` to `longest` neighbouring tokens, joined by blanks, short runs first."""
    tokens = TOKEN.findall(text)
    if longest == 1:
        return tokens
    return [
        " ".join(tokens[first : first + size])
        for size in range(shortest, longest + 1)
        for first in range(len(tokens) - size + 1)
    ]


def text_of(x: str | Mapping[str, Any]) -> str:
    """Return a text, or that in the field `text` of a dict."""
    text = x.get("text") if isinstance(x, Mapping) else x
    if not isinstance(text, str):
        raise ValueError("expected a str, or a dict with a str under 'text'")
    return text


def utf8(texts: Sequence[str], lowercase: bool) -> tuple[Bytes, Longs]:
    """Return the bytes of all texts, one after another, and the bounds between them (from 0 to the end)."""
    if isinstance(texts, str):
        raise ValueError("expected a list of texts, not a single str")
    try:
        whole = "".join(texts)
        if whole.isascii():  # then a character is a byte, and lowering one needs no look at its neighbours
            encoded = (whole.lower() if lowercase else whole).encode()
            return np.frombuffer(encoded, np.uint8), _bounds(texts)
        # Each text by itself: how a capital sigma is lowered depends on its neighbours.
        lowered = list(map(str.lower, texts)) if lowercase else texts
        try:
            parts = list(map(str.encode, lowered))
        except UnicodeEncodeError:
            # A lone surrogate is no valid UTF-8: as three bytes it reads as itself, no word character.
            parts = [text.encode("utf-8", "surrogatepass") for text in lowered]
    except TypeError:
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise ValueError(f"row {row}: a text must be a str, not {type(text).__name__}") from None
        raise
    return np.frombuffer(b"".join(parts), np.uint8), _bounds(parts)


def word_characters(buffer: Bytes) -> Bools:
    """Return for every code point that can occur in these bytes whether it is a word character."""
    # The table of all Unicode takes a tenth of a second to build: texts in ASCII need not wait for it.
    return _table(ASCII if buffer.max(initial=0) < ASCII else sys.maxunicode + 1)


def _bounds(texts: Sequence[str] | Sequence[bytes]) -> Longs:
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=bounds[1:])
    return bounds


@cache
def _table(size: int) -> Bools:
    table = np.zeros(size, np.bool_)
    for run in re.finditer(r"\w+", "".join(map(chr, range(size)))):
        table[run.start() : run.end()] = True
    table.setflags(write=False)
    return table
