"""Values and their places from a TOML file, the environment and options, and what is wrong with each."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stream_hc.runtime.config.configured import DEFAULT, ConfigError, Configured
from stream_hc.runtime.config.keys import KEYS, TABLES, flag_of
from stream_hc.runtime.config.remedies import did_you_mean, known_keys, near_keys, nearest, nearest_table
from stream_hc.runtime.config.structs import Config
from stream_hc.runtime.config.toml import line_numbers, parsed, read_text
from stream_hc.runtime.config.values import WRONG, Given, converted, expected, setting, shown

__all__ = ["Reading"]

SETTINGS = ("model", "settings")
PREFIXES = tuple(f"STREAM_HC_{table.upper()}_" for table in TABLES)


@dataclass
class Reading:
    """What was found so far; later sources override earlier ones."""

    values: dict[tuple[str, ...], Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    wrong: set[str] = field(default_factory=set)

    def file(self, path: str) -> None:
        """Take everything that a TOML file says."""
        try:
            text = read_text(path)
            tables = parsed(path, text)
        except ConfigError as error:
            self.problems += error.problems
            self.wrong.update(KEYS)  # who knows what it says
            return
        lines = line_numbers(text)

        def place(*keys: str) -> str:
            known = next((keys[:end] for end in range(len(keys), 0, -1) if keys[:end] in lines), None)
            return path if known is None else f"{path}, line {lines[known]}"

        for table, content in tables.items():
            if table in TABLES and not isinstance(content, dict):
                found = shown(table, content)
                self.problems.append(f"{place(table)}: {table} is {found}: expected a table, [{table}]")
            elif table not in TABLES:
                kind = f"table [{table}]" if isinstance(content, dict) else f"key {table}"
                self.problems.append(f"{place(table)}: unknown {kind}: {nearest_table(table)}")
            else:
                for key, value in content.items():
                    self.take(Given((table, key), value, place(table, key)), os.path.dirname(path), place)

    def environment(self, environment: Mapping[str, str]) -> None:
        """Take the variables that are ours."""
        variables = {key.variable: key for key in KEYS.values()}
        for variable, text in sorted(environment.items()):
            if variable in variables and text.strip():
                key = variables[variable]
                self.take(Given((key.table, key.field), text, variable, as_text=True))
            elif variable not in variables and variable.startswith(PREFIXES):
                table, _, rest = variable.removeprefix("STREAM_HC_").lower().partition("_")
                near = [key.variable for key in near_keys(table, rest)]
                remedy = did_you_mean(near) or known_keys(table)
                self.problems.append(f"{variable}: unknown variable: {remedy}")

    def options(self, options: Mapping[str, Any], flags: Mapping[str, str]) -> None:
        """Take what was given to the command."""
        for name, value in options.items():
            if value is not None:
                place = flags.get(name, flag_of(name))
                path = tuple(name.split(".", 3 if name.startswith("model.settings.") else 1))
                given = Given(path, value, place, as_text=isinstance(value, str))
                self.take(given, place=lambda *keys: flag_of(".".join(keys)))

    def take(self, given: Given, folder: str = "", place: Callable[..., str] | None = None) -> None:
        """Check one value and keep it; parameters of learners are taken one by one."""
        if given.path[:2] == SETTINGS and len(given.path) < 4:
            for leaf in self.leaves(given, place):
                self.keep(leaf, setting(leaf))
        elif given.path[:2] == SETTINGS:
            self.keep(given, setting(given))
        elif given.name not in KEYS:
            self.problems.append(f"{given.place}: unknown key {given.name}: {nearest(given.path)}")
        else:
            self.keep(given, converted(KEYS[given.name], given), folder)

    def leaves(self, given: Given, place: Callable[..., str] | None) -> Iterator[Given]:
        """Return the parameters of learners in a value, one by one."""
        value = given.value
        if given.as_text:
            try:
                value = msgspec.json.decode(value)
            except (msgspec.DecodeError, RecursionError):
                # What it is stays unsaid: there may be a secret in it.
                self.refuse(given, 'is not JSON: write it as {"h-arow": {"r": 0.1}}')
                return
        if not isinstance(value, dict):
            self.refuse(given, f"is {shown(given.name, value)}: expected {expected(given.path)}")
            return
        for key, item in value.items():
            path = (*given.path, str(key))
            leaf = Given(path, item, given.place if place is None else place(*path))
            if len(path) == 4:
                yield leaf
            else:
                yield from self.leaves(leaf, place)

    def keep(self, given: Given, value: Any, folder: str = "") -> None:
        """Keep a value under its key; paths are relative to the folder."""
        if value is WRONG:
            self.refuse(given, f"is {shown(given.name, given.value)}: expected {expected(given.path)}")
            return
        key = KEYS.get(given.name)
        if key is not None and key.is_path and value not in (None, "-"):
            value = os.path.join(folder, value)
        self.values[given.path] = value
        self.places[given.name] = given.place
        if given.path[:2] == SETTINGS:
            self.places[".".join(SETTINGS)] = given.place

    def refuse(self, given: Given, problem: str) -> None:
        """Say what is wrong with a value."""
        self.problems.append(f"{given.place}: {given.name} {problem}")
        if len(given.path) == 2:
            self.wrong.add(given.name)

    def configured(self) -> Configured:
        """Return what was found, with defaults where nothing was."""
        tables: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
        for (table, key, *rest), value in self.values.items():
            if rest:
                learner, parameter = rest
                tables[table].setdefault(key, {}).setdefault(learner, {})[parameter] = value
            else:
                tables[table][key] = value
        filled: dict[str, Any] = {table: TABLES[table](**values) for table, values in tables.items()}
        return Configured(Config(**filled), dict.fromkeys(KEYS, DEFAULT) | self.places)
