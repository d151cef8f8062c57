"""What all tables of a configuration have in common: the types of values, and that secrets stay hidden."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

__all__ = ["Costs", "Count", "Path", "Positive", "Seconds", "Setting", "Share", "Table", "hidden"]

Count = Annotated[int, Meta(ge=1, le=10**15)]
Seconds = Annotated[float, Meta(gt=0, le=1e9)]  # a lock can wait for no more than some 9e9
Positive = Annotated[float, Meta(gt=0, le=1e9)]
Share = Annotated[float, Meta(ge=0, lt=1)]
Costs = Literal["uniform", "normalized", "sibling", "subtree"]
Setting = str | int | float | bool | None
# No system takes a zero byte in a path; `extra` marks what is relative to the folder of a TOML file.
Path = Annotated[str, Meta(pattern=r"^[^\x00]+$", extra={"path": True})]

SECRET = ("password", "token", "secret")


def hidden(name: str, value: Any) -> Any:
    """Return what may be shown of the value of a key: secrets, also inside tables, become `***`.

    >>> hidden("broker.password", "tulip"), hidden("refit.window", 7), hidden("x", {"api_token": "tulip"})
    ('***', 7, {'api_token': '***'})
    """
    if isinstance(value, dict):
        return {key: hidden(f"{name}.{key}", item) for key, item in value.items()}
    return "***" if name.lower().endswith(SECRET) and value is not None else value


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file. Its `repr` shows no secret: it may end in a log."""

    def __repr__(self) -> str:
        shown = [f"{name}={hidden(name, getattr(self, name))!r}" for name in self.__struct_fields__]
        return f"{type(self).__name__}({', '.join(shown)})"
