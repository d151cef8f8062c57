"""TOML files: their text, their tables, and the line on which each key stands."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from stream_hc.runtime.config.configured import ConfigError

__all__ = ["line_numbers", "parsed", "read_text"]

LONGEST_FILE = 2**20  # bytes
LONGEST_STATEMENT = 1_000  # lines; behind a longer one no line numbers are given


def read_text(path: str) -> str:
    """Return the text of a file, or raise `ConfigError`."""
    try:
        with open(path, "rb") as file:
            data = file.read(LONGEST_FILE + 1)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise ConfigError([f"{path}: cannot read: {getattr(error, 'strerror', None) or error}"]) from None
    if len(data) > LONGEST_FILE:
        raise ConfigError([f"{path}: more than {LONGEST_FILE} bytes: this is no configuration"])
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError([f"{path}, line {line}: not UTF-8: save the file as UTF-8"]) from None


def parsed(path: str, text: str) -> dict[str, Any]:
    """Return the tables of a TOML file, or raise `ConfigError`."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError([f"{path}: nested too deeply: write one table for each subject"]) from None
    except ValueError as error:
        problem, _, where = str(error).partition(" (at ")
        place = f"{path}, {where.rstrip(')')}" if where else path
        raise ConfigError([f"{place}: not TOML: {problem[:1].lower()}{problem[1:]}"]) from None


def line_numbers(text: str) -> dict[tuple[str, ...], int]:
    """Return the line on which each key and table begins, of a text that is sound.

    A statement ends with the first line that makes it TOML by itself: inside a long string or list it is not.
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    statement = ""
    begin = 1
    for number, line in enumerate(text.split("\n"), start=1):
        statement += line + "\n"
        try:
            content = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            if number - begin >= LONGEST_STATEMENT:
                break
            continue
        paths = list(_paths(content))
        if statement.lstrip().startswith("["):
            table = paths[-1]
            paths = [table[:end] for end in range(1, len(table) + 1)]
        else:
            paths = [(*table, *path) for path in paths]
        for path in paths:
            lines.setdefault(path, begin)
        statement, begin = "", number + 1
    return lines


def _paths(content: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in content.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from _paths(value, (*above, key))
