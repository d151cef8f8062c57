"""Configurations from files, variables and options: what counts, where it came from, what is refused."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from stream_hc.runtime.config import (
    KEYS,
    TABLES,
    Config,
    ConfigError,
    Configured,
    Key,
    Table,
    file_problems,
    flag_of,
    hidden,
    learners,
    load_config,
    summary_of,
)
from stream_hc.runtime.config.reading import Reading
from stream_hc.runtime.config.toml import line_numbers
from stream_hc.runtime.config.values import Given


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "job.toml"


def load(text: str = "", environment: dict[str, str] | None = None, **options: Any) -> Configured:
    """Load `job.toml` of the current folder; options are named with __ for the dot."""
    Path("job.toml").write_text(text)
    named = {name.replace("__", "."): value for name, value in options.items()}
    return load_config("job.toml", environment or {}, named)


def problems(text: str = "", environment: dict[str, str] | None = None, **options: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(text, environment, **options)
    assert str(caught.value) == "\n".join(caught.value.problems)
    assert all("\n" not in problem for problem in caught.value.problems)
    return list(caught.value.problems)


def test_nothing_given() -> None:
    found = load_config(None, {}, {})
    assert found.config == Config()
    assert found.origin == dict.fromkeys(KEYS, "default")


def test_options_before_variables_before_file_before_default(job: Path) -> None:
    text = "# a job\n[refit]\nwindow = 3000\nleast = 300\nevery = 30\n"
    variables = {"STREAM_HC_REFIT_LEAST": "400", "STREAM_HC_REFIT_EVERY": "40"}
    found = load(text, variables, refit__every=50, refit__drift=None)
    refit = found.config.refit
    assert (refit.window, refit.least, refit.every, refit.lag) == (3000, 400, 50, 200)
    assert {name: found.origin[f"refit.{name}"] for name in ("window", "least", "every", "lag", "drift")} == {
        "window": "job.toml, line 3",
        "least": "STREAM_HC_REFIT_LEAST",
        "every": "--refit-every",
        "lag": "default",
        "drift": "default",
    }
    assert found.place("refit.lag", "refit.least") == "STREAM_HC_REFIT_LEAST"
    flags = {"refit.window": "--set refit.window"}
    assert load_config(None, {}, {"refit.window": 2000}, flags).origin["refit.window"] == "--set refit.window"


VARIABLES = {
    "STREAM_HC_STREAM_FOLLOW": ("TRUE", "stream.follow", True),
    "STREAM_HC_REFIT_WARM": (" false ", "refit.warm", False),
    "STREAM_HC_REFIT_WINDOW": ("5_000", "refit.window", 5000),
    "STREAM_HC_REFIT_EVERY": ("none", "refit.every", None),
    "STREAM_HC_REFIT_C": ("1e-3", "refit.C", 0.001),
    "STREAM_HC_REFIT_MAX_SECONDS": ("5", "refit.max_seconds", 5.0),
    "STREAM_HC_MODEL_LEARNERS": ("h-arow, node-pa", "model.learners", ["h-arow", "node-pa"]),
    "STREAM_HC_MODEL_SETTINGS": (
        '{"h-arow": {"r": 0.5, "cold_start": "paper"}}',
        "model.settings",
        {"h-arow": {"r": 0.5, "cold_start": "paper"}},
    ),
    "STREAM_HC_MODEL_COSTS": ("sibling", "model.costs", "sibling"),
    "STREAM_HC_STREAM_DOCUMENTS": ("in.jsonl", "stream.documents", "in.jsonl"),
}


def test_variables_are_read_by_the_type_of_their_key() -> None:
    found = load_config(None, {name: text for name, (text, _, _) in VARIABLES.items()}, {})
    for variable, (_, name, value) in VARIABLES.items():
        assert found.value(name) == value
        assert type(found.value(name)) is type(value)
        assert found.origin[name] == variable
    options = {name: text for text, name, _ in VARIABLES.values()}
    assert load_config(None, {}, options).config == found.config  # what is typed after --set, too


def test_variables_that_are_not_ours_or_empty() -> None:
    others = {"STREAM_HC_DEBUG": "1", "STREAM_HC_DATA": "/d", "STREAM_HC_KAFKA": "h:1", "REFIT_WINDOW": "x"}
    found = load_config(None, others | {"STREAM_HC_REFIT_WINDOW": ""}, {})
    assert set(found.origin.values()) == {"default"}


def test_parameters_are_put_together_one_by_one(job: Path) -> None:
    text = """
