"""A configuration that holds, with the origin of each value, or everything that is wrong with it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stream_hc.runtime.config.structs import Config

__all__ = ["DEFAULT", "ConfigError", "Configured"]

DEFAULT = "default"


class ConfigError(ValueError):
    """A configuration that cannot be used; `problems` has one line for each mistake."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True)
class Configured:
    """A configuration and where each value comes from.

    Attributes
    ----------
    config
        All values.
    origin
        By dotted name: "default", "job.toml, line 12", "STREAM_HC_REFIT_WINDOW" or "--window". A parameter of
        a learner has its own entry, such as "model.settings.h-arow.r".
    """

    config: Config
    origin: dict[str, str]

    def value(self, name: str) -> Any:
        """Return the value of a dotted name, one in `origin`."""
        value: Any = self.config
        for part in name.split(".", 3):
            value = value[part] if isinstance(value, dict) else getattr(value, part)
        return value

    def place(self, *names: str) -> str:
        """Return the origin of the first of them that is not left at its default."""
        return next((self.origin[name] for name in names if self.origin[name] != DEFAULT), DEFAULT)
