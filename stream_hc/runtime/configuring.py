"""The configuration of a job from a TOML file, the environment and options, and what is wrong with it.

Options count more than the environment, the environment more than the file, the file more than the defaults.
Every mistake in any of them is reported, also where something else overrides it; whether values go together
is asked of those that hold. The text "none" stands for None wherever a key may be None, since TOML has no
word for it.
"""

import inspect
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import combinations
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect as types

from stream_hc.learners import LEARNERS
from stream_hc.runtime.config import KEYS, TABLES, Config, Key, Setting, hidden
from stream_hc.taxonomy import Taxonomy

__all__ = ["REFITTED", "ConfigError", "Configured", "file_problems", "flag_of", "load_config"]

REFITTED = "hm3"  # the name of the re-fitted model, which no learner may have
DEFAULT = "default"
SETTINGS = ("model", "settings")
LONGEST_FILE = 2**20  # bytes
LONGEST_STATEMENT = 1_000  # lines; behind a longer one no line numbers are given


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


def load_config(
    path: str | None,
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    flags: Mapping[str, str] | None = None,
) -> Configured:
    """Return the configuration, or raise `ConfigError` with everything that is wrong.

    Parameters
    ----------
    path
        TOML file; paths in it are relative to its folder.
    environment
        Variables such as STREAM_HC_REFIT_WINDOW count, and others are left alone; an empty one is not set.
    options
        Values by dotted name; None is not given. Text is read as in the environment.
    flags
        What the user typed for an option, where it is not what `flag_of` says.

    Examples
    --------
    >>> job = load_config(None, {"STREAM_HC_REFIT_WINDOW": "3000"}, {"judge.margin": 0.02})
    >>> job.config.refit.window, job.origin["refit.window"], job.origin["judge.margin"]
    (3000, 'STREAM_HC_REFIT_WINDOW', '--margin')
    """
    reading = _Reading()
    if path is not None:
        reading.file(path)
    reading.environment(environment)
    reading.options(options, flags or {})
    configured = reading.configured()
    for names, check in _CHECKS:
        if not reading.wrong.intersection(names):  # a value that is wrong by itself is no base for more
            reading.problems += check(configured)
    if reading.problems:
        raise ConfigError(reading.problems)
    return configured


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


class _Given(NamedTuple):
    """A value on its way; `as_text` if it was typed and has to be read by the type of its key."""

    path: tuple[str, ...]
    value: Any
    place: str
    as_text: bool = False

    @property
    def name(self) -> str:
        return ".".join(self.path)