[model]
learners = ["h-rls", "h-arow"]
[model.settings]
h-rls = { budget = 5, eviction = "redundant" }
[model.settings.h-arow]
r = 0.2
cold_start = "paper"
"""
    variables = {"STREAM_HC_MODEL_SETTINGS": '{"h-arow": {"r": 0.3, "threshold": 0.1}}'}
    found = load(
        text, variables, **{"model__settings": {"h-rls": {"budget": 7}}, "model__settings__h-arow__r": "4e-1"}
    )
    assert found.config.model.settings == {
        "h-rls": {"budget": 7, "eviction": "redundant"},
        "h-arow": {"r": 0.4, "threshold": 0.1, "cold_start": "paper"},
    }
    places = {name.removeprefix("model.settings."): place for name, place in found.origin.items()}
    assert places["h-rls.budget"] == "--set h-rls.budget"
    assert places["h-rls.eviction"] == "job.toml, line 5"
    assert places["h-arow.r"] == found.origin["model.settings"] == "--set h-arow.r"
    assert places["h-arow.threshold"] == "STREAM_HC_MODEL_SETTINGS"
    assert places["h-arow.cold_start"] == "job.toml, line 8"
    assert found.value("model.settings.h-arow.cold_start") == "paper"


@pytest.mark.parametrize(
    ("typed", "value"),
    [("true", True), ("none", None), ("3", 3), ("1e3", 1000.0), ("e", "e"), ("x-1", "x-1")],
)
def test_a_typed_parameter_is_what_it_looks_like(typed: str, value: object, monkeypatch: Any) -> None:
    monkeypatch.setattr(learners, "refusal", lambda learner, settings, taxonomy=None: "")
    found = load_config(None, {}, {"model.settings.h-arow.r": typed})
    assert found.value("model.settings.h-arow.r") == value
    assert type(found.value("model.settings.h-arow.r")) is type(value)


def test_none_in_a_file(job: Path) -> None:
    text = '[refit]\nevery = "none"\n[model]\nlearners = ["h-rls"]\nsettings.h-rls.budget = "None"\n'
    found = load(text)
    assert found.config.refit.every is None
    assert found.config.model.settings == {"h-rls": {"budget": None}}
    assert found.origin["model.settings.h-rls.budget"] == "job.toml, line 5"
    assert problems('[refit]\nwindow = "none"\n') == [
        "job.toml, line 2: refit.window is 'none': expected a whole number from 1 to 10^15"
    ]


def test_paths_in_a_file_are_relative_to_it(job: Path) -> None:
    text = """
