"""The keys of the structs: what each means, which values it takes, and how it is called elsewhere."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import inspect as types

from stream_hc.runtime.config.structs import Config

__all__ = ["KEYS", "TABLES", "Key", "flag_of", "summary_of"]


@dataclass(frozen=True)
class Key:
    """A key as its struct tells it.

    Attributes
    ----------
    table, field
        Of the TOML file.
    type
        As annotated.
    default
        Where nothing is said.
    meaning
        A sentence from the docstring.
    """

    table: str
    field: str
    type: Any
    default: Any
    meaning: str

    @property
    def name(self) -> str:
        """Return the dotted name."""
        return f"{self.table}.{self.field}"

    @property
    def variable(self) -> str:
        """Return the name in the environment."""
        return f"STREAM_HC_{self.table}_{self.field}".upper()

    @property
    def optional(self) -> bool:
        """Return whether it can be none."""
        return any(isinstance(kind, types.NoneType) for kind in self._kinds())

    @property
    def is_path(self) -> bool:
        """Return whether it names a file or folder."""
        return isinstance(self._kinds()[0], types.Metadata)

    @property
    def kind(self) -> types.Type:
        """Return the type without none and marks."""
        first = self._kinds()[0]
        return first.type if isinstance(first, types.Metadata) else first

    @property
    def allowed(self) -> str:
        """Say which values are fine."""
        allowed = "a path" if self.is_path else _allowed(self.kind)
        return f'{allowed}, or "none"' if self.optional else allowed

    def _kinds(self) -> tuple[types.Type, ...]:
        kind = types.type_info(self.type)
        return kind.types if isinstance(kind, types.UnionType) else (kind,)


def _allowed(kind: types.Type) -> str:
    if isinstance(kind, types.BoolType):
        return "true or false"
    if isinstance(kind, types.LiteralType):
        return f"one of {', '.join(map(str, kind.values))}"
    if isinstance(kind, types.ListType):
        return "a list of names, at least one"
    if isinstance(kind, types.DictType):
        return "a table of parameters for each learner"
    if isinstance(kind, types.IntType | types.FloatType):
        what = "a whole number" if isinstance(kind, types.IntType) else "a number"
        low = f"above {_number(kind.gt)} up" if kind.gt is not None else f"from {_number(kind.ge)}"
        high = f"below {_number(kind.lt)}" if kind.lt is not None else _number(kind.le)
        return f"{what} {low} to {high}"
    return "text"


def _number(limit: float | None) -> str:
    if limit is None:  # a key without a limit would let infinity and what no machine has through
        raise AssertionError("numbers have limits on both sides")
    digits = f"{limit:.0f}"
    return f"10^{len(digits) - 1}" if limit >= 1e6 and digits.strip("0") == "1" else digits


def summary_of(table: str) -> str:
    """Return what a table is about."""
    return (inspect.getdoc(TABLES[table]) or "").partition("\n")[0]


def flag_of(name: str) -> str:
    """Return the option that sets a key: its own name, with the table before it where tables share it.

    >>> flag_of("refit.max_seconds"), flag_of("refit.every"), flag_of("model.settings.h-arow.r")
    ('--max-seconds', '--refit-every', '--set h-arow.r')
    """
    if name.startswith("model.settings."):
        return f"--set {name.removeprefix('model.settings.')}"
    own = name.rpartition(".")[2]
    unique = sum(key.field == own for key in KEYS.values()) == 1
    return "--" + re.sub("[._]", "-", own if unique else name)


def _meanings(table: type[msgspec.Struct]) -> dict[str, str]:
    """Return the entries of the section `Attributes`, each as one line."""
    section = (inspect.getdoc(table) or "").partition("\nAttributes\n----------\n")[2]
    meanings: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if line and not line.startswith(" "):
            name = line
        elif line:
            meanings[name] = f"{meanings[name]} {line.strip()}" if name in meanings else line.strip()
    return meanings


def _keys() -> Iterator[Key]:
    for table, struct in TABLES.items():
        meanings, defaults = _meanings(struct), struct()
        for field in msgspec.structs.fields(struct):
            default = getattr(defaults, field.name)
            yield Key(table, field.name, field.type, default, meanings.get(field.name, ""))


TABLES: dict[str, type[msgspec.Struct]] = {table.name: table.type for table in msgspec.structs.fields(Config)}
KEYS: dict[str, Key] = {key.name: key for key in _keys()}
