"""Single values on their way into a configuration: what was typed or written, read by the type of its key."""

import re
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect as types

from stream_hc.runtime.config.keys import KEYS, Key
from stream_hc.runtime.config.table import Setting, hidden

__all__ = ["WRONG", "Given", "converted", "expected", "setting", "shown"]

WRONG = object()  # instead of a value that is refused


class Given(NamedTuple):
    """A value on its way; `as_text` if it was typed and has to be read by the type of its key."""

    path: tuple[str, ...]
    value: Any
    place: str
    as_text: bool = False

    @property
    def name(self) -> str:
        """The dotted name of its key."""
        return ".".join(self.path)


def converted(key: Key, given: Given) -> Any:
    """Return the value as the type of its key, or `WRONG`."""
    value = _from_text(key.kind, given.value) if given.as_text else given.value
    if key.optional and isinstance(value, str) and value.lower() == "none":
        return None
    try:
        return msgspec.convert(value, key.type)
    except msgspec.ValidationError:
        return WRONG


def _from_text(kind: types.Type, text: str) -> Any:
    """Read what was typed; what cannot be read stays text, and is refused for that."""
    text = text.strip()
    if isinstance(kind, types.BoolType):
        return {"true": True, "false": False}.get(text.lower(), text)
    if isinstance(kind, types.ListType):
        return [name.strip() for name in text.split(",")]
    if isinstance(kind, types.IntType | types.FloatType):
        try:
            return int(text) if isinstance(kind, types.IntType) else float(text)
        except ValueError:
            return text
    return text


def setting(given: Given) -> Any:
    """Return a parameter of a learner, or `WRONG`; what was typed is read as the first that it can be."""
    value = given.value
    if isinstance(value, str) and value.lower() == "none":
        return None
    if given.as_text:
        value = {"true": True, "false": False}.get(value.lower(), value)
        for kind in (int, float):
            if isinstance(value, str) and re.fullmatch(r"[-+0-9._eE]+", value):
                try:
                    value = kind(value)
                except ValueError:
                    continue
    try:
        return msgspec.convert(value, Setting)
    except msgspec.ValidationError:
        return WRONG


def expected(path: tuple[str, ...]) -> str:
    """Say which values are fine for a key, or for what stands in the settings of learners."""
    if len(path) == 4:
        return 'a number, text, true, false or "none"'
    return "a table of parameters" if len(path) == 3 else KEYS[".".join(path)].allowed


def shown(name: str, value: Any) -> str:
    """Return a value for a message: short, as it would be written, and not if it is a secret."""
    seen = hidden(name, value)
    if isinstance(seen, bool | None):
        text = str(seen).lower()
    else:
        quoted = isinstance(seen, str | list | dict) and seen != "***"  # a date speaks for itself
        text = repr(seen) if quoted else str(seen)
    return text if len(text) <= 60 else f"{text[:60]}…"