[stream]
documents = "docs.jsonl"
labels = "/labels.jsonl"
output = "-"
[model]
taxonomy = "../tree.tsv"
"""
    (job.parent / "sub").mkdir()
    (job.parent / "sub" / "job.toml").write_text(text)
    options = {"state.folder": "state"}
    found = load_config("sub/job.toml", {"STREAM_HC_STREAM_REJECTS": "rejects"}, options)
    assert found.config.stream.documents == "sub/docs.jsonl"
    assert found.config.stream.labels == "/labels.jsonl"
    assert found.config.stream.output == "-"
    assert found.config.model.taxonomy == "sub/../tree.tsv"
    assert (found.config.stream.rejects, found.config.state.folder) == ("rejects", "state")
    marked = {name for name, key in KEYS.items() if key.is_path}
    assert marked == {
        *(f"stream.{name}" for name in ("documents", "labels", "output", "rejects", "requests")),
        "model.taxonomy",
        "state.folder",
        *(f"http.{name}" for name in ("token_file", "certificate", "key")),
        *(f"kafka.{name}" for name in ("ca", "certificate", "key", "password_file", "token_file")),
    }


COUNT, NUMBER = "a whole number from 1 to 10^15", "a number above 0 up to 10^9"
WRONG_FILES = {
    "[refit]\n\n\nwindw = 5": "line 4: unknown key refit.windw: did you mean refit.window?",
    "[refit]\nc = 5": "line 2: unknown key refit.c: did you mean refit.C?",
    "[state]\nmargin = 5": "line 2: unknown key state.margin: did you mean judge.margin?",
    "[state]\nx = 5": "line 2: unknown key state.x: the keys of [state] are folder, keep, every, seconds",
    "[refti]\nx = 5": "line 1: unknown table [refti]: did you mean [refit]?",
    "[x]\ny = 5": f"line 1: unknown table [x]: the tables are {', '.join(TABLES)}",
    "every = 5": "line 1: unknown key every: did you mean refit.every or judge.every or state.every?",
    "refit = 5": "line 1: refit is 5: expected a table, [refit]",
    "[[refit]]\nlag = 5": "line 1: refit is [{'lag': 5}]: expected a table, [refit]",
    "[refit]\nlag = 0": "line 2: refit.lag is 0: expected " + COUNT,
    "[refit]\nlag = true": "line 2: refit.lag is true: expected " + COUNT,
    "[refit]\nlag = 5.0": "line 2: refit.lag is 5.0: expected " + COUNT,
    "[refit]\nlag = '5'": "line 2: refit.lag is '5': expected " + COUNT,
    "[refit]\nC = inf": "line 2: refit.C is inf: expected " + NUMBER,
    "[refit]\nC = nan": "line 2: refit.C is nan: expected " + NUMBER,
    "[refit]\nC = 1979-05-27": "line 2: refit.C is 1979-05-27: expected " + NUMBER,
    "[judge]\nmargin = 1": "line 2: judge.margin is 1: expected a number from 0 to below 1",
    "[refit]\ndrift = 1": "line 2: refit.drift is 1: expected true or false",
    "[labels]\nchanged = 'x'": "line 2: labels.changed is 'x': expected one of ignore, learn",
    "[stream]\nlabels = ''": "line 2: stream.labels is '': expected a path, or \"none\"",
    "[model]\nlearners = []": "line 2: model.learners is []: expected a list of names, at least one",
    "[model]\nlearners = 'h-arow'": (
        "line 2: model.learners is 'h-arow': expected a list of names, at least one"
    ),
    "[model]\nsettings = 1": ("line 2: model.settings is 1: expected a table of parameters for each learner"),
    "[model.settings]\nh-arow = 1": "line 2: model.settings.h-arow is 1: expected a table of parameters",
    "[model.settings.h-arow]\nr = [1]": (
        'line 2: model.settings.h-arow.r is [1]: expected a number, text, true, false or "none"'
    ),
    "[refit\n": "line 1, column 7: not TOML: expected ']' at the end of a table declaration",
    "[refit]\nlag = 1\nlag = 2\n": "line 3, column 8: not TOML: cannot overwrite a value",
    "a = " + "[" * 9999: ": nested too deeply: write one table for each subject",
    f"a = '{'x' * 2**20}'": ": more than 1048576 bytes: this is no configuration",
}


@pytest.mark.parametrize("text", WRONG_FILES, ids=lambda text: text[:30])
def test_a_mistake_in_a_file(text: str, job: Path) -> None:
    expected = WRONG_FILES[text]
    assert problems(text) == [f"job.toml{', ' if expected.startswith('line') else ''}{expected}"]


def test_files_that_cannot_be_read(job: Path) -> None:
    for path, problem in {
        "none.toml": "none.toml: cannot read: No such file or directory",
        ".": ".: cannot read: Is a directory",
        "a\0b": "a\0b: cannot read: embedded null byte",
    }.items():
        with pytest.raises(ConfigError) as caught:
            load_config(path, {}, {})
        assert caught.value.problems == (problem,)
    job.write_bytes(b"[refit]\nlag = '\xff'\n")
    with pytest.raises(ConfigError, match=r"^job\.toml, line 2: not UTF-8: save the file as UTF-8$"):
        load_config("job.toml", {}, {})
    job.write_bytes(b"\xef\xbb\xbf[refit]\r\nlag = 7\r\n")
    assert load_config("job.toml", {}, {}).origin["refit.lag"] == "job.toml, line 2"


WRONG_VARIABLES = {
    "STREAM_HC_REFIT_WINDW=5": "unknown variable: did you mean STREAM_HC_REFIT_WINDOW?",
    "STREAM_HC_STATE_X=": ("unknown variable: the keys of [state] are folder, keep, every, seconds"),
    "STREAM_HC_REFIT_LAG=many": "refit.lag is 'many': expected " + COUNT,
    "STREAM_HC_REFIT_DRIFT=1": "refit.drift is '1': expected true or false",
    "STREAM_HC_REFIT_TOL=nan": "refit.tol is 'nan': expected " + NUMBER,
    "STREAM_HC_MODEL_SETTINGS={": ('model.settings is not JSON: write it as {"h-arow": {"r": 0.1}}'),
    "STREAM_HC_MODEL_SETTINGS=[]": ("model.settings is []: expected a table of parameters for each learner"),
}


@pytest.mark.parametrize("variable", WRONG_VARIABLES)
def test_a_mistake_in_a_variable(variable: str, job: Path) -> None:
    name, _, text = variable.partition("=")
    assert problems("", {name: text}) == [f"{name}: {WRONG_VARIABLES[variable]}"]


def test_a_mistake_in_an_option(job: Path) -> None:
    assert problems(refit__lag=0, foo__bar=1, every=2) == [
        "--lag: refit.lag is 0: expected a whole number from 1 to 10^15",
        f"--foo-bar: unknown key foo.bar: the tables are {', '.join(TABLES)}",
        "--every: unknown key every: did you mean refit.every or judge.every or state.every?",
    ]


TOGETHER: dict[tuple[str, ...], str] = {
    ("model.learners=h-arow,pa,h-arow",): "model.learners names h-arow 2 times: name each learner once",
    ("model.learners=h-arrow",): "model.learners names 'h-arrow', which is no learner: did you mean h-arow?",
    ("model.learners=svm",): "model.learners names 'svm', which is no learner: choose from h-perceptron, ",
    ("model.learners=hm3",): "model.learners names hm3, the re-fitted model: set refit.enabled instead",
    ("model.settings.pa.C=1",): "model.settings.pa: pa is not in model.learners (h-arow): add it there",
    ("model.settings.hm3.C=1",): "model.settings.hm3: what the re-fitted model is told stands in [refit]",
    ("model.settings.h-arow.C=1",): "model.settings.h-arow.C: unknown: h-arow takes r, cold_start, ",
    ("model.settings.h-arow.n_features=1",): "model.settings.h-arow.n_features: unknown: h-arow takes r, ",
    ("model.settings.h-arow.r=-1",): "model.settings.h-arow.r: r must be positive and finite, not -1",
    (
        "refit.least=9000",
    ): "refit.least is 9000, more than refit.window, 5000: lower it, or raise refit.window",
    ("judge.sample=100",): "judge.least is 200, more than judge.sample, 100: lower it, or raise judge.sample",
    ("refit.enabled=true", "refit.every=none", "refit.drift=false"): (
        "refit.enabled, but nothing would begin a fit: set one of refit.every, refit.seconds and refit.drift"
    ),
    ("stream.documents=a", "stream.labels=./a"): "stream.labels is the same file as stream.documents, './a'",
    ("stream.labels=-",): "stream.labels is the same file as stream.documents, -: name another",
    ("stream.rejects=-",): "stream.rejects is the same file as stream.output, -: name another",
    ("stream.rejects=a", "stream.requests=a"): "stream.requests is the same file as stream.rejects, 'a'",
    ("stream.documents=a", "stream.output=a"): "stream.output is the same file as stream.documents, 'a'",
    ("model.taxonomy=a", "stream.output=a"): "stream.output is the same file as model.taxonomy, 'a'",
    (
        "stream.follow=true",
    ): "stream.follow is for files, and stream.documents is standard input: leave it out",
}


@pytest.mark.parametrize("options", TOGETHER)
def test_values_that_do_not_go_together(options: tuple[str, ...], job: Path) -> None:
    given = dict(option.split("=") for option in options)
    with pytest.raises(ConfigError) as caught:
        load_config(None, {}, given)
    (problem,) = caught.value.problems
    place, _, rest = problem.partition(": ")
    assert place in map(flag_of, given)
    assert rest.startswith(TOGETHER[options])


def test_parameters_a_learner_refuses_together(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"model.settings.h-arow.r": 0.5, "model.settings.h-arow.threshold": 0.1}
    monkeypatch.setattr(learners, "refusal", lambda learner, settings: "no" if len(settings) > 1 else "")
    with pytest.raises(ConfigError) as caught:
        load_config(None, {}, options)
    assert caught.value.problems == ("--set h-arow.r: model.settings.h-arow: no",)
    monkeypatch.setattr(learners, "refusal", lambda learner, settings: "no" if len(settings) < 2 else "")
    assert load_config(None, {}, options).value("model.settings.h-arow.r") == 0.5  # each needs the other


def test_what_goes_together_well() -> None:
    for options in (
        {"refit.enabled": True, "refit.every": "none", "refit.drift": False, "refit.seconds": 60},
        {"refit.every": "none", "refit.drift": False},  # not enabled
        {"stream.documents": "/dev/null", "stream.output": "/dev/null", "stream.rejects": "/dev/null"},
        {"stream.follow": True, "stream.documents": "docs.jsonl"},
        {"refit.loss": "h_tilde"},
    ):
        assert load_config(None, {}, options).config != Config()


def test_every_mistake_is_reported_and_nothing_follows_from_one(job: Path) -> None:
    text = """\