@dataclass
class _Reading:
    """What was found so far; later sources override earlier ones."""

    values: dict[tuple[str, ...], Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    wrong: set[str] = field(default_factory=set)

    def file(self, path: str) -> None:
        try:
            text = _read(path)
            tables = _parsed(path, text)
        except ConfigError as error:
            self.problems += error.problems
            self.wrong.update(KEYS)  # who knows what it says
            return
        lines = _lines(text)

        def place(*keys: str) -> str:
            known = next((keys[:end] for end in range(len(keys), 0, -1) if keys[:end] in lines), None)
            return path if known is None else f"{path}, line {lines[known]}"

        for table, content in tables.items():
            if table in TABLES and not isinstance(content, dict):
                found = _shown(table, content)
                self.problems.append(f"{place(table)}: {table} is {found}: expected a table, [{table}]")
            elif table not in TABLES:
                kind = f"table [{table}]" if isinstance(content, dict) else f"key {table}"
                self.problems.append(f"{place(table)}: unknown {kind}: {_nearest_table(table)}")
            else:
                for key, value in content.items():
                    self.take(_Given((table, key), value, place(table, key)), os.path.dirname(path), place)

    def environment(self, environment: Mapping[str, str]) -> None:
        variables = {key.variable: key for key in KEYS.values()}
        for variable, text in sorted(environment.items()):
            if variable in variables and text.strip():
                key = variables[variable]
                self.take(_Given((key.table, key.field), text, variable, as_text=True))
            elif variable not in variables and variable.startswith(_PREFIXES):
                table, _, rest = variable.removeprefix("STREAM_HC_").lower().partition("_")
                near = [key.variable for key in _near_keys(table, rest)]
                remedy = _did_you_mean(near) or f"the keys of [{table}] are {_fields(table)}"
                self.problems.append(f"{variable}: unknown variable: {remedy}")

    def options(self, options: Mapping[str, Any], flags: Mapping[str, str]) -> None:
        for name, value in options.items():
            if value is not None:
                place = flags.get(name, flag_of(name))
                path = tuple(name.split(".", 3 if name.startswith("model.settings.") else 1))
                given = _Given(path, value, place, as_text=isinstance(value, str))
                self.take(given, place=lambda *keys: flag_of(".".join(keys)))

    def take(self, given: _Given, folder: str = "", place: Callable[..., str] | None = None) -> None:
        """Check one value and keep it; parameters of learners are taken one by one."""
        if given.path[:2] == SETTINGS and len(given.path) < 4:
            for leaf in self.leaves(given, place):
                self.keep(leaf, _setting(leaf))
        elif given.path[:2] == SETTINGS:
            self.keep(given, _setting(given))
        elif given.name not in KEYS:
            self.problems.append(f"{given.place}: unknown key {given.name}: {_nearest(given.path)}")
        else:
            self.keep(given, _converted(KEYS[given.name], given), folder)

    def leaves(self, given: _Given, place: Callable[..., str] | None) -> Iterator[_Given]:
        value = given.value
        if given.as_text:
            try:
                value = msgspec.json.decode(value)
            except (
                msgspec.DecodeError,
                RecursionError,
            ):  # what it is stays unsaid: there may be a secret in it
                self.refuse(given, 'is not JSON: write it as {"h-arow": {"r": 0.1}}')
                return
        if not isinstance(value, dict):
            self.refuse(given, f"is {_shown(given.name, value)}: expected {_expected(given.path)}")
            return
        for key, item in value.items():
            path = (*given.path, str(key))
            leaf = _Given(path, item, given.place if place is None else place(*path))
            if len(path) == 4:
                yield leaf
            else:
                yield from self.leaves(leaf, place)

    def keep(self, given: _Given, value: Any, folder: str = "") -> None:
        if value is _WRONG:
            self.refuse(given, f"is {_shown(given.name, given.value)}: expected {_expected(given.path)}")
            return
        key = KEYS.get(given.name)
        if key is not None and key.is_path and value not in (None, "-"):
            value = os.path.join(folder, value)
        self.values[given.path] = value
        self.places[given.name] = given.place
        if given.path[:2] == SETTINGS:
            self.places[".".join(SETTINGS)] = given.place

    def refuse(self, given: _Given, problem: str) -> None:
        self.problems.append(f"{given.place}: {given.name} {problem}")
        if len(given.path) == 2:
            self.wrong.add(given.name)

    def configured(self) -> Configured:
        tables: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
        for (table, key, *rest), value in self.values.items():
            if rest:
                learner, parameter = rest
                tables[table].setdefault(key, {}).setdefault(learner, {})[parameter] = value
            else:
                tables[table][key] = value
        filled: dict[str, Any] = {table: TABLES[table](**values) for table, values in tables.items()}
        return Configured(Config(**filled), dict.fromkeys(KEYS, DEFAULT) | self.places)


_WRONG = object()
_PREFIXES = tuple(f"STREAM_HC_{table.upper()}_" for table in TABLES)


def _read(path: str) -> str:
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


def _parsed(path: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError([f"{path}: nested too deeply: write one table for each subject"]) from None
    except ValueError as error:
        problem, _, where = str(error).partition(" (at ")
        place = f"{path}, {where.rstrip(')')}" if where else path
        raise ConfigError([f"{place}: not TOML: {problem[:1].lower()}{problem[1:]}"]) from None


def _lines(text: str) -> dict[tuple[str, ...], int]:
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


def _converted(key: Key, given: _Given) -> Any:
    value = _from_text(key.kind, given.value) if given.as_text else given.value
    if key.optional and isinstance(value, str) and value.lower() == "none":
        return None
    try:
        return msgspec.convert(value, key.type)
    except msgspec.ValidationError:
        return _WRONG


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


def _setting(given: _Given) -> Any:
    """Return a parameter of a learner; what was typed is read as the first of these that it can be."""
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
        return _WRONG


def _expected(path: tuple[str, ...]) -> str:
    if len(path) == 4:
        return 'a number, text, true, false or "none"'
    return "a table of parameters" if len(path) == 3 else KEYS[".".join(path)].allowed


def _shown(name: str, value: Any) -> str:
    """Return a value for a message: short, as it would be written, and not if it is a secret."""
    shown = hidden(name, value)
    if isinstance(shown, bool | None):
        text = str(shown).lower()
    else:
        quoted = isinstance(shown, str | list | dict) and shown != "***"  # a date speaks for itself
        text = repr(shown) if quoted else str(shown)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _nearest(path: tuple[str, ...]) -> str:
    """Return the remedy for an unknown key: the nearest one of its table, or of another."""
    table, name = path[0], path[-1]
    if table not in TABLES:
        return _nearest_table(table)
    near = _near_keys(table, name) or [key for key in KEYS.values() if key.field == name]
    return _did_you_mean([key.name for key in near]) or f"the keys of [{table}] are {_fields(table)}"


def _near_keys(table: str, name: str) -> list[Key]:
    own = {key.field.lower(): key for key in KEYS.values() if key.table == table}
    return [own[near] for near in get_close_matches(name.lower(), own, 1)]


def _fields(table: str) -> str:
    return ", ".join(key.field for key in KEYS.values() if key.table == table)


def _nearest_table(name: str) -> str:
    """Return the remedy for an unknown name outside of all tables."""
    tables = [f"[{table}]" for table in get_close_matches(name.lower(), TABLES, 1)]
    fields = get_close_matches(name, {key.field for key in KEYS.values()}, 1, 0.8)
    keys = [key.name for key in KEYS.values() if key.field in fields]
    return _did_you_mean(tables or keys) or f"the tables are {', '.join(TABLES)}"


def _did_you_mean(names: list[str]) -> str:
    return f"did you mean {' or '.join(names)}?" if names else ""


def _check_learners(job: Configured) -> Iterator[str]:
    names, place = job.config.model.learners, job.place("model.learners")
    for name in dict.fromkeys(names):
        if name == REFITTED:
            yield f"{place}: model.learners names {REFITTED}, the re-fitted model: set refit.enabled instead"
        elif name not in LEARNERS:
            near = _did_you_mean(get_close_matches(name.lower(), LEARNERS, 1))
            remedy = near or f"choose from {', '.join(LEARNERS)}"
            yield f"{place}: model.learners names {name!r}, which is no learner: {remedy}"
        if names.count(name) > 1:
            yield f"{place}: model.learners names {name} {names.count(name)} times: name each learner once"


def _check_settings(job: Configured) -> Iterator[str]:
    for learner, settings in job.config.model.settings.items():
        table = f"model.settings.{learner}"
        place = job.origin[f"{table}.{next(iter(settings))}"]
        if learner == REFITTED:
            yield f"{place}: {table}: what the re-fitted model is told stands in [refit]"
        elif learner not in job.config.model.learners:
            listed = ", ".join(job.config.model.learners)
            remedy = "add it there, or leave its settings out"
            yield f"{place}: {table}: {learner} is not in model.learners ({listed}): {remedy}"
        elif learner in LEARNERS:
            yield from _check_parameters(job, learner, settings)


def _check_parameters(job: Configured, learner: str, settings: dict[str, Setting]) -> Iterator[str]:
    """Ask the learner itself, which knows best what it takes: without a taxonomy it costs nothing to make."""
    place = {name: job.origin[f"model.settings.{learner}.{name}"] for name in settings}
    taken = [name for name in inspect.signature(LEARNERS[learner]).parameters if name not in _NOT_SETTINGS]
    known = {name: value for name, value in settings.items() if name in taken}
    refusal = _refusal(learner, known)
    alone = {name: _refusal(learner, {name: value}) for name, value in known.items()} if refusal else {}
    for name in settings:
        problem = alone.get(name, "") if name in known else f"unknown: {learner} takes {', '.join(taken)}"
        if problem:
            yield f"{place[name]}: model.settings.{learner}.{name}: {problem}"
    if refusal and not any(alone.values()):
        yield f"{place[next(iter(known))]}: model.settings.{learner}: {refusal}"


_NOT_SETTINGS = ("taxonomy", "n_features")


def _refusal(learner: str, settings: Mapping[str, Any], taxonomy: Taxonomy | None = None) -> str:
    """Return what the learner says against its parameters, or nothing."""
    try:
        LEARNERS[learner](taxonomy, n_features=1, **settings)
    except (ValueError, TypeError, OverflowError) as error:
        return str(error)
    return ""


def _at_most(less: str, more: str) -> Callable[[Configured], Iterator[str]]:
    def check(job: Configured) -> Iterator[str]:
        if job.value(less) > job.value(more):
            place, values = job.place(less, more), (job.value(less), job.value(more))
            yield f"{place}: {less} is {values[0]}, more than {more}, {values[1]}: lower it, or raise {more}"

    return check


def _check_trigger(job: Configured) -> Iterator[str]:
    refit = job.config.refit
    if refit.enabled and refit.every is None and refit.seconds is None and not refit.drift:
        place = job.place("refit.every", "refit.drift", "refit.enabled")
        triggers = "refit.every, refit.seconds and refit.drift"
        yield f"{place}: refit.enabled, but nothing would begin a fit: set one of {triggers}"


_READ = ("stream.documents", "stream.labels", "model.taxonomy")
_WRITTEN = ("stream.output", "stream.rejects", "stream.requests")


def _check_files(job: Configured) -> Iterator[str]:
    for one, other in combinations((*_READ, *_WRITTEN), 2):
        first, second = job.value(one), job.value(other)
        opposite = one in _READ and other in _WRITTEN  # standard input is not standard output
        if first is None or second is None or (opposite and "-" in (first, second)):
            continue
        if first == second == "-" or _same_file(first, second):
            shown = "-" if first == "-" else repr(second)
            yield f"{job.place(other, one)}: {other} is the same file as {one}, {shown}: name another"


def _same_file(first: str, second: str) -> bool:
    """Whether both name one file; a device such as /dev/null may be used twice."""
    if "-" in (first, second) or (os.path.exists(first) and not os.path.isfile(first)):
        return False
    return os.path.realpath(first) == os.path.realpath(second)


def _check_follow(job: Configured) -> Iterator[str]:
    stream = job.config.stream
    for name in ("stream.documents", "stream.labels"):
        if stream.follow and job.value(name) == "-":
            place = job.place("stream.follow", name)
            remedy = "leave it out, a pipe is waited for anyway"
            yield f"{place}: stream.follow is for files, and {name} is standard input: {remedy}"


# The keys a check looks at, and the check: it is left out where one of them is wrong by itself.
_CHECKS: list[tuple[tuple[str, ...], Callable[[Configured], Iterator[str]]]] = [
    (("model.learners",), _check_learners),
    (("model.learners", "model.settings"), _check_settings),
    (("refit.least", "refit.window"), _at_most("refit.least", "refit.window")),
    (("judge.least", "judge.sample"), _at_most("judge.least", "judge.sample")),
    (("refit.enabled", "refit.every", "refit.seconds", "refit.drift"), _check_trigger),
    ((*_READ, *_WRITTEN), _check_files),
    (("stream.follow", "stream.documents", "stream.labels"), _check_follow),
]


def file_problems(job: Configured) -> list[str]:
    """Return what is wrong with the files and folders a configuration names, and with its taxonomy."""
    problems = []
    for name in ("stream.documents", "stream.labels"):
        path = job.value(name)
        if path not in (None, "-"):
            problems += [(name, path, _unreadable(path, job.config.stream.follow))]
    for name in _WRITTEN:
        path = job.value(name)
        if path not in (None, "-"):
            problems += [(name, path, _unwritable(path))]
    folder = job.config.state.folder
    if folder is not None:
        problems += [("state.folder", folder, _unusable(folder))]
    found = [f"{job.place(name)}: {name}: {path}: {problem}" for name, path, problem in problems if problem]
    return found + list(_taxonomy_problems(job))


def _unreadable(path: str, may_come: bool) -> str:
    if not os.path.exists(path):
        comes = may_come and os.path.isdir(os.path.dirname(os.path.abspath(path)))
        return "" if comes else "the file does not exist"
    if os.path.isdir(path):
        return "this is a folder: name a file"
    return "" if os.access(path, os.R_OK) else "the file is not readable"


def _unwritable(path: str) -> str:
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        return "this is a folder: name a file"
    if os.path.exists(path):
        return "" if os.access(path, os.W_OK) else "the file is not writable"
    if not os.path.isdir(folder):
        return "the folder does not exist: make it first"
    return "" if os.access(folder, os.W_OK) else "the folder is not writable"


def _unusable(folder: str) -> str:
    """Return what is wrong with a folder; one that is not there will be made, if there is a place for it."""
    above = os.path.abspath(folder)
    while not os.path.exists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        return "this is a file: name a folder" if above == os.path.abspath(folder) else f"{above} is a file"
    return "" if os.access(above, os.W_OK | os.X_OK) else f"{above} is not writable"


def _taxonomy_problems(job: Configured) -> Iterator[str]:
    config = job.config
    path = config.model.taxonomy
    if path is None:
        return
    place = job.place("model.taxonomy")
    try:
        taxonomy = Taxonomy.read(path)
    except ValueError as error:
        yield f"{place}: model.taxonomy: {error}"
        return
    if not len(taxonomy):
        yield f"{place}: model.taxonomy: {path}: the taxonomy has no nodes: write a line for each"
        return
    for learner in config.model.learners:
        if problem := _refusal(learner, config.model.settings.get(learner, {}), taxonomy):
            yield f"{job.place('model.learners')}: {learner}: {problem}"
    for name in ("model.costs", "refit.costs")[: 1 + config.refit.enabled]:
        try:
            taxonomy.costs(job.value(name))
        except ValueError as error:
            yield f"{job.place(name)}: {name}: {error}"
    if config.refit.enabled and config.refit.loss == "h_tilde" and not taxonomy.is_tree:
        yield f"{job.place('refit.loss')}: refit.loss: h_tilde needs a forest, {path} is a DAG: leave it out"