[refit]
window = 0
least = 9000
[model]
learners = 5
[model.settings.pa]
C = 1
[judge]
last = 1
"""
    variables = {"STREAM_HC_REFIT_WINDOW": "10000", "STREAM_HC_JUDGE_LEAST": "5000"}
    assert problems(text, variables, stream__limit=0) == [
        "job.toml, line 2: refit.window is 0: expected a whole number from 1 to 10^15",
        "job.toml, line 5: model.learners is 5: expected a list of names, at least one",
        "job.toml, line 9: unknown key judge.last: did you mean judge.least?",
        '--limit: stream.limit is 0: expected a whole number from 1 to 10^15, or "none"',
        "STREAM_HC_JUDGE_LEAST: judge.least is 5000, more than judge.sample, 1000: "
        "lower it, or raise judge.sample",
    ]
    (problem,) = problems("[", {"STREAM_HC_JUDGE_LEAST": "5000"})  # the file may raise the sample
    assert problem == "job.toml, end of document: not TOML: invalid initial character for a key part"


def test_lines_of_all_kinds_of_statements() -> None:
    text = '''a = 1 # one
"b c".d = [
  1, # ]
  "]",
]

[x]
y = """
z = 1
[w]
"""
in.line = { p = 1, q = { r = 2 } }
  [ x . "k.l" ]
m = 2
[[n]]
o = 1
'''
    assert line_numbers(text) == {
        ("a",): 1,
        ("b c",): 2,
        ("b c", "d"): 2,
        ("x",): 7,
        ("x", "y"): 8,
        ("x", "in"): 12,
        ("x", "in", "line"): 12,
        ("x", "in", "line", "p"): 12,
        ("x", "in", "line", "q"): 12,
        ("x", "in", "line", "q", "r"): 12,
        ("x", "k.l"): 13,
        ("x", "k.l", "m"): 14,
        ("n",): 15,
        ("n", "o"): 16,
    }
    endless = "a = [\n" + "1,\n" * 1_100 + "]\nb = 1\n"
    assert set(tomllib.loads(endless)) == {"a", "b"}
    assert line_numbers(endless) == {}  # gives up, and is done at once


def values_of(key: Key) -> st.SearchStrategy[Any]:
    text = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r"), min_size=1)
    kind = key.kind
    if isinstance(kind, msgspec.inspect.StrType) and not key.is_path and kind.pattern is not None:
        return st.from_regex(kind.pattern, fullmatch=True).filter(lambda name: name.lower() != "none")
    if isinstance(kind, msgspec.inspect.StrType):
        return text.filter(lambda path: path == path.strip() and path.lower() != "none")
    if isinstance(kind, msgspec.inspect.LiteralType):
        return st.sampled_from(kind.values)
    return {
        msgspec.inspect.BoolType: st.booleans(),
        msgspec.inspect.IntType: st.integers(1, min(getattr(kind, "le", None) or 2**31 - 1, 2**31 - 1)),
        msgspec.inspect.FloatType: st.floats(0.001, 0.999),
    }[type(kind)]


SIMPLE = [key for key in KEYS.values() if key.field not in ("learners", "settings", "hosts")]


@given(st.data())
def test_a_value_is_the_same_by_every_way(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(SIMPLE))
    value = data.draw(values_of(key))
    reading = Reading()
    reading.environment({key.variable: str(value).lower() if isinstance(value, bool) else str(value)})
    reading.options({key.name: value}, {})
    again = Reading()
    again.take(Given((key.table, key.field), value, "job.toml"))
    assert reading.problems == again.problems == []
    assert reading.configured().value(key.name) == again.configured().value(key.name) == value


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
WORDS = ["settings", "learners", "h-arow", "window", "every", "seconds", "documents", "r", ""]
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.tuples(st.sampled_from([*TABLES, "x"]), st.sampled_from(WORDS)), ANYTHING))
def test_whatever_is_given_there_is_a_configuration_or_a_list_of_problems(given: dict[Any, Any]) -> None:
    problems: tuple[str, ...] = ()
    found = None
    try:
        found = load_config(None, {}, {".".join(path): value for path, value in given.items()})
    except ConfigError as error:
        problems = error.problems
    assert (found is None) == bool(problems)
    if found is not None:
        assert msgspec.convert(msgspec.to_builtins(found.config), Config) == found.config


def test_every_key_says_what_it_means_and_has_limits() -> None:
    for key in KEYS.values():
        assert key.meaning.endswith("."), key.name
        assert len(key.allowed) > 3
        assert msgspec.convert(key.default, key.type) == key.default
    assert all(summary_of(table).endswith(".") for table in TABLES)
    assert len({key.variable for key in KEYS.values()}) == len(KEYS)
    unlimited = Key("t", "f", Annotated[int, Meta(ge=1)], 1, "")
    with pytest.raises(AssertionError, match="limits on both sides"):
        _ = unlimited.allowed
    assert Key("t", "f", str, "", "").allowed == "text"


def test_secrets_are_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broker(Table, frozen=True):
        host: str = "h"
        password: Annotated[str, Meta(max_length=5)] | None = None

    assert repr(Broker(password="tulip")) == "Broker(host='h', password='***')"
    assert repr(Broker()) == "Broker(host='h', password=None)"
    assert hidden("broker.api_Token", "tulip") == "***"
    assert hidden("x", {"y": {"secret": "tulip", "z": 1}}) == {"y": {"secret": "***", "z": 1}}
    monkeypatch.setitem(TABLES, "refit", Broker)
    monkeypatch.setitem(
        KEYS, "refit.password", Key("refit", "password", Broker.__annotations__["password"], None, "")
    )
    reading = Reading()
    reading.environment(
        {"STREAM_HC_REFIT_PASSWORD": "tulips", "STREAM_HC_MODEL_SETTINGS": '{"x": {"token": [7]}}'}
    )
    assert reading.problems == [
        "STREAM_HC_MODEL_SETTINGS: model.settings.x.token is ***: "
        'expected a number, text, true, false or "none"',
        'STREAM_HC_REFIT_PASSWORD: refit.password is ***: expected text, or "none"',
    ]


TREE, DAG = "sport\t\ntennis\tsport\n", "a\t\nb\t\nc\ta\nc\tb\n"


def found_in_files(**options: Any) -> list[str]:
    named = {name.replace("__", "."): value for name, value in options.items()}
    return file_problems(load_config(None, {}, named))


def test_files_and_folders(job: Path) -> None:
    for name, content in {"docs": "", "tree.tsv": TREE, "bad.tsv": "a\tb\n", "empty.tsv": ""}.items():
        Path(name).write_text(content)
    Path("sub").mkdir()
    assert found_in_files() == []
    fine = {"stream__output": "sub/out", "state__folder": "sub/deep/state", "model__taxonomy": "tree.tsv"}
    assert found_in_files(stream__documents="docs", stream__rejects="rejects", **fine) == []
    assert not Path("sub/deep").exists()
    assert found_in_files(stream__documents="later", stream__follow=True) == []
    assert found_in_files(stream__output="docs", state__folder="sub") == []
    for option, problem in {
        "stream.documents=later": "the file does not exist",
        "stream.documents=sub": "this is a folder: name a file",
        "stream.labels=no/later": "the file does not exist",
        "stream.output=no/out": "the folder does not exist: make it first",
        "stream.requests=sub": "this is a folder: name a file",
        "state.folder=docs": "this is a file: name a folder",
        "state.folder=docs/x": f"{job.parent / 'docs'} is a file",
        "model.taxonomy=none.tsv": "cannot read the taxonomy: No such file or directory",
        "model.taxonomy=bad.tsv": "node 'a' has the unknown parent 'b'",
        "model.taxonomy=empty.tsv": "the taxonomy has no nodes: write a line for each",
    }.items():
        name, _, path = option.partition("=")
        assert found_in_files(**{name: path}) == [f"{flag_of(name)}: {name}: {path}: {problem}"]
    assert found_in_files(stream__documents="no/later", stream__follow=True) != []


def test_files_without_permission(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("docs").write_text("")
    Path("out").write_text("")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    found = found_in_files(
        stream__documents="docs", stream__output="out", stream__rejects="new", state__folder="state"
    )
    assert [problem.partition(": ")[2] for problem in found] == [
        "stream.documents: docs: the file is not readable",
        "stream.output: out: the file is not writable",
        "stream.rejects: new: the folder is not writable",
        f"state.folder: state: {job.parent} is not writable",
    ]


def test_what_a_dag_does_not_allow(job: Path) -> None:
    Path("dag.tsv").write_text(DAG)
    dag = {"model__taxonomy": "dag.tsv"}
    assert found_in_files(**dag, refit__loss="h_tilde", refit__costs="sibling") == []  # not enabled
    found = found_in_files(
        **dag, model__learners="h-arow,hpa", model__costs="sibling", refit__enabled=True,
        refit__loss="h_tilde", refit__costs="subtree",
    )  # fmt: skip
    assert [problem.split(": ")[:2] for problem in found] == [
        ["--learners", "hpa"],
        ["--model-costs", "model.costs"],
        ["--refit-costs", "refit.costs"],
        ["--loss", "refit.loss"],
    ]
